#include "base/values/overflow.h"

#include <gtest/gtest.h>

#include <limits>

namespace rknnd::base {
namespace {

constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();

TEST(OverflowTest, SumsThatFitAreTold) {
  EXPECT_EQ(CheckedAdd(kMax - 1, 1), kMax);
  EXPECT_EQ(CheckedAdd(kMax, 1), std::nullopt);
}

TEST(OverflowTest, ProductsThatFitAreTold) {
  EXPECT_EQ(CheckedMultiply(uint64_t{1} << 32, (uint64_t{1} << 32) - 1),
            kMax - ((uint64_t{1} << 32) - 1));
  EXPECT_EQ(CheckedMultiply(uint64_t{1} << 32, uint64_t{1} << 32),
            std::nullopt);
}

TEST(OverflowTest, AlignUpRoundsToWholeUnits) {
  EXPECT_EQ(CheckedAlignUp(0, 4096), 0);
  EXPECT_EQ(CheckedAlignUp(1, 4096), 4096);
  EXPECT_EQ(CheckedAlignUp(4096, 4096), 4096);
  EXPECT_EQ(CheckedAlignUp(kMax, 4096), std::nullopt);
}

TEST(OverflowTest, ARangeFitsOnlyInsideWhateverItsNumbers) {
  EXPECT_TRUE(RangeFits(0, 10, 10));
  EXPECT_TRUE(RangeFits(10, 0, 10));
  EXPECT_FALSE(RangeFits(1, 10, 10));
  EXPECT_FALSE(RangeFits(11, 0, 10));
  EXPECT_FALSE(RangeFits(kMax, 2, 10));
  EXPECT_FALSE(RangeFits(2, kMax, 10));
}

}  // namespace
}  // namespace rknnd::base
