// The clocks of NPU, DDR and CPU clusters, as devfreq and cpufreq show them:
// read, pinned to their highest rate, and put back exactly as they were. Also
// after a crash: what a pin changes is on disk before it is changed.

#ifndef DAEMON_BOARD_CLOCKS_H_
#define DAEMON_BOARD_CLOCKS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/board/files.h"
#include "daemon/transport/session/board.h"

namespace rknnd::board {

//              Pin                     Pin
//   as found --------> pinned (1) ------------> pinned (2)
//      ^                 |    ^                     |
//      +-----------------+    +---------------------+
//        Unpin: put back           Unpin
//
// Thread: any, one at a time; files are read and written, which may take
// milliseconds.
class Clocks {
 public:
  // `files` outlives it. `record`: where a pin is noted; empty: nowhere, and a
  // crash leaves the clocks pinned.
  Clocks(const Files* files, std::string record)
      : files_(*files), record_(std::move(record)) {}

  // Those this kernel shows; what it does not say is 0 or "".
  [[nodiscard]] std::vector<transport::BoardClock> Read() const;

  // All to the highest rate that the user's limits allow; those that cannot be
  // set stay as they are, and are why in the answer. An error when none could
  // be, naming the file.
  absl::StatusOr<std::vector<std::string>> Pin();
  // Returns what could not be put back, and why.
  std::vector<std::string> Unpin();
  // Whatever the count is.
  std::vector<std::string> UnpinAll();

  // Puts back what a daemon before this one had pinned and has noted. Nothing
  // when it ended in order. Says what it did, and what failed.
  std::vector<std::string> Recover();

  [[nodiscard]] uint32_t pins() const { return pins_; }

 private:
  // One value of a file before it was changed.
  struct Saved {
    std::string path, value;
  };
  struct Clock;

  [[nodiscard]] std::vector<Clock> Find() const;
  [[nodiscard]] transport::BoardClock ReadClock(const Clock& clock) const;
  absl::Status PinClock(const Clock& clock);
  // Changes a file, having noted what was in it.
  absl::Status Set(const std::string& path, const std::string& value);
  // Undoes all but the first `count` changes.
  std::vector<std::string> PutBack(size_t count);
  [[nodiscard]] absl::Status WriteRecord() const;

  const Files& files_;
  const std::string record_;
  std::vector<Saved> saved_;  // in the order of the changes
  uint32_t pins_ = 0;
};

}  // namespace rknnd::board

#endif  // DAEMON_BOARD_CLOCKS_H_
