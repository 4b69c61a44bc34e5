// Memory behind somebody's fd, mapped for the software NPU. Its contents belong
// to a client: tensors only.

#ifndef DRIVER_SOFT_ATTACHED_MEMORY_H_
#define DRIVER_SOFT_ATTACHED_MEMORY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/mapping.h"
#include "base/posix/unique_fd.h"
#include "driver/device.h"
#include "driver/memory/cache_state.h"

namespace rknnd::soft {

// Thread: any.
class AttachedMemory final : public driver::Memory {
 public:
  // Keeps the memory alive by itself; the fd may be closed. `is_dma_buf`: the
  // kernel has calls for its caches.
  static absl::StatusOr<std::unique_ptr<driver::Memory>> Map(
      const driver::MemoryRef& memory, driver::MemoryAccess access,
      bool is_dma_buf);

  [[nodiscard]] uint64_t size() const override { return bytes_.size(); }
  // A client that maps the memory may make a page of it fault: what cannot be
  // reached holds nothing to clear.
  void Clear(uint64_t offset, uint64_t bytes) override;
  void Synchronize(driver::CacheSide /*side*/) override { caches_.Forget(); }
  absl::Status CopyFrom(const driver::Memory& from, uint64_t from_offset,
                        uint64_t offset, uint64_t bytes) override;
  [[nodiscard]] bool writable() const { return writable_; }
  // Pages of it went away while a job worked in it, and zeros of this process
  // alone are in their place: nobody else sees what is written there.
  [[nodiscard]] bool torn() const {
    return torn_.load(std::memory_order_relaxed);
  }
  void SetTorn() { torn_.store(true, std::memory_order_relaxed); }
  // A descriptor of it where the CPU's caches need the kernel's help; else -1.
  [[nodiscard]] int dma_buf() const {
    return caches_.coherent() ? -1 : dma_buf_.get();
  }
  // A descriptor of it for drivers of other devices, which find this memory
  // from offset() on; -1: it is no dma-buf.
  [[nodiscard]] int shareable() const { return dma_buf_.get(); }
  [[nodiscard]] uint64_t offset() const { return offset_; }
  // What another device of this process wants to live as long. Before anybody
  // else knows the memory.
  void Keep(std::shared_ptr<const void> kept) { kept_ = std::move(kept); }
  // What a device whose work is done in another process knows this memory by;
  // null: there is no such device. Set before anybody else knows the memory.
  void SetElsewhere(std::shared_ptr<void> elsewhere) {
    elsewhere_ = std::move(elsewhere);
  }
  [[nodiscard]] void* elsewhere() const { return elsewhere_.get(); }
  // Whether the CPU cleared some of it since the last question.
  [[nodiscard]] bool TakeCleared() {
    return cleared_.exchange(false, std::memory_order_relaxed);
  }
  [[nodiscard]] driver::CacheState& caches() { return caches_; }
  // What lies behind `offset`; empty when that is past the end.
  [[nodiscard]] std::span<std::byte> From(uint64_t offset) const {
    if (offset > bytes_.size()) return {};
    return bytes_.subspan(static_cast<size_t>(offset));
  }

 private:
  AttachedMemory(base::Mapping mapping, std::span<std::byte> bytes,
                 base::UniqueFd dma_buf, const driver::MemoryRef& memory,
                 bool writable)
      : mapping_(std::move(mapping)),
        bytes_(bytes),
        dma_buf_(std::move(dma_buf)),
        offset_(memory.offset),
        caches_(memory.origin, dma_buf_.valid()),
        writable_(writable) {}

  base::Mapping mapping_;
  std::span<std::byte> bytes_;  // of the mapping, which starts at a page
  base::UniqueFd dma_buf_;
  const uint64_t offset_;
  driver::CacheState caches_;
  bool writable_;
  std::atomic<bool> torn_{false};
  std::shared_ptr<const void> kept_;
  std::shared_ptr<void> elsewhere_;
  // The kernel's zeroes may be in the CPU's cache, too.
  std::atomic<bool> cleared_{true};
};

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_ATTACHED_MEMORY_H_
