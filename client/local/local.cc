// The daemon inside a host program: one thread that is its loop, the loader
// and the workers behind it, no signal dispositions but the guard of imported
// memory, no names in the file system. Called by the client library, through
// dlsym, on any of the host's threads.

#include "client/local/local.h"

#include <pthread.h>
#include <unistd.h>

#include <condition_variable>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/posix/blocked_signals.h"
#include "base/posix/environment.h"
#include "base/posix/mutex.h"
#include "base/posix/socket.h"
#include "base/posix/unique_fd.h"
#include "base/status/status.h"
#include "daemon/board/power.h"
#include "daemon/runtime.h"

namespace rknnd::client {
namespace {

// A host program's stderr is its own: what concerns it comes over the session.
class NoLog final : public transport::EventLog {
 public:
  void Write(transport::Severity /*severity*/,
             const std::string& /*text*/) override {}
};

// The one daemon of this process.
//
//              Connect                     ready
//   kStopped ----------> kStarting ----------------> kRunning
//      ^  ^                  | cannot start              | last connection
//      |  +------------------+                           | closed, or exit
//      +-------------------------------------------- kStopping
//
// Thread: any.
class LocalDaemon {
 public:
  absl::StatusOr<base::UniqueFd> Connect(bool vendor_sharing);
  // Ends the daemon, at the end of the process.
  void Stop();

 private:
  enum class State { kStopped, kStarting, kRunning, kStopping };

  void StartLocked(bool vendor_sharing) RKNND_REQUIRES(mutex_);
  void JoinLocked() RKNND_REQUIRES(mutex_);
  void Run(bool vendor_sharing);
  // Takes in what waits; on the loop.
  void AdoptWaiting(Runtime& runtime);
  void StopWhenEmpty(Runtime& runtime);

  base::Mutex mutex_;
  base::CondVar changed_;
  State state_ RKNND_GUARDED_BY(mutex_) = State::kStopped;
  bool vendor_sharing_ RKNND_GUARDED_BY(mutex_) = false;
  absl::Status failure_ RKNND_GUARDED_BY(mutex_);
  std::thread thread_ RKNND_GUARDED_BY(mutex_);
  Runtime* runtime_ RKNND_GUARDED_BY(mutex_) = nullptr;  // while kRunning
  // The daemon's ends of connections it has not taken in yet.
  std::vector<base::UniqueFd> waiting_ RKNND_GUARDED_BY(mutex_);
};

void LocalDaemon::JoinLocked() RKNND_NO_THREAD_SAFETY_ANALYSIS {
  // The thread needs the mutex for its last steps.
  while (state_ == State::kStopping) changed_.wait(mutex_);
  if (thread_.joinable()) thread_.join();
}

void LocalDaemon::StartLocked(bool vendor_sharing) {
  state_ = State::kStarting;
  vendor_sharing_ = vendor_sharing;
  failure_ = absl::OkStatus();
  const base::BlockedSignals blocked;
  thread_ = std::thread([this, vendor_sharing] { Run(vendor_sharing); });
}

absl::StatusOr<base::UniqueFd> LocalDaemon::Connect(bool vendor_sharing) {
  RKNND_ASSIGN_OR_RETURN(auto pair, base::ToStatusOr(base::SeqpacketPair()));
  base::MutexLock lock(mutex_);
  // Another thread may start or stop it while this one waits.
  for (;;) {
    if (state_ == State::kStopping) {
      changed_.wait(mutex_);
    } else if (state_ == State::kStopped) {
      JoinLocked();
      StartLocked(vendor_sharing);
    } else if (state_ == State::kStarting) {
      changed_.wait(mutex_);
      if (state_ == State::kStopped && !failure_.ok()) return failure_;
    } else {
      break;
    }
  }
  if (vendor_sharing != vendor_sharing_) {
    return absl::FailedPreconditionError(
        absl::StrCat("RKNND_SHARING: the daemon in this process runs with '",
                     vendor_sharing_ ? "vendor" : "full",
                     "': close its contexts before another kind is asked for"));
  }
  waiting_.push_back(std::move(pair.second));
  Runtime* const runtime = runtime_;
  runtime->loop().Post([this, runtime] { AdoptWaiting(*runtime); });
  return std::move(pair.first);
}

void LocalDaemon::Run(bool vendor_sharing) {
  pthread_setname_np(pthread_self(), "rknnd-local");
  NoLog log;
  RuntimeOptions options;
  options.device = "soft";
  const std::string soc = base::FromEnvironment("RKNND_SOC");
  if (!soc.empty()) options.soc = soc;
  options.pace = base::FromEnvironment("RKNND_PACE") == "on";
  options.incoherent = base::FromEnvironment("RKNND_CACHE") == "incoherent";
  options.vendor_sharing = vendor_sharing;
  options.scheduling.spin = AutomaticSpin();
  options.log = &log;
  options.kept_free = 0;  // there is one user
  auto created = Runtime::Create(options);
  std::unique_ptr<Runtime> runtime;
  {
    base::MutexLock lock(mutex_);
    if (created.ok()) {
      runtime = *std::move(created);
      runtime_ = runtime.get();
      state_ = State::kRunning;
    } else {
      failure_ = created.status();
      state_ = State::kStopped;
    }
    changed_.notify_all();
  }
  if (runtime == nullptr) return;
  runtime->server().OnEmpty([this, running = runtime.get()] {
    // Later: the connection that is closing is still being taken apart.
    running->loop().Post([this, running] { StopWhenEmpty(*running); });
  });
  runtime->Run();
  runtime.reset();
  base::MutexLock lock(mutex_);
  state_ = State::kStopped;
  changed_.notify_all();
}

void LocalDaemon::AdoptWaiting(Runtime& runtime) {
  std::vector<base::UniqueFd> sockets;
  {
    base::MutexLock lock(mutex_);
    sockets.swap(waiting_);
    // Posted before the end of the process began: its server is gone.
    if (state_ != State::kRunning) return;
  }
  for (base::UniqueFd& socket : sockets) {
    // The program may do to its own daemon what it likes. A refused one sees
    // the end of its socket.
    static_cast<void>(runtime.server().Adopt(std::move(socket), true).ok());
  }
}

void LocalDaemon::StopWhenEmpty(Runtime& runtime) {
  {
    base::MutexLock lock(mutex_);
    if (state_ != State::kRunning || !waiting_.empty()) return;
    if (runtime.server().connections() > 0) return;
    state_ = State::kStopping;
    runtime_ = nullptr;
  }
  runtime.StopNow();
}

void LocalDaemon::Stop() {
  base::MutexLock lock(mutex_);
  while (state_ == State::kStarting) changed_.wait(mutex_);
  if (state_ == State::kRunning) {
    state_ = State::kStopping;
    Runtime* const runtime = std::exchange(runtime_, nullptr);
    runtime->loop().Post([runtime] { runtime->StopNow(); });
  }
  JoinLocked();
}

// Never destroyed: the host's last threads may still be calling when static
// objects go.
LocalDaemon& TheDaemon() {
  static auto* const kDaemon = new LocalDaemon();
  return *kDaemon;
}

pid_t owner_pid = 0;

// Before the static objects of the libraries below go, and before the host
// frees what running jobs read.
void StopAtExit() {
  // A forked child has none of the threads, so there is nothing to wait for.
  if (getpid() == owner_pid) TheDaemon().Stop();
}

absl::StatusOr<base::UniqueFd> Connect(std::string_view sharing) {
  if (sharing != "full" && sharing != "vendor") {
    return absl::InvalidArgumentError(
        absl::StrCat("RKNND_SHARING is '", std::string(sharing),
                     "', must be 'full' or 'vendor'"));
  }
  static const pid_t kStarter = getpid();
  if (getpid() != kStarter) {
    return absl::FailedPreconditionError(
        "target 'local:' was used before fork: its daemon stayed in the "
        "parent; call exec, or use 'unix:'");
  }
  absl::StatusOr<base::UniqueFd> socket =
      TheDaemon().Connect(sharing == "vendor");
  // After the first start: what the libraries register meanwhile runs later.
  static const bool kRegistered = [] {
    owner_pid = getpid();
    return std::atexit(StopAtExit) == 0;
  }();
  static_cast<void>(kRegistered);
  return socket;
}

}  // namespace
}  // namespace rknnd::client

extern "C" __attribute__((visibility("default"))) int rknnd_local_connect(
    const char* sharing, const char** error) {
  thread_local std::string reason;
  auto socket = rknnd::client::Connect(sharing != nullptr ? sharing : "full");
  if (socket.ok()) return socket->release();
  reason = std::string(socket.status().message());
  if (error != nullptr) *error = reason.c_str();
  return -1;
}
