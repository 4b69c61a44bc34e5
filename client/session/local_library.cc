// Called on the program's threads, when a session opens.

#include "client/session/local_library.h"

#include <unistd.h>

#include <atomic>
#include <utility>

#include "client/local/local.h"
#include "client/session/load_library.h"

namespace rknnd::client {
namespace {

using base::Code;
using base::Error;
using base::Expected;

// The process that started a daemon of its own; 0: none yet.
std::atomic<pid_t> starter{0};

}  // namespace

Expected<base::UniqueFd> ConnectLocal(const std::string& sharing) {
  pid_t nobody = 0;
  if (!starter.compare_exchange_strong(nobody, getpid()) &&
      nobody != getpid()) {
    // Its threads stayed behind, its locks are as they were.
    return Error{Code::kUnavailable,
                 "target local: does not survive fork() once it has started: "
                 "fork before the first rknn_init, or use target unix:"};
  }
  const Expected<void*> function =
      LoadFunction({"local:", RKNND_LOCAL_LIBRARY, RKNND_LOCAL_CONNECT});
  if (!function.ok()) return function.error();
  const auto connect =
      reinterpret_cast<rknnd_local_connect_function>(*function);
  const char* reason = nullptr;
  base::UniqueFd socket(connect(sharing.c_str(), &reason));
  if (!socket.valid()) {
    return Error{Code::kUnavailable,
                 std::string("target local: does not start: ") +
                     (reason == nullptr ? "no reason given" : reason)};
  }
  return socket;
}

}  // namespace rknnd::client
