// Reads CLOCK_MONOTONIC. Called by whoever was given a MonotonicClock, on any
// thread.

#include "base/posix/clock.h"

#include <time.h>

#include <cerrno>

#include "base/posix/hot_path.h"

namespace rknnd::base {

RKNND_HOT_PATH Nanoseconds MonotonicClock::Now() const {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<Nanoseconds>(now.tv_sec) * kSecond + now.tv_nsec;
}

void MonotonicClock::SleepUntil(Nanoseconds time) const {
  timespec until = {};
  until.tv_sec = time / kSecond;
  until.tv_nsec = time % kSecond;
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) ==
         EINTR) {
  }
}

}  // namespace rknnd::base
