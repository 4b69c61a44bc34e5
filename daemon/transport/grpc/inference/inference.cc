#include "daemon/transport/grpc/inference/inference.h"

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "base/values/overflow.h"
#include "daemon/transport/grpc/inference/answer.h"
#include "daemon/transport/grpc/inference/conversion.h"
#include "daemon/transport/grpc/inference/request_message.h"
#include "daemon/transport/grpc/inference/typed_contents.h"
#include "inference/open_inference.pb.h"

namespace rknnd::transport {

// What gRPC has received, and what it says.
struct Inference::Message {
  std::vector<grpc::Slice> slices;
  std::optional<RequestMessage> request;
  RequestPlan plan;
};

std::shared_ptr<Inference> Inference::Make(const InferenceParts& parts,
                                           Call call,
                                           RequestBudget::Hold hold) {
  return std::shared_ptr<Inference>(
      new Inference(parts, std::move(call), std::move(hold)));
}

Inference::Inference(const InferenceParts& parts, Call call,
                     RequestBudget::Hold hold)
    : parts_(parts),
      call_(std::move(call)),
      begun_(parts.clock->Now()),
      hold_(std::move(hold)),
      message_(std::make_unique<Message>()) {}

Inference::~Inference() = default;

std::string Inference::id() const {
  return message_->request.has_value() ? message_->request->head().id() : "";
}

RequestBudget::Hold Inference::TakeHold() { return std::move(hold_); }

absl::Status Inference::Read(grpc::ByteBuffer* message) {
  absl::Status taken = hold_.Grow(message->Length());
  if (taken.ok() && !message->Dump(&message_->slices).ok()) {
    taken = absl::InternalError("gRPC does not give the message's bytes");
  }
  message->Clear();
  if (!taken.ok()) return taken;
  RequestMessage::Pieces pieces;
  for (const grpc::Slice& slice : message_->slices) {
    pieces.push_back(std::as_bytes(std::span(slice.begin(), slice.size())));
  }
  RKNND_ASSIGN_OR_RETURN(
      message_->request,
      RequestMessage::Parse(std::move(pieces), [this](uint64_t more) {
        return hold_.Grow(more);
      }));
  return absl::OkStatus();
}

void Inference::Begin(grpc::ByteBuffer* message, Done done) {
  done_ = std::move(done);
  if (absl::Status read = Read(message); !read.ok())
    return Finish(read, {}, {});
  const inference::ModelInferRequest& head = message_->request->head();
  parts_.directory->Find(
      head.model_name(), head.model_version(),
      [self = shared_from_this()](absl::StatusOr<ServedModel> found) {
        self->OnFound(std::move(found));
      });
}

void Inference::OnFound(absl::StatusOr<ServedModel> found) {
  if (!found.ok()) return Finish(found.status(), {}, {});
  model_ = *std::move(found);
  parts_.engine->Open(
      model_.id, [self = shared_from_this()](
                     absl::StatusOr<std::shared_ptr<const ModelView>> view) {
        self->OnOpen(std::move(view));
      });
}

void Inference::OnOpen(absl::StatusOr<std::shared_ptr<const ModelView>> view) {
  if (!view.ok()) {
    const absl::Status& why = view.status();
    return Finish(
        absl::IsNotFound(why)
            ? absl::NotFoundError(
                  absl::StrCat("model '", model_.name, "' is not loaded"))
            : base::Annotate(why, absl::StrCat("model '", model_.name, "'")),
        {}, {});
  }
  view_ = *std::move(view);
  if (absl::Status planned = Plan(); !planned.ok()) {
    return Finish(
        base::Annotate(planned, absl::StrCat("model '", model_.name, "'")), {},
        {});
  }
  parts_.engine->Submit(view_, shared_from_this());
}

absl::Status Inference::UseRegion(const RegionRange& range, uint64_t bytes,
                                  PortBinding* port) {
  RKNND_ASSIGN_OR_RETURN(const std::shared_ptr<const Region> region,
                         parts_.regions->Find(call_.region_space, range.name));
  const auto end = base::CheckedAdd(range.offset, range.size);
  if (!end || *end > region->size()) {
    // A key is a secret that must not get into logs.
    return absl::InvalidArgumentError(
        absl::StrCat("shared-memory region ",
                     core::ParseBufferKey(range.name).has_value()
                         ? "of that key"
                         : absl::StrCat("'", range.name, "'"),
                     " has ", region->size(), " bytes, asked for are ",
                     range.size, " at ", range.offset));
  }
  port->region = region->id();
  port->offset = region->origin() + range.offset;
  port->bytes = bytes;
  regions.push_back({region->id(), region->key()});
  return absl::OkStatus();
}

absl::Status Inference::Plan() {
  RKNND_ASSIGN_OR_RETURN(message_->plan,
                         PlanRequest(*view_, message_->request->head(),
                                     message_->request->raw_sizes()));
  const RequestPlan& plan = message_->plan;
  row = plan.row;
  priority = plan.priority;
  account = call_.account;
  deadline = call_.deadline;
  if (plan.timeout != 0) deadline = std::min(deadline, begun_ + plan.timeout);
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    PortBinding& port = bindings.inputs.emplace_back();
    port.format.type = *DeviceType(plan.inputs[i].datatype);
    port.format.layout = plan.inputs[i].channels_last
                             ? driver::TensorLayout::kNhwc
                             : view_->inputs[i].layout;
    port.bytes = plan.inputs[i].bytes;
    if (!plan.inputs[i].region.has_value()) continue;
    RKNND_RETURN_IF_ERROR(UseRegion(*plan.inputs[i].region, port.bytes, &port));
  }
  for (size_t i = 0; i < view_->outputs.size(); ++i) {
    PortBinding& port = bindings.outputs.emplace_back();
    port.format.type = *DeviceType(view_->outputs[i].datatype);
    port.format.layout = view_->outputs[i].layout;
    port.bytes = *CountElements(view_->rows[row].outputs[i]) *
                 DatatypeSize(view_->outputs[i].datatype);
  }
  uint64_t answer = 0;
  for (const OutputPlan& output : plan.outputs) {
    if (!output.region.has_value()) {
      answer += output.bytes;
      continue;
    }
    RKNND_RETURN_IF_ERROR(UseRegion(*output.region, output.bytes,
                                    &bindings.outputs[output.index]));
  }
  RKNND_RETURN_IF_ERROR(hold_.Grow(answer));
  hold_.DropAhead();
  return absl::OkStatus();
}

absl::Status Inference::Fill(std::span<const std::span<std::byte>> inputs) {
  const RequestPlan& plan = message_->plan;
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    if (plan.inputs[i].region.has_value()) continue;
    if (plan.inputs[i].raw.has_value()) {
      message_->request->CopyRaw(*plan.inputs[i].raw, 0, inputs[i]);
    } else {
      CopyTyped(*plan.inputs[i].typed, plan.inputs[i].datatype, inputs[i]);
    }
  }
  return absl::OkStatus();
}

void Inference::Cancel() { parts_.engine->Cancel(shared_from_this()); }

void Inference::Finish(const absl::Status& status, const RunParts& parts,
                       std::span<const std::span<const std::byte>> outputs) {
  grpc::ByteBuffer answer;
  RunParts counted = parts;
  if (status.ok()) {
    const base::Nanoseconds start = parts_.clock->Now();
    AnswerInput input;
    input.request = &message_->request->head();
    input.model = &model_;
    input.view = view_.get();
    input.plan = &message_->plan;
    input.parts = parts;
    input.streamed = call_.streamed;
    WriteAnswer(input, outputs, &answer);
    counted.output = parts_.clock->Now() - start;
  } else if (OverloadLog::Is(status)) {
    parts_.overload->Count(call_.account, status);
  } else {
    core::SessionPeer peer;
    peer.address = call_.peer;
    parts_.failures->Write(peer, 0, "ModelInfer", status);
  }
  // Only what is there: names that nobody has would make the list grow.
  if (view_ != nullptr) {
    parts_.statistics->Count(model_.name, model_.version, counted,
                             parts_.clock->Now() - begun_, status.ok());
  }
  // Its caller may let go of this in there.
  const Done done = std::move(done_);
  done(status, &answer);
}

}  // namespace rknnd::transport
