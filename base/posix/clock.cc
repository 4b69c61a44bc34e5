// Reads CLOCK_MONOTONIC. Called by whoever was given a MonotonicClock, on any
// thread.

#include "base/posix/clock.h"

#include <time.h>

namespace rknnd::base {

Nanoseconds MonotonicClock::Now() const {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<Nanoseconds>(now.tv_sec) * kSecond + now.tv_nsec;
}

}  // namespace rknnd::base
