// Loads librknnd-remote.so, which speaks gRPC, for the target `tcp://`. Nothing
// of it is linked: a program on the board does not carry it.

#ifndef CLIENT_SESSION_REMOTE_LIBRARY_H_
#define CLIENT_SESSION_REMOTE_LIBRARY_H_

#include <string>

#include "base/posix/clock.h"
#include "base/posix/unique_fd.h"
#include "base/values/expected.h"
#include "client/remote/remote.h"

namespace rknnd::client {

// A daemon that is there has answered by then, over whichever network; and a
// session that is made again tries again.
inline constexpr base::Nanoseconds kDialTimeout = 10 * base::kSecond;

// A socket to the daemon at `address`, what stands behind "tcp://". `progress`
// (or null) and `user` stay in use until some time after the socket was closed.
// Thread: any.
base::Expected<base::UniqueFd> ConnectRemote(
    const std::string& address, rknnd_remote_progress progress = nullptr,
    void* user = nullptr);

}  // namespace rknnd::client

#endif  // CLIENT_SESSION_REMOTE_LIBRARY_H_
