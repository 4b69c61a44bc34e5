// Whether the daemon's own machinery gets on with what it has to do, for the
// service manager's watchdog: a device that hangs is no reason to die (its jobs
// are answered), a worker, scheduler or thread of ours that stands still is.
// Looked at on the loop, whenever the watchdog is to be fed; asks nothing and
// wakes nobody.

#ifndef DAEMON_PROGRESS_WATCH_H_
#define DAEMON_PROGRESS_WATCH_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/posix/clock.h"

namespace rknnd {

// Thread: loop.
class ProgressWatch {
 public:
  // A part of the machinery, as it is now.
  struct Look {
    bool busy = false;   // it has something to do
    uint64_t steps = 0;  // another number whenever it got on with it
  };

  // `limit`: so long a busy part may stand still. `clock` outlives it.
  ProgressWatch(const base::Clock* clock, base::Nanoseconds limit)
      : clock_(clock), limit_(limit) {}

  // `name` says what stands still, in the log. A part of its own limit has it
  // where that is longer.
  void Add(std::string name, std::function<Look()> look,
           base::Nanoseconds limit = 0);

  // The names of the parts that have stood still for their limit, over several
  // looks; empty: all is well. Time counts only where there were looks in it:
  // whoever was stopped as a whole (SIGSTOP, a debugger) has missed nothing.
  std::string Check();

 private:
  struct Part {
    std::string name;
    std::function<Look()> look;
    base::Nanoseconds limit = 0;
    bool busy = false;
    uint64_t steps = 0;
    base::Nanoseconds stood = 0;  // so long at these steps
  };

  const base::Clock* const clock_;
  const base::Nanoseconds limit_;
  base::Nanoseconds looked_ = 0;  // last; 0: never
  std::vector<Part> parts_;
};

}  // namespace rknnd

#endif  // DAEMON_PROGRESS_WATCH_H_
