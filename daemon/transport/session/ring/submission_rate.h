// How often the sessions of one user submit. Each entry wakes a worker, whom
// the kernel lets run before a program that was there first (short turns,
// base/posix/time_slice.h): good for a camera's frame, and bad for everybody
// else where a program submits without a pause.

#ifndef DAEMON_TRANSPORT_SESSION_RING_SUBMISSION_RATE_H_
#define DAEMON_TRANSPORT_SESSION_RING_SUBMISSION_RATE_H_

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "base/posix/clock.h"

namespace rknnd::transport {

// A bucket of entries that time fills. Kept as the time at which it is full.
// Thread: any.
class SubmissionRate {
 public:
  // Ten thousand a second in the long run. Sixteen cameras with three models
  // each need fifteen hundred; an NPU's driver does not take ten thousand.
  static constexpr base::Nanoseconds kInterval = 100 * base::kMicrosecond;
  static constexpr uint32_t kAtOnce = 500;

  // False: so many more are too often. They are not counted then, so that it is
  // who submits most that hears of it, and not all others after him.
  [[nodiscard]] bool Take(uint32_t entries, base::Nanoseconds now) {
    base::Nanoseconds full = full_at_.load(std::memory_order_relaxed);
    for (;;) {
      const base::Nanoseconds then = std::max(full, now) + entries * kInterval;
      if (then - now > kAtOnce * kInterval) return false;
      if (full_at_.compare_exchange_weak(full, then,
                                         std::memory_order_relaxed)) {
        return true;
      }
    }
  }

 private:
  std::atomic<base::Nanoseconds> full_at_{0};
};

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_SESSION_RING_SUBMISSION_RATE_H_
