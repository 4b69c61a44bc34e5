// rknnctl lease: runs a command while rknnd keeps its jobs off some cores, for
// programs that open the NPU's driver themselves. The lease lasts as long as
// the connection to admin.sock: it ends with the command, and with rknnctl,
// however that ends; the command is then told to end too.

#ifndef CLIENT_CTL_BOARD_LEASE_H_
#define CLIENT_CTL_BOARD_LEASE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/values/expected.h"
#include "client/ctl/reports/report.h"

namespace rknnd::client {

struct LeaseOptions {
  std::string target;
  std::string cores;                 // "0", "0,2", "0-1"
  std::vector<std::string> command;  // what stands behind "--"
  bool json = false;  // stdout is the document's: the command's goes to stderr
};

// The cores' bits; nothing for what names none.
std::optional<uint32_t> ParseCores(std::string_view text);

struct LeaseEnd {
  int exit_code = 0;  // the command's; 128 + the signal that ended it
  Output output;      // the text is empty: the command has spoken
};

// Waits for the cores, then for the command. An error: it was not begun.
base::Expected<LeaseEnd> RunLeased(const LeaseOptions& options);

}  // namespace rknnd::client

#endif  // CLIENT_CTL_BOARD_LEASE_H_
