// All that this folder asks of the kernel, so that tests can answer in its
// place, and fail any call with any error. Called by NpuFile and by the search
// for the NPU's node, nobody else.

#ifndef DRIVER_RKNPU_KERNEL_KERNEL_CALLS_H_
#define DRIVER_RKNPU_KERNEL_KERNEL_CALLS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace rknnd::rknpu {

// What a call returns below zero is an errno with its sign turned. Thread: any.
class KernelCalls {
 public:
  virtual ~KernelCalls() = default;

  // The names in a folder, sorted; none where it is not there.
  virtual std::vector<std::string> List(const std::string& folder) = 0;
  // For reading and writing, close-on-exec.
  virtual int Open(const std::string& path) = 0;
  virtual void Close(int fd) = 0;
  // Called once, whatever happens.
  virtual int Ioctl(int fd, uint64_t request, void* argument) = 0;
  // The same, again for as long as a signal or a busy device interrupts it.
  virtual int RestartedIoctl(int fd, uint64_t request, void* argument) = 0;
  // Shared, to read and write. Null: `error` says why.
  virtual std::byte* Map(int fd, uint64_t offset, size_t size, int* error) = 0;
  virtual void Unmap(std::byte* data, size_t size) = 0;
  // Says which memory an fd is, whatever number it has. False: it is none.
  virtual bool Identify(int fd, uint64_t* device, uint64_t* inode) = 0;
};

// The real ones, by libdrm.
std::unique_ptr<KernelCalls> MakeKernelCalls();

}  // namespace rknnd::rknpu

#endif  // DRIVER_RKNPU_KERNEL_KERNEL_CALLS_H_
