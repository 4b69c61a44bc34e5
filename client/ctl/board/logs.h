// rknnctl logs: the daemon's own log, what it remembers of it or as it is
// written, and how much it logs.

#ifndef CLIENT_CTL_BOARD_LOGS_H_
#define CLIENT_CTL_BOARD_LOGS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/values/expected.h"
#include "client/ctl/reports/report.h"
#include "proto/wire/codec.h"

namespace rknnd::client {

struct LogsOptions {
  std::string target;
  bool json = false;
  uint32_t level = 2;              // as rknnd --log-level
  std::optional<uint32_t> recent;  // lines; what fits each way if not given
  bool follow = false;
  std::optional<uint32_t> set_level;
};

// What the daemon remembers. Also `--set-level`.
base::Expected<Output> Logs(const LogsOptions& options);

// Prints each line as it comes, until Ctrl-C or the daemon's end: the exit
// code. With `json` all of them are one array, which is closed at the end.
base::Expected<int> FollowLogs(const LogsOptions& options);

// One line for people, with one before it that says how many are missing.
std::string LogLineText(const wire::LogLine& line, bool color);
Json LogLineJson(const wire::LogLine& line);

}  // namespace rknnd::client

#endif  // CLIENT_CTL_BOARD_LOGS_H_
