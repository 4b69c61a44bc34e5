// Time as a dependency: everything that waits, stamps or expires is given a
// Clock, so that tests own the time.

#ifndef BASE_POSIX_CLOCK_H_
#define BASE_POSIX_CLOCK_H_

#include <atomic>
#include <cstdint>

namespace rknnd::base {

using Nanoseconds = int64_t;

inline constexpr Nanoseconds kMicrosecond = 1000;
inline constexpr Nanoseconds kMillisecond = 1000 * kMicrosecond;
inline constexpr Nanoseconds kSecond = 1000 * kMillisecond;

// Thread: any.
class Clock {
 public:
  virtual ~Clock() = default;
  // Monotonic, from an arbitrary start.
  [[nodiscard]] virtual Nanoseconds Now() const = 0;
  // Returns when Now() is `time` or later. Only for threads that may block.
  virtual void SleepUntil(Nanoseconds time) const = 0;
};

// CLOCK_MONOTONIC, which the processes of one machine share.
class MonotonicClock final : public Clock {
 public:
  [[nodiscard]] Nanoseconds Now() const override;
  void SleepUntil(Nanoseconds time) const override;
};

// Stands still until told, or slept on.
class FakeClock final : public Clock {
 public:
  [[nodiscard]] Nanoseconds Now() const override { return now_.load(); }
  void Advance(Nanoseconds by) { now_.fetch_add(by); }
  void SleepUntil(Nanoseconds time) const override {
    Nanoseconds now = now_.load();
    while (now < time && !now_.compare_exchange_weak(now, time)) {
    }
  }

 private:
  mutable std::atomic<Nanoseconds> now_{kSecond};
};

}  // namespace rknnd::base

#endif  // BASE_POSIX_CLOCK_H_
