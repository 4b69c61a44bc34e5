// The service manager is trusted; that its units fit us, and that it always
// listens, is not.

#include "daemon/process/systemd.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/posix/send_only.h"
#include "base/status/status.h"
#include "base/values/expected.h"

namespace rknnd {
namespace {

// A service manager that is busy has so long for one message; while it has let
// one pass it is waited for no more.
constexpr int kManagerPatienceMs = 1000;

// The address behind NOTIFY_SOCKET; 0: of a kind that is not known.
socklen_t AddressOf(std::string_view name, sockaddr_un& address) {
  if (name.size() < 2 || name.size() >= sizeof address.sun_path) return 0;
  if (name.front() != '/' && name.front() != '@') return 0;
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path, name.size());
  const size_t before = offsetof(sockaddr_un, sun_path);
  if (name.front() == '/') {
    return static_cast<socklen_t>(before + name.size() + 1);
  }
  // Without a file; ends with its last letter.
  address.sun_path[0] = '\0';
  return static_cast<socklen_t>(before + name.size());
}

// False: there was no room for it.
bool Say(std::string_view name, std::string_view state,
         std::span<const int> fds, int patience_ms) {
  sockaddr_un address{};
  const socklen_t size = AddressOf(name, address);
  const base::Expected<base::UniqueFd> socket = base::MakeDatagramSender();
  if (size == 0 || !socket.ok() ||
      connect(socket->get(), reinterpret_cast<const sockaddr*>(&address),
              size) != 0) {
    return true;
  }
  pollfd ready{socket->get(), POLLOUT, 0};
  if (poll(&ready, 1, patience_ms) == 0) return false;

  iovec text{const_cast<char*>(state.data()), state.size()};
  msghdr message{};
  message.msg_iov = &text;
  message.msg_iovlen = 1;
  std::vector<char> control(fds.empty() ? 0 : CMSG_SPACE(fds.size_bytes()));
  if (!fds.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
  }
  return sendmsg(socket->get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0 ||
         errno != EAGAIN;
}

}  // namespace

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

// Not by sd_notify(), which waits for a service manager that does not listen.
void NotifyServiceManager(const std::string& state, std::span<const int> fds) {
  static std::atomic<bool> deaf{false};
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody changes the environment
  const char* const name = std::getenv("NOTIFY_SOCKET");
  if (name == nullptr) return;
  deaf = !Say(name, state, fds, deaf ? 0 : kManagerPatienceMs);
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
  // Of ages, rather none than a wrong one.
  if (microseconds > uint64_t{std::numeric_limits<int64_t>::max()} /
                         uint64_t{base::kMicrosecond}) {
    return 0;
  }
  return static_cast<base::Nanoseconds>(microseconds) * base::kMicrosecond;
}

}  // namespace rknnd
