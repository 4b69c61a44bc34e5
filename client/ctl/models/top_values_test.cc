#include "client/ctl/models/top_values.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace rknnd::client {
namespace {

std::vector<size_t> Indices(const std::vector<TopValue>& values) {
  std::vector<size_t> indices;
  indices.reserve(values.size());
  for (const TopValue& value : values) indices.push_back(value.index);
  return indices;
}

TEST(TopValuesTest, LargestComeFirstAndTheLowerIndexAmongEquals) {
  EXPECT_EQ(Indices(TopValues({1, 5, 3, 5, -1}, 3)),
            (std::vector<size_t>{1, 3, 2}));
}

TEST(TopValuesTest, ShortListsAreShownWhole) {
  EXPECT_EQ(Indices(TopValues({1, 2}, 5)), (std::vector<size_t>{1, 0}));
  EXPECT_TRUE(TopValues({}, 5).empty());
}

TEST(TopValuesTest, WhatIsNoNumberComesLast) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

  const auto top = TopValues({kNan, 1, kNan, 2}, 4);

  EXPECT_EQ(Indices(top), (std::vector<size_t>{3, 1, 0, 2}));
}

}  // namespace
}  // namespace rknnd::client
