// One open file of the NPU's driver: its calls with types, names for their
// errors, and the differences between versions and builds of the driver. Knows
// buffers and submits, nothing of programs or policy (kernel_backend.h).
//
// The driver believes what it is told: a wrong token crashes the kernel. So
// tokens are never handed out: they stay in NpuBuffer.

#ifndef DRIVER_RKNPU_KERNEL_NPU_FILE_H_
#define DRIVER_RKNPU_KERNEL_NPU_FILE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/mutex.h"
#include "driver/rknpu/kernel/kernel_calls.h"
#include "driver/rknpu/kernel/npu_node.h"
#include "driver/rknpu/kernel/uapi.h"

namespace rknnd::rknpu {

class NpuFile;

// Memory that the NPU reaches: the driver's own, or somebody's dma-buf. Mapped
// where it was made here. Given back when it goes; no job may use it then.
class NpuBuffer {
 public:
  NpuBuffer(const NpuBuffer&) = delete;
  NpuBuffer& operator=(const NpuBuffer&) = delete;
  ~NpuBuffer();

  [[nodiscard]] uint64_t size() const { return size_; }
  [[nodiscard]] uint64_t address() const { return address_; }
  // From its start, so many bytes lie in SRAM.
  [[nodiscard]] uint64_t sram() const { return sram_; }
  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }

  // Of a buffer whose memory the CPU caches. FAILED_PRECONDITION: the driver
  // has no caches to synchronise for this one.
  [[nodiscard]] absl::Status Sync(uint32_t flags, uint64_t offset,
                                  uint64_t size) const;
  // A dma-buf of it, the caller's to close.
  [[nodiscard]] absl::StatusOr<int> Export() const;

 private:
  friend class NpuFile;
  explicit NpuBuffer(std::shared_ptr<NpuFile> file) : file_(std::move(file)) {}

  const std::shared_ptr<NpuFile> file_;
  uint32_t handle_ = 0;
  uint64_t size_ = 0, token_ = 0, address_ = 0, sram_ = 0;
  std::span<std::byte> bytes_;
  // Of an imported one: which dma-buf it is.
  bool imported_ = false;
  std::pair<uint64_t, uint64_t> identity_;
  // Cleared once the driver has said that it is not for it.
  mutable std::atomic<bool> may_sync_{true};
};

// The driver's version: 908 is "0.9.8".
struct DriverVersion {
  uint32_t number = 0;  // as the driver tells it: 908
  [[nodiscard]] std::string Text() const;
};

// Thread: any. Calls that change which handles there are come one at a time:
// two of them race in the kernel.
class NpuFile : public std::enable_shared_from_this<NpuFile> {
 public:
  // UNIMPLEMENTED: a driver too old for us.
  static absl::StatusOr<std::shared_ptr<NpuFile>> Open(KernelCalls& kernel,
                                                       const NpuNode& node);
  ~NpuFile();
  NpuFile(const NpuFile&) = delete;
  NpuFile& operator=(const NpuFile&) = delete;

  [[nodiscard]] const NpuNode& node() const { return node_; }
  [[nodiscard]] DriverVersion version() const { return version_; }
  [[nodiscard]] uint32_t hardware() const { return hardware_; }
  // Bytes; 0 where the driver gives none.
  [[nodiscard]] uint64_t total_sram() const { return total_sram_; }
  absl::StatusOr<uint32_t> Frequency();
  absl::StatusOr<uint64_t> FreeSram();

  struct Wish {
    bool cached = true;
    bool is_task_table = false;
    // At most so many bytes of SRAM, where there is any. 0: none.
    uint64_t sram = 0;
    bool map = true;
  };
  // Zeroed. RESOURCE_EXHAUSTED: no memory, or no addresses.
  absl::StatusOr<std::unique_ptr<NpuBuffer>> Create(uint64_t size,
                                                    const Wish& wish);
  // Somebody's dma-buf; the same one gives the same buffer for as long as that
  // lives, as the driver has one handle for all imports of it.
  absl::StatusOr<std::shared_ptr<NpuBuffer>> Import(int dma_buf);

  struct Submission {
    const NpuBuffer* tasks = nullptr;
    uint32_t core_mask = 0;
    uint32_t timeout_ms = 0;
    // By core.
    std::span<const uapi::SubcoreTask> ranges;
  };
  // Waits for the end of the job; 0 or an errno. `counter`: tasks done, as the
  // driver tells it; `ran`: nanoseconds on the hardware.
  int Submit(const Submission& job, uint32_t* counter, int64_t* ran);
  absl::Status Reset();

 private:
  friend class NpuBuffer;
  NpuFile(KernelCalls& kernel, NpuNode node, int fd)
      : kernel_(kernel), node_(std::move(node)), fd_(fd) {}

  template <class T>
  int Call(uint32_t number, T* argument) {
    return kernel_.RestartedIoctl(fd_, uapi::Request<T>(node_.drm, number),
                                  argument);
  }
  absl::StatusOr<uint32_t> Act(uint32_t action, const char* name);
  absl::Status MapBuffer(NpuBuffer& buffer);
  void Destroy(NpuBuffer& buffer);

  KernelCalls& kernel_;
  const NpuNode node_;
  const int fd_;
  DriverVersion version_;
  uint32_t hardware_ = 0;
  uint64_t total_sram_ = 0;
  base::Mutex mutex_;
  std::map<std::pair<uint64_t, uint64_t>, std::weak_ptr<NpuBuffer>> imports_
      RKNND_GUARDED_BY(mutex_);
};

}  // namespace rknnd::rknpu

#endif  // DRIVER_RKNPU_KERNEL_NPU_FILE_H_
