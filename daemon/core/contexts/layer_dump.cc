#include "daemon/core/contexts/layer_dump.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/posix/memfd.h"
#include "base/status/status.h"

namespace rknnd::core {
namespace {

// Rows of shapes, batch slices and all: no network has so many outputs, and
// each costs memory beside its bytes.
constexpr size_t kMaxTensors = size_t{1} << 14;
// As much as a message has room for. A model may have names of megabytes, and
// each slice of a batch brings them again.
constexpr size_t kMaxName = 255;

}  // namespace

absl::StatusOr<std::shared_ptr<LayerDump>> LayerDump::Create(Account& account,
                                                             uint64_t limit) {
  RKNND_ASSIGN_OR_RETURN(Charge charge,
                         account.TryCharge(MemoryKind::kOther, 0));
  RKNND_ASSIGN_OR_RETURN(
      base::UniqueFd bytes,
      base::ToStatusOr(base::MakeGrowingMemfd("rknnd-dump")));
  return std::shared_ptr<LayerDump>(
      new LayerDump(std::move(bytes), std::move(charge), limit));
}

absl::Status LayerDump::OnLayer(const driver::LayerTensor& tensor) {
  const uint64_t more = tensor.bytes.size();
  std::string name(tensor.name.substr(0, kMaxName));
  if (more > limit_ - size_ || tensors_.size() >= kMaxTensors) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the dump stops at layer ", tensor.layer, " with tensor '",
                     name, "' of ", more, " bytes: it has ", size_,
                     " already, and limit 'dump_bytes' is ", limit_));
  }
  RKNND_RETURN_IF_ERROR(charge_.Resize(size_ + more));
  RKNND_RETURN_IF_ERROR(
      base::ToStatus(base::AppendToMemfd(bytes_.get(), tensor.bytes)));
  tensors_.push_back({tensor.layer,
                      std::move(name),
                      tensor.type,
                      {tensor.shape.begin(), tensor.shape.end()},
                      size_,
                      more});
  size_ += more;
  return absl::OkStatus();
}

absl::StatusOr<Dump> LayerDump::Take() {
  if (!bytes_.valid()) {
    return absl::FailedPreconditionError("the dump has been taken already");
  }
  RKNND_RETURN_IF_ERROR(base::ToStatus(base::SealMemfd(bytes_.get())));
  return Dump{std::move(bytes_), size_, std::move(tensors_)};
}

}  // namespace rknnd::core
