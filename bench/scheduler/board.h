// The daemon under measurement: on the software NPU, paced as an RK3588, and
// what it says of its cores and sessions.

#ifndef BENCH_SCHEDULER_BOARD_H_
#define BENCH_SCHEDULER_BOARD_H_

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/posix/child_process.h"
#include "client/ctl/control_connection.h"
#include "client/launch/launcher.h"

namespace rknnd::bench {

// At one moment.
struct BoardLook {
  double at = 0;                   // seconds
  std::vector<double> busy;        // of each core, seconds
  std::map<pid_t, double> npu;     // of each session's process, seconds
  std::map<pid_t, uint64_t> jobs;  // likewise
};

// Thread: one. Throws std::runtime_error.
class Board {
 public:
  // Programs of this user may have HIGH.
  Board();

  [[nodiscard]] const std::string& target() const { return daemon_->target(); }
  [[nodiscard]] pid_t pid() const { return daemon_->pid(); }
  BoardLook Look();

 private:
  base::TemporaryFolder folder_;
  std::optional<client::PrivateDaemon> daemon_;
  std::optional<client::ControlConnection> line_;
};

// Of an interval.
struct Interval {
  double seconds = 0;
  double busy = 0;              // of all cores, 1: all the time
  std::map<pid_t, double> npu;  // seconds
  std::map<pid_t, uint64_t> jobs;
};
Interval Between(const BoardLook& first, const BoardLook& last);

}  // namespace rknnd::bench

#endif  // BENCH_SCHEDULER_BOARD_H_
