// The two kinds of calls as gRPC's reactors. Reactions run on gRPC's threads,
// answers come from the engine's; a call lives until OnDone.

#include "daemon/transport/grpc/inference/infer_calls.h"

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "daemon/transport/grpc/delivery_watch.h"
#include "daemon/transport/grpc/doorman.h"
#include "daemon/transport/grpc/inference/answer.h"
#include "daemon/transport/grpc/inference/call_status.h"

namespace rknnd::transport {
namespace {

using Context = grpc::GenericCallbackServerContext;
using Reactor = grpc::ServerGenericBidiReactor;

// Requests of one stream that are begun and whose answers have not left. The
// next is not read before.
constexpr size_t kStreamWindow = 16;
// What a request holds beside its message and its answer.
constexpr uint64_t kRequestBytes = 4096;

absl::Status Stopping() {
  return absl::UnavailableError("the daemon stops: ask again in a moment");
}

absl::Status ClientGone() {
  return absl::CancelledError("the client took the call back");
}

grpc::WriteOptions Plain() {
  // Tensors do not shrink, and the CPU has other work.
  return grpc::WriteOptions().set_no_compression();
}

Inference::Call CallOf(const Context& context, const GrpcPeer& peer,
                       const base::Clock& clock, bool streamed) {
  return {peer.Describe(), RegionSpace(peer), DeadlineOf(context, clock),
          streamed};
}

// A call that is refused before a message is read.
class RefusedCall final : public Reactor {
 public:
  explicit RefusedCall(const absl::Status& status) { Finish(ToGrpc(status)); }
  void OnDone() override { delete this; }
};

// ---- ModelInfer -------------------------------------------------------------

//   reading --OnReadDone--> running --done--> answering --OnDone--> deleted
//      |                       |
//      +--cancelled, stop      +--done with an error--> finished
//            |
//            +--> finished without an answer
//
// What runs is always told its end, on whatever thread, and until then this
// stays: nobody but that end finishes a call that runs.
class UnaryCall final : public Reactor, public OpenCall {
 public:
  UnaryCall(const InferCallParts& parts, Context* context, GrpcPeer peer,
            RequestBudget::Hold hold)
      : parts_(parts),
        context_(context),
        peer_(std::move(peer)),
        inference_(Inference::Make(
            parts.inference,
            CallOf(*context, peer_, *parts.environment.clock, false),
            std::move(hold))) {
    if (parts_.open->Add(this)) {
      StartRead(&buffer_);
    } else {
      FinishUnread(Stopping());
    }
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      return FinishUnread(absl::InvalidArgumentError(
          "the call ended before its request was there"));
    }
    if (claimed_.exchange(true)) return;
    // A reference of its own: the answer may end this call.
    const std::shared_ptr<Inference> inference = inference_;
    inference->Begin(
        &buffer_, [this](const absl::Status& status, grpc::ByteBuffer* answer) {
          if (!status.ok()) return Finish(ToGrpc(status));
          buffer_.Swap(answer);
          delivery_ = parts_.environment.deliveries->Begin(
              peer_.Describe(), [context = context_] { context->TryCancel(); });
          StartWriteAndFinish(&buffer_, Plain(), grpc::Status::OK);
        });
  }

  void OnCancel() override { inference_->Cancel(); }

  // What runs is answered by those it runs with.
  void End() override { FinishUnread(Stopping()); }

  void OnDone() override {
    parts_.open->Remove(this);
    delivery_.Release();
    delete this;
  }

 private:
  void FinishUnread(const absl::Status& status) {
    if (claimed_.exchange(true)) return;
    Finish(ToGrpc(status));
  }

  const InferCallParts& parts_;
  Context* const context_;
  const GrpcPeer peer_;
  const std::shared_ptr<Inference> inference_;
  grpc::ByteBuffer buffer_;  // the request, then the answer
  DeliveryWatch::Guard delivery_;
  std::atomic<bool> claimed_{false};  // by its request, or its end without one
};

// ---- ModelStreamInfer -------------------------------------------------------

// Requests are read one after the other and run side by side; answers leave as
// they come. `open_` counts those between.
class StreamCall final : public Reactor, public OpenCall {
 public:
  StreamCall(const InferCallParts& parts, Context* context, GrpcPeer peer)
      : parts_(parts), context_(context), peer_(std::move(peer)) {
    const auto& headers = context->client_metadata();
    const auto asked = headers.find("triton_grpc_error");
    errors_end_it_ = asked != headers.end() && asked->second == "true";
    if (parts_.open->Add(this)) {
      reading_ = true;
      StartRead(&request_);
    } else {
      finished_ = true;
      Finish(ToGrpc(Stopping()));
    }
  }

  void OnReadDone(bool ok) override {
    {
      const base::MutexLock lock(mutex_);
      if (ok && !ending_.has_value()) {
        ++open_;
      } else {
        reading_ = false;
        all_read_ = true;
        ok = false;
      }
    }
    if (ok) {
      BeginRequest();
      const base::MutexLock lock(mutex_);
      reading_ = false;
      ReadOn();
    }
    FinishIfOver();
  }

  void OnWriteDone(bool ok) override {
    delivery_.Release();
    {
      const base::MutexLock lock(mutex_);
      answers_.pop_front();
      --open_;
      writing_ = false;
      if (!ok && !ending_.has_value()) ending_ = ClientGone();
      if (ending_.has_value()) {
        open_ -= answers_.size();
        answers_.clear();
      }
      WriteOn();
      ReadOn();
    }
    FinishIfOver();
  }

  void OnCancel() override { EndWith(ClientGone()); }
  void End() override { EndWith(Stopping()); }
  void OnDone() override {
    parts_.open->Remove(this);
    delete this;
  }

 private:
  struct Answer {
    grpc::ByteBuffer bytes;
    RequestBudget::Hold hold;
  };

  void BeginRequest() {
    auto hold = parts_.environment.budget->Take(peer_.account, kRequestBytes);
    const auto inference = Inference::Make(
        parts_.inference,
        CallOf(*context_, peer_, *parts_.environment.clock, true),
        hold.ok() ? *std::move(hold) : RequestBudget::Hold());
    if (!hold.ok()) {
      grpc::ByteBuffer none;
      request_.Clear();
      return OnAnswer(inference, hold.status(), &none);
    }
    {
      const base::MutexLock lock(mutex_);
      running_.insert(inference);
    }
    inference->Begin(&request_, [this, inference](const absl::Status& status,
                                                  grpc::ByteBuffer* answer) {
      OnAnswer(inference, status, answer);
    });
  }

  void OnAnswer(const std::shared_ptr<Inference>& inference,
                const absl::Status& status, grpc::ByteBuffer* answer) {
    if (!status.ok() && !errors_end_it_) {
      WriteStreamError(std::string(status.message()), inference->id(), answer);
    }
    bool ends = !status.ok() && errors_end_it_;
    {
      const base::MutexLock lock(mutex_);
      running_.erase(inference);
      ends = ends && !ending_.has_value();
    }
    // While it is counted in `open_`, this stays.
    if (ends) EndWith(status);
    bool over = false;
    {
      const base::MutexLock lock(mutex_);
      if (ending_.has_value()) {
        --open_;
      } else {
        answers_.push_back({*answer, inference->TakeHold()});
        WriteOn();
      }
      over = TakeOver();
    }
    if (over) FinishNow();
  }

  // What runs is taken back, what was not sent is dropped.
  void EndWith(const absl::Status& status) {
    std::set<std::shared_ptr<Inference>> running;
    {
      const base::MutexLock lock(mutex_);
      if (!ending_.has_value()) ending_ = status;
      running = running_;
      // The first of them may be on its way.
      while (answers_.size() > (writing_ ? 1 : 0)) {
        answers_.pop_back();
        --open_;
      }
    }
    for (const auto& inference : running) inference->Cancel();
    FinishIfOver();
  }

  void ReadOn() RKNND_REQUIRES(mutex_) {
    if (reading_ || all_read_ || ending_.has_value() ||
        open_ >= kStreamWindow) {
      return;
    }
    reading_ = true;
    StartRead(&request_);
  }

  void WriteOn() RKNND_REQUIRES(mutex_) {
    if (writing_ || answers_.empty()) return;
    writing_ = true;
    delivery_ = parts_.environment.deliveries->Begin(
        peer_.Describe(), [context = context_] { context->TryCancel(); });
    StartWrite(&answers_.front().bytes, Plain());
  }

  // True, once: nothing of it is left, and who hears so calls FinishNow. In the
  // same hold of the lock as what may have been the last of it: afterwards this
  // may be gone, unless a reaction or something in `open_` keeps it.
  bool TakeOver() RKNND_REQUIRES(mutex_) {
    const bool over = (all_read_ || ending_.has_value()) && open_ == 0 &&
                      !writing_ && !finished_;
    finished_ = finished_ || over;
    return over;
  }
  // Outside the lock, which goes with this.
  void FinishNow() {
    absl::Status status;
    {
      const base::MutexLock lock(mutex_);
      if (ending_.has_value()) status = *ending_;
    }
    Finish(ToGrpc(status));
  }
  // Of a reaction, or of something in `open_`.
  void FinishIfOver() {
    bool over = false;
    {
      const base::MutexLock lock(mutex_);
      over = TakeOver();
    }
    if (over) FinishNow();
  }

  const InferCallParts& parts_;
  Context* const context_;
  const GrpcPeer peer_;
  bool errors_end_it_ = false;
  grpc::ByteBuffer request_;       // of whoever reads
  DeliveryWatch::Guard delivery_;  // of whoever writes

  base::Mutex mutex_;
  bool reading_ RKNND_GUARDED_BY(mutex_) = false;
  bool writing_ RKNND_GUARDED_BY(mutex_) = false;
  bool all_read_ RKNND_GUARDED_BY(mutex_) = false;
  bool finished_ RKNND_GUARDED_BY(mutex_) = false;
  std::optional<absl::Status> ending_ RKNND_GUARDED_BY(mutex_);
  size_t open_ RKNND_GUARDED_BY(mutex_) = 0;
  std::set<std::shared_ptr<Inference>> running_ RKNND_GUARDED_BY(mutex_);
  std::deque<Answer> answers_ RKNND_GUARDED_BY(mutex_);
};

class InferCalls final : public grpc::CallbackGenericService {
 public:
  explicit InferCalls(const InferCallParts& parts) : parts_(parts) {}

  Reactor* CreateReactor(Context* context) override {
    const bool streamed =
        context->method() == "/inference.GRPCInferenceService/ModelStreamInfer";
    if (!streamed &&
        context->method() != "/inference.GRPCInferenceService/ModelInfer") {
      return CallbackGenericService::CreateReactor(context);
    }
    auto peer = parts_.environment.doorman->Admit(*context);
    if (!peer.ok()) return new RefusedCall(peer.status());
    if (streamed) return new StreamCall(parts_, context, *std::move(peer));
    auto hold = parts_.environment.budget->Take(peer->account, kRequestBytes,
                                                /*unread=*/true);
    if (!hold.ok()) return new RefusedCall(hold.status());
    return new UnaryCall(parts_, context, *std::move(peer), *std::move(hold));
  }

 private:
  const InferCallParts parts_;
};

}  // namespace

std::unique_ptr<grpc::CallbackGenericService> MakeInferCalls(
    const InferCallParts& parts) {
  return std::make_unique<InferCalls>(parts);
}

}  // namespace rknnd::transport
