// The service manager's side of rknnd: sockets it passes, readiness, watchdog.
// Used by main only; all of it does nothing when there is no service manager.

#ifndef DAEMON_SYSTEMD_H_
#define DAEMON_SYSTEMD_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/posix/clock.h"
#include "base/posix/unique_fd.h"

namespace rknnd {

struct PassedSocket {
  base::UniqueFd fd;
  bool admin = false;
};

// Listening SOCK_SEQPACKET sockets from the service manager. One named
// "admin", or whose path ends in "admin.sock", is the operators'. Once.
absl::StatusOr<std::vector<PassedSocket>> TakePassedSockets();

// "READY=1", "STOPPING=1", "WATCHDOG=1", "STATUS=...".
void NotifyServiceManager(const std::string& state);

// Half the time in which the service manager wants to hear "WATCHDOG=1"; 0:
// it does not.
base::Nanoseconds WatchdogPeriod();

}  // namespace rknnd

#endif  // DAEMON_SYSTEMD_H_
