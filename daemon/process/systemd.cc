// The service manager is trusted; that its units fit us is not.

#include "daemon/process/systemd.h"

#include <systemd/sd-daemon.h>

#include <cstdint>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/posix/expected.h"
#include "base/status/status.h"

namespace rknnd {

absl::StatusOr<std::vector<PassedFd>> TakePassedFds() {
  char** names = nullptr;
  // Sets close-on-exec; the variables go, so that children see none.
  const int count = sd_listen_fds_with_names(1, &names);
  if (count < 0) {
    return base::ToStatus(
        base::ErrnoError(-count, "take the service manager's sockets"));
  }
  std::vector<PassedFd> passed;
  for (int i = 0; i < count; ++i) {
    PassedFd one;
    one.fd = base::UniqueFd(SD_LISTEN_FDS_START + i);
    if (names != nullptr && names[i] != nullptr) one.name = names[i];
    if (names != nullptr) std::free(names[i]);
    passed.push_back(std::move(one));
  }
  std::free(names);
  return passed;
}

void NotifyServiceManager(const std::string& state, std::span<const int> fds) {
  sd_pid_notify_with_fds(0, 0, state.c_str(), fds.data(),
                         static_cast<unsigned>(fds.size()));
}

bool HasServiceManager() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody changes the environment
  return std::getenv("NOTIFY_SOCKET") != nullptr;
}

std::string ReloadingState() {
  return absl::StrCat("RELOADING=1\nMONOTONIC_USEC=",
                      base::MonotonicClock().Now() / base::kMicrosecond);
}

base::Nanoseconds WatchdogTime() {
  uint64_t microseconds = 0;
  if (sd_watchdog_enabled(0, &microseconds) <= 0) return 0;
  return static_cast<base::Nanoseconds>(microseconds) * base::kMicrosecond;
}

}  // namespace rknnd
