// SIGHUP: reads the configuration again and puts in force what can change while
// the daemon runs. Used by main.

#ifndef DAEMON_RELOAD_H_
#define DAEMON_RELOAD_H_

#include <string>

#include "absl/status/status.h"
#include "daemon/board/log_tail.h"
#include "daemon/config/config.h"
#include "daemon/network/network.h"
#include "daemon/process/command_line.h"
#include "daemon/runtime.h"

namespace rknnd {

// Thread: loop.
class Reloader {
 public:
  // `line`: what is read again, and the file that it leads to; `running`: what
  // the daemon was started with. All others outlive it.
  Reloader(CommandLine line, Config running, Runtime& runtime, Network& network,
           board::LogTail& log);

  // An error tells all that is wrong, one a line: nothing has changed. Else
  // the log tells what has, and what waits for the next start.
  absl::Status Reload();

 private:
  const CommandLine line_;
  const std::string file_;  // read at the start; empty: none was there
  Config running_;          // as it is in force
  Runtime& runtime_;
  Network& network_;
  board::LogTail& log_;
};

}  // namespace rknnd

#endif  // DAEMON_RELOAD_H_
