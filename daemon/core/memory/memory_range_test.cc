// Tests of memory that is used twice: what counts, and what does not.

#include "daemon/core/memory/memory_range.h"

#include "gtest/gtest.h"

namespace rknnd::core {
namespace {

constexpr driver::MemoryIdentity kOne{1, 7}, kOther{1, 8};
using Pair = std::pair<size_t, size_t>;

TEST(MemoryRangeTest, RangesOverlapOnlyInTheSameMemory) {
  const MemoryRange range{kOne, 100, 200};
  EXPECT_TRUE(range.Overlaps({kOne, 199, 300}));
  EXPECT_TRUE(range.Overlaps({kOne, 0, 101}));
  EXPECT_TRUE(range.Overlaps({kOne, 120, 130}));
  EXPECT_FALSE(range.Overlaps({kOne, 200, 300}));
  EXPECT_FALSE(range.Overlaps({kOne, 0, 100}));
  EXPECT_FALSE(range.Overlaps({kOther, 100, 200}));
}

TEST(MemoryRangeTest, TwoReadersAreNoConflict) {
  std::vector<MemoryUse> uses = {{{kOne, 0, 10}, false, 0},
                                 {{kOne, 0, 10}, false, 1}};
  EXPECT_FALSE(FindConflict(uses).has_value());
}

TEST(MemoryRangeTest, WriterAmongReadersIsFoundByName) {
  std::vector<MemoryUse> uses = {{{kOne, 0, 10}, false, 0},
                                 {{kOne, 20, 30}, false, 1},
                                 {{kOne, 29, 40}, true, 2}};
  EXPECT_EQ(FindConflict(uses), Pair(1, 2));
}

TEST(MemoryRangeTest, ReaderInsideALongWriterIsFoundBehindShortOnes) {
  std::vector<MemoryUse> uses = {{{kOne, 0, 1000}, true, 4},
                                 {{kOther, 10, 20}, true, 5},
                                 {{kOne, 999, 1001}, false, 6}};
  EXPECT_EQ(FindConflict(uses), Pair(4, 6));
}

TEST(MemoryRangeTest, NeighboursAndOtherMemoryAreNoConflict) {
  std::vector<MemoryUse> uses = {{{kOne, 0, 10}, true, 0},
                                 {{kOne, 10, 20}, true, 1},
                                 {{kOther, 5, 15}, true, 2},
                                 {{kOne, 20, 20}, true, 3}};
  EXPECT_FALSE(FindConflict(uses).has_value());
}

TEST(MemoryRangeTest, AnswerIsThatOfEachAgainstEach) {
  // A fixed sequence of ranges; the truth by comparing all pairs.
  uint32_t state = 1;
  const auto next = [&state](uint32_t below) {
    state = state * 1664525 + 1013904223;
    return (state >> 8) % below;
  };
  for (int round = 0; round < 2000; ++round) {
    std::vector<MemoryUse> uses;
    for (size_t i = 0; i < 6; ++i) {
      const uint64_t begin = next(40);
      uses.push_back({{next(2) == 0 ? kOne : kOther, begin, begin + next(8)},
                      next(2) == 0,
                      i});
    }
    bool truth = false;
    for (const MemoryUse& a : uses) {
      for (const MemoryUse& b : uses) {
        if (&a == &b || !(a.written || b.written)) continue;
        if (a.range.begin == a.range.end || b.range.begin == b.range.end) {
          continue;
        }
        truth = truth || a.range.Overlaps(b.range);
      }
    }
    EXPECT_EQ(FindConflict(uses).has_value(), truth) << round;
  }
}

}  // namespace
}  // namespace rknnd::core
