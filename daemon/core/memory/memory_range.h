// Bytes that a job uses, known by what the kernel calls the memory they are in:
// two buffers, sessions or processes that hold the same memory are found out.

#ifndef DAEMON_CORE_MEMORY_MEMORY_RANGE_H_
#define DAEMON_CORE_MEMORY_MEMORY_RANGE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "driver/memory/import.h"

namespace rknnd::core {

struct MemoryRange {
  driver::MemoryIdentity identity;
  uint64_t begin = 0, end = 0;

  [[nodiscard]] bool Overlaps(const MemoryRange& other) const {
    return identity == other.identity && begin < other.end && other.begin < end;
  }
};

// One of the things a run does with memory.
struct MemoryUse {
  MemoryRange range;
  bool written = false;
  size_t name = 0;  // the caller's
};

// Two uses of the same bytes of which one writes, by their names; nothing where
// there are none. The order of `uses` is lost.
std::optional<std::pair<size_t, size_t>> FindConflict(
    std::vector<MemoryUse>& uses);

}  // namespace rknnd::core

#endif  // DAEMON_CORE_MEMORY_MEMORY_RANGE_H_
