// A part of memory that a task walks through in steps, as one whole: the fast
// engine takes only tasks each of whose parts lies inside one range, so that
// its loops need no further checks.

#ifndef DRIVER_RKNPU_EMULATOR_FAST_EXTENT_H_
#define DRIVER_RKNPU_EMULATOR_FAST_EXTENT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "driver/rknpu/emulator/access.h"

namespace rknnd::rknpu::fast {

struct Walk {
  int64_t step = 0;
  uint32_t count = 1;
};

// From `low` up to, not including, `high`.
struct Extent {
  int64_t low = 0, high = 0;

  // What lies at `base` plus any number of steps of each walk, `size` bytes.
  Extent(uint64_t base, std::initializer_list<Walk> walks, int64_t size)
      : low(static_cast<int64_t>(base)), high(low + size) {
    for (const Walk& walk : walks) {
      const int64_t reach = walk.step * (int64_t{walk.count} - 1);
      low += std::min<int64_t>(reach, 0);
      high += std::max<int64_t>(reach, 0);
    }
  }

  [[nodiscard]] bool Meets(const Extent& other) const {
    return low < other.high && other.low < high;
  }
  // Where `base` lies in this process; null: the extent is not in one range.
  [[nodiscard]] std::byte* At(uint64_t base, bool write,
                              const Access& access) const {
    std::byte* const first =
        access.Whole(low, static_cast<uint64_t>(high - low), write);
    return first == nullptr ? nullptr
                            : first + (static_cast<int64_t>(base) - low);
  }
};

}  // namespace rknnd::rknpu::fast

#endif  // DRIVER_RKNPU_EMULATOR_FAST_EXTENT_H_
