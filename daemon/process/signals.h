// SIGTERM, SIGINT and SIGHUP as events of the loop. Blocked in all threads;
// SIGPIPE is ignored.

#ifndef DAEMON_PROCESS_SIGNALS_H_
#define DAEMON_PROCESS_SIGNALS_H_

#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/event_loop.h"
#include "base/posix/unique_fd.h"

namespace rknnd {

// Thread: loop.
class Signals {
 public:
  // Before any thread is made: threads inherit what is blocked.
  static absl::StatusOr<Signals> Block();

  // `arrived` hears of each signal, by its number, until Unwatch: the loop may
  // run again while all is taken apart. `loop` outlives the watch.
  absl::Status Watch(base::EventLoop& loop, std::function<void(int)> arrived);
  void Unwatch();

 private:
  explicit Signals(base::UniqueFd fd) : fd_(std::move(fd)) {}

  base::UniqueFd fd_;
  base::EventLoop* loop_ = nullptr;
  base::EventLoop::WatchId watch_ = 0;
};

}  // namespace rknnd

#endif  // DAEMON_PROCESS_SIGNALS_H_
