// Timelines for whoever asks, and in a file when a job hangs. The service calls
// it on the loop; a timeline is made on the pager's thread, which may take
// tenths of a second: one at a time and with pauses, however often clients ask.

#ifndef DAEMON_CORE_REPORTS_TRACES_H_
#define DAEMON_CORE_REPORTS_TRACES_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/posix/clock.h"
#include "base/posix/event_loop.h"
#include "base/posix/unique_fd.h"
#include "daemon/core/reports/recorder.h"
#include "daemon/core/terms/types.h"

namespace rknnd::core {

class TimerQueue;

// Thread: loop.
class Traces final : public std::enable_shared_from_this<Traces> {
 public:
  struct Parts {
    std::shared_ptr<const Recorder> recorder;
    const base::Clock* clock = nullptr;
    base::Executor* loop = nullptr;
    base::Executor* pager = nullptr;
    TimerQueue* timers = nullptr;
    LogSink* log = nullptr;  // null: none
    uint32_t cores = 0;
    std::string device;  // "soft, rk3588"
    std::string folder;  // for files; empty: none are written
  };
  static std::shared_ptr<Traces> Create(Parts parts);
  Traces(const Traces&) = delete;
  Traces& operator=(const Traces&) = delete;

  // In a sealed memfd.
  struct Trace {
    base::UniqueFd text;
    uint64_t size = 0, jobs = 0, lost = 0;
  };
  using Callback = std::function<void(absl::StatusOr<Trace>)>;
  // Without the jobs that ended before `since`. RESOURCE_EXHAUSTED when too
  // many wait for one.
  void Take(base::Nanoseconds since, Callback done);

  // Writes a file trace-<time>.json, whose name is logged with `why`; not more
  // than one in ten seconds. The last four are kept. That the disk is full is
  // logged, and nothing else.
  void WriteFile(const std::string& why);

  // No answers from now on.
  void Stop();

 private:
  struct Request {
    base::Nanoseconds since = 0;
    Callback done;
  };

  explicit Traces(Parts parts) : parts_(std::move(parts)) {}
  // Makes the next one that waits, unless one is being made.
  void TakeNext();

  const Parts parts_;
  std::deque<Request> waiting_;
  bool busy_ = false;   // one is being made, or the pause behind it is on
  uint64_t pause_ = 0;  // its timer
  bool has_written_ = false;
  base::Nanoseconds written_ = 0;  // when the last file was begun
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_REPORTS_TRACES_H_
