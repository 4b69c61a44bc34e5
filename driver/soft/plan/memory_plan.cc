// Placing intervals optimally is NP-hard. Each order of placing them below
// finds the best gap for one tensor after the other; networks differ in which
// order does best, so all are tried and the smallest result is taken. Then
// whatever lies on top is placed earlier, over and over: most often it had come
// when only bad gaps were left.

#include "driver/soft/plan/memory_plan.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

namespace rknnd::soft {
namespace {

// Pairs of tensors. Above this, only the order of time is tried: the others
// compare every pair. A quarter of a second for all of them.
constexpr size_t kManyPairs = size_t{1} << 24;

// Pairs looked at while improving one order, at some nanoseconds each.
constexpr size_t kPairs = size_t{1} << 24;
constexpr size_t kMostRounds = 400;

// Gives each tensor, in this order, the smallest gap that fits between those
// placed before whose lives meet its own.
MemoryPlan BestFit(std::span<const Lifetime> lives,
                   const std::vector<uint32_t>& order) {
  MemoryPlan plan;
  plan.offsets.assign(lives.size(), 0);
  std::vector<uint32_t> by_offset;  // placed, sorted by offset
  for (uint32_t t : order) {
    const uint64_t size = Aligned(lives[t].size);
    uint64_t end = 0;
    uint64_t best = 0;
    uint64_t best_gap = UINT64_MAX;
    for (uint32_t other : by_offset) {
      if (!Meet(lives[t], lives[other])) continue;
      uint64_t offset = plan.offsets[other];
      if (offset > end) {
        uint64_t gap = offset - end;
        if (gap >= size && gap < best_gap) {
          best_gap = gap;
          best = end;
        }
      }
      end = std::max(end, offset + Aligned(lives[other].size));
    }
    plan.offsets[t] = best_gap == UINT64_MAX ? end : best;
    plan.size = std::max(plan.size, plan.offsets[t] + size);
    auto at = std::upper_bound(by_offset.begin(), by_offset.end(), t,
                               [&plan](uint32_t a, uint32_t b) {
                                 return plan.offsets[a] < plan.offsets[b];
                               });
    by_offset.insert(at, t);
  }
  return plan;
}

// In the order of time, with a list of what is free: for graphs of any size.
MemoryPlan InTime(std::span<const Lifetime> lives,
                  const std::vector<uint32_t>& order) {
  MemoryPlan plan;
  plan.offsets.assign(lives.size(), 0);
  std::multimap<uint32_t, uint32_t> ends;  // last step -> tensor
  std::map<uint64_t, uint64_t> free;       // offset -> size
  auto give_back = [&free](uint64_t offset, uint64_t size) {
    auto next = free.lower_bound(offset);
    if (next != free.end() && offset + size == next->first) {
      size += next->second;
      next = free.erase(next);
    }
    if (next != free.begin()) {
      auto before = std::prev(next);
      if (before->first + before->second == offset) {
        before->second += size;
        return;
      }
    }
    free.emplace(offset, size);
  };
  for (uint32_t t : order) {
    while (!ends.empty() && ends.begin()->first < lives[t].first) {
      uint32_t gone = ends.begin()->second;
      give_back(plan.offsets[gone], Aligned(lives[gone].size));
      ends.erase(ends.begin());
    }
    const uint64_t size = Aligned(lives[t].size);
    auto best = free.end();
    for (auto gap = free.begin(); gap != free.end(); ++gap) {
      if (gap->second >= size &&
          (best == free.end() || gap->second < best->second)) {
        best = gap;
      }
    }
    if (best == free.end()) {
      // At the end, in what is free there.
      uint64_t offset = plan.size;
      if (!free.empty()) {
        auto last = std::prev(free.end());
        if (last->first + last->second == plan.size) {
          offset = last->first;
          free.erase(last);
        }
      }
      plan.offsets[t] = offset;
      plan.size = offset + size;
    } else {
      plan.offsets[t] = best->first;
      uint64_t rest = best->second - size;
      uint64_t offset = best->first + size;
      free.erase(best);
      if (rest > 0) free.emplace(offset, rest);
    }
    ends.emplace(lives[t].last, t);
  }
  return plan;
}

// Rounds of placing earlier what ends on top, from `order` on.
MemoryPlan Improve(std::span<const Lifetime> lives, std::vector<uint32_t> order,
                   MemoryPlan best, uint64_t bound, uint32_t programs) {
  const size_t count = lives.size();
  const size_t rounds =
      std::min(kMostRounds, kPairs / programs / (count * count + 1));
  for (size_t round = 0; round < rounds && best.size > bound; ++round) {
    MemoryPlan plan = BestFit(lives, order);
    std::vector<uint32_t> next;
    for (size_t at = 0; at < count; ++at) {
      const uint32_t t = order[at];
      const bool top = plan.offsets[t] + Aligned(lives[t].size) == plan.size;
      // Halfway to the front, so that others may still come first.
      const size_t to = top ? at / 2 : at;
      next.insert(next.begin() + static_cast<ptrdiff_t>(std::min(to, at)), t);
    }
    if (next == order) break;
    order = std::move(next);
    if (plan.size < best.size) best = std::move(plan);
  }
  return best;
}

}  // namespace

MemoryPlan PlanMemory(std::span<const Lifetime> lives, uint32_t programs) {
  std::vector<uint32_t> order(lives.size());
  auto sorted_by = [&order](auto key) {
    std::iota(order.begin(), order.end(), 0U);
    std::stable_sort(
        order.begin(), order.end(),
        [&key](uint32_t a, uint32_t b) { return key(a) < key(b); });
    return order;
  };
  auto size = [lives](uint32_t t) {
    return UINT64_MAX - Aligned(lives[t].size);  // largest first
  };
  auto by_time = sorted_by([lives](uint32_t t) { return lives[t].first; });
  MemoryPlan best = InTime(lives, by_time);
  programs = std::max<uint32_t>(programs, 1);
  if (lives.size() * lives.size() > kManyPairs / programs) return best;
  std::vector<std::vector<uint32_t>> orders;
  auto take = [&](std::vector<uint32_t> next) {
    MemoryPlan plan = BestFit(lives, next);
    if (plan.size < best.size) best = std::move(plan);
    orders.push_back(std::move(next));
  };
  take(by_time);
  take(sorted_by(size));
  take(sorted_by([lives, size](uint32_t t) {
    // Long lives first: they fragment what comes after them.
    return std::tuple(UINT32_MAX - (lives[t].last - lives[t].first), size(t));
  }));
  take(sorted_by([lives, size](uint32_t t) {
    // Area in memory and time.
    uint64_t area =
        Aligned(lives[t].size) * (lives[t].last - lives[t].first + 1);
    return std::tuple(UINT64_MAX - area, size(t));
  }));
  // Steps in the order of what is alive at them: the fullest decides the size,
  // so its tensors are placed first, side by side.
  uint32_t steps = 0;
  for (const Lifetime& life : lives) steps = std::max(steps, life.last + 1);
  std::vector<uint64_t> alive(steps, 0);
  for (const Lifetime& life : lives) {
    for (uint32_t s = life.first; s <= life.last; ++s) {
      alive[s] += Aligned(life.size);
    }
  }
  take(sorted_by([lives, size, &alive](uint32_t t) {
    uint64_t fullest = *std::max_element(alive.begin() + lives[t].first,
                                         alive.begin() + lives[t].last + 1);
    return std::tuple(UINT64_MAX - fullest, size(t));
  }));
  const uint64_t bound = LowerBound(lives);
  for (std::vector<uint32_t>& start : orders) {
    if (best.size <= bound) break;
    best = Improve(lives, std::move(start), std::move(best), bound, programs);
  }
  return best;
}

uint64_t LowerBound(std::span<const Lifetime> lives) {
  // The sum changes only where a life starts.
  std::vector<std::pair<uint32_t, int64_t>> changes;
  for (const Lifetime& life : lives) {
    changes.emplace_back(life.first, static_cast<int64_t>(Aligned(life.size)));
    changes.emplace_back(life.last + 1,
                         -static_cast<int64_t>(Aligned(life.size)));
  }
  std::sort(changes.begin(), changes.end());
  int64_t alive = 0;
  int64_t most = 0;
  for (const auto& [step, change] : changes) {
    alive += change;
    most = std::max(most, alive);
  }
  return static_cast<uint64_t>(most);
}

}  // namespace rknnd::soft
