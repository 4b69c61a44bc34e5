// How long a test waits for what must happen soon, on a machine that may be
// slow, busy and instrumented; and the one way to wait for a state that can
// only be asked for.

#ifndef TESTS_INTEGRATION_HARNESS_PATIENCE_H_
#define TESTS_INTEGRATION_HARNESS_PATIENCE_H_

#include <poll.h>

#include "base/posix/clock.h"

namespace rknnd::integration {

inline constexpr base::Nanoseconds kPatience = 60 * base::kSecond;

// Asks until `condition` holds; false when it never did.
template <class Condition>
bool Eventually(Condition condition) {
  constexpr int kIntervalMs = 2;
  const base::MonotonicClock clock;
  const base::Nanoseconds deadline = clock.Now() + kPatience;
  while (!condition()) {
    if (clock.Now() > deadline) return false;
    poll(nullptr, 0, kIntervalMs);
  }
  return true;
}

}  // namespace rknnd::integration

#endif  // TESTS_INTEGRATION_HARNESS_PATIENCE_H_
