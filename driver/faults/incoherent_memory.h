// Memory as an NPU without cache coherence sees it. While the fault is on, the
// device works on a copy of its own (what is in DRAM), the CPU on the memory
// itself (what is in its cache), and only a synchronisation moves what one of
// them wrote to the other, in lines. While it is off, this is the memory.
// Made by FaultyDevice for all that is attached; the bytes are a client's.

#ifndef DRIVER_FAULTS_INCOHERENT_MEMORY_H_
#define DRIVER_FAULTS_INCOHERENT_MEMORY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/mapping.h"
#include "base/posix/mutex.h"
#include "base/posix/unique_fd.h"
#include "driver/device.h"

namespace rknnd::driver {

// One piece of memory while the fault is on. Thread: any.
class ShadowMemory {
 public:
  // A copy of `memory` as it is now, attached to `device`.
  static absl::StatusOr<std::shared_ptr<ShadowMemory>> Make(
      Device& device, const MemoryRef& memory, MemoryAccess access);

  // What the device is given instead.
  [[nodiscard]] Memory* memory() const { return memory_.get(); }
  // Lines that the CPU wrote since they were last the same, to the device.
  void Clean(uint64_t offset, uint64_t bytes);
  // The device's bytes to the CPU; what the CPU wrote there is lost.
  void Invalidate(uint64_t offset, uint64_t bytes);

  // The fault ends: jobs that still work on this leave nothing behind in it.
  void Retire() { retired_ = true; }
  [[nodiscard]] bool retired() const { return retired_; }

 private:
  ShadowMemory() = default;
  absl::Status CopyAll();
  // Widened to whole lines; empty past the end.
  [[nodiscard]] std::span<std::byte> Lines(std::span<std::byte> of,
                                           uint64_t offset,
                                           uint64_t bytes) const;

  std::unique_ptr<Memory> memory_;
  base::Mapping cpu_mapping_, device_mapping_, known_mapping_;
  std::span<std::byte> cpu_, device_;
  bool writable_ = false;
  std::atomic<bool> retired_{false};
  base::Mutex mutex_;
  // The CPU's view when each line was last the same on both sides.
  std::span<std::byte> known_ RKNND_GUARDED_BY(mutex_);
};

class IncoherentMemory;

// All memory of one device. Outlives none of it: shared with each. Its lock is
// held while copies are made and given up, so that no memory comes or goes
// meanwhile; nothing that it calls then comes back here. Thread: any.
class MemoryRegister {
 public:
  // The fault begins or ends for all there is. On ending, both sides are made
  // to agree.
  void SetIncoherent(Device& device, bool incoherent);

 private:
  friend class IncoherentMemory;
  base::Mutex mutex_;
  bool incoherent_ RKNND_GUARDED_BY(mutex_) = false;
  std::set<IncoherentMemory*> all_ RKNND_GUARDED_BY(mutex_);
};

// Thread: any.
class IncoherentMemory final : public Memory {
 public:
  static absl::StatusOr<std::unique_ptr<Memory>> Attach(
      Device& device, std::shared_ptr<MemoryRegister> all,
      const MemoryRef& memory, MemoryAccess access);
  ~IncoherentMemory() override;
  IncoherentMemory(const IncoherentMemory&) = delete;
  IncoherentMemory& operator=(const IncoherentMemory&) = delete;

  [[nodiscard]] uint64_t size() const override { return direct_->size(); }
  void Clear(uint64_t offset, uint64_t bytes) override {
    direct_->Clear(offset, bytes);
  }
  void Synchronize(CacheSide side) override;

  // The wrapped device's own object.
  [[nodiscard]] Memory* direct() const { return direct_.get(); }
  // Null while the fault is off.
  [[nodiscard]] std::shared_ptr<ShadowMemory> shadow() const;

 private:
  friend class MemoryRegister;
  IncoherentMemory(std::unique_ptr<Memory> direct,
                   std::shared_ptr<MemoryRegister> all)
      : direct_(std::move(direct)), all_(std::move(all)) {}

  void Begin(Device& device);
  void End();

  const std::unique_ptr<Memory> direct_;
  const std::shared_ptr<MemoryRegister> all_;
  base::UniqueFd fd_;
  uint64_t offset_ = 0;
  MemoryAccess access_ = MemoryAccess::kReadWrite;

  mutable base::Mutex mutex_;
  std::shared_ptr<ShadowMemory> shadow_ RKNND_GUARDED_BY(mutex_);
};

}  // namespace rknnd::driver

#endif  // DRIVER_FAULTS_INCOHERENT_MEMORY_H_
