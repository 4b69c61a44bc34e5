#include "base/values/near_name.h"

#include <array>

#include "gtest/gtest.h"

namespace rknnd::base {
namespace {

TEST(EditDistanceTest, CountsWhatIsWrong) {
  EXPECT_EQ(EditDistance("", ""), 0U);
  EXPECT_EQ(EditDistance("", "abc"), 3U);
  EXPECT_EQ(EditDistance("grace", "grace"), 0U);
  EXPECT_EQ(EditDistance("memori", "memory"), 1U);
  EXPECT_EQ(EditDistance("sockett", "socket"), 1U);
  EXPECT_EQ(EditDistance("sckt", "socket"), 2U);
  // Two letters that have changed places are one slip.
  EXPECT_EQ(EditDistance("wieght", "weight"), 1U);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3U);
  EXPECT_EQ(EditDistance("abc", ""), 3U);
}

TEST(NearNameTest, IsTheNearestOfThose) {
  constexpr auto kKnown =
      std::to_array<std::string_view>({"mean_values", "std_values"});
  EXPECT_EQ(DidYouMean("mean_value", kKnown), "; did you mean 'mean_values'?");
  EXPECT_EQ(DidYouMean("std", kKnown), "");
  EXPECT_EQ(DidYouMean("mean_values", {}), "");
}

}  // namespace
}  // namespace rknnd::base
