// How often something may happen: some at once after a rest, then one in an
// interval.

#ifndef BASE_POSIX_RATE_LIMIT_H_
#define BASE_POSIX_RATE_LIMIT_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

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
  // Counts so many that have happened whether there is room or not. What comes
  // later waits for them, but for no more than these if others came before.
  void Charge(Nanoseconds now, uint32_t count = 1) {
    Nanoseconds rested_at = rested_at_.load(std::memory_order_relaxed);
    Nanoseconds then = 0;
    do {
      then = std::max(rested_at, std::min(std::max(rested_at, now),
                                          now + at_once_ * interval_) +
                                     count * interval_);
    } while (!rested_at_.compare_exchange_weak(rested_at, then,
                                               std::memory_order_relaxed));
  }
  // How long one more would have to wait; nothing is counted.
  [[nodiscard]] Nanoseconds Wait(Nanoseconds now) const {
    const Nanoseconds then = std::max(rested_at(), now) + interval_;
    return std::max<Nanoseconds>(then - now - at_once_ * interval_, 0);
  }
  // Nothing that was counted matters any more.
  [[nodiscard]] bool IsRested(Nanoseconds now) const {
    return rested_at() <= now;
  }

 private:
  [[nodiscard]] Nanoseconds rested_at() const {
    return rested_at_.load(std::memory_order_relaxed);
  }

  const uint32_t at_once_;
  const Nanoseconds interval_;
  std::atomic<Nanoseconds> rested_at_{0};
};

// The same limit for each of many, by name. Thread: one; what it gives: any.
class RateLimits {
 public:
  RateLimits(uint32_t at_once, Nanoseconds interval)
      : at_once_(at_once), interval_(interval) {}

  // Forgotten once nobody holds it any more and it has rested: who goes and
  // comes again has no more than who stays.
  std::shared_ptr<RateLimit> Of(const std::string& name, Nanoseconds now) {
    if (const auto known = limits_.find(name); known != limits_.end()) {
      return known->second;
    }
    std::erase_if(limits_, [now](const auto& limit) {
      return limit.second.use_count() == 1 && limit.second->IsRested(now);
    });
    return limits_[name] = std::make_shared<RateLimit>(at_once_, interval_);
  }

 private:
  const uint32_t at_once_;
  const Nanoseconds interval_;
  std::map<std::string, std::shared_ptr<RateLimit>> limits_;
};

}  // namespace rknnd::base

#endif  // BASE_POSIX_RATE_LIMIT_H_
