// The bridges of this process: made by the client library through dlsym, on any
// of the host's threads; they end with their socket, and at the end of the
// process.

#include "client/remote/remote.h"

#include <unistd.h>

#include <cstdlib>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/posix/mutex.h"
#include "base/posix/socket.h"
#include "base/posix/unique_fd.h"
#include "base/values/expected.h"
#include "client/remote/bridge.h"
#include "client/remote/dial_options.h"
#include "client/remote/stream.h"

namespace rknnd::client {
namespace {

using base::Code;
using base::Error;
using base::Expected;

// What gRPC opens for its first connection, and some for the session. Where it
// cannot have them it ends the process.
constexpr int kDescriptors = 32;

Expected<void> CheckDescriptors() {
  std::vector<base::UniqueFd> taken;
  while (taken.size() < kDescriptors) {
    Expected<base::UniqueFd> next =
        taken.empty() ? base::MakeEventFd() : base::Duplicate(taken[0].get());
    if (!next.ok()) {
      return Error{Code::kResourceExhausted,
                   "target tcp:// needs " + std::to_string(kDescriptors) +
                       " more open files than this process may have: close "
                       "some, or raise its limit (ulimit -n)"};
    }
    taken.push_back(*std::move(next));
  }
  return {};
}

// Thread: any.
class Bridges {
 public:
  Expected<base::UniqueFd> Open(BridgeOptions options) {
    std::shared_ptr<Bridge> bridge;
    base::UniqueFd socket;
    std::list<std::shared_ptr<Bridge>> finished;
    {
      const base::MutexLock lock(mutex_);
      if (ending_) return Error{Code::kCancelled, "this process is ending"};
      finished = Reap();
      Expected<Bridge::Opened> begun = Bridge::Begin(std::move(options));
      if (!begun.ok()) return std::move(begun).error();
      bridge = std::move(begun->bridge);
      socket = std::move(begun->socket);
      bridges_.push_back(bridge);
    }
    Expected<void> answer = bridge->Await();
    if (!answer.ok()) return std::move(answer).error();
    return socket;
  }

  // At the end of the process, while threads of the host's may still be at
  // work: none makes another one.
  void StopAll() {
    std::list<std::shared_ptr<Bridge>> ending;
    {
      const base::MutexLock lock(mutex_);
      ending_ = true;
      ending.swap(bridges_);
    }
    // All at once, then each is waited for.
    for (const auto& bridge : ending) bridge->Stop();
    for (const auto& bridge : ending) bridge->Join();
  }

 private:
  // Those whose session has ended, for the caller to destroy.
  std::list<std::shared_ptr<Bridge>> Reap() RKNND_REQUIRES(mutex_) {
    std::list<std::shared_ptr<Bridge>> finished;
    for (auto bridge = bridges_.begin(); bridge != bridges_.end();) {
      const auto next = std::next(bridge);
      if ((*bridge)->finished()) {
        finished.splice(finished.end(), bridges_, bridge);
      }
      bridge = next;
    }
    return finished;
  }

  base::Mutex mutex_;
  std::list<std::shared_ptr<Bridge>> bridges_ RKNND_GUARDED_BY(mutex_);
  bool ending_ RKNND_GUARDED_BY(mutex_) = false;
};

// Never destroyed: the host's last threads may still be calling when static
// objects go.
Bridges& TheBridges() {
  static auto* const kBridges = new Bridges();
  return *kBridges;
}

pid_t owner_pid = 0;

// Before gRPC's own static objects go.
void StopAtExit() {
  // A forked child has none of the threads, so there is nothing to wait for.
  if (getpid() == owner_pid) TheBridges().StopAll();
}

Expected<base::UniqueFd> Connect(const char* address, uint32_t timeout_ms,
                                 rknnd_remote_progress progress, void* user) {
  static const pid_t kFirst = owner_pid = getpid();
  if (getpid() != kFirst) {
    // gRPC's threads stayed behind, its locks are as they were.
    return Error{Code::kUnavailable,
                 "target tcp:// does not survive fork() once it was used: fork "
                 "before the first rknn_init, or call exec"};
  }
  Expected<DialOptions> dial =
      ReadDialOptions(address == nullptr ? "" : address);
  if (!dial.ok()) return std::move(dial).error();
  if (Expected<void> enough = CheckDescriptors(); !enough.ok()) {
    return std::move(enough).error();
  }
  BridgeOptions options;
  options.dial = *std::move(dial);
  options.timeout = timeout_ms * base::kMillisecond;
  options.progress = progress;
  options.user = user;
  [[maybe_unused]] static const int kRegistered = [] {
    Stream::StartLibrary();
    return std::atexit(StopAtExit);
  }();
  return TheBridges().Open(std::move(options));
}

}  // namespace
}  // namespace rknnd::client

extern "C" __attribute__((visibility("default"))) int rknnd_remote_connect(
    const char* address, uint32_t timeout_ms, rknnd_remote_progress progress,
    void* user, const char** error, int32_t* code) {
  thread_local std::string reason;
  auto socket = rknnd::client::Connect(address, timeout_ms, progress, user);
  if (socket.ok()) return socket->release();
  reason = socket.error().message;
  if (error != nullptr) *error = reason.c_str();
  if (code != nullptr) *code = static_cast<int32_t>(socket.error().code);
  return -1;
}
