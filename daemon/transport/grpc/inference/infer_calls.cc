// The two kinds of calls as gRPC's reactors. Reactions run on gRPC's threads,
// answers come from the engine's; a call lives until OnDone.

#include "daemon/transport/grpc/inference/infer_calls.h"

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "daemon/transport/grpc/authenticator.h"
#include "daemon/transport/grpc/delivery_watch.h"
#include "daemon/transport/grpc/inference/answer.h"
#include "daemon/transport/grpc/inference/call_status.h"
#include "daemon/transport/grpc/overload_log.h"
#include "daemon/transport/grpc/request_turns.h"

namespace rknnd::transport {
namespace {

using Context = grpc::GenericCallbackServerContext;
using Reactor = grpc::ServerGenericBidiReactor;

// Requests of one stream that are begun and whose answers have not left. The
// next is not read before.
constexpr size_t kStreamWindow = 16;

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
  return {peer.Describe(), peer.account, RegionSpace(peer),
          DeadlineOf(context, clock), streamed};
}

RequestTurns::Asker AskerOf(const Context& context, const GrpcPeer& peer,
                            const base::Clock& clock) {
  return {peer.account, peer.address, DeadlineOf(context, clock)};
}

// A call that is refused before a message is read.
class RefusedCall final : public Reactor {
 public:
  explicit RefusedCall(const absl::Status& status) { Finish(ToGrpc(status)); }
  void OnDone() override { delete this; }
};

// ---- ModelInfer -------------------------------------------------------------

//   waiting --its turn--> reading --OnReadDone--> running --done--> answering
//      |                     |                       |                  |
//      +--cancelled, stop ---+                       +--error--+        |
//      |                                                       |        |
//      +--> finished without an answer <-----------------------+     OnDone
//
// What runs is always told its end, on whatever thread, and until then this
// stays: nobody but that end finishes a call that runs. Nor does anybody but
// who has its turn finish a call that is being told of it.
class UnaryCall final : public Reactor, public OpenCall {
 public:
  UnaryCall(const InferCallParts& parts, Context* context, GrpcPeer peer)
      : parts_(parts), context_(context), peer_(std::move(peer)) {}

  // Before it is given to gRPC, which keeps it until then.
  void Begin() {
    if (!parts_.open->Add(this)) return FinishUnread(Stopping());
    {
      const base::MutexLock lock(mutex_);
      if (state_ != State::kNew) return;
      state_ = State::kWaiting;
    }
    parts_.environment.turns->Ask(
        AskerOf(*context_, peer_, *parts_.environment.clock), 0, &place_,
        [this](absl::StatusOr<RequestBudget::Hold> hold) {
          OnTurn(std::move(hold));
        });
    absl::Status over;
    {
      // Who ended it before it had asked found nothing to withdraw.
      const base::MutexLock lock(mutex_);
      if (state_ != State::kEnding ||
          !parts_.environment.turns->Withdraw(place_)) {
        return;
      }
      state_ = State::kTaken;
      over = ending_;
    }
    FinishWith(over);
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      return FinishUnread(absl::InvalidArgumentError(
          "the call ended before its request was there"));
    }
    // A reference of its own: the answer may end this call.
    std::shared_ptr<Inference> inference;
    {
      const base::MutexLock lock(mutex_);
      if (state_ != State::kReading) return;
      state_ = State::kTaken;
      inference = inference_;
    }
    inference->Begin(
        &buffer_, [this](const absl::Status& status, grpc::ByteBuffer* answer) {
          if (!status.ok()) return FinishWith(status);
          parts_.environment.turns->NoteAnswer(parts_.environment.clock->Now() -
                                               granted_);
          buffer_.Swap(answer);
          delivery_ = parts_.environment.deliveries->Begin(
              peer_.Describe(), [context = context_] { context->TryCancel(); });
          StartWriteAndFinish(&buffer_, Plain(), grpc::Status::OK);
        });
  }

  void OnCancel() override {
    std::shared_ptr<Inference> inference;
    {
      const base::MutexLock lock(mutex_);
      inference = inference_;
    }
    if (inference != nullptr) return inference->Cancel();
    FinishUnread(ClientGone());
  }

  // What runs is answered by those it runs with.
  void End() override { FinishUnread(Stopping()); }

  void OnDone() override {
    parts_.open->Remove(this);
    delivery_.Release();
    delete this;
  }

 private:
  enum class State : uint8_t {
    kNew,
    kWaiting,  // for its turn
    kEnding,   // over, and who tells it of its turn finishes it
    kReading,
    kTaken,  // by its request, or its end without one
  };

  void OnTurn(absl::StatusOr<RequestBudget::Hold> hold) {
    absl::Status over;
    {
      const base::MutexLock lock(mutex_);
      over = state_ == State::kEnding ? ending_ : hold.status();
      if (over.ok()) {
        state_ = State::kReading;
        granted_ = parts_.environment.clock->Now();
        inference_ = Inference::Make(
            parts_.inference,
            CallOf(*context_, peer_, *parts_.environment.clock, false),
            *std::move(hold));
        // In the lock: from now on whoever ends the call may destroy it.
        return StartRead(&buffer_);
      }
      state_ = State::kTaken;
    }
    if (OverloadLog::Is(over)) {
      parts_.environment.overload->Count(peer_.account, over);
    }
    FinishWith(over);
  }

  void FinishUnread(const absl::Status& status) {
    {
      const base::MutexLock lock(mutex_);
      if (state_ == State::kTaken || state_ == State::kEnding) return;
      if (state_ == State::kWaiting &&
          !parts_.environment.turns->Withdraw(place_)) {
        state_ = State::kEnding;
        ending_ = status;
        return;
      }
      state_ = State::kTaken;
    }
    FinishWith(status);
  }

  void FinishWith(const absl::Status& status) {
    if (absl::IsResourceExhausted(status)) {
      TellToComeAgain(*context_, parts_.environment.turns->ComeAgain());
    }
    Finish(ToGrpc(status));
  }

  const InferCallParts& parts_;
  Context* const context_;
  const GrpcPeer peer_;
  RequestTurns::Place place_;
  base::Nanoseconds granted_ = 0;
  grpc::ByteBuffer buffer_;  // the request, then the answer
  DeliveryWatch::Guard delivery_;

  base::Mutex mutex_;
  State state_ RKNND_GUARDED_BY(mutex_) = State::kNew;
  absl::Status ending_ RKNND_GUARDED_BY(mutex_);
  // From its turn on.
  std::shared_ptr<Inference> inference_ RKNND_GUARDED_BY(mutex_);
};

// ---- ModelStreamInfer -------------------------------------------------------

// Requests are read one after the other and run side by side; answers leave as
// they come. `open_` counts those between. One that has been read waits for its
// turn, and none is read meanwhile: HTTP/2 holds the sender back.
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
        asking_ = true;
      } else {
        reading_ = false;
        all_read_ = true;
        ok = false;
      }
    }
    if (ok) {
      parts_.environment.turns->Ask(
          AskerOf(*context_, peer_, *parts_.environment.clock),
          std::max<size_t>(1, request_.Length()), &place_,
          [this](absl::StatusOr<RequestBudget::Hold> hold) {
            OnTurn(std::move(hold));
          });
      WithdrawIfEnding();
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

  // Until its end this stays, by `asking_`.
  void OnTurn(absl::StatusOr<RequestBudget::Hold> hold) {
    bool ending = false;
    {
      const base::MutexLock lock(mutex_);
      ending = ending_.has_value();
      if (ending) --open_;
    }
    if (!ending) BeginRequest(std::move(hold));
    bool over = false;
    {
      const base::MutexLock lock(mutex_);
      asking_ = reading_ = false;
      ReadOn();
      over = TakeOver();
    }
    if (over) FinishNow();
  }

  // Where what waits for its turn is not to have it any more.
  void WithdrawIfEnding() {
    const base::MutexLock lock(mutex_);
    if (!ending_.has_value() || !asking_ ||
        !parts_.environment.turns->Withdraw(place_)) {
      return;
    }
    asking_ = reading_ = false;
    --open_;
  }

  void BeginRequest(absl::StatusOr<RequestBudget::Hold> hold) {
    const absl::Status refused = hold.status();
    const auto inference = Inference::Make(
        parts_.inference,
        CallOf(*context_, peer_, *parts_.environment.clock, true),
        refused.ok() ? *std::move(hold) : RequestBudget::Hold());
    if (!refused.ok()) {
      if (OverloadLog::Is(refused)) {
        parts_.environment.overload->Count(peer_.account, refused);
      }
      grpc::ByteBuffer none;
      request_.Clear();
      return OnAnswer(inference, refused, &none);
    }
    {
      const base::MutexLock lock(mutex_);
      running_.insert(inference);
    }
    inference->Begin(&request_,
                     [this, inference, begun = parts_.environment.clock->Now()](
                         const absl::Status& status, grpc::ByteBuffer* answer) {
                       if (status.ok()) {
                         parts_.environment.turns->NoteAnswer(
                             parts_.environment.clock->Now() - begun);
                       }
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
    WithdrawIfEnding();
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
                      !asking_ && !writing_ && !finished_;
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
  RequestTurns::Place place_;      // of what was read

  base::Mutex mutex_;
  bool reading_ RKNND_GUARDED_BY(mutex_) = false;
  bool asking_ RKNND_GUARDED_BY(mutex_) = false;  // what was read has no turn
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
    auto peer = parts_.environment.authenticator->Admit(*context);
    if (!peer.ok()) return new RefusedCall(peer.status());
    if (streamed) return new StreamCall(parts_, context, *std::move(peer));
    auto* const call = new UnaryCall(parts_, context, *std::move(peer));
    call->Begin();
    return call;
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
