// The words between rknnd and its service manager: fds it passes and keeps for
// us, readiness, reload, watchdog. Used by main and what it makes; all of it
// does nothing when there is no service manager.

#ifndef DAEMON_PROCESS_SYSTEMD_H_
#define DAEMON_PROCESS_SYSTEMD_H_

#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/posix/clock.h"
#include "base/posix/unique_fd.h"

namespace rknnd {

struct PassedFd {
  base::UniqueFd fd;
  std::string name;  // FileDescriptorName= or FDNAME=; empty: it has none
};

// All that was passed: sockets of units, and what the fd store kept. Once.
absl::StatusOr<std::vector<PassedFd>> TakePassedFds();

// "READY=1", "STOPPING=1", "WATCHDOG=1", "STATUS=...", "FDSTORE=1" with fds,
// which are borrowed. Thread: any.
void NotifyServiceManager(const std::string& state,
                          std::span<const int> fds = {});

// Somebody hears what NotifyServiceManager says.
bool HasServiceManager();

// "RELOADING=1" and since when, as Type=notify wants it.
std::string ReloadingState();

// The time in which the service manager wants to hear "WATCHDOG=1"; 0: it does
// not.
base::Nanoseconds WatchdogTime();

}  // namespace rknnd

#endif  // DAEMON_PROCESS_SYSTEMD_H_
