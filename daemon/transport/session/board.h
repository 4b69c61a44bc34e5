// What the transports ask about the machine the daemon runs on: what is wrong
// with it, its clocks, the daemon's log. daemon/board answers; in the daemon
// inside a host program (target `local:`) nobody does.

#ifndef DAEMON_TRANSPORT_SESSION_BOARD_H_
#define DAEMON_TRANSPORT_SESSION_BOARD_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace rknnd::transport {

// One thing that was looked at.
struct Finding {
  // Numbers are those of Severity in session.proto.
  enum class Level : uint32_t { kOk = 0, kNote = 1, kWarning = 2, kError = 3 };
  std::string check;  // "npu-clock": stable, for scripts
  Level level = Level::kOk;
  std::string text;    // what was found
  std::string remedy;  // what to do about it; empty when all is well
};

struct BoardClock {
  std::string name;  // "npu", "ddr", "cpu0" (the first of a cluster)
  uint64_t hz = 0, min_hz = 0, max_hz = 0;  // 0: the kernel does not say
  std::string governor;
  bool pinned = false;
};

// What a board shows while it runs.
struct BoardState {
  std::vector<BoardClock> clocks;
  // What the kernel tells of the NPU now, for people; empty: nothing.
  std::string npu;
};

// Pinned clocks. They go back to what they were with the last pin.
class ClockPin {
 public:
  virtual ~ClockPin() = default;
};

// A line of the daemon's log.
struct LogLine {
  uint32_t level = 0;  // as RKNN_LOG_LEVEL
  std::string text;
  uint64_t time_ns = 0;  // since 1970
  uint64_t lost = 0;     // lines before it that this follower did not take
};

// Who follows the log, for as long as this exists.
class LogFollower {
 public:
  virtual ~LogFollower() = default;
};

// Thread: loop. Callbacks are called on the loop, later.
class Board {
 public:
  using FindingsCallback = std::function<void(std::vector<Finding>)>;
  using ClocksCallback = std::function<void(absl::StatusOr<BoardState>)>;
  using PinCallback = std::function<void(
      absl::StatusOr<std::shared_ptr<ClockPin>>, std::vector<BoardClock>)>;
  // False: there is no room now, and the line counts as lost.
  using LineCallback = std::function<bool(const LogLine&)>;

  virtual ~Board() = default;

  // Looks at everything, and runs a small model on each core.
  virtual void Diagnose(FindingsCallback done) = 0;

  // Those this board shows; maybe none.
  virtual void ReadClocks(ClocksCallback done) = 0;
  // All to their highest rate. FAILED_PRECONDITION: none can be set, and why.
  virtual void PinClocks(PinCallback done) = 0;

  // `line` is called for each at or below `level`, `recent` of the last ones
  // first as far as they are kept.
  virtual std::unique_ptr<LogFollower> FollowLog(uint32_t level,
                                                 uint32_t recent,
                                                 LineCallback line) = 0;
  // What is logged from now on; returns what was.
  virtual uint32_t SetLogLevel(uint32_t level) = 0;
};

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_SESSION_BOARD_H_
