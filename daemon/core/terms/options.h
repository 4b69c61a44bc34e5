// What the configuration may change while the daemon runs, and the timers that
// several rooms are given.

#ifndef DAEMON_CORE_TERMS_OPTIONS_H_
#define DAEMON_CORE_TERMS_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/posix/clock.h"
#include "daemon/core/terms/types.h"

namespace rknnd::core {

// One-shot timers on the loop thread; the transport's event loop, or a test's
// hand.
class TimerQueue {
 public:
  virtual ~TimerQueue() = default;
  virtual uint64_t RunAfter(base::Nanoseconds delay,
                            std::function<void()> task) = 0;
  virtual void Cancel(uint64_t timer) = 0;
};

// What may change while the service runs (Service::Reconfigure).
struct LiveOptions {
  // But jobs_per_context, which stays as it was at the start.
  SessionLimits limits;
  // At one time, of all transports; of other machines three quarters of them.
  // Each takes fds of this process, and memory.
  size_t sessions = 1024;
  // What weights, internal memory and buffers may have together; 0: all that
  // the device maps. Never more than that.
  uint64_t address_space = 0;
  // Percent of all sessions, contexts, descriptors, mappings and address
  // space that users leave to those who have little (common_room.h).
  uint32_t kept_free = 10;
  // Open files that this process may have; 0: unknown, and not counted.
  uint64_t descriptors = 0;
  // Mappings (base/posix/map_count.h) that it may have; likewise.
  uint64_t mappings = 0;
  // Of each user's sessions together, and of some users and groups instead; a
  // user's own come first, then the largest of its groups'.
  UserLimits user_limits;
  std::map<uint32_t, UserLimits> users, groups;
  // Of it `share`, `users` and `groups`; the rest stays as it was at the start.
  SchedulingOptions scheduling;
  // A model without contexts stays so long: the next process starts quickly.
  base::Nanoseconds model_grace = 30 * base::kSecond;
  // Files of models that are loaded at start and kept for good.
  std::vector<std::string> preload;
  // The longest unused files go first beyond this. A dozen large models.
  uint64_t cache_limit = uint64_t{4} << 30;
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_TERMS_OPTIONS_H_
