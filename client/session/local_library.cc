// Called on the program's threads, when a session opens.

#include "client/session/local_library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <utility>

#include "client/local/local.h"

namespace rknnd::client {
namespace {

using base::Code;
using base::Error;
using base::Expected;

// The folder this code was loaded from, with its slash; "" if unknown.
std::string OwnFolder() {
  Dl_info info = {};
  if (dladdr(reinterpret_cast<const void*>(&OwnFolder), &info) == 0 ||
      info.dli_fname == nullptr) {
    return "";
  }
  const std::string path = info.dli_fname;
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

const char* LoaderError() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): glibc's is per thread
  const char* error = dlerror();
  return error == nullptr ? "no reason given" : error;
}

// RTLD_LOCAL: the daemon's abseil and protobuf stay apart from the program's.
constexpr int kMode = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE;

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
  void* library = nullptr;
  const std::string folder = OwnFolder();
  if (!folder.empty()) {
    library = dlopen((folder + RKNND_LOCAL_LIBRARY).c_str(), kMode);
  }
  std::string beside_error;
  if (library == nullptr && !folder.empty()) beside_error = LoaderError();
  if (library == nullptr) library = dlopen(RKNND_LOCAL_LIBRARY, kMode);
  if (library == nullptr) {
    return Error{Code::kUnavailable,
                 "target local: needs " RKNND_LOCAL_LIBRARY ": " +
                     (beside_error.empty() ? "" : beside_error + "; ") +
                     LoaderError()};
  }
  const auto connect = reinterpret_cast<rknnd_local_connect_function>(
      dlsym(library, RKNND_LOCAL_CONNECT));
  if (connect == nullptr) {
    return Error{Code::kUnavailable, RKNND_LOCAL_LIBRARY
                 " is of another version: install both "
                 "libraries from one package"};
  }
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
