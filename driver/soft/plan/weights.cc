#include "driver/soft/plan/weights.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "driver/soft/plan/reorder.h"

namespace rknnd::soft {
namespace {

constexpr size_t kAlignment = 64;
// A further mapping, where the guess was too small.
constexpr size_t kStep = size_t{1} << 20;
constexpr size_t kPage = 4096;

}  // namespace

absl::StatusOr<std::byte*> ModelWeights::Reserve(size_t size) {
  if (size > kMaxBytes || size_ + size > kMaxBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("weights of more than ", kMaxBytes >> 20,
                     " MiB do not fit the NPU's address space"));
  }
  size_t aligned =
      std::max(kAlignment, (size + kAlignment - 1) / kAlignment * kAlignment);
  if (mappings_.empty() || mappings_.back().size() - used_ < aligned) {
    size_t wanted = mappings_.empty()
                        ? static_cast<size_t>(std::min(expected_, kMaxBytes))
                        : kStep;
    wanted = (std::max(wanted, aligned) + kPage - 1) / kPage * kPage;
    RKNND_ASSIGN_OR_RETURN(base::Mapping mapping,
                           base::ToStatusOr(base::Mapping::Anonymous(wanted)));
    mappings_.push_back(std::move(mapping));
    used_ = 0;
  }
  std::byte* data = mappings_.back().data() + used_;
  used_ += aligned;
  size_ += aligned;
  return data;
}

absl::StatusOr<const std::byte*> ModelWeights::Keep(
    const std::shared_ptr<const Constant>& constant, Placement placement) {
  Kept& kept = kept_[{constant.get(), placement.block}];
  if (kept.data != nullptr) return kept.data;
  TensorSpec dense{constant->type, constant->shape, Placement{}};
  TensorSpec spec{constant->type, constant->shape, placement};
  RKNND_ASSIGN_OR_RETURN(std::byte * data, Reserve(spec.bytes()));
  if (placement.block > 1) {
    Reorder(dense, spec).Run(constant->data.data(), data);
  } else if (!constant->data.empty()) {
    std::memcpy(data, constant->data.data(), constant->data.size());
  }
  kept = {constant, data};
  return data;
}

absl::Status ModelWeights::Seal() {
  kept_.clear();
  for (base::Mapping& mapping : mappings_) {
    RKNND_RETURN_IF_ERROR(base::ToStatus(mapping.MakeReadOnly()));
  }
  return absl::OkStatus();
}

}  // namespace rknnd::soft
