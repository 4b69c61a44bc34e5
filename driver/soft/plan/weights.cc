#include "driver/soft/plan/weights.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "driver/soft/plan/reorder.h"

namespace rknnd::soft {
namespace {

constexpr size_t kAlignment = 64;
// A further mapping, where the guess was too small.
constexpr size_t kStep = size_t{1} << 20;

size_t RoundUp(size_t size, size_t unit) {
  return (size + unit - 1) / unit * unit;
}

size_t RoomFor(size_t size) {
  return std::max(kAlignment, RoundUp(size, kAlignment));
}

}  // namespace

uint64_t ModelWeights::size() const {
  uint64_t size = 0;
  for (const base::Mapping& mapping : mappings_) size += mapping.size();
  return size;
}

absl::Status ModelWeights::TrimLast() {
  if (mappings_.empty()) return absl::OkStatus();
  RKNND_RETURN_IF_ERROR(base::ToStatus(mappings_.back().ShrinkTo(used_)));
  if (!mappings_.back().valid()) mappings_.pop_back();
  return absl::OkStatus();
}

absl::StatusOr<std::byte*> ModelWeights::Room(size_t size) {
  if (mappings_.empty() || mappings_.back().size() - used_ < size) {
    size_t wanted = mappings_.empty()
                        ? static_cast<size_t>(std::min(expected_, kMaxBytes))
                        : kStep;
    RKNND_RETURN_IF_ERROR(TrimLast());
    used_ = 0;
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    wanted = RoundUp(std::max(wanted, size), page);
    RKNND_ASSIGN_OR_RETURN(base::Mapping mapping,
                           base::ToStatusOr(base::Mapping::Anonymous(wanted)));
    mappings_.push_back(std::move(mapping));
  }
  return mappings_.back().data() + used_;
}

absl::StatusOr<const std::byte*> ModelWeights::Store(
    size_t bytes, absl::FunctionRef<void(std::byte*)> fill) {
  uint64_t taken = size();
  if (!mappings_.empty()) taken -= mappings_.back().size() - used_;
  if (bytes > kMaxBytes || taken + RoomFor(bytes) > kMaxBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("weights of more than ", kMaxBytes >> 20,
                     " MiB do not fit the NPU's address space"));
  }
  RKNND_ASSIGN_OR_RETURN(std::byte * room, Room(RoomFor(bytes)));
  // Something given up may have been written there.
  std::memset(room, 0, bytes);
  fill(room);
  const auto [at, is_new] =
      contents_.emplace(reinterpret_cast<const char*>(room), bytes);
  if (is_new) used_ += RoomFor(bytes);
  return reinterpret_cast<const std::byte*>(at->data());
}

absl::StatusOr<const std::byte*> ModelWeights::Keep(const Constant& constant,
                                                    Placement placement) {
  const TensorSpec dense{constant.type, constant.shape, Placement{}};
  const TensorSpec spec{constant.type, constant.shape, placement};
  return Store(spec.bytes(), [&](std::byte* room) {
    if (placement.block > 1) {
      Reorder(dense, spec).Run(constant.data.data(), room);
    } else if (!constant.data.empty()) {
      std::memcpy(room, constant.data.data(), constant.data.size());
    }
  });
}

absl::Status ModelWeights::Seal() {
  contents_.clear();
  RKNND_RETURN_IF_ERROR(TrimLast());
  for (base::Mapping& mapping : mappings_) {
    RKNND_RETURN_IF_ERROR(base::ToStatus(mapping.MakeReadOnly()));
  }
  return absl::OkStatus();
}

}  // namespace rknnd::soft
