#include "client/ctl/accuracy/accuracy_distance.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

namespace rknnd::client {
namespace {

template <class T>
Array Of(ElementType type, const std::vector<T>& values) {
  Array array{type, {values.size()}, {}};
  array.bytes.resize(values.size() * sizeof(T));
  std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
  return array;
}
Array Floats(const std::vector<float>& values) {
  return Of(ElementType::kFloat32, values);
}

TEST(AccuracyDistanceTest, AngleAndDistanceOfVectors) {
  const auto right = DistanceOf(Floats({3, 0}), Floats({0, 4}));
  ASSERT_TRUE(right.has_value());
  EXPECT_DOUBLE_EQ(right->cos, 0);
  EXPECT_DOUBLE_EQ(right->euc, 5);

  const auto longer = DistanceOf(Floats({1, 2}), Floats({2, 4}));
  EXPECT_NEAR(longer->cos, 1, 1e-12);
  EXPECT_NEAR(longer->euc, std::sqrt(5.0), 1e-12);

  EXPECT_NEAR(DistanceOf(Floats({1, 1}), Floats({-1, -1}))->cos, -1, 1e-12);
}

TEST(AccuracyDistanceTest, TheSameIsExactlyOneAndZero) {
  const std::vector<float> values = {0.1F, -7.3F, 1e-3F, 5e7F};
  const auto same = DistanceOf(Floats(values), Floats(values));
  EXPECT_EQ(same->cos, 1.0);
  EXPECT_EQ(same->euc, 0.0);
}

TEST(AccuracyDistanceTest, ZerosHaveNoAngleButAnAnswer) {
  EXPECT_EQ(DistanceOf(Floats({0, 0}), Floats({0, 0}))->cos, 1);
  EXPECT_EQ(DistanceOf(Floats({0, 0}), Floats({0, 2}))->cos, 0);
  EXPECT_EQ(DistanceOf(Floats({}), Floats({}))->cos, 1);
}

TEST(AccuracyDistanceTest, LargeNumbersDoNotOverflow) {
  const auto far = DistanceOf(Floats({3e38F, 0}), Floats({3e38F, 3e38F}));
  EXPECT_NEAR(far->cos, std::sqrt(0.5), 1e-12);
  EXPECT_NEAR(far->euc, 3e38, 1e32);
  const double huge = std::numeric_limits<double>::max();
  const auto doubles =
      DistanceOf(Of<double>(ElementType::kFloat64, {huge, huge}),
                 Of<double>(ElementType::kFloat64, {huge, 0}));
  EXPECT_NEAR(doubles->cos, std::sqrt(0.5), 1e-12);
}

TEST(AccuracyDistanceTest, InfinitiesHaveNoDistance) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const float bad : {inf, -inf, std::nanf("")}) {
    const auto distance = DistanceOf(Floats({1, bad}), Floats({1, 2}));
    EXPECT_TRUE(std::isnan(distance->cos));
    EXPECT_TRUE(std::isnan(distance->euc));
    EXPECT_TRUE(HasInf(Floats({1, bad})));
  }
  EXPECT_FALSE(HasInf(Floats({1, 2})));
  EXPECT_TRUE(HasInf(Of<uint16_t>(ElementType::kFloat16, {0x7c00})));
  EXPECT_FALSE(HasInf(Of<uint16_t>(ElementType::kUint16, {0x7c00})));
}

TEST(AccuracyDistanceTest, TypesMayDifferAndShapesMayNot) {
  const auto mixed =
      DistanceOf(Floats({-1, 2}), Of<int64_t>(ElementType::kInt64, {-1, 2}));
  EXPECT_EQ(mixed->euc, 0);
  EXPECT_EQ(DistanceOf(Floats({1, 0.5F}),
                       Of<uint16_t>(ElementType::kFloat16, {0x3c00, 0x3800}))
                ->euc,
            0);
  EXPECT_FALSE(DistanceOf(Floats({1}), Floats({1, 2})).has_value());
  Array turned = Floats({1, 2});
  turned.shape = {2, 1};
  EXPECT_FALSE(DistanceOf(Floats({1, 2}), turned).has_value());
}

}  // namespace
}  // namespace rknnd::client
