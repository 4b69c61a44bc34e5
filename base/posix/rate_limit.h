// How often something may happen: some at once after a rest, then one in an
// interval.

#ifndef BASE_POSIX_RATE_LIMIT_H_
#define BASE_POSIX_RATE_LIMIT_H_

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "base/posix/clock.h"

namespace rknnd::base {

// Kept as the time at which it has rested. Thread: any.
class RateLimit {
 public:
  RateLimit(uint32_t at_once, Nanoseconds interval)
      : at_once_(at_once), interval_(interval) {}

  // 0: so many more may happen `now`, and are counted. Else none is, so that
  // what is refused delays nothing else: there is room so much later. `count`:
  // at most as many as there are at once.
  [[nodiscard]] Nanoseconds Take(Nanoseconds now, uint32_t count = 1) {
    Nanoseconds rested_at = rested_at_.load(std::memory_order_relaxed);
    for (;;) {
      const Nanoseconds then = std::max(rested_at, now) + count * interval_;
      const Nanoseconds wait = then - now - at_once_ * interval_;
      if (wait > 0) return wait;
      if (rested_at_.compare_exchange_weak(rested_at, then,
                                           std::memory_order_relaxed)) {
        return 0;
      }
    }
  }

 private:
  const uint32_t at_once_;
  const Nanoseconds interval_;
  std::atomic<Nanoseconds> rested_at_{0};
};

}  // namespace rknnd::base

#endif  // BASE_POSIX_RATE_LIMIT_H_
