// Who uses the NPU beside this daemon, as it was seen a moment ago: looking
// takes too long for the loop, and is asked for more often than it is news.

#ifndef DAEMON_CORE_SCHEDULING_FOREIGN_WATCH_H_
#define DAEMON_CORE_SCHEDULING_FOREIGN_WATCH_H_

#include <functional>
#include <memory>
#include <vector>

#include "base/posix/clock.h"
#include "base/posix/event_loop.h"
#include "daemon/core/terms/types.h"

namespace rknnd::core {

// Looks who uses the NPU beside this daemon.
class ForeignUserFinder {
 public:
  virtual ~ForeignUserFinder() = default;
  // May take tens of milliseconds. Thread: the pager's.
  virtual std::vector<ForeignUser> Find() = 0;
  // Whether there is anything to look for: no NPU, no users.
  [[nodiscard]] virtual bool worthwhile() const = 0;
};

// Thread: loop.
class ForeignWatch : public std::enable_shared_from_this<ForeignWatch> {
 public:
  // So long an answer is good for: looking costs a small board some
  // milliseconds, and 'rknnctl top' asks every second.
  static constexpr base::Nanoseconds kFresh = 5 * base::kSecond;

  // `finder` null: nobody is looked for. All outlive this.
  ForeignWatch(ForeignUserFinder* finder, base::Executor* pager,
               base::Executor* loop, const base::Clock* clock)
      : finder_(finder), pager_(pager), loop_(loop), clock_(clock) {}

  // `done` at once when users() is fresh, or else when it is.
  void Look(std::function<void()> done);
  [[nodiscard]] const std::vector<ForeignUser>& users() const { return users_; }

 private:
  ForeignUserFinder* const finder_;
  base::Executor* const pager_;
  base::Executor* const loop_;
  const base::Clock* const clock_;
  std::vector<ForeignUser> users_;
  bool looked_ = false;
  base::Nanoseconds at_ = 0;  // once looked_
  std::vector<std::function<void()>> waiting_;
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_SCHEDULING_FOREIGN_WATCH_H_
