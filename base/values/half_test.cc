#include "base/values/half.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace rknnd::base {
namespace {

bool IsNan(Half half) { return (half & 0x7c00) == 0x7c00 && (half & 0x3ff); }

TEST(HalfTest, EveryHalfSurvivesTheWayThereAndBack) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const auto half = static_cast<Half>(bits);
    if (IsNan(half)) {
      EXPECT_TRUE(std::isnan(HalfToFloat(half))) << bits;
      EXPECT_TRUE(IsNan(FloatToHalf(HalfToFloat(half)))) << bits;
    } else {
      EXPECT_EQ(FloatToHalf(HalfToFloat(half)), half) << bits;
    }
  }
}

TEST(HalfTest, KnownValues) {
  EXPECT_EQ(HalfToFloat(0x3c00), 1.0F);
  EXPECT_EQ(HalfToFloat(0xc000), -2.0F);
  EXPECT_EQ(HalfToFloat(0x7bff), 65504.0F);
  EXPECT_EQ(HalfToFloat(0x0400), std::ldexp(1.0F, -14));
  EXPECT_EQ(HalfToFloat(0x0001), std::ldexp(1.0F, -24));
  EXPECT_EQ(HalfToFloat(0x03ff), std::ldexp(1023.0F, -24));
  EXPECT_EQ(HalfToFloat(0x7c00), std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::signbit(HalfToFloat(0x8000)));
}

TEST(HalfTest, TiesGoToEven) {
  EXPECT_EQ(FloatToHalf(1.0F + std::ldexp(1.0F, -11)), 0x3c00);
  EXPECT_EQ(FloatToHalf(1.0F + std::ldexp(3.0F, -11)), 0x3c02);
  EXPECT_EQ(FloatToHalf(std::ldexp(1.0F, -25)), 0x0000);
  EXPECT_EQ(FloatToHalf(std::ldexp(3.0F, -25)), 0x0002);
}

TEST(HalfTest, JustAboveHalfTheSmallestRoundsUp) {
  EXPECT_EQ(FloatToHalf(std::nextafter(std::ldexp(1.0F, -25), 1.0F)), 0x0001);
}

TEST(HalfTest, LargeValuesBecomeInfinityFromHalfAStepOn) {
  EXPECT_EQ(FloatToHalf(std::nextafter(65520.0F, 0.0F)), 0x7bff);
  EXPECT_EQ(FloatToHalf(65520.0F), 0x7c00);
  EXPECT_EQ(FloatToHalf(-1e30F), 0xfc00);
}

TEST(HalfTest, FloatSubnormalsBecomeZeroWithTheirSign) {
  EXPECT_EQ(FloatToHalf(std::numeric_limits<float>::denorm_min()), 0x0000);
  EXPECT_EQ(FloatToHalf(-std::numeric_limits<float>::denorm_min()), 0x8000);
}

TEST(HalfTest, ANanWhoseFractionLiesBelowStaysANan) {
  EXPECT_TRUE(IsNan(FloatToHalf(std::bit_cast<float>(0x7f800001))));
}

TEST(HalfTest, BulkToFloatEqualsOneByOneForEveryHalf) {
  std::vector<Half> halves(0x10000 + 5);
  for (size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<Half>(i);
  std::vector<float> floats(halves.size());
  HalfToFloat(halves, floats);
  for (size_t i = 0; i < halves.size(); ++i) {
    ASSERT_EQ(std::bit_cast<uint32_t>(floats[i]),
              std::bit_cast<uint32_t>(HalfToFloat(halves[i])))
        << i;
  }
}

TEST(HalfTest, BulkToHalfEqualsOneByOneOverTheWholeRange) {
  // Steps of a prime walk through all exponents and rounding cases.
  std::vector<float> floats;
  for (uint64_t bits = 0; bits <= 0xffffffff; bits += 7919) {
    floats.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  }
  std::vector<Half> halves(floats.size());
  FloatToHalf(floats, halves);
  for (size_t i = 0; i < floats.size(); ++i) {
    ASSERT_EQ(halves[i], FloatToHalf(floats[i]))
        << std::bit_cast<uint32_t>(floats[i]);
  }
}

TEST(HalfTest, BulkStopsAtTheShorterSpan) {
  const std::vector<float> ones(9, 1.0F);
  std::vector<Half> halves(12, 7);
  FloatToHalf(ones, std::span(halves).first(9));
  EXPECT_EQ(halves[8], 0x3c00);
  EXPECT_EQ(halves[9], 7);
}

}  // namespace
}  // namespace rknnd::base
