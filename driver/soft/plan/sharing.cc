// A group is tensors at fixed distances. Two of them may overlap where their
// lives do not meet, or where they are known to hold the same bytes: those of
// one family, made of parts and wholes.

#include "driver/soft/plan/sharing.h"

#include <algorithm>
#include <numeric>

namespace rknnd::soft {
namespace {

// More members than this in one group are no network's; pairs are compared.
constexpr size_t kManyMembers = 512;
// Pairs and steps looked at in all: a file of a few MiB can have wishes by the
// hundred thousand that each see as many steps. Later ones are not granted.
constexpr size_t kMostWork = size_t{1} << 28;

// Bytes of a group, from its start.
struct Range {
  int64_t begin = 0, end = 0;

  [[nodiscard]] Range Common(const Range& other) const {
    return {std::max(begin, other.begin), std::min(end, other.end)};
  }
  [[nodiscard]] bool empty() const { return begin >= end; }
  [[nodiscard]] bool Has(const Range& other) const {
    return begin <= other.begin && other.end <= end;
  }
};

class Groups {
 public:
  Groups(std::span<const Lifetime> tensors, uint32_t programs)
      : tensors_(tensors),
        most_work_(kMostWork / std::max<uint32_t>(programs, 1)),
        group_(tensors.size()),
        family_(tensors.size()),
        offset_(tensors.size(), 0) {
    std::iota(group_.begin(), group_.end(), 0U);
    std::iota(family_.begin(), family_.end(), 0U);
    uint32_t steps = 0;
    for (uint32_t t = 0; t < tensors.size(); ++t) {
      groups_.push_back({tensors[t], {t}});
      steps = std::max(steps, tensors[t].last + 1);
    }
    alive_.assign(steps, 0);
    for (const Group& group : groups_) Count(group.life, 1);
  }

  bool Grant(const SharingWish& wish) {
    const uint32_t from = group_[wish.tensor];
    const uint32_t to = group_[wish.home];
    if (from == to || wish.offset % kTensorAlignment != 0 ||
        groups_[from].members.size() + groups_[to].members.size() >
            kManyMembers) {
      return false;
    }
    work_ += groups_[from].members.size() * groups_[to].members.size() +
             std::max(groups_[from].life.last, groups_[to].life.last) -
             std::min(groups_[from].life.first, groups_[to].life.first);
    if (work_ > most_work_) return false;
    const int64_t shift = offset_[wish.home] +
                          static_cast<int64_t>(wish.offset) -
                          offset_[wish.tensor];
    if (!Fits(wish, shift)) return false;
    Group merged = groups_[to];
    const Lifetime& other = groups_[from].life;
    const int64_t begin = std::min<int64_t>(0, shift);
    const int64_t end =
        std::max(static_cast<int64_t>(Aligned(merged.life.size)),
                 shift + static_cast<int64_t>(Aligned(other.size)));
    merged.life.size = static_cast<uint64_t>(end - begin);
    merged.life.first = std::min(merged.life.first, other.first);
    merged.life.last = std::max(merged.life.last, other.last);
    if (!Pays(groups_[from].life, groups_[to].life, merged.life)) return false;

    for (uint32_t t : merged.members) offset_[t] -= begin;
    for (uint32_t t : groups_[from].members) {
      offset_[t] += shift - begin;
      group_[t] = to;
      merged.members.push_back(t);
    }
    if (wish.kind == SharingWish::Kind::kPart) {
      const uint32_t old = family_[wish.tensor];
      for (uint32_t t : merged.members) {
        if (family_[t] == old) family_[t] = family_[wish.home];
      }
    }
    groups_[from].members.clear();
    groups_[to] = std::move(merged);
    return true;
  }

  [[nodiscard]] Sharing Take() const {
    Sharing sharing;
    std::vector<uint32_t> number(groups_.size(), 0);
    for (size_t g = 0; g < groups_.size(); ++g) {
      if (groups_[g].members.empty()) continue;
      number[g] = static_cast<uint32_t>(sharing.groups.size());
      sharing.groups.push_back(groups_[g].life);
    }
    for (size_t t = 0; t < tensors_.size(); ++t) {
      sharing.group.push_back(number[group_[t]]);
      sharing.offset.push_back(static_cast<uint64_t>(offset_[t]));
    }
    return sharing;
  }

 private:
  struct Group {
    Lifetime life;
    std::vector<uint32_t> members;
  };

  [[nodiscard]] Range At(uint32_t t, int64_t shift = 0) const {
    const int64_t begin = offset_[t] + shift;
    return {begin, begin + static_cast<int64_t>(Aligned(tensors_[t].size))};
  }

  // Whether no tensor loses a byte, with the wish's group moved by `shift`.
  [[nodiscard]] bool Fits(const SharingWish& wish, int64_t shift) const {
    const bool part = wish.kind == SharingWish::Kind::kPart;
    const Range same = At(wish.tensor, shift);
    if (part && !At(wish.home).Has(same)) return false;
    for (uint32_t a : groups_[group_[wish.tensor]].members) {
      for (uint32_t b : groups_[group_[wish.home]].members) {
        const Range common = At(a, shift).Common(At(b));
        if (common.empty()) continue;
        if (part && family_[a] == family_[wish.tensor] &&
            family_[b] == family_[wish.home]) {
          // Known to be the same within the part, and nowhere else.
          if (!same.Has(common)) return false;
          continue;
        }
        if (!Meet(tensors_[a], tensors_[b])) continue;
        const bool overwrites = !part && a == wish.tensor && b == wish.home &&
                                tensors_[b].last == tensors_[a].first;
        if (!overwrites) return false;
      }
    }
    return true;
  }

  // Whether the fullest step that sees the new group is no fuller than the one
  // before.
  bool Pays(const Lifetime& a, const Lifetime& b, const Lifetime& merged) {
    const auto fullest = [&] {
      return *std::max_element(alive_.begin() + merged.first,
                               alive_.begin() + merged.last + 1);
    };
    const int64_t before = fullest();
    Count(a, -1);
    Count(b, -1);
    Count(merged, 1);
    if (fullest() <= before) return true;
    Count(merged, -1);
    Count(a, 1);
    Count(b, 1);
    return false;
  }

  void Count(const Lifetime& life, int64_t sign) {
    const auto size = static_cast<int64_t>(Aligned(life.size));
    for (uint32_t s = life.first; s <= life.last; ++s) {
      alive_[s] += sign * size;
    }
  }

  std::span<const Lifetime> tensors_;
  const size_t most_work_;
  std::vector<uint32_t> group_, family_;  // of each tensor
  std::vector<int64_t> offset_;           // in its group
  std::vector<Group> groups_;             // emptied where merged
  std::vector<int64_t> alive_;            // bytes, by step
  size_t work_ = 0;
};

}  // namespace

Sharing ShareStorage(std::span<const Lifetime> tensors,
                     std::span<const SharingWish> wishes, uint32_t programs) {
  Groups groups(tensors, programs);
  std::vector<bool> granted;
  for (const SharingWish& wish : wishes) granted.push_back(groups.Grant(wish));
  Sharing sharing = groups.Take();
  sharing.granted = std::move(granted);
  return sharing;
}

uint64_t LowerBound(std::span<const Lifetime> tensors, const Sharing& sharing) {
  std::vector<std::vector<uint32_t>> members(sharing.groups.size());
  uint32_t steps = 0;
  for (uint32_t t = 0; t < tensors.size(); ++t) {
    members[sharing.group[t]].push_back(t);
    steps = std::max(steps, tensors[t].last + 1);
  }
  std::vector<uint64_t> alive(steps, 0);
  for (std::vector<uint32_t>& group : members) {
    std::sort(group.begin(), group.end(), [&](uint32_t a, uint32_t b) {
      return sharing.offset[a] < sharing.offset[b];
    });
    uint32_t first = UINT32_MAX;
    uint32_t last = 0;
    for (uint32_t t : group) {
      first = std::min(first, tensors[t].first);
      last = std::max(last, tensors[t].last);
    }
    for (uint32_t s = first; s <= last; ++s) {
      uint64_t end = 0;  // of what is counted
      for (uint32_t t : group) {
        if (tensors[t].first > s || tensors[t].last < s) continue;
        const uint64_t until = sharing.offset[t] + Aligned(tensors[t].size);
        const uint64_t from = std::max(end, sharing.offset[t]);
        if (until > from) alive[s] += until - from;
        end = std::max(end, until);
      }
    }
  }
  return alive.empty() ? 0 : *std::max_element(alive.begin(), alive.end());
}

}  // namespace rknnd::soft
