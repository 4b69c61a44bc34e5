// The daemon's own log on its way to stderr: the last lines are kept, and
// whoever follows it gets each new one. A follower that is slow, or dead, loses
// lines and is told how many; it never holds up whoever writes one.

#ifndef DAEMON_BOARD_LOG_TAIL_H_
#define DAEMON_BOARD_LOG_TAIL_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/posix/event_loop.h"
#include "base/posix/mutex.h"
#include "daemon/transport/session/board.h"
#include "daemon/transport/session/event_log.h"

namespace rknnd::board {

// Thread: any, but where noted. Its lock is held for no call to a follower or
// to the log behind it.
class LogTail final : public transport::EventLog {
 public:
  // Lines that are kept, and that may wait for one follower.
  static constexpr size_t kKept = 256;
  // Longer ones are cut: some contain what a client sent.
  static constexpr size_t kLongestLine = 2000;

  // Lines up to `level` (as RKNN_LOG_LEVEL) go on to `next`, which outlives it.
  // `now`: nanoseconds since 1970; null: the machine's clock.
  LogTail(transport::EventLog* next, uint32_t level,
          std::function<uint64_t()> now = nullptr);
  ~LogTail() override;

  void Write(transport::Severity severity, const std::string& text) override;
  // Followers get the text; the fields go on with it.
  void WriteEvent(transport::Severity severity, const std::string& text,
                  const core::EventFields& fields) override;

  // Of what goes on; returns the one before.
  uint32_t SetLevel(uint32_t level);

  // `line` is called on `loop`. Its own level: what goes to followers does not
  // depend on what goes on. Thread: loop, here and for the follower's end.
  std::unique_ptr<transport::LogFollower> Follow(
      base::Executor* loop, uint32_t level, uint32_t recent,
      transport::Board::LineCallback line);

 private:
  struct Line {
    uint32_t level;
    std::string text;
    uint64_t time_ns;
  };
  struct Queue;
  class Follower;

  void Forget(const Queue* queue);
  // Gives a follower what waits for it. Thread: loop.
  static void Deliver(Queue& queue);

  transport::EventLog* const next_;
  const std::function<uint64_t()> now_;
  base::Mutex mutex_;
  uint32_t level_ RKNND_GUARDED_BY(mutex_);
  std::deque<std::shared_ptr<const Line>> kept_ RKNND_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<Queue>> followers_ RKNND_GUARDED_BY(mutex_);
};

}  // namespace rknnd::board

#endif  // DAEMON_BOARD_LOG_TAIL_H_
