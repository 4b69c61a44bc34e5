// How fast the programs of a user may come, go and ask the daemon for things.
// Whatever is done for them wakes a thread of the daemon and then one of
// theirs, and the kernel lets who has slept come before a program that was
// there first. Who is quicker than any program needs to be waits, while others
// have sessions; runs have a limit of their own (ring/ring_table.h).

#ifndef DAEMON_TRANSPORT_SESSION_PACE_H_
#define DAEMON_TRANSPORT_SESSION_PACE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/posix/clock.h"
#include "base/posix/rate_limit.h"

namespace rknnd::transport {

// What the sessions of a user may ask together, beside their runs: sixteen
// cameras that import a buffer for each frame, and release it, ask a thousand
// times a second.
inline constexpr uint32_t kRequestsAtOnce = 1000;
inline constexpr base::Nanoseconds kRequestInterval = 500 * base::kMicrosecond;
// Of who asks more often: several of its requests are received then.
inline constexpr base::Nanoseconds kRequestPause = base::kMillisecond;
// How many of its connections may end before the next one waits: a pipeline's
// worth of processes that start again, and then sixty in a second. Those that
// stay may be as many as there is room for. No part or multiple of a camera's
// period, so that who always waits does not meet each of its frames.
inline constexpr uint32_t kEndsAtOnce = 100;
inline constexpr base::Nanoseconds kEndInterval = 17 * base::kMillisecond;

// One that broke the protocol counts for so many, half a second: no program
// that means well does, and each goes and comes back at once.
inline constexpr uint32_t kEndsOfViolation = 30;

// Of one user. Thread: any.
class Pace {
 public:
  Pace(std::shared_ptr<base::RateLimit> requests,
       std::shared_ptr<base::RateLimit> ends)
      : requests_(std::move(requests)), ends_(std::move(ends)) {}

  // 0: a request may be received `now`, and is counted. Else none is to be for
  // so long.
  [[nodiscard]] base::Nanoseconds TakeRequest(base::Nanoseconds now) {
    return requests_->Take(now) == 0 ? 0 : kRequestPause;
  }
  // How long nothing is to be received of a connection that has not said Hello.
  [[nodiscard]] base::Nanoseconds HelloWait(base::Nanoseconds now) const {
    return ends_->Wait(now);
  }
  // A connection has ended, by breaking the protocol or otherwise.
  void CountEnd(base::Nanoseconds now, bool violation) {
    ends_->Charge(now, violation ? kEndsOfViolation : 1);
  }

 private:
  std::shared_ptr<base::RateLimit> requests_, ends_;
};

// Thread: loop.
class Paces {
 public:
  Pace Of(const std::string& user, base::Nanoseconds now) {
    return {requests_.Of(user, now), ends_.Of(user, now)};
  }

 private:
  base::RateLimits requests_{kRequestsAtOnce, kRequestInterval};
  base::RateLimits ends_{kEndsAtOnce, kEndInterval};
};

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_SESSION_PACE_H_
