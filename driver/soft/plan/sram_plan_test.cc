#include "driver/soft/plan/sram_plan.h"

#include <algorithm>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace rknnd::soft {
namespace {

using driver::SramPlan;
using driver::TensorPlace;

TensorPlace Place(uint32_t storage, uint64_t size, uint32_t first,
                  uint32_t last, uint32_t readers = 1) {
  TensorPlace place;
  place.storage = storage;
  place.size = size;
  place.first = first;
  place.last = last;
  place.written = size;
  place.read = size * readers;
  return place;
}

void ExpectSound(const std::vector<TensorPlace>& tensors,
                 const SramPlan& plan) {
  uint64_t saved = 0;
  EXPECT_LE(plan.used, plan.size);
  EXPECT_EQ(plan.used % driver::kSramPage, 0U);
  for (const SramPlan::Entry& a : plan.entries) {
    EXPECT_GT(a.hit, 0U);
    EXPECT_LE(a.hit, tensors[a.tensor].size);
    EXPECT_LE(a.offset + a.hit, plan.used);
    // What does not fit lies behind the end, never in another's place.
    if (a.hit < tensors[a.tensor].size) {
      EXPECT_EQ(a.offset + a.hit, plan.size);
    }
    saved += a.saved;
    for (const SramPlan::Entry& b : plan.entries) {
      const TensorPlace& x = tensors[a.tensor];
      const TensorPlace& y = tensors[b.tensor];
      const bool meet = x.first <= y.last && y.first <= x.last;
      if (x.storage == y.storage || !meet) continue;
      EXPECT_TRUE(a.offset + a.hit <= b.offset || b.offset + b.hit <= a.offset)
          << a.tensor << " and " << b.tensor;
    }
  }
  EXPECT_EQ(plan.saved, saved);
}

TEST(SramPlanTest, NoSramHoldsNothing) {
  const SramPlan plan = PlanSram(std::vector<TensorPlace>{Place(0, 64, 0, 1)},
                                 driver::kSramPage - 1);

  EXPECT_EQ(plan.size, 0U);
  EXPECT_TRUE(plan.entries.empty());
}

TEST(SramPlanTest, TensorReadMostGoesFirst) {
  const std::vector<TensorPlace> tensors = {Place(0, 4096, 0, 3),
                                            Place(1, 4096, 0, 3, 5)};

  const SramPlan plan = PlanSram(tensors, driver::kSramPage);

  ASSERT_EQ(plan.entries.size(), 1U);
  EXPECT_EQ(plan.entries[0].tensor, 1U);
  EXPECT_EQ(plan.saved, 4096U * 6);
}

TEST(SramPlanTest, TensorsThatDoNotMeetTakeTurns) {
  const std::vector<TensorPlace> tensors = {Place(0, 4096, 0, 1),
                                            Place(1, 4096, 2, 3)};

  const SramPlan plan = PlanSram(tensors, driver::kSramPage);

  EXPECT_EQ(plan.entries.size(), 2U);
  EXPECT_EQ(plan.used, driver::kSramPage);
}

TEST(SramPlanTest, LargeTensorHasItsStartInSram) {
  const std::vector<TensorPlace> tensors = {Place(0, 3 * 4096, 0, 1)};

  const SramPlan plan = PlanSram(tensors, 2 * driver::kSramPage);

  ASSERT_EQ(plan.entries.size(), 1U);
  EXPECT_EQ(plan.entries[0].hit, 2U * 4096);
  EXPECT_EQ(plan.saved, 4U * 4096);
}

TEST(SramPlanTest, TensorsThatShareBytesStayTogether) {
  std::vector<TensorPlace> tensors = {
      Place(0, 4096, 0, 2), Place(0, 4096, 1, 2), Place(0, 8192, 2, 3)};
  tensors[1].offset = 4096;

  const SramPlan plan = PlanSram(tensors, 4 * driver::kSramPage);

  ASSERT_EQ(plan.entries.size(), 3U);
  EXPECT_EQ(plan.entries[1].offset, plan.entries[2].offset + 4096);
  EXPECT_EQ(plan.used, 8192U);
}

TEST(SramPlanTest, RandomProgramsNeverShareABytePerStep) {
  std::mt19937 generator(3);
  const auto random = [&](uint32_t below) {
    return static_cast<uint32_t>(generator()) % below;
  };
  for (int run = 0; run < 300; ++run) {
    std::vector<TensorPlace> tensors;
    const uint32_t count = 1 + random(30);
    for (uint32_t t = 0; t < count; ++t) {
      tensors.push_back(
          Place(t, random(100000), t, t + random(4), 1 + random(3)));
    }
    const uint64_t bytes = random(60) * driver::kSramPage;
    const SramPlan plan = PlanSram(tensors, bytes);
    const SramPlan better = SearchSram(tensors, bytes);
    ExpectSound(tensors, plan);
    ExpectSound(tensors, better);
    EXPECT_GE(better.saved, plan.saved);
  }
}

// All ways to place tensors that are whole pages, each at a page or not at all.
class AllPlans {
 public:
  AllPlans(const std::vector<TensorPlace>& tensors, uint64_t pages)
      : tensors_(tensors), pages_(pages), at_(tensors.size(), pages) {}

  uint64_t MostSaved() {
    Try(0, 0);
    return most_;
  }

 private:
  [[nodiscard]] uint64_t SizeOf(size_t t) const {
    return tensors_[t].size / driver::kSramPage;
  }
  [[nodiscard]] bool IsFree(size_t t) const {
    for (size_t other = 0; other < t; ++other) {
      const bool meet = tensors_[t].first <= tensors_[other].last &&
                        tensors_[other].first <= tensors_[t].last;
      if (meet && at_[other] < pages_ && at_[t] < at_[other] + SizeOf(other) &&
          at_[other] < at_[t] + SizeOf(t)) {
        return false;
      }
    }
    return true;
  }
  void Try(size_t t, uint64_t saved) {
    most_ = std::max(most_, saved);
    if (t == tensors_.size()) return;
    at_[t] = pages_;  // in DRAM
    Try(t + 1, saved);
    for (uint64_t page = 0; page < pages_; ++page) {
      at_[t] = page;
      if (!IsFree(t)) continue;
      const uint64_t hit = std::min(SizeOf(t), pages_ - page);
      Try(t + 1, saved + tensors_[t].traffic() * hit / SizeOf(t));
    }
    at_[t] = pages_;
  }

  const std::vector<TensorPlace>& tensors_;
  const uint64_t pages_;
  std::vector<uint64_t> at_;
  uint64_t most_ = 0;
};

TEST(SramPlanTest, SavesAboutAsMuchAsTheBestOfAllPlans) {
  std::mt19937 generator(17);
  const auto random = [&](uint32_t below) {
    return static_cast<uint32_t>(generator()) % below;
  };
  uint64_t saved = 0;
  uint64_t possible = 0;
  for (int run = 0; run < 200; ++run) {
    std::vector<TensorPlace> tensors;
    const uint32_t count = 3 + random(4);
    for (uint32_t t = 0; t < count; ++t) {
      tensors.push_back(Place(t, (1 + random(6)) * driver::kSramPage, t,
                              t + 1 + random(3), 1 + random(3)));
    }
    const uint64_t pages = 3 + random(6);
    const SramPlan plan = SearchSram(tensors, pages * driver::kSramPage);
    const uint64_t most = AllPlans(tensors, pages).MostSaved();
    ExpectSound(tensors, plan);
    // A fraction of a page's traffic is rounded per tensor.
    EXPECT_LE(plan.saved, most + count);
    EXPECT_GE(plan.saved * 10, most * 9);
    saved += plan.saved;
    possible += most;
  }
  EXPECT_GE(static_cast<double>(saved), 0.99 * static_cast<double>(possible));
}

TEST(SramPlanTest, EqualInputsGiveEqualPlans) {
  std::vector<TensorPlace> tensors;
  for (uint32_t t = 0; t < 40; ++t) {
    tensors.push_back(Place(t, 4096 * (1 + t * 7 % 13), t, t + 1 + t % 3));
  }
  const SramPlan first = SearchSram(tensors, 20 * driver::kSramPage);
  const SramPlan second = SearchSram(tensors, 20 * driver::kSramPage);

  ASSERT_EQ(first.entries.size(), second.entries.size());
  EXPECT_EQ(first.saved, second.saved);
  for (size_t i = 0; i < first.entries.size(); ++i) {
    EXPECT_EQ(first.entries[i].offset, second.entries[i].offset);
  }
}

// The internal tensors of mobilenet_v1 as the vendor's guide prints them
// (5.7.3.4): its runtime saves 6,688,768 bytes with 512 KiB.
TEST(SramPlanTest, SavesAtLeastWhatTheVendorForecastsForMobilenet) {
  const std::vector<uint64_t> sizes = {
      0x62000, 0xc4000, 0xc4000, 0x31000, 0x62000, 0x62000, 0x62000, 0x18800,
      0x31000, 0x31000, 0x31000, 0xc400,  0x18800, 0x18800, 0x18800, 0x18800,
      0x18800, 0x18800, 0x18800, 0x18800, 0x18800, 0x18800, 0x18800, 0x6800,
      0xd000,  0xd000,  0xd000,  0x400,   0x400};
  std::vector<TensorPlace> tensors;
  for (uint32_t t = 0; t < sizes.size(); ++t) {
    tensors.push_back(Place(t, sizes[t], t, t + 1));
  }

  const SramPlan plan = PlanSram(tensors, 512 << 10);

  ExpectSound(tensors, plan);
  EXPECT_GE(plan.saved, 6688768U);
}

}  // namespace
}  // namespace rknnd::soft
