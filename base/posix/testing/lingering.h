// A descriptor that takes long to close, for tests of who waits for that. Used
// by tests of the daemon and of whole processes; on their own threads.

#ifndef BASE_POSIX_TESTING_LINGERING_H_
#define BASE_POSIX_TESTING_LINGERING_H_

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <utility>

#include "base/posix/unique_fd.h"

namespace rknnd::base::testing {

// A connection whose last `near` is an hour in closing while `far` is open, as
// that one does not read. Both are invalid where there is no such thing.
struct Lingering {
  Lingering() {
    const UniqueFd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    socklen_t size = sizeof address;
    UniqueFd first(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const linger hour{1, 3600};
    if (bind(listener.get(), any, size) != 0 ||
        listen(listener.get(), 1) != 0 ||
        getsockname(listener.get(), any, &size) != 0 ||
        connect(first.get(), any, size) != 0 ||
        setsockopt(first.get(), SOL_SOCKET, SO_LINGER, &hour, sizeof hour) !=
            0) {
      return;
    }
    far = UniqueFd(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const std::array<char, 65536> bytes{};
    while (send(first.get(), bytes.data(), bytes.size(), MSG_DONTWAIT) > 0) {
    }
    near = std::move(first);
  }

  // In this order: a `near` that is left ends with a reset.
  UniqueFd near, far;
};

}  // namespace rknnd::base::testing

#endif  // BASE_POSIX_TESTING_LINGERING_H_
