// What one context of the NPU may touch: ranges of its address space, each
// backed by bytes of this process. Programs come from files that nobody vouches
// for, so every access of the emulator is looked up here, with its whole
// length; an address that no range covers is never touched.
//
// Nothing is owned: the bytes outlive their entry. Thread: any number may look
// up at once; Attach and Detach need the object alone.

#ifndef DRIVER_RKNPU_EMULATOR_MEMORY_H_
#define DRIVER_RKNPU_EMULATOR_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"

namespace rknnd::rknpu {

struct Region {
  uint64_t address = 0;  // as the NPU sees its first byte
  std::span<std::byte> bytes;
  bool writable = true;

  // `size` bytes from `at`; null: they are not all inside.
  [[nodiscard]] std::byte* At(uint64_t at, uint64_t size) const {
    const uint64_t inside = at - address;
    if (at < address || inside > bytes.size() || size > bytes.size() - inside) {
      return nullptr;
    }
    return bytes.data() + inside;
  }
};

class Memory {
 public:
  // Refuses an empty range, one that ends beyond 32 bits (the registers that
  // hold addresses have no more) and one that overlaps another.
  absl::Status Attach(const Region& region);
  // The range that begins at `address`; NOT_FOUND if none does.
  absl::Status Detach(uint64_t address);

  // Where `size` bytes (at least one) from `address` lie, all in one range;
  // null: they do not, or may not be written.
  [[nodiscard]] const std::byte* Readable(uint64_t address,
                                          uint64_t size) const;
  [[nodiscard]] std::byte* Writable(uint64_t address, uint64_t size) const;
  // The range itself; null: no range holds all of it.
  [[nodiscard]] const Region* Find(uint64_t address, uint64_t size) const;

  // Ordered by address.
  [[nodiscard]] std::span<const Region> regions() const { return regions_; }

 private:
  std::vector<Region> regions_;
};

}  // namespace rknnd::rknpu

#endif  // DRIVER_RKNPU_EMULATOR_MEMORY_H_
