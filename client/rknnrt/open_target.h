// Which target a process uses: RKNND_TARGET, read once per connection.

#ifndef CLIENT_RKNNRT_OPEN_TARGET_H_
#define CLIENT_RKNNRT_OPEN_TARGET_H_

#include <memory>
#include <string>

#include "base/posix/clock.h"
#include "base/values/expected.h"
#include "client/session/target.h"

namespace rknnd::client {

struct TargetSpec {
  enum class Kind { kUnix, kLocal, kTcp };
  Kind kind = Kind::kUnix;
  std::string address;  // kUnix: the socket's path; kTcp: HOST:PORT
};

inline constexpr char kDefaultSocket[] = "/run/rknnd/session.sock";

// "unix:PATH", "local:" or "tcp://HOST:PORT"; "" is the default socket.
base::Expected<TargetSpec> ParseTarget(const std::string& text);

// RKNND_RESTART_WAIT: for how long calls wait for a daemon that went away, in
// seconds; "" is the library's choice.
base::Expected<base::Nanoseconds> ParseRestartWait(const std::string& text);

// RKNND_TARGET, or "".
std::string TargetFromEnv();

// Connects. Errors are in the words a user can act on.
base::Expected<std::shared_ptr<Target>> OpenTarget(const std::string& text);

}  // namespace rknnd::client

#endif  // CLIENT_RKNNRT_OPEN_TARGET_H_
