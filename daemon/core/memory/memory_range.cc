// Called on the loop when a binding changes: ranges are checked to lie inside
// their memory, so that no sum overflows.

#include "daemon/core/memory/memory_range.h"

#include <algorithm>
#include <tuple>

namespace rknnd::core {

std::optional<std::pair<size_t, size_t>> FindConflict(
    std::vector<MemoryUse>& uses) {
  // A model decides how many there are: sorted, not each against each.
  std::sort(uses.begin(), uses.end(),
            [](const MemoryUse& a, const MemoryUse& b) {
              return std::tie(a.range.identity, a.range.begin, a.name) <
                     std::tie(b.range.identity, b.range.begin, b.name);
            });
  const MemoryUse* furthest = nullptr;          // that ends last, so far
  const MemoryUse* furthest_written = nullptr;  // likewise, of the written
  const auto ends_later = [](const MemoryUse& a, const MemoryUse* b) {
    return b == nullptr || a.range.identity != b->range.identity ||
           a.range.end > b->range.end;
  };
  for (const MemoryUse& use : uses) {
    if (use.range.begin == use.range.end) continue;
    const MemoryUse* other = use.written ? furthest : furthest_written;
    if (other != nullptr && other->range.Overlaps(use.range)) {
      return std::minmax(other->name, use.name);
    }
    if (ends_later(use, furthest)) furthest = &use;
    if (use.written && ends_later(use, furthest_written)) {
      furthest_written = &use;
    }
  }
  return std::nullopt;
}

}  // namespace rknnd::core
