// The service manager is trusted; that its units fit us is not.

#include "daemon/systemd.h"

#include <sys/socket.h>
#include <systemd/sd-daemon.h>

#include <cstdint>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/posix/expected.h"
#include "base/status/status.h"

namespace rknnd {
namespace {

constexpr char kAdminName[] = "admin";
constexpr char kAdminFile[] = "admin.sock";

bool EndsWith(const std::string& text, const std::string& end) {
  return text.size() >= end.size() &&
         text.compare(text.size() - end.size(), end.size(), end) == 0;
}

}  // namespace

absl::StatusOr<std::vector<PassedSocket>> TakePassedSockets() {
  char** names = nullptr;
  // Sets close-on-exec; the variables go, so that children see none.
  const int count = sd_listen_fds_with_names(1, &names);
  if (count < 0) {
    return base::ToStatus(
        base::ErrnoError(-count, "take the service manager's sockets"));
  }
  std::vector<PassedSocket> sockets;
  absl::Status status;
  for (int i = 0; i < count; ++i) {
    PassedSocket socket;
    socket.fd = base::UniqueFd(SD_LISTEN_FDS_START + i);
    const std::string name = names != nullptr && names[i] ? names[i] : "";
    if (names != nullptr) std::free(names[i]);
    if (sd_is_socket(socket.fd.get(), AF_UNIX, SOCK_SEQPACKET, 1) <= 0) {
      status = absl::InvalidArgumentError(absl::StrCat(
          "socket '", name,
          "' of the service manager is no listening Unix "
          "socket of kind SEQPACKET: use ListenSequentialPacket="));
      continue;
    }
    socket.admin = name == kAdminName || EndsWith(name, kAdminFile) ||
                   EndsWith(name, "-admin.socket");
    sockets.push_back(std::move(socket));
  }
  std::free(names);
  if (!status.ok()) return status;
  return sockets;
}

void NotifyServiceManager(const std::string& state) {
  sd_notify(0, state.c_str());
}

base::Nanoseconds WatchdogPeriod() {
  uint64_t microseconds = 0;
  if (sd_watchdog_enabled(0, &microseconds) <= 0) return 0;
  return static_cast<base::Nanoseconds>(microseconds / 2) * base::kMicrosecond;
}

}  // namespace rknnd
