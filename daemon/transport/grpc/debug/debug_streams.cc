// Reads, writes and ends are told to gRPC on the loop only, one after the
// other; what is slow (the bytes of a model) is done on gRPC's threads between
// them.

#include "daemon/transport/grpc/debug/debug_streams.h"

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <algorithm>
#include <deque>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/posix/mapping.h"
#include "base/posix/memfd.h"
#include "base/status/status.h"
#include "daemon/core/terms/utf8.h"
#include "daemon/transport/grpc/authenticator.h"
#include "daemon/transport/grpc/debug/debug_call.h"
#include "daemon/transport/grpc/debug/debug_model.h"
#include "daemon/transport/session/board.h"
#include "daemon/transport/session/event_log.h"
#include "rknnd/v1/debug.grpc.pb.h"

namespace rknnd::transport {
namespace {

// Of a context that asks only whether its model is there.
constexpr uint32_t kInfoOnly = 0x100;  // RKNN_FLAG_COLLECT_MODEL_INFO_ONLY
constexpr size_t kLongestName = 255;
constexpr size_t kLongestOptions = size_t{64} << 10;
// Of a dump, in one message.
constexpr size_t kPiece = size_t{1} << 20;
// Lines that wait for one caller.
constexpr size_t kWaitingLines = 256;

grpc::Status ToGrpc(const absl::Status& status) {
  return {static_cast<grpc::StatusCode>(status.raw_code()),
          std::string(status.message())};
}

// ---- a model on its way in --------------------------------------------------

//            first message            NOT_FOUND            last byte
//   waiting ---------------> asking ------------> coming ------------> loading
//                               | it is there                            |
//                               +------------------> ended <-------------+
class PushModel final
    : public grpc::ServerReadReactor<v1::DebugPushModelRequest>,
      public DebugCall {
 public:
  PushModel(std::shared_ptr<DebugCalls> calls,
            grpc::CallbackServerContext* context,
            v1::DebugPushModelReply* reply)
      : DebugCall(std::move(calls)), context_(context), reply_(reply) {}

  void Begin() {
    if (!Enter(calls().daemon.authenticator->Admit(*context_), 0)) return;
    OnLoop([this] { ReadOn(); });
  }

  void OnReadDone(bool ok) override {
    coming_.Release();
    // The reads are one after the other: the file is this thread's now.
    const bool first = model_ == nullptr;
    absl::Status status = ok ? Take(first) : Incomplete();
    OnLoop([this, first, status = std::move(status)] {
      if (!status.ok()) return End(status);
      first ? Ask() : GoOn();
    });
  }
  void OnCancel() override { Cancelled(); }
  void OnDone() override { Gone(); }

 private:
  struct Model {
    core::ModelUpload upload;
    uint64_t size = 0, arrived = 0;
    std::shared_ptr<TransferCharge> charge;
  };

  void Conclude(const absl::Status& status) override { Finish(ToGrpc(status)); }
  void Cut() override { context_->TryCancel(); }

  // A peer that stops keeps its session, and what has come, from others.
  void ReadOn() {
    coming_ = Watch("does not go on with its model");
    StartRead(&message_);
  }

  absl::Status Incomplete() const {
    if (model_ == nullptr) {
      return absl::InvalidArgumentError(
          "no message: the first names the model");
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "model '", model_->upload.name, "' is incomplete: ", model_->arrived,
        " of ", model_->size, " bytes came"));
  }

  absl::Status Open() {
    auto model = std::make_unique<Model>();
    RKNND_ASSIGN_OR_RETURN(model->upload.id, ToModelId(message_.sha256()));
    model->size = message_.size();
    model->upload.name = Printable(message_.name().substr(0, kLongestName));
    model->upload.options = message_.options();
    const uint64_t most = calls().daemon.limits.model_bytes;
    if (model->size == 0 || model->size > most) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "model '", model->upload.name, "' has ", model->size,
          " bytes: must be 1 to ", most, " (limit 'model_bytes')"));
    }
    if (model->upload.options.size() > kLongestOptions) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "the options of model '", model->upload.name, "' have ",
          model->upload.options.size(), " bytes: at most ", kLongestOptions));
    }
    RKNND_ASSIGN_OR_RETURN(
        model->upload.bytes,
        base::ToStatusOr(base::MakeGrowingMemfd("rknnd-push")));
    model->charge = std::make_shared<TransferCharge>(calls().transfers);
    model_ = std::move(model);
    return absl::OkStatus();
  }

  absl::Status Take(bool first) {
    if (first) RKNND_RETURN_IF_ERROR(Open());
    const std::string& piece = message_.piece();
    if (piece.size() > model_->size - model_->arrived) {
      return absl::InvalidArgumentError(
          absl::StrCat("model '", model_->upload.name, "' was announced with ",
                       model_->size, " bytes, and more came"));
    }
    RKNND_RETURN_IF_ERROR(model_->charge->Grow(piece.size()));
    RKNND_RETURN_IF_ERROR(base::ToStatus(base::AppendToMemfd(
        model_->upload.bytes.get(), std::as_bytes(std::span(piece)))));
    model_->arrived += piece.size();
    return absl::OkStatus();
  }

  // Whether the daemon has the model.
  void Ask() {
    auto own = OwnSession::Open(calls().parts(), session_peer());
    if (!own.ok()) return End(own.status());
    session_ = (*own).get();
    Hold(*std::move(own));
    core::ContextRequest request;
    request.number = OwnSession::kContext;
    request.model = model_->upload.id;
    request.flags = kInfoOnly | static_cast<uint32_t>(core::Priority::kMedium);
    session_->session().CreateContext(
        request, [this, self = shared_from_this()](
                     const absl::StatusOr<const driver::ModelInfo*>& info) {
          OnLoop([this, status = info.status()] {
            if (absl::IsNotFound(status)) return GoOn();
            reply_->set_had(status.ok());
            reply_->set_received(model_->arrived);
            End(status);
          });
        });
  }

  void GoOn() {
    if (model_->arrived < model_->size) return ReadOn();
    if (const auto sealed = base::SealMemfd(model_->upload.bytes.get());
        !sealed.ok()) {
      return End(base::ToStatus(sealed.error()));
    }
    session_->session().UploadModel(
        std::move(model_->upload),
        [this, self = shared_from_this()](const absl::Status& status) {
          OnLoop([this, status] {
            reply_->set_received(model_->arrived);
            End(status);
          });
        });
  }

  grpc::CallbackServerContext* const context_;
  v1::DebugPushModelReply* const reply_;
  v1::DebugPushModelRequest message_;
  std::unique_ptr<Model> model_;
  OwnSession* session_ = nullptr;  // held by the call
  DeliveryWatch::Guard coming_;
};

// ---- the tensors of a run ---------------------------------------------------

class Dump final : public grpc::ServerWriteReactor<v1::DebugDumpReply>,
                   public DebugCall {
 public:
  Dump(std::shared_ptr<DebugCalls> calls, grpc::CallbackServerContext* context,
       const v1::DebugDumpRequest* request)
      : DebugCall(std::move(calls)), context_(context), request_(request) {}

  void Begin() {
    if (!Enter(calls().daemon.authenticator->Admit(*context_),
               request_->ByteSizeLong() + kPiece)) {
      return;
    }
    OnLoop([this] { Prepare(); });
  }

  void OnWriteDone(bool ok) override {
    written_.Release();
    OnLoop([this, ok] { ok ? Next() : End(absl::CancelledError("cut")); });
  }
  void OnCancel() override { Cancelled(); }
  void OnDone() override { Gone(); }

 private:
  void Conclude(const absl::Status& status) override { Finish(ToGrpc(status)); }
  void Cut() override { context_->TryCancel(); }

  void Prepare() {
    auto model = DebugModel::Open(calls().parts(), session_peer());
    if (!model.ok()) return End(model.status());
    model_ = (*model).get();
    Hold(*std::move(model));
    DebugModel::Wanted wanted;
    wanted.sha256 = request_->sha256();
    wanted.core_mask = request_->core_mask();
    wanted.inputs.assign(request_->inputs().begin(), request_->inputs().end());
    model_->Prepare(wanted, [this](absl::Status status) {
      if (status.ok()) {
        status = model_->session().ArmDump(OwnSession::kContext);
      }
      if (!status.ok()) return End(status);
      model_->Run(
          1, [this](const absl::Status& run) { run.ok() ? Take() : End(run); });
    });
  }

  void Take() {
    auto report = model_->session().contexts().TakeDump(OwnSession::kContext);
    if (!report.ok()) return End(report.status());
    dump_ = *std::move(report);
    // No session pays for it any more.
    charge_ = std::make_shared<TransferCharge>(calls().transfers);
    if (const absl::Status taken = charge_->Grow(dump_.dump.size);
        !taken.ok()) {
      return End(taken);
    }
    if (dump_.dump.size > 0) {
      auto bytes =
          base::Mapping::OfFd(dump_.dump.bytes.get(), 0, dump_.dump.size,
                              base::Mapping::Access::kRead);
      if (!bytes.ok()) return End(base::ToStatus(bytes.error()));
      bytes_ = *std::move(bytes);
    }
    Next();
  }

  // The next piece, or the end.
  void Next() {
    if (at_ == dump_.dump.tensors.size()) return End(absl::OkStatus());
    const core::DumpedTensor& tensor = dump_.dump.tensors[at_];
    message_.Clear();
    if (sent_ == 0) Describe(tensor, message_.mutable_tensor());
    const uint64_t bytes = std::min<uint64_t>(tensor.size - sent_, kPiece);
    if (bytes > 0) {
      message_.set_piece(bytes_.data() + tensor.offset + sent_, bytes);
    }
    sent_ += bytes;
    if (sent_ == tensor.size) {
      ++at_;
      sent_ = 0;
    }
    written_ = Watch();
    StartWrite(&message_);
  }

  void Describe(const core::DumpedTensor& tensor,
                v1::DebugDumpReply::Tensor* out) const {
    out->set_layer(tensor.layer);
    if (tensor.layer < dump_.program->layers.size()) {
      out->set_type(core::Utf8(dump_.program->layers[tensor.layer].type));
    }
    out->set_name(core::Utf8(tensor.name));
    out->set_data_type(static_cast<uint32_t>(tensor.type));
    for (const int64_t dim : tensor.shape) {
      out->add_dims(static_cast<uint64_t>(dim));
    }
    out->set_size(tensor.size);
  }

  grpc::CallbackServerContext* const context_;
  const v1::DebugDumpRequest* const request_;
  DebugModel* model_ = nullptr;  // held by the call
  core::DumpReport dump_;
  std::shared_ptr<TransferCharge> charge_;
  base::Mapping bytes_;
  size_t at_ = 0;      // the tensor
  uint64_t sent_ = 0;  // of it
  v1::DebugDumpReply message_;
  DeliveryWatch::Guard written_;
};

// ---- the log ----------------------------------------------------------------

class Logs final : public grpc::ServerWriteReactor<v1::DebugLogLine>,
                   public DebugCall {
 public:
  Logs(std::shared_ptr<DebugCalls> calls, grpc::CallbackServerContext* context,
       const v1::DebugLogsRequest* request)
      : DebugCall(std::move(calls)), context_(context), request_(*request) {}

  void Begin() {
    if (!Enter(calls().daemon.authenticator->Admit(*context_), 0)) return;
    OnLoop([this] { Follow(); });
  }

  void OnWriteDone(bool ok) override {
    written_.Release();
    OnLoop([this, ok] {
      if (!ok) return End(absl::CancelledError("cut"));
      writing_ = false;
      Next();
    });
  }
  void OnCancel() override { Cancelled(); }
  void OnDone() override { Gone(); }

 private:
  void Conclude(const absl::Status& status) override { Finish(ToGrpc(status)); }
  void Cut() override { context_->TryCancel(); }

  void Follow() {
    Board* const board = calls().daemon.board;
    if (board == nullptr) {
      return End(absl::UnimplementedError("this daemon's log is not kept"));
    }
    // Told now that it will be: the first line may be far away.
    StartSendInitialMetadata();
    Hold(board->FollowLog(std::min(request_.level(), uint32_t{5}),
                          request_.recent(), [this](const LogLine& line) {
                            if (waiting_.size() == kWaitingLines) return false;
                            waiting_.push_back(line);
                            Next();
                            return true;
                          }));
    if (!request_.end()) return;
    // Behind the last lines, which come by the loop, too.
    OnLoop([this] {
      no_more_ = true;
      Next();
    });
  }

  void Next() {
    if (writing_) return;
    if (waiting_.empty()) {
      if (no_more_) End(absl::OkStatus());
      return;
    }
    const LogLine& line = waiting_.front();
    message_.set_level(line.level);
    message_.set_text(core::Utf8(line.text));
    message_.set_time_ns(line.time_ns);
    message_.set_lost(line.lost);
    waiting_.pop_front();
    writing_ = true;
    written_ = Watch();
    StartWrite(&message_);
  }

  grpc::CallbackServerContext* const context_;
  const v1::DebugLogsRequest request_;
  std::deque<LogLine> waiting_;
  bool writing_ = false, no_more_ = false;
  v1::DebugLogLine message_;
  DeliveryWatch::Guard written_;
};

template <class Call, class Message>
auto* Start(const std::shared_ptr<DebugCalls>& calls,
            grpc::CallbackServerContext* context, Message* message) {
  const auto call = std::make_shared<Call>(calls, context, message);
  // It stays until OnDone.
  call->Begin();
  return call.get();
}

}  // namespace

grpc::ServerReadReactor<v1::DebugPushModelRequest>* StartPushModel(
    const std::shared_ptr<DebugCalls>& calls,
    grpc::CallbackServerContext* context, v1::DebugPushModelReply* reply) {
  return Start<PushModel>(calls, context, reply);
}

grpc::ServerWriteReactor<v1::DebugDumpReply>* StartDump(
    const std::shared_ptr<DebugCalls>& calls,
    grpc::CallbackServerContext* context, const v1::DebugDumpRequest* request) {
  return Start<Dump>(calls, context, request);
}

grpc::ServerWriteReactor<v1::DebugLogLine>* StartLogs(
    const std::shared_ptr<DebugCalls>& calls,
    grpc::CallbackServerContext* context, const v1::DebugLogsRequest* request) {
  return Start<Logs>(calls, context, request);
}

}  // namespace rknnd::transport
