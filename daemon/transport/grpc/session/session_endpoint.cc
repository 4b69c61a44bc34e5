// Which calls there are, and the few things that are common to them: a timer, a
// thread that sends, the budget of transfers. Calls come on gRPC's threads.

#include "daemon/transport/grpc/session/session_endpoint.h"

#include <grpcpp/server_context.h>

#include <atomic>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/posix/mutex.h"
#include "daemon/transport/grpc/authenticator.h"
#include "daemon/transport/grpc/session/stream.h"
#include "rknnd/v1/remote.grpc.pb.h"

namespace rknnd::transport {
namespace {

// How exact the deadlines of a stream are.
constexpr base::Nanoseconds kTick = base::kSecond;
// Streams that have not said Hello yet: as many as of local clients.
constexpr size_t kMaxPendingSessions = 64;

absl::Status Stopping() {
  return absl::UnavailableError("the daemon stops and takes no new sessions");
}

class SessionEndpoint final
    : public GrpcEndpoint,
      public RemoteStreamOwner,
      private v1::Remote::WithRawCallbackMethod_Session<v1::Remote::Service> {
 public:
  SessionEndpoint(const GrpcOptions& options,
                  const GrpcEnvironment& environment)
      : loop_(environment.loop) {
    auto shared = std::make_shared<TunnelEnvironment>();
    shared->daemon = environment;
    shared->loop = std::make_shared<LoopQueue>(environment.loop);
    shared->sender = std::make_shared<Sender>();
    // One model as large as any may be, with the one whose weights it shares.
    shared->transfers =
        std::make_shared<TransferBudget>(2 * environment.limits.model_bytes);
    shared->unread = options.unread;
    environment_ = std::move(shared);
  }
  ~SessionEndpoint() override {
    *alive_ = false;
    environment_->loop->Shut();
    environment_->sender->Stop();
  }

  grpc::Service& service() override { return *this; }

  void Stop() override {
    stopping_ = true;
    environment_->loop->Shut();
    ended_ = true;
    if (timer_ != 0) loop_->CancelTimer(timer_);
    timer_ = 0;
    for (const auto& stream : Streams(true)) {
      stream->Stop(absl::UnavailableError("the daemon stops"));
    }
  }

  absl::Status OnStarted(std::shared_ptr<RemoteStream> stream) override {
    bool first = false;
    {
      base::MutexLock lock(mutex_);
      if (stopped_) return Stopping();
      size_t pending = 0;
      for (const auto& [key, other] : streams_) {
        pending += other->is_pending() ? 1 : 0;
      }
      if (pending >= kMaxPendingSessions) {
        return absl::ResourceExhaustedError(
            absl::StrCat(kMaxPendingSessions,
                         " streams have not said Hello, and no more may wait: "
                         "come again later"));
      }
      first = streams_.empty();
      RemoteStream* const key = stream.get();
      streams_.emplace(key, std::move(stream));
    }
    if (first) {
      environment_->loop->Post([this, alive = alive_] {
        if (*alive) Arm();
      });
    }
    return absl::OkStatus();
  }

  void OnDone(RemoteStream* stream) override {
    std::shared_ptr<RemoteStream> gone;
    base::MutexLock lock(mutex_);
    const auto found = streams_.find(stream);
    if (found == streams_.end()) return;
    gone = std::move(found->second);
    streams_.erase(found);
  }

 private:
  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* Session(
      grpc::CallbackServerContext* context) override {
    if (stopping_) return RefuseRemoteStream(Stopping());
    const auto peer = environment_->daemon.authenticator->Admit(*context);
    if (!peer.ok()) return RefuseRemoteStream(peer.status());
    return StartRemoteStream(environment_, ToSessionPeer(*peer), peer->account,
                             context, this);
  }

  std::vector<std::shared_ptr<RemoteStream>> Streams(bool stop) {
    std::vector<std::shared_ptr<RemoteStream>> streams;
    base::MutexLock lock(mutex_);
    if (stop) stopped_ = true;
    for (const auto& [key, stream] : streams_) streams.push_back(stream);
    return streams;
  }

  // An idle daemon's loop does not wake: there is a timer while there are
  // streams. Thread: loop.
  void Arm() {
    if (timer_ != 0 || ended_) return;
    timer_ = loop_->RunAfter(kTick, [this] {
      timer_ = 0;
      const auto streams = Streams(false);
      for (const auto& stream : streams) stream->Tick();
      if (!streams.empty()) Arm();
    });
  }

  base::EventLoop* const loop_;
  std::shared_ptr<const TunnelEnvironment> environment_;
  std::atomic<bool> stopping_{false};
  // The loop's.
  base::EventLoop::TimerId timer_ = 0;
  bool ended_ = false;
  // For what was posted to it.
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);

  base::Mutex mutex_;
  bool stopped_ RKNND_GUARDED_BY(mutex_) = false;
  std::unordered_map<RemoteStream*, std::shared_ptr<RemoteStream>> streams_
      RKNND_GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<GrpcEndpoint> MakeSessionEndpoint(
    const GrpcOptions& options, const GrpcEnvironment& environment) {
  return std::make_unique<SessionEndpoint>(options, environment);
}

}  // namespace rknnd::transport
