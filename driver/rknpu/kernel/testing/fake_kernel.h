// The kernel and its NPU driver in a test's process: memory with handles,
// tokens and addresses as the driver gives them, jobs computed by the emulator.
// It notices what a real driver would suffer in silence, and fails on demand.
//
// Cached memory has two sides, as on a board: what one side writes reaches the
// other by MEM_SYNC alone.

#ifndef DRIVER_RKNPU_KERNEL_TESTING_FAKE_KERNEL_H_
#define DRIVER_RKNPU_KERNEL_TESTING_FAKE_KERNEL_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "driver/rknpu/emulator/emulator.h"
#include "driver/rknpu/kernel/kernel_calls.h"
#include "driver/rknpu/kernel/uapi.h"

namespace rknnd::rknpu::testing {

// What becomes of a SUBMIT.
enum class SubmitFault : uint8_t {
  kNone,
  kHang,         // ETIMEDOUT, after a reset by the driver
  kReset,        // EINVAL: somebody reset the NPU meanwhile
  kCounterZero,  // success, and no task counted
  kGone,         // ENODEV
  kMemory,       // ENOMEM, before it began
};

struct FakeNode {
  std::string driver = "rknpu";
  std::string description = "RKNPU driver";
  int open_error = 0;
};

// Thread: any.
class FakeKernel final : public KernelCalls {
 public:
  FakeKernel();
  ~FakeKernel() override;

  // Before it is used.
  std::map<std::string, FakeNode> nodes = {{"/dev/dri/renderD129", {}}};
  uint32_t version = 908;
  uint64_t sram = 0;
  // Cores whose jobs never end.
  std::set<uint32_t> dead_cores;

  // The call of this number, from 0, fails with an errno.
  void FailCall(uint64_t number, int error);
  // What becomes of the next submits, in order.
  void Expect(std::vector<SubmitFault> faults);

  [[nodiscard]] uint64_t calls() const;
  // Of one kind since the last question.
  uint64_t TakeCount(uapi::Number number);
  // Buffers that are there.
  [[nodiscard]] size_t buffers() const;
  // Descriptors that Open() gave and nobody closed.
  [[nodiscard]] size_t open_files() const;
  // What no correct program does: a sentence each.
  [[nodiscard]] std::vector<std::string> complaints() const;
  // The driver's resets, asked for or not.
  [[nodiscard]] uint64_t resets() const;

  std::vector<std::string> List(const std::string& folder) override;
  int Open(const std::string& path) override;
  void Close(int fd) override;
  int Ioctl(int fd, uint64_t request, void* argument) override;
  int RestartedIoctl(int fd, uint64_t request, void* argument) override;
  std::byte* Map(int fd, uint64_t offset, size_t size, int* error) override;
  void Unmap(std::byte* data, size_t size) override;
  bool Identify(int fd, uint64_t* device, uint64_t* inode) override;

 private:
  struct Object;
  using Lock = std::lock_guard<std::mutex>;

  // Whether this call is to fail, and how.
  int Fate();
  void Complain(const std::string& what) { complaints_.push_back(what); }
  std::shared_ptr<Object> OfToken(uint64_t token) const;
  std::shared_ptr<Object> OfFd(int fd);
  std::shared_ptr<Object> MakeObject(uint64_t size, uint32_t flags, int memfd);
  int MakeFd(uint64_t size);
  int Act(uapi::Action* call);
  int Create(uapi::MemCreate* call, bool drm);
  int Destroy(const uapi::MemDestroy& call);
  int Sync(const uapi::MemSync& call);
  int Submit(uapi::Submit* call);
  int Execute(const uapi::Submit& call, const Object& tasks, uint32_t* done);

  mutable std::mutex mutex_;
  std::map<int, std::string> files_;  // open nodes
  std::map<uint32_t, std::shared_ptr<Object>> handles_;
  std::vector<std::weak_ptr<Object>> objects_;
  std::vector<std::shared_ptr<Object>> exported_;
  uint64_t next_token_ = 0xffff888000000000;
  uint64_t next_address_ = 0xffff0000;
  uint32_t next_handle_ = 1;
  uint64_t calls_ = 0;
  std::map<uint64_t, int> failures_;
  std::map<uint32_t, uint64_t> counts_;
  std::deque<SubmitFault> faults_;
  std::vector<std::string> complaints_;
  uint64_t resets_ = 0;
  uint32_t busy_ = 0;
  Machine machine_;
};

}  // namespace rknnd::rknpu::testing

#endif  // DRIVER_RKNPU_KERNEL_TESTING_FAKE_KERNEL_H_
