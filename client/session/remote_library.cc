// Called on the program's threads, when a session opens.

#include "client/session/remote_library.h"

#include <unistd.h>

#include <atomic>

#include "client/session/load_library.h"

namespace rknnd::client {
namespace {

using base::Code;
using base::Error;
using base::Expected;

// The process that used it first; 0: none yet.
std::atomic<pid_t> starter{0};

}  // namespace

Expected<base::UniqueFd> ConnectRemote(const std::string& address,
                                       rknnd_remote_progress progress,
                                       void* user) {
  pid_t nobody = 0;
  if (!starter.compare_exchange_strong(nobody, getpid()) &&
      nobody != getpid()) {
    // gRPC's threads stayed behind, its locks are as they were.
    return Error{Code::kUnavailable,
                 "target tcp:// does not survive fork() once it was used: fork "
                 "before the first rknn_init, or call exec"};
  }
  const Expected<void*> function = LoadFunction(
      {"tcp://", RKNND_REMOTE_LIBRARY, RKNND_REMOTE_CONNECT, true});
  if (!function.ok()) return function.error();
  const auto connect =
      reinterpret_cast<rknnd_remote_connect_function>(*function);
  const char* reason = nullptr;
  auto code = static_cast<int32_t>(Code::kUnavailable);
  base::UniqueFd socket(connect(
      address.c_str(), static_cast<uint32_t>(kDialTimeout / base::kMillisecond),
      progress, user, &reason, &code));
  if (socket.valid()) return socket;
  return Error{static_cast<Code>(code),
               reason == nullptr ? "no reason given" : reason};
}

}  // namespace rknnd::client
