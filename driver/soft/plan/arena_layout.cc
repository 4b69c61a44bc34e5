#include "driver/soft/plan/arena_layout.h"

#include <algorithm>
#include <utility>

namespace rknnd::soft {
namespace {

// The wishes in their places, those for parts with no chance: a tensor never
// lies in itself.
std::vector<SharingWish> OnlyOverwrites(std::vector<SharingWish> wishes) {
  for (SharingWish& wish : wishes) {
    if (wish.kind == SharingWish::Kind::kPart) wish.home = wish.tensor;
  }
  return wishes;
}

}  // namespace

StorageId ArenaLayout::Add(driver::TensorPlace place, uint64_t bytes) {
  tensors_.push_back({bytes, 0, 0});
  places_.push_back(std::move(place));
  return static_cast<StorageId>(tensors_.size() - 1);
}

void ArenaLayout::Write(StorageId s, uint32_t step) {
  tensors_[s].first = tensors_[s].last = step;
  places_[s].written += tensors_[s].size;
}

void ArenaLayout::Read(StorageId s, uint32_t step, uint32_t layer) {
  if (places_[s].read == 0) places_[s].user = layer;
  tensors_[s].last = step;
  places_[s].read += tensors_[s].size;
}

void ArenaLayout::WishPart(StorageId part, StorageId whole, uint64_t offset,
                           bool joins) {
  wishes_.push_back({SharingWish::Kind::kPart, part, whole, offset});
  copies_.push_back(joins ? Copy{part, whole} : Copy{whole, part});
}

void ArenaLayout::WishOverwrite(StorageId over, StorageId home) {
  wishes_.push_back({SharingWish::Kind::kOverwrite, over, home, 0});
  copies_.push_back({});
}

ArenaPlan ArenaLayout::Place(uint32_t programs) {
  ArenaPlan plan;
  plan.sharing = ShareStorage(tensors_, wishes_, programs);
  plan.memory = PlanMemory(plan.sharing.groups, programs);
  if (plan.memory.size > LowerBound(plan.sharing.groups)) {
    // Large groups are hard to place: smaller pieces may pack better.
    Sharing sharing = ShareStorage(tensors_, OnlyOverwrites(wishes_), programs);
    MemoryPlan memory = PlanMemory(sharing.groups, programs);
    if (memory.size < plan.memory.size) {
      plan.sharing = std::move(sharing);
      plan.memory = std::move(memory);
    }
  }
  ForgetCopies(plan.sharing);
  plan.tensors = std::move(tensors_);
  plan.places = std::move(places_);
  for (StorageId s = 0; s < plan.places.size(); ++s) {
    driver::TensorPlace& place = plan.places[s];
    place.storage = plan.sharing.group[s];
    place.offset = plan.OffsetOf(s);
    place.size = plan.tensors[s].size;
    place.first = plan.tensors[s].first;
    place.last = plan.tensors[s].last;
  }
  return plan;
}

void ArenaLayout::ForgetCopies(const Sharing& sharing) {
  for (size_t i = 0; i < wishes_.size(); ++i) {
    if (!sharing.granted[i] || copies_[i].read == kNoStorage) continue;
    const uint64_t bytes = tensors_[wishes_[i].tensor].size;
    uint64_t& read = places_[copies_[i].read].read;
    uint64_t& written = places_[copies_[i].written].written;
    read -= std::min(read, bytes);
    written -= std::min(written, bytes);
  }
}

}  // namespace rknnd::soft
