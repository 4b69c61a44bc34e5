// Choosing the best set is a knapsack in two dimensions, bytes and time.
// Storage is placed in some order, each where it fits. Networks differ in which
// order does best, so several are tried. SearchSram improves the best of them
// by moving single storages forward in it, and comes within a few percent of
// what is possible (./dev bench sram).

#include "driver/soft/plan/sram_plan.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <tuple>
#include <vector>

#include "driver/soft/plan/memory_plan.h"

namespace rknnd::soft {
namespace {

// Pairs of storages that may be compared in an order while a model loads: of
// 4096 storages, more than any network has.
constexpr size_t kManySramPairs = size_t{1} << 24;
// The same in a search, for which others wait: of the 512 that matter most.
constexpr size_t kSearchedPairs = size_t{1} << 18;
// After so many attempts real networks gain next to nothing more. There are
// fewer where many storages are alive at one time: so many pairs in all.
constexpr size_t kAttempts = 600;
constexpr size_t kAttemptedPairs = size_t{1} << 21;

constexpr uint64_t kNowhere = UINT64_MAX;

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

std::vector<Storage> StoragesOf(std::span<const driver::TensorPlace> tensors) {
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
  return storages;
}

class Search {
 public:
  // `pairs` of storages may be compared.
  Search(std::span<const driver::TensorPlace> tensors, uint64_t room,
         size_t pairs);

  // Places in the orders that are known to do well.
  void TryOrders();
  // Moves what is not all in SRAM forward.
  void Improve();

  // The best so far.
  [[nodiscard]] driver::SramPlan Plan() const;

 private:
  using Order = std::vector<uint32_t>;  // of storages
  struct Result {
    uint64_t saved = 0, used = 0;
  };
  struct Taken {
    uint64_t begin = 0, end = 0;
  };

  // Places them one after the other, into at_.
  Result Place(const Order& order);
  // The smallest gap that takes `s`, or else the one at the end of SRAM, which
  // takes its start.
  uint64_t PlaceFor(uint32_t s);
  template <class Key>
  void TryOrder(Key key);

  const std::span<const driver::TensorPlace> tensors_;
  const std::vector<Storage> storages_;
  const uint64_t room_;
  Order all_;  // storages that may be placed
  uint64_t traffic_ = 0;
  std::vector<std::vector<uint32_t>> meets_;  // alive at one time, by storage

  std::vector<uint64_t> at_;  // offsets, by storage
  std::vector<Taken> taken_;  // PlaceFor's
  Result best_;
  std::vector<uint64_t> best_at_;
  Order best_order_;
};

Search::Search(std::span<const driver::TensorPlace> tensors, uint64_t room,
               size_t pairs)
    : tensors_(tensors), storages_(StoragesOf(tensors)), room_(room) {
  for (uint32_t s = 0; s < storages_.size(); ++s) {
    if (storages_[s].traffic > 0) all_.push_back(s);
    traffic_ += storages_[s].traffic;
  }
  size_t most = 1;
  while (4 * most * most <= pairs) most *= 2;
  if (all_.size() > most) {
    std::stable_sort(all_.begin(), all_.end(), [this](uint32_t a, uint32_t b) {
      return storages_[a].traffic > storages_[b].traffic;
    });
    all_.resize(most);
  }
  meets_.resize(storages_.size());
  for (size_t a = 0; a < all_.size(); ++a) {
    for (size_t b = 0; b < a; ++b) {
      if (!Meet(storages_[all_[a]], storages_[all_[b]])) continue;
      meets_[all_[a]].push_back(all_[b]);
      meets_[all_[b]].push_back(all_[a]);
    }
  }
  best_at_.assign(storages_.size(), kNowhere);
}

uint64_t Search::PlaceFor(uint32_t s) {
  taken_.clear();
  for (const uint32_t other : meets_[s]) {
    if (at_[other] == kNowhere) continue;
    taken_.push_back({at_[other], at_[other] + storages_[other].size()});
  }
  std::sort(taken_.begin(), taken_.end(),
            [](const Taken& a, const Taken& b) { return a.begin < b.begin; });
  const uint64_t size = storages_[s].size();
  uint64_t end = 0;
  uint64_t best = kNowhere;
  uint64_t best_gap = UINT64_MAX;
  const auto gap = [&](uint64_t until) {
    if (until <= end || until - end < size || until - end >= best_gap) return;
    best_gap = until - end;
    best = end;
  };
  for (const Taken& other : taken_) {
    gap(other.begin);
    end = std::max(end, other.end);
  }
  gap(room_);
  if (best != kNowhere) return best;
  return room_ >= end + kTensorAlignment ? end : kNowhere;
}

Search::Result Search::Place(const Order& order) {
  at_.assign(storages_.size(), kNowhere);
  for (const uint32_t s : order) at_[s] = PlaceFor(s);
  Result result;
  for (const driver::TensorPlace& tensor : tensors_) {
    const uint64_t offset = at_[tensor.storage];
    if (offset == kNowhere) continue;
    const Storage& storage = storages_[tensor.storage];
    const uint64_t hit = HitOf(tensor, storage, offset, room_);
    if (hit == 0) continue;
    result.saved += SavedBy(tensor, hit);
    result.used =
        std::max(result.used, offset + (tensor.offset - storage.begin) + hit);
  }
  return result;
}

template <class Key>
void Search::TryOrder(Key key) {
  Order order = all_;
  std::stable_sort(order.begin(), order.end(),
                   [&key](uint32_t a, uint32_t b) { return key(a) > key(b); });
  const Result result = Place(order);
  if (result.saved <= best_.saved) return;
  best_ = result;
  best_at_ = at_;
  best_order_ = std::move(order);
}

void Search::TryOrders() {
  const auto traffic = [this](uint32_t s) {
    return static_cast<double>(storages_[s].traffic);
  };
  const auto size = [this](uint32_t s) {
    return static_cast<double>(storages_[s].size());
  };
  const auto time = [this](uint32_t s) {
    return static_cast<double>(storages_[s].last) - storages_[s].first + 1;
  };
  // What a byte of SRAM saves each step it is taken.
  TryOrder([&](uint32_t s) {
    return std::tuple(traffic(s) / (size(s) * time(s)), size(s));
  });
  TryOrder([&](uint32_t s) { return traffic(s); });
  TryOrder(
      [&](uint32_t s) { return std::tuple(traffic(s) / size(s), size(s)); });
  TryOrder(
      [&](uint32_t s) { return std::tuple(traffic(s) / time(s), -time(s)); });
  // In the order of time, as a chain of layers uses it.
  TryOrder(
      [this](uint32_t s) { return -static_cast<double>(storages_[s].first); });
}

void Search::Improve() {
  Order order = best_order_;
  if (order.size() < 2) return;
  const auto is_in = [this](uint32_t s) {
    return best_at_[s] != kNowhere &&
           best_at_[s] + storages_[s].size() <= room_;
  };
  std::minstd_rand random(1);  // the same each time
  const auto below = [&random](size_t end) { return random() % end; };
  size_t pairs = order.size();
  for (const uint32_t s : order) pairs += meets_[s].size();
  const size_t attempts = std::min(kAttempts, kAttemptedPairs / pairs);
  for (size_t attempt = 0; attempt < attempts; ++attempt) {
    if (best_.saved == traffic_) return;
    size_t from = below(order.size());
    if (below(2) == 0) {
      for (int i = 0; i < 8 && is_in(order[from]); ++i) {
        from = below(order.size());
      }
    }
    const size_t to = below(from + 1);
    Order changed = order;
    if (below(3) == 0) {
      std::swap(changed[from], changed[to]);
    } else {
      const auto start = changed.begin();
      std::rotate(start + static_cast<ptrdiff_t>(to),
                  start + static_cast<ptrdiff_t>(from),
                  start + static_cast<ptrdiff_t>(from) + 1);
    }
    const Result result = Place(changed);
    // An equal one too: it may lead on.
    if (result.saved < best_.saved ||
        (result.saved == best_.saved && result.used > best_.used)) {
      continue;
    }
    best_ = result;
    best_at_ = at_;
    order = std::move(changed);
  }
}

driver::SramPlan Search::Plan() const {
  driver::SramPlan plan;
  plan.size = room_;
  for (uint32_t t = 0; t < tensors_.size(); ++t) {
    const driver::TensorPlace& tensor = tensors_[t];
    const uint64_t offset = best_at_[tensor.storage];
    if (offset == kNowhere) continue;
    const Storage& storage = storages_[tensor.storage];
    const uint64_t hit = HitOf(tensor, storage, offset, room_);
    if (hit == 0) continue;
    const uint64_t start = offset + (tensor.offset - storage.begin);
    plan.entries.push_back({t, start, hit, SavedBy(tensor, hit)});
  }
  plan.saved = best_.saved;
  plan.used = Aligned(best_.used, driver::kSramPage);
  return plan;
}

uint64_t WholeSramPages(uint64_t bytes) {
  return bytes / driver::kSramPage * driver::kSramPage;
}

}  // namespace

driver::SramPlan PlanSram(std::span<const driver::TensorPlace> tensors,
                          uint64_t bytes, uint32_t programs) {
  Search search(tensors, WholeSramPages(bytes),
                kManySramPairs / std::max<uint32_t>(programs, 1));
  search.TryOrders();
  return search.Plan();
}

driver::SramPlan SearchSram(std::span<const driver::TensorPlace> tensors,
                            uint64_t bytes) {
  Search search(tensors, WholeSramPages(bytes), kSearchedPairs);
  search.TryOrders();
  search.Improve();
  return search.Plan();
}

}  // namespace rknnd::soft
