#include "driver/soft/plan/memory_plan.h"

#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace rknnd::soft {
namespace {

void ExpectNoOverlap(const std::vector<Lifetime>& lives,
                     const MemoryPlan& plan) {
  for (size_t a = 0; a < lives.size(); ++a) {
    EXPECT_EQ(plan.offsets[a] % kTensorAlignment, 0U);
    EXPECT_LE(plan.offsets[a] + lives[a].size, plan.size);
    for (size_t b = a + 1; b < lives.size(); ++b) {
      bool meet =
          lives[a].first <= lives[b].last && lives[b].first <= lives[a].last;
      bool apart = plan.offsets[a] + lives[a].size <= plan.offsets[b] ||
                   plan.offsets[b] + lives[b].size <= plan.offsets[a];
      EXPECT_TRUE(!meet || apart) << a << " and " << b;
    }
  }
}

TEST(MemoryPlanTest, ChainNeedsTheTwoLargestNeighbours) {
  std::vector<Lifetime> lives = {{6400, 0, 1}, {640, 1, 2}, {6400, 2, 3}};

  MemoryPlan plan = PlanMemory(lives);

  ExpectNoOverlap(lives, plan);
  EXPECT_EQ(plan.size, 7040U);
  EXPECT_EQ(plan.size, LowerBound(lives));
}

TEST(MemoryPlanTest, NothingNeedsNothing) {
  EXPECT_EQ(PlanMemory({}).size, 0U);
  EXPECT_EQ(LowerBound({}), 0U);
}

TEST(MemoryPlanTest, EmptyTensorsHaveAPlaceOfTheirOwn) {
  std::vector<Lifetime> lives = {{0, 0, 1}, {0, 0, 1}};

  MemoryPlan plan = PlanMemory(lives);

  EXPECT_NE(plan.offsets[0], plan.offsets[1]);
}

TEST(MemoryPlanTest, TensorsOfRandomGraphsNeverOverlap) {
  std::mt19937 generator(7);
  auto random = [&generator] { return static_cast<uint32_t>(generator()); };
  for (int graph = 0; graph < 200; ++graph) {
    std::vector<Lifetime> lives;
    uint32_t steps = 1 + random() % 40;
    for (uint32_t t = 0; t < steps; ++t) {
      uint32_t last = t + random() % (random() % 8 == 0 ? 20 : 3);
      lives.push_back({random() % 100000, t, last});
    }
    ExpectNoOverlap(lives, PlanMemory(lives));
    // With hardly any time for each.
    ExpectNoOverlap(lives, PlanMemory(lives, 1 << 20));
  }
}

TEST(MemoryPlanTest, ThousandsOfTensorsNeverOverlapEither) {
  std::mt19937 generator(7);
  auto random = [&generator] { return static_cast<uint32_t>(generator()); };
  std::vector<Lifetime> lives;
  for (uint32_t t = 0; t < 6000; ++t) {
    lives.push_back({random() % 10000, t, t + random() % 4});
  }

  MemoryPlan plan = PlanMemory(lives);

  ExpectNoOverlap(lives, plan);
  EXPECT_LT(plan.size, 2 * LowerBound(lives));
}

TEST(MemoryPlanTest, EqualInputsGiveEqualPlans) {
  std::vector<Lifetime> lives;
  for (uint32_t t = 0; t < 50; ++t) {
    lives.push_back({(t * 7919) % 5000, t, t + t % 5});
  }

  EXPECT_EQ(PlanMemory(lives).offsets, PlanMemory(lives).offsets);
}

}  // namespace
}  // namespace rknnd::soft
