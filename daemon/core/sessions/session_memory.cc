// Internal and weight memory that a program brings, and memory of other
// sessions. Called on the loop with numbers a client chose; weights are copied
// on the pager.

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "daemon/core/sessions/session.h"

namespace rknnd::core {
namespace {

// Of one session, that wait for the pager: each keeps a model and a buffer.
constexpr uint32_t kWeightCopies = 64;

}  // namespace

absl::Status Session::SetInternalMemory(const MemoryRequest& request) {
  RKNND_ASSIGN_OR_RETURN(Context* const found, OpenContext(request.context));
  Context& context = *found;
  if (!context.run->traits().internal_outside) {
    return absl::FailedPreconditionError(absl::StrCat(
        "context ", request.context,
        " has internal memory of the NPU's: to bring it, make the context with "
        "RKNN_FLAG_INTERNAL_ALLOC_OUTSIDE or RKNN_FLAG_MEM_ALLOC_OUTSIDE"));
  }
  std::shared_ptr<Buffer> buffer;
  if (request.buffer != 0) {
    auto given = buffers_.Find(request.buffer);
    if (!given.ok()) return given.status();
    buffer = *std::move(given);
  }
  RKNND_RETURN_IF_ERROR(
      context.bindings.SetInternal(request, std::move(buffer)));
  gate_->SetBindings(request.context, context.bindings.snapshot());
  return absl::OkStatus();
}

// ---- memory by its key ------------------------------------------------------

absl::StatusOr<KeyedBuffer> Session::GetBufferKey(uint32_t buffer) {
  if (absl::Status open = RequireOpen(); !open.ok()) return open;
  return buffers_.KeyOf(buffer);
}

absl::StatusOr<BufferInfo> Session::AdoptBuffer(uint32_t buffer,
                                                const BufferKey& key) {
  if (absl::Status open = RequireOpen(); !open.ok()) return open;
  // The table is this session's.
  return buffers_.Adopt(buffer, key, [this](const Buffer& gone) {
    for (auto& [number, context] : contexts_.all()) {
      if (context.bindings.Count(&gone) == 0) continue;
      context.bindings.Unbind(number, &gone);
      gate_->SetBindings(number, context.bindings.snapshot());
    }
  });
}

// ---- weights ----------------------------------------------------------------

absl::StatusOr<std::shared_ptr<Buffer>> Session::CheckWeightMemory(
    const MemoryRequest& request) {
  RKNND_ASSIGN_OR_RETURN(const Context* const context,
                         OpenContext(request.context));
  if (!context->run->traits().weights_outside) {
    return absl::FailedPreconditionError(
        absl::StrCat("context ", request.context,
                     " was made without RKNN_FLAG_MEM_ALLOC_OUTSIDE and takes "
                     "no weight memory"));
  }
  if (request.buffer == 0) return std::shared_ptr<Buffer>();
  auto buffer = buffers_.Find(request.buffer);
  if (!buffer.ok()) return buffer.status();
  const LoadedModel& model = *context->run->model();
  const std::string name =
      absl::StrCat("weight memory of model '", model.name, "'");
  if (absl::Status inside = CheckRange(request, **buffer, name); !inside.ok()) {
    return inside;
  }
  const uint64_t needed = model.info().weight_size;
  if (request.size < needed) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " has ", request.size, " bytes, ", needed,
                     " needed: give total_weight_size of RKNN_QUERY_MEM_SIZE"));
  }
  if (weight_copies_ >= kWeightCopies) {
    return absl::ResourceExhaustedError(absl::StrCat(
        account_->holder(), " has ", weight_copies_,
        " copies of weights on their way already: wait for one to end"));
  }
  return buffer;
}

void Session::SetWeightMemory(const MemoryRequest& request,
                              StatusCallback done) {
  auto buffer = CheckWeightMemory(request);
  if (!buffer.ok()) return done(buffer.status());
  // Nothing is kept, so nothing is to be taken away.
  if (*buffer == nullptr) return done(absl::OkStatus());
  ++weight_copies_;
  // Goes with the second task, on the loop, where it came from.
  struct Copy {
    std::shared_ptr<const LoadedModel> model;
    std::shared_ptr<Buffer> memory;
    absl::Status copied;
  };
  auto copy = std::make_shared<Copy>();
  copy->model = contexts_.Find(request.context)->run->model();
  copy->memory = *std::move(buffer);
  turns_.Add(
      [copy, offset = request.offset] {
        copy->copied =
            copy->model->model->CopyWeights(*copy->memory->memory(), offset);
      },
      [copy, weak = weak_from_this(), done = std::move(done)] {
        const auto self = weak.lock();
        if (self == nullptr || self->ended_) return;
        --self->weight_copies_;
        done(copy->copied);
      });
}

}  // namespace rknnd::core
