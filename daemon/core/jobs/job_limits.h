// Until when a job must have begun, or been answered, and the words for those
// that were not. Times are absolute, by the runner's clock.

#ifndef DAEMON_CORE_JOBS_JOB_LIMITS_H_
#define DAEMON_CORE_JOBS_JOB_LIMITS_H_

#include <algorithm>
#include <cstdint>
#include <limits>

#include "absl/status/status.h"
#include "base/posix/clock.h"

namespace rknnd::core {

struct Job;

inline constexpr base::Nanoseconds kNever =
    std::numeric_limits<base::Nanoseconds>::max();

// `time` after `start`, or never where that is beyond the clock's range or
// `time` is 0, which stands for no limit. A client chose `time`.
[[nodiscard]] constexpr base::Nanoseconds After(base::Nanoseconds start,
                                                base::Nanoseconds time) {
  return time <= 0 || time > kNever - start ? kNever : start + time;
}

enum class Breach {
  kNone,
  kTimeout,   // not answered in time
  kDeadline,  // not begun in time
  kFence,     // what it waits for did not come
  kAge,       // of no use any more: dropped
};

struct JobLimits {
  base::Nanoseconds end = kNever;     // JobSubmission::timeout_ms
  base::Nanoseconds begin = kNever;   // JobSubmission::deadline
  base::Nanoseconds fence = kNever;   // while it waits for one
  base::Nanoseconds useful = kNever;  // QueueRequest::max_age

  // The next of them: of a job that waits...
  [[nodiscard]] base::Nanoseconds NextWaiting(bool for_fence) const {
    return std::min({end, begin, useful, for_fence ? fence : kNever});
  }
  // ...of which this one has come...
  [[nodiscard]] Breach WhileWaiting(base::Nanoseconds now,
                                    bool for_fence) const {
    if (end <= now) return Breach::kTimeout;
    if (begin <= now) return Breach::kDeadline;
    if (useful <= now) return Breach::kAge;
    return for_fence && fence <= now ? Breach::kFence : Breach::kNone;
  }
  // ...and of one on its core.
  [[nodiscard]] Breach WhileRunning(base::Nanoseconds now) const {
    return end <= now ? Breach::kTimeout : Breach::kNone;
  }
};

// What a job that was not run is answered with: DEADLINE_EXCEEDED, or ABORTED
// where it is dropped. `job` is the caller's.
absl::Status NotRunInTime(const Job& job, Breach breach, base::Nanoseconds now);
// The same of one that is still on its core.
absl::Status NotEndedInTime(const Job& job, base::Nanoseconds now);
absl::Status Hangs(const Job& job, base::Nanoseconds limit,
                   base::Nanoseconds now);
// ABORTED: `newer` took its place.
absl::Status DroppedFor(const Job& job, uint64_t newer);
// CANCELLED, by its program.
absl::Status Cancelled(const Job& job);

}  // namespace rknnd::core

#endif  // DAEMON_CORE_JOBS_JOB_LIMITS_H_
