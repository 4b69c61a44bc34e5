// What an operator should read in the log when the daemon starts: a neighbour
// that uses the NPU by itself, and an NPU that is there but not used. Called by
// main, once; the doctor says the same at any time, and more.

#ifndef DAEMON_BOARD_START_WARNINGS_H_
#define DAEMON_BOARD_START_WARNINGS_H_

#include <string>
#include <vector>

#include "daemon/board/files.h"

namespace rknnd::board {

// `asked`: the device that was configured; `got`: the kind that serves. Lines
// of the log, none where all is well.
std::vector<std::string> StartWarnings(const Files& files,
                                       const std::string& asked,
                                       const std::string& got);

}  // namespace rknnd::board

#endif  // DAEMON_BOARD_START_WARNINGS_H_
