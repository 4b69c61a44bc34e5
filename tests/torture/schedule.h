// What a campaign does to the service and when: all of it is known from the
// seed before anything begins, so that a finding can be looked for again.

#ifndef TESTS_TORTURE_SCHEDULE_H_
#define TESTS_TORTURE_SCHEDULE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/posix/clock.h"

namespace rknnd::torture {

enum class EventKind {
  kKillClient,      // SIGKILL, and a new one
  kKillDaemon,      // SIGKILL, and a new one at once
  kRestartDaemon,   // SIGTERM, as an upgrade does, and a new one
  kStopClient,      // SIGSTOP, and SIGCONT after `length`
  kStopDaemon,      // likewise
  kSlowCore,        // a job that takes `length` longer
  kHang,            // a job that holds its core for `length`
  kHangForGood,     // one that never ends by itself
  kDeviceLost,      // the device goes away for `length`
  kFailCalls,       // system calls of the daemon fail, for `length`
  kFewDescriptors,  // RLIMIT_NOFILE is as many as it has, for `length`
  kFullDisk,        // the cache's disk is full, for `length`
  kClockJump,       // CLOCK_REALTIME goes elsewhere
  kHostile,         // a client that means no good, for `length`
};
inline constexpr int kEventKinds = 14;
const char* NameOf(EventKind kind);

struct Event {
  base::Nanoseconds at = 0;  // from the beginning
  EventKind kind = EventKind::kKillClient;
  base::Nanoseconds length = 0;
  uint64_t dice = 0;  // for what else is to be chosen: which client, and so on

  [[nodiscard]] std::string ToText() const;
};

// In order of their time, all within `length`, and all kinds among them where
// that is ten seconds or more. In the last quarter the daemon is not killed: it
// must have got rid of what the rest did to it.
std::vector<Event> MakeSchedule(uint64_t seed, base::Nanoseconds length);

}  // namespace rknnd::torture

#endif  // TESTS_TORTURE_SCHEDULE_H_
