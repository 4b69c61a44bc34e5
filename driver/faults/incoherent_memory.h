// Memory as an NPU without cache coherence sees it. In that mode the device
// works on a copy of its own (what is in DRAM), the CPU on the memory itself
// (what is in its cache), and only a synchronisation moves what one of them
// wrote to the other, in lines. Otherwise this is the memory.
// Made by FaultyDevice for all that is attached; the bytes are a client's.

#ifndef DRIVER_FAULTS_INCOHERENT_MEMORY_H_
#define DRIVER_FAULTS_INCOHERENT_MEMORY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/mapping.h"
#include "base/posix/mutex.h"
#include "base/posix/unique_fd.h"
#include "driver/device.h"

namespace rknnd::driver {

// One piece of memory in that mode. Thread: any.
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

  // The mode ends: jobs that still work on this leave nothing behind in it.
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

// A piece of memory and, in that mode, its shadow. Shared: one that is copied
// may be given up meanwhile. Thread: any.
class ShadowedMemory {
 public:
  ShadowedMemory(base::UniqueFd fd, uint64_t offset, uint64_t size,
                 MemoryAccess access)
      : fd_(std::move(fd)), offset_(offset), size_(size), access_(access) {}

  // Copies all of the memory, one way or the other; never two at once. Without
  // room for a copy it stays coherent. When the mode ends both sides are made
  // to agree.
  void SetIncoherent(Device& device, bool incoherent);
  // Null while it is coherent.
  [[nodiscard]] std::shared_ptr<ShadowMemory> shadow() const;
  [[nodiscard]] uint64_t size() const { return size_; }

 private:
  const base::UniqueFd fd_;
  const uint64_t offset_, size_;
  const MemoryAccess access_;

  mutable base::Mutex mutex_;
  std::shared_ptr<ShadowMemory> shadow_ RKNND_GUARDED_BY(mutex_);
};

// All memory of one device. Shared with each, and outlives none of it. What
// comes and goes waits for no copying of others'. Thread: any.
class MemoryRegister {
 public:
  // The mode begins or ends for all there is; returns when it has, so it is not
  // for threads that must go on.
  void SetIncoherent(Device& device, bool incoherent);

  // From now on `memory` follows; once this has returned, it has the mode.
  void Add(Device& device, const std::shared_ptr<ShadowedMemory>& memory);
  void Remove(const std::shared_ptr<ShadowedMemory>& memory);

 private:
  base::Mutex changing_;  // held over all the copying, by those who change it
  base::Mutex mutex_;     // for no longer than a look
  bool incoherent_ RKNND_GUARDED_BY(mutex_) = false;
  std::set<std::shared_ptr<ShadowedMemory>> all_ RKNND_GUARDED_BY(mutex_);
};

// Thread: any.
class IncoherentMemory final : public Memory {
 public:
  static absl::StatusOr<std::unique_ptr<Memory>> Attach(
      Device& device, std::shared_ptr<MemoryRegister> all,
      const MemoryRef& memory, MemoryAccess access);
  ~IncoherentMemory() override { all_->Remove(shadowed_); }
  IncoherentMemory(const IncoherentMemory&) = delete;
  IncoherentMemory& operator=(const IncoherentMemory&) = delete;

  [[nodiscard]] uint64_t size() const override { return direct_->size(); }
  void Clear(uint64_t offset, uint64_t bytes) override {
    direct_->Clear(offset, bytes);
  }
  void Synchronize(CacheSide side) override;
  // By the CPU, whose side of both is the memory itself.
  absl::Status CopyFrom(const Memory& from, uint64_t from_offset,
                        uint64_t offset, uint64_t bytes) override {
    return direct_->CopyFrom(
        *static_cast<const IncoherentMemory&>(from).direct(), from_offset,
        offset, bytes);
  }

  // The wrapped device's own object.
  [[nodiscard]] Memory* direct() const { return direct_.get(); }
  // Null while it is coherent.
  [[nodiscard]] std::shared_ptr<ShadowMemory> shadow() const {
    return shadowed_->shadow();
  }

 private:
  IncoherentMemory(std::unique_ptr<Memory> direct,
                   std::shared_ptr<MemoryRegister> all,
                   std::shared_ptr<ShadowedMemory> shadowed)
      : direct_(std::move(direct)),
        all_(std::move(all)),
        shadowed_(std::move(shadowed)) {}

  const std::unique_ptr<Memory> direct_;
  const std::shared_ptr<MemoryRegister> all_;
  const std::shared_ptr<ShadowedMemory> shadowed_;
};

}  // namespace rknnd::driver

#endif  // DRIVER_FAULTS_INCOHERENT_MEMORY_H_
