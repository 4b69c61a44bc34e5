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

// A further chunk, where the guess was too small.
constexpr size_t kStep = size_t{1} << 20;

size_t RoundUp(size_t size, size_t unit) {
  return (size + unit - 1) / unit * unit;
}

size_t RoomOf(size_t size) {
  return std::max(ModelWeights::kAlignment,
                  RoundUp(size, ModelWeights::kAlignment));
}

}  // namespace

ModelWeights::ModelWeights(uint64_t expected, std::shared_ptr<WeightPool> pool,
                           bool shares)
    : expected_(expected),
      pool_(std::move(pool)),
      user_(pool_->NewUser()),
      shares_(shares) {}

ModelWeights::ModelWeights(uint64_t expected)
    : ModelWeights(expected, std::make_shared<WeightPool>()) {}

ModelWeights::~ModelWeights() { pool_->GiveBack(user_, used_pieces_); }

uint64_t ModelWeights::size() const {
  return RoundUp(needed_, static_cast<size_t>(sysconf(_SC_PAGESIZE)));
}

absl::Status ModelWeights::FinishChunk() {
  if (chunk_ == nullptr) return absl::OkStatus();
  if (!places_.empty()) {
    RKNND_RETURN_IF_ERROR(chunk_->Seal(used_));
    full_.push_back({std::move(chunk_), std::exchange(places_, {})});
  }
  chunk_ = nullptr;
  used_ = 0;
  return absl::OkStatus();
}

absl::StatusOr<std::byte*> ModelWeights::Room(size_t size) {
  if (chunk_ == nullptr || chunk_->size() - used_ < size) {
    const bool first = chunk_ == nullptr && full_.empty();
    RKNND_RETURN_IF_ERROR(FinishChunk());
    const size_t wanted =
        first ? static_cast<size_t>(std::min(expected_, kMaxBytes)) : kStep;
    RKNND_ASSIGN_OR_RETURN(chunk_, WeightChunk::Make(std::max(wanted, size)));
  }
  RKNND_RETURN_IF_ERROR(chunk_->TakeTo(used_ + size));
  return chunk_->data() + used_;
}

absl::StatusOr<const std::byte*> ModelWeights::Store(
    size_t bytes, absl::FunctionRef<void(std::byte*)> fill) {
  if (bytes > kMaxBytes || needed_ + RoomOf(bytes) > kMaxBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("weights of more than ", kMaxBytes >> 20,
                     " MiB do not fit the NPU's address space"));
  }
  RKNND_ASSIGN_OR_RETURN(std::byte * room, Room(RoomOf(bytes)));
  // Something given up may have been written there.
  std::memset(room, 0, bytes);
  fill(room);
  std::string_view contents(reinterpret_cast<const char*>(room), bytes);
  if (const auto known = contents_.find(contents); known != contents_.end()) {
    return reinterpret_cast<const std::byte*>(known->data());
  }
  WeightPool::Piece* const theirs =
      shares_ ? pool_->Find(user_, contents) : nullptr;
  if (theirs != nullptr) {
    used_pieces_.push_back(theirs);
    contents = {reinterpret_cast<const char*>(WeightPool::AddressOf(*theirs)),
                bytes};
  } else {
    places_.push_back({used_, bytes});
    used_ += RoomOf(bytes);
  }
  contents_.insert(contents);
  pieces_.push_back(contents);
  needed_ += RoomOf(bytes);
  return reinterpret_cast<const std::byte*>(contents.data());
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
  RKNND_RETURN_IF_ERROR(FinishChunk());
  for (Full& full : full_) {
    const auto pieces = pool_->Add(user_, std::move(full.chunk), full.places);
    used_pieces_.insert(used_pieces_.end(), pieces.begin(), pieces.end());
  }
  full_.clear();
  return absl::OkStatus();
}

}  // namespace rknnd::soft
