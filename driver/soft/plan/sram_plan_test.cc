#include "driver/soft/plan/sram_plan.h"

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
    ExpectSound(tensors, PlanSram(tensors, random(60) * driver::kSramPage));
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
