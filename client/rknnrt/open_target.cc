// Called on the program's threads, when a process first needs the NPU.

#include "client/rknnrt/open_target.h"

#include <charconv>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/posix/environment.h"
#include "base/posix/socket.h"
#include "client/session/local_library.h"
#include "client/session/remote_library.h"
#include "client/session/target.h"
#include "client/target/progress.h"

namespace rknnd::client {
namespace {

using base::Code;
using base::Error;
using base::Expected;

constexpr std::string_view kUnixPrefix = "unix:";
constexpr std::string_view kLocalPrefix = "local:";
constexpr std::string_view kTcpPrefix = "tcp://";
constexpr char kRestartWait[] = "RKNND_RESTART_WAIT";
constexpr uint32_t kLongestWait = 86400;
// A killed daemon is started again within that, or by somebody's hand.
constexpr base::Nanoseconds kFirstWait = 2 * base::kSecond;

void TellTransfer(void* /*user*/, const char* what, uint64_t done,
                  uint64_t total) {
  TellProgress(what, done, total);
}

Expected<base::UniqueFd> DialUnix(const std::string& path) {
  Expected<base::UniqueFd> socket = base::ConnectUnix(path);
  if (socket.ok()) return socket;
  const Code code = socket.error().code;
  if (code != Code::kUnavailable && code != Code::kNotFound) return socket;
  return Error{code,
               "rknnd is not running at " + path + " (systemctl status rknnd)"};
}

}  // namespace

Expected<base::Nanoseconds> ParseRestartWait(const std::string& text) {
  if (text.empty()) return SessionOptions().rebuild_bound;
  uint32_t seconds = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, seconds);
  if (error != std::errc() || rest != end || seconds > kLongestWait) {
    return Error{Code::kInvalidArgument,
                 "RKNND_RESTART_WAIT '" + text +
                     "' is no number of seconds from 0 to " +
                     std::to_string(kLongestWait)};
  }
  return seconds * base::kSecond;
}

Expected<TargetSpec> ParseTarget(const std::string& text) {
  const std::string_view view = text;
  if (view.empty()) return TargetSpec{TargetSpec::Kind::kUnix, kDefaultSocket};
  if (view.starts_with(kUnixPrefix) && view.size() > kUnixPrefix.size()) {
    return TargetSpec{TargetSpec::Kind::kUnix, text.substr(kUnixPrefix.size())};
  }
  if (view == kLocalPrefix) return TargetSpec{TargetSpec::Kind::kLocal, ""};
  if (view.starts_with(kTcpPrefix)) {
    return TargetSpec{TargetSpec::Kind::kTcp, text.substr(kTcpPrefix.size())};
  }
  return Error{Code::kInvalidArgument,
               "RKNND_TARGET '" + text +
                   "' is none of unix:PATH, local: and tcp://HOST:PORT"};
}

std::string TargetFromEnv() { return base::FromEnvironment("RKNND_TARGET"); }

Expected<std::shared_ptr<Target>> OpenTarget(const std::string& text) {
  Expected<TargetSpec> spec = ParseTarget(text);
  if (!spec.ok()) return std::move(spec).error();
  SessionOptions options;
  Expected<base::Nanoseconds> wait =
      ParseRestartWait(base::FromEnvironment(kRestartWait));
  if (!wait.ok()) return std::move(wait).error();
  options.rebuild_bound = *wait;
  switch (spec->kind) {
    case TargetSpec::Kind::kUnix:
      options.dial = [path = spec->address] { return DialUnix(path); };
      options.name = "rknnd at " + spec->address;
      options.first_wait = kFirstWait;
      break;
    case TargetSpec::Kind::kLocal: {
      std::string sharing = base::FromEnvironment("RKNND_SHARING");
      if (sharing.empty()) sharing = "full";
      options.dial = [sharing] { return ConnectLocal(sharing); };
      options.name = "the NPU inside this process (local:)";
      options.rebuild = false;
      break;
    }
    case TargetSpec::Kind::kTcp:
      options.dial = [address = spec->address] {
        return ConnectRemote(address, &TellTransfer);
      };
      options.name = "rknnd at " + spec->address;
      break;
  }
  return Target::Open(std::move(options));
}

}  // namespace rknnd::client
