// See the header. Reactions come on gRPC's threads, a read and a write possibly
// at one time. After Finish nothing may be started, so that this is decided
// under the lock under which it is started; gRPC calls no reaction from within.

#include "daemon/transport/grpc/session/stream.h"

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/posix/mutex.h"

namespace rknnd::transport {
namespace {

// How long a peer may take to hear of the end before the call is broken off.
constexpr base::Nanoseconds kEndDeadline = 5 * base::kSecond;

grpc::Status ToGrpc(const absl::Status& status) {
  return {static_cast<grpc::StatusCode>(status.code()),
          std::string(status.message())};
}

void Free(void* bytes) { delete[] static_cast<std::byte*>(bytes); }

// gRPC gives the memory back when it has sent it.
grpc::ByteBuffer ToBuffer(OutgoingBytes bytes) {
  const size_t size = bytes.size;
  void* const data = bytes.bytes.release();
  const grpc::Slice slice(data, size, Free, data);
  return grpc::ByteBuffer(&slice, 1);
}

//   reading:  idle --ReadOn--> a read is out --OnReadDone--> idle
//   writing:  idle --SendNext--> a write is out --OnWriteDone--> SendNext, idle
//   the end:  none --End--> asked --no write is out (flush: none is left)-->
//             finished --OnDone--> gone
class Stream final : public RemoteReactor,
                     public RemoteStream,
                     public Sendable,
                     public TunnelStream,
                     public std::enable_shared_from_this<Stream> {
 public:
  Stream(std::shared_ptr<const TunnelEnvironment> environment,
         core::SessionPeer peer, const std::string& account,
         grpc::CallbackServerContext* context, RemoteStreamOwner* owner)
      : environment_(std::move(environment)),
        context_(context),
        owner_(owner),
        tunnel_(
            std::make_shared<Tunnel>(environment_, std::move(peer), account)) {}

  void Start() {
    const auto self = shared_from_this();
    {
      base::MutexLock lock(mutex_);
      self_ = self;
    }
    tunnel_->set_stream(weak_from_this());
    tunnel_->outbox().set_sendable(weak_from_this());
    if (const absl::Status started = owner_->OnStarted(self); !started.ok()) {
      tunnel_->Abandon();
      return End(started, false);
    }
    ReadOn();
  }

  // ---- gRPC's ----

  void OnReadDone(bool ok) override {
    {
      base::MutexLock lock(mutex_);
      reading_ = false;
      if (end_.has_value()) return;
    }
    if (!ok) return tunnel_->End(absl::OkStatus());
    if (in_.Length() > kMaxRemoteMessage) {
      return tunnel_->End(absl::InvalidArgumentError(
          absl::StrCat("a message of ", in_.Length(), " bytes: none is above ",
                       kMaxRemoteMessage)));
    }
    std::vector<grpc::Slice> slices;
    if (in_.Length() > 0 && !in_.Dump(&slices).ok()) {
      return tunnel_->End(absl::InternalError("a message without its bytes"));
    }
    Pieces pieces;
    for (const grpc::Slice& slice : slices) {
      pieces.emplace_back(reinterpret_cast<const std::byte*>(slice.begin()),
                          slice.size());
    }
    auto message = ParseToDaemon(pieces);
    if (!message.ok()) return tunnel_->End(message.status());
    if (tunnel_->OnMessage(*std::move(message))) ReadOn();
  }

  void OnWriteDone(bool ok) override {
    bool answers = false;
    {
      base::MutexLock lock(mutex_);
      writing_ = false;
      out_.Clear();
      hold_.Release();
      answers = answers_;
      broken_ = !ok;
      if (end_.has_value() && (!flush_ || broken_)) return FinishOnce();
    }
    if (!ok) return tunnel_->End(absl::OkStatus());
    if (answers) tunnel_->OnAnswered();
    SendNext();
  }

  void OnCancel() override { tunnel_->End(absl::OkStatus()); }

  void OnDone() override {
    std::shared_ptr<Stream> self;
    {
      base::MutexLock lock(mutex_);
      done_ = true;
      self = std::move(self_);
    }
    owner_->OnDone(this);
  }

  // ---- the tunnel's and the sender's ----

  void ReadOn() override {
    base::MutexLock lock(mutex_);
    if (end_.has_value() || reading_) return;
    reading_ = true;
    in_.Clear();
    StartRead(&in_);
  }

  void SendNext() override {
    auto next = tunnel_->Next();
    if (!next.ok()) {
      {
        base::MutexLock lock(mutex_);
        broken_ = true;
        if (end_.has_value()) return FinishOnce();
      }
      return tunnel_->End(next.status());
    }
    base::MutexLock lock(mutex_);
    if (finished_) return;
    if (end_.has_value() && !flush_) return FinishOnce();
    if (!next->has_value()) {
      if (end_.has_value()) FinishOnce();
      return;
    }
    Outbox::Message& message = **next;
    out_ = ToBuffer(std::move(message.bytes));
    hold_ = std::move(message.hold);
    answers_ = message.answers;
    writing_ = true;
    write_begun_ = environment_->daemon.clock->Now();
    StartWrite(&out_);
  }

  void End(const absl::Status& status, bool flush) override {
    {
      base::MutexLock lock(mutex_);
      if (end_.has_value()) return;
      end_ = status;
      flush_ = flush && !broken_;
      end_begun_ = environment_->daemon.clock->Now();
      if (!flush_ && !writing_) FinishOnce();
    }
    if (flush) tunnel_->outbox().Kick();
  }

  // ---- the owner's ----

  [[nodiscard]] bool is_pending() const override {
    return tunnel_->state() == Tunnel::State::kHello;
  }

  void Tick() override {
    tunnel_->Tick();
    // One that has ended has its reason, and a little time to hear of it.
    const bool ended = tunnel_->state() == Tunnel::State::kEnded;
    const base::Nanoseconds now = environment_->daemon.clock->Now();
    bool unread = false;
    {
      base::MutexLock lock(mutex_);
      unread = !ended && writing_ && now - write_begun_ >= environment_->unread;
      const bool late = end_.has_value() && now - end_begun_ >= kEndDeadline;
      if ((unread || late) && !done_) context_->TryCancel();
    }
    if (unread) {
      tunnel_->End(absl::ResourceExhaustedError(
          absl::StrCat("the client does not read: a message has waited for ",
                       environment_->unread / base::kSecond, " s")));
    }
  }

  void Stop(const absl::Status& reason) override { tunnel_->EndNow(reason); }

 private:
  void FinishOnce() RKNND_REQUIRES(mutex_) {
    if (std::exchange(finished_, true)) return;
    Finish(ToGrpc(*end_));
  }

  const std::shared_ptr<const TunnelEnvironment> environment_;
  grpc::CallbackServerContext* const context_;
  RemoteStreamOwner* const owner_;
  const std::shared_ptr<Tunnel> tunnel_;

  base::Mutex mutex_;
  std::shared_ptr<Stream> self_ RKNND_GUARDED_BY(mutex_);  // until OnDone
  bool reading_ RKNND_GUARDED_BY(mutex_) = false;
  bool writing_ RKNND_GUARDED_BY(mutex_) = false;
  bool answers_ RKNND_GUARDED_BY(mutex_) = false;
  // Nothing more can be written: nobody asks for it any more.
  bool broken_ RKNND_GUARDED_BY(mutex_) = false;
  base::Nanoseconds write_begun_ RKNND_GUARDED_BY(mutex_) = 0;
  std::optional<absl::Status> end_ RKNND_GUARDED_BY(mutex_);
  bool flush_ RKNND_GUARDED_BY(mutex_) = false;
  base::Nanoseconds end_begun_ RKNND_GUARDED_BY(mutex_) = 0;
  bool finished_ RKNND_GUARDED_BY(mutex_) = false;
  bool done_ RKNND_GUARDED_BY(mutex_) = false;
  // gRPC's while a read or a write is out.
  grpc::ByteBuffer in_, out_;
  RequestBudget::Hold hold_;
};

class Refusal final : public RemoteReactor {
 public:
  explicit Refusal(const absl::Status& why) { Finish(ToGrpc(why)); }
  void OnDone() override { delete this; }
};

}  // namespace

RemoteReactor* StartRemoteStream(
    std::shared_ptr<const TunnelEnvironment> environment,
    core::SessionPeer peer, const std::string& account,
    grpc::CallbackServerContext* context, RemoteStreamOwner* owner) {
  const auto stream = std::make_shared<Stream>(
      std::move(environment), std::move(peer), account, context, owner);
  stream->Start();
  return stream.get();
}

RemoteReactor* RefuseRemoteStream(const absl::Status& why) {
  return new Refusal(why);
}

}  // namespace rknnd::transport
