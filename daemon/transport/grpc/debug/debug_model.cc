// Hashes and inputs are a peer's: their sizes are checked before a byte is
// copied.

#include "daemon/transport/grpc/debug/debug_model.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"

namespace rknnd::transport {
namespace {

// Of rknn_init: RKNN_FLAG_COLLECT_PERF_MASK.
constexpr uint32_t kCollectPerf = 0x8;
constexpr uint32_t kPriority = static_cast<uint32_t>(core::Priority::kMedium);

}  // namespace

absl::StatusOr<core::ModelId> ToModelId(const std::string& sha256) {
  core::ModelId id{};
  if (sha256.size() != id.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "sha256 has ", sha256.size(), " bytes, must have ", id.size()));
  }
  std::memcpy(id.data(), sha256.data(), id.size());
  return id;
}

absl::StatusOr<std::shared_ptr<DebugModel>> DebugModel::Open(
    const OwnSession::Parts& parts, core::SessionPeer peer) {
  RKNND_ASSIGN_OR_RETURN(std::shared_ptr<OwnSession> own,
                         OwnSession::Open(parts, std::move(peer)));
  return std::shared_ptr<DebugModel>(new DebugModel(std::move(own)));
}

void DebugModel::Prepare(const Wanted& wanted, StatusCallback done) {
  const auto model = ToModelId(wanted.sha256);
  if (!model.ok()) return done(model.status());
  core::ContextRequest request;
  request.model = *model;
  request.flags = kPriority | (wanted.layers ? kCollectPerf : 0);
  request.core_mask = wanted.core_mask;
  own_->Prepare(request, /*real_numbers=*/false,
                [weak = weak_from_this(), inputs = wanted.inputs,
                 done = std::move(done)](const absl::Status& status) {
                  const auto self = weak.lock();
                  if (self == nullptr) return;
                  if (absl::IsNotFound(status)) {
                    return done(absl::NotFoundError(
                        "no model with this sha256 is here: push it first"));
                  }
                  done(status.ok() ? self->FillInputs(inputs) : status);
                });
}

absl::Status DebugModel::FillInputs(const std::vector<std::string>& inputs) {
  const size_t count = own_->program().inputs.size();
  if (inputs.empty()) return absl::OkStatus();
  if (inputs.size() != count) {
    return absl::InvalidArgumentError(absl::StrCat(
        inputs.size(), " inputs are given, the model has ", count));
  }
  for (size_t i = 0; i < count; ++i) {
    const std::span<std::byte> to = own_->input(i);
    if (inputs[i].size() != to.size()) {
      const driver::TensorAttr& attribute = own_->program().inputs[i];
      return absl::InvalidArgumentError(absl::StrCat(
          "input '", attribute.name, "': ", inputs[i].size(), " bytes given, ",
          to.size(), " needed as ", driver::TensorTypeName(attribute.type),
          " in layout ", driver::TensorLayoutName(attribute.layout)));
    }
    std::memcpy(to.data(), inputs[i].data(), to.size());
  }
  return absl::OkStatus();
}

void DebugModel::Run(uint32_t runs, StatusCallback done) {
  if (runs > kMostRuns) {
    return done(absl::InvalidArgumentError(absl::StrCat(
        runs, " runs in one call: at most ", kMostRuns, " are made")));
  }
  own_->Run(0, [weak = weak_from_this(), left = std::max(runs, 1U) - 1,
                done = std::move(done)](const core::JobCompletion& completion) {
    const auto self = weak.lock();
    if (self == nullptr) return;
    if (!completion.status.ok()) return done(completion.status);
    self->run_.push_back(static_cast<uint64_t>(completion.run));
    self->queue_.push_back(static_cast<uint64_t>(completion.queue));
    if (left == 0) return done(absl::OkStatus());
    self->Run(left, done);
  });
}

uint64_t DebugModel::tensor_bytes() const {
  uint64_t bytes = 0;
  for (const auto* tensors :
       {&own_->program().inputs, &own_->program().outputs}) {
    for (const driver::TensorAttr& tensor : *tensors) {
      bytes += tensor.size_with_stride;
    }
  }
  return bytes;
}

}  // namespace rknnd::transport
