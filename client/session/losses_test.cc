// After which deaths of daemons a call is not put to another one.

#include "client/session/losses.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rknnd::client {
namespace {

using ::testing::HasSubstr;

constexpr base::Nanoseconds kBound = 30 * base::kSecond;

TEST(LossesTest, FiveThatTheCallMayHaveCausedAreEnough) {
  Losses losses;
  for (int i = 0; i < 5; ++i) {
    EXPECT_FALSE(losses.TooMany(0, kBound));
    losses.Add(/*may_be_it=*/true, 0);
  }
  EXPECT_TRUE(losses.TooMany(0, kBound));
  EXPECT_THAT(
      losses.ToError("the end").message,
      HasSubstr("went away 5 times during this call, which may be why"));
  EXPECT_THAT(losses.ToError("the end").message,
              HasSubstr("; at last: the end"));
}

TEST(LossesTest, ThoseItHadNoPartInAreBoundedByTime) {
  Losses losses;
  for (int i = 0; i < 100; ++i) losses.Add(/*may_be_it=*/false, i);
  EXPECT_FALSE(losses.TooMany(kBound - 1, kBound));
  EXPECT_TRUE(losses.TooMany(kBound, kBound));
  EXPECT_THAT(losses.ToError().message, HasSubstr("RKNND_RESTART_WAIT"));
}

TEST(LossesTest, FewInALongTimeAreNone) {
  Losses losses;
  for (int i = 0; i < 4; ++i) losses.Add(/*may_be_it=*/false, i * kBound);
  EXPECT_FALSE(losses.TooMany(4 * kBound, kBound));
}

TEST(LossesTest, ManyMakeItPauseButNotForLong) {
  Losses losses;
  losses.Add(/*may_be_it=*/false, 0);
  EXPECT_EQ(losses.Pause(), 0);
  for (int i = 0; i < 4; ++i) losses.Add(/*may_be_it=*/false, 0);
  EXPECT_GT(losses.Pause(), 0);
  for (int i = 0; i < 1000; ++i) losses.Add(/*may_be_it=*/false, 0);
  EXPECT_EQ(losses.Pause(), 500 * base::kMillisecond);
}

}  // namespace
}  // namespace rknnd::client
