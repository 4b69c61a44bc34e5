// Feeds the service manager's watchdog for as long as the machinery gets on,
// and says in the log and in the unit's status why when it does not. Made by
// main; lives on the loop: a loop that stands still feeds nobody either.

#ifndef DAEMON_PROCESS_WATCHDOG_H_
#define DAEMON_PROCESS_WATCHDOG_H_

#include <functional>
#include <string>

#include "base/posix/clock.h"
#include "base/posix/event_loop.h"
#include "daemon/progress_watch.h"
#include "daemon/transport/session/event_log.h"

namespace rknnd {

// Thread: loop.
class Watchdog {
 public:
  struct Parts {
    base::EventLoop* loop = nullptr;
    ProgressWatch* progress = nullptr;
    transport::EventLog* log = nullptr;
    base::Nanoseconds period = 0;                    // between two looks
    std::function<void(const std::string&)> notify;  // sd_notify
    std::string status;  // the unit's while all is well
  };

  // Looks, feeds, and goes on with it. All outlive it.
  explicit Watchdog(Parts parts);
  ~Watchdog();

 private:
  void Turn();

  const Parts parts_;
  base::EventLoop::TimerId timer_ = 0;
  bool stalled_ = false;
};

}  // namespace rknnd

#endif  // DAEMON_PROCESS_WATCHDOG_H_
