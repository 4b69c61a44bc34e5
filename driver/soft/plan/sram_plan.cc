// Choosing the best set is a knapsack in two dimensions, bytes and time. Each
// order of placing below takes what fits; networks differ in which does best,
// so all are tried and the one that saves most is taken.

#include "driver/soft/plan/sram_plan.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <vector>

#include "driver/soft/plan/memory_plan.h"

namespace rknnd::soft {
namespace {

// Pairs: the first 4096 of an order are placed, more than any network has, and
// each is compared with all before it.
constexpr size_t kManyPairs = size_t{1} << 24;

uint64_t Aligned(uint64_t size, uint64_t to) {
  return (size + to - 1) / to * to;
}

// Tensors that share bytes.
struct Storage {
  uint64_t begin = UINT64_MAX, end = 0;  // in internal memory
  uint32_t first = UINT32_MAX, last = 0;
  uint64_t traffic = 0;

  [[nodiscard]] uint64_t size() const {
    return std::max(Aligned(end - begin, kTensorAlignment), kTensorAlignment);
  }
};

bool Meet(const Storage& a, const Storage& b) {
  return a.first <= b.last && b.first <= a.last;
}

struct Choice {
  uint32_t storage = 0;
  uint64_t offset = 0;
};

// The smallest gap that takes `s`, or else the one at the end of SRAM, which
// takes its start. UINT64_MAX: none.
uint64_t PlaceFor(const std::vector<Storage>& storages, uint32_t s,
                  const std::vector<Choice>& chosen, uint64_t room) {
  const uint64_t size = storages[s].size();
  uint64_t end = 0;
  uint64_t best = UINT64_MAX;
  uint64_t best_gap = UINT64_MAX;
  const auto gap = [&](uint64_t until) {
    if (until <= end || until - end < size || until - end >= best_gap) return;
    best_gap = until - end;
    best = end;
  };
  for (const Choice& other : chosen) {  // by offset
    if (!Meet(storages[s], storages[other.storage])) continue;
    gap(other.offset);
    end = std::max(end, other.offset + storages[other.storage].size());
  }
  gap(room);
  if (best != UINT64_MAX) return best;
  return room >= end + kTensorAlignment ? end : UINT64_MAX;
}

// What lies in SRAM of a tensor whose storage starts at `offset` there.
uint64_t HitOf(const driver::TensorPlace& tensor, const Storage& storage,
               uint64_t offset, uint64_t room) {
  const uint64_t start = offset + (tensor.offset - storage.begin);
  return start >= room ? 0 : std::min(tensor.size, room - start);
}

uint64_t SavedBy(const driver::TensorPlace& tensor, uint64_t hit) {
  if (tensor.size == 0) return 0;
  return static_cast<uint64_t>(static_cast<double>(tensor.traffic()) *
                               static_cast<double>(hit) /
                               static_cast<double>(tensor.size));
}

}  // namespace

driver::SramPlan PlanSram(std::span<const driver::TensorPlace> tensors,
                          uint64_t bytes, uint32_t programs) {
  driver::SramPlan best;
  const uint64_t room = bytes / driver::kSramPage * driver::kSramPage;
  best.size = room;
  if (room == 0 || tensors.empty()) return best;
  std::vector<Storage> storages;
  for (const driver::TensorPlace& tensor : tensors) {
    if (tensor.storage >= storages.size()) storages.resize(tensor.storage + 1);
    Storage& storage = storages[tensor.storage];
    storage.begin = std::min(storage.begin, tensor.offset);
    storage.end = std::max(storage.end, tensor.offset + tensor.size);
    storage.first = std::min(storage.first, tensor.first);
    storage.last = std::max(storage.last, tensor.last);
    storage.traffic += tensor.traffic();
  }

  const auto plan_in = [&](const std::vector<uint32_t>& order) {
    std::vector<Choice> chosen;
    for (uint32_t s : order) {
      if (storages[s].traffic == 0) continue;
      const uint64_t offset = PlaceFor(storages, s, chosen, room);
      if (offset == UINT64_MAX) continue;
      const Choice choice{s, offset};
      chosen.insert(std::upper_bound(chosen.begin(), chosen.end(), choice,
                                     [](const Choice& a, const Choice& b) {
                                       return a.offset < b.offset;
                                     }),
                    choice);
    }
    std::vector<uint64_t> offsets(storages.size(), UINT64_MAX);
    for (const Choice& choice : chosen) {
      offsets[choice.storage] = choice.offset;
    }
    driver::SramPlan plan;
    plan.size = room;
    for (uint32_t t = 0; t < tensors.size(); ++t) {
      const driver::TensorPlace& tensor = tensors[t];
      const uint64_t offset = offsets[tensor.storage];
      if (offset == UINT64_MAX) continue;
      const Storage& storage = storages[tensor.storage];
      const uint64_t hit = HitOf(tensor, storage, offset, room);
      if (hit == 0) continue;
      const uint64_t start = offset + (tensor.offset - storage.begin);
      plan.entries.push_back({t, start, hit, SavedBy(tensor, hit)});
      plan.saved += plan.entries.back().saved;
      plan.used = std::max(plan.used, Aligned(start + hit, driver::kSramPage));
    }
    return plan;
  };

  size_t most = 1;  // storages
  programs = std::max<uint32_t>(programs, 1);
  while (4 * most * most <= kManyPairs / programs) most *= 2;
  std::vector<uint32_t> order;
  const auto try_order = [&](auto key) {
    order.resize(storages.size());
    std::iota(order.begin(), order.end(), 0U);
    std::stable_sort(
        order.begin(), order.end(),
        [&key](uint32_t a, uint32_t b) { return key(a) > key(b); });
    if (order.size() > most) order.resize(most);
    driver::SramPlan plan = plan_in(order);
    if (plan.saved > best.saved) best = std::move(plan);
  };
  const auto traffic = [&storages](uint32_t s) {
    return static_cast<double>(storages[s].traffic);
  };
  const auto size = [&storages](uint32_t s) {
    return static_cast<double>(storages[s].size());
  };
  const auto time = [&storages](uint32_t s) {
    return static_cast<double>(storages[s].last) - storages[s].first + 1;
  };
  // What a byte of SRAM saves each step it is taken.
  try_order([&](uint32_t s) {
    return std::tuple(traffic(s) / (size(s) * time(s)), size(s));
  });
  try_order([&](uint32_t s) { return traffic(s); });
  try_order(
      [&](uint32_t s) { return std::tuple(traffic(s) / size(s), size(s)); });
  try_order(
      [&](uint32_t s) { return std::tuple(traffic(s) / time(s), -time(s)); });
  // In the order of time, as a chain of layers uses it.
  try_order([&storages](uint32_t s) {
    return -static_cast<double>(storages[s].first);
  });
  return best;
}

}  // namespace rknnd::soft
