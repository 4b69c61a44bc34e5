#include "base/posix/rate_limit.h"

#include <gtest/gtest.h>

#include <memory>

namespace rknnd::base {
namespace {

constexpr Nanoseconds kStart = kSecond, kInterval = 100 * kMicrosecond;
constexpr uint32_t kAtOnce = 500;

class RateLimitTest : public ::testing::Test {
 protected:
  RateLimit limit_{kAtOnce, kInterval};
};

TEST_F(RateLimitTest, SoManyMayHappenAtOnce) {
  for (uint32_t i = 0; i < kAtOnce; ++i) ASSERT_EQ(limit_.Take(kStart), 0);
  EXPECT_EQ(limit_.Take(kStart), kInterval);
}

TEST_F(RateLimitTest, OneInEachIntervalMayAlways) {
  for (int i = 0; i < 100'000; ++i) {
    ASSERT_EQ(limit_.Take(kStart + i * kInterval), 0);
  }
}

TEST_F(RateLimitTest, WhatIsRefusedDelaysNothingElse) {
  ASSERT_EQ(limit_.Take(kStart, kAtOnce), 0);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(limit_.Take(kStart), kInterval);
  EXPECT_EQ(limit_.Take(kStart + kInterval), 0);
}

TEST_F(RateLimitTest, RefusalSaysWhenThereIsRoom) {
  ASSERT_EQ(limit_.Take(kStart, kAtOnce), 0);
  const Nanoseconds wait = limit_.Take(kStart, 7);
  EXPECT_EQ(wait, 7 * kInterval);
  EXPECT_EQ(limit_.Take(kStart + wait - 1, 7), 1);
  EXPECT_EQ(limit_.Take(kStart + wait, 7), 0);
}

TEST_F(RateLimitTest, RestGivesBackNoMoreThanThereWas) {
  ASSERT_EQ(limit_.Take(kStart, kAtOnce), 0);
  const Nanoseconds late = kStart + 3600 * kSecond;
  EXPECT_EQ(limit_.Take(late, kAtOnce), 0);
  EXPECT_EQ(limit_.Take(late), kInterval);
}

TEST_F(RateLimitTest, WaitSaysWhatTakeWouldAndCountsNothing) {
  for (uint32_t i = 0; i < kAtOnce; ++i) {
    ASSERT_EQ(limit_.Wait(kStart), 0);
    ASSERT_EQ(limit_.Take(kStart), 0);
  }
  EXPECT_EQ(limit_.Wait(kStart), kInterval);
  EXPECT_EQ(limit_.Wait(kStart), kInterval);
  EXPECT_EQ(limit_.Wait(kStart + kInterval), 0);
  EXPECT_FALSE(limit_.IsRested(kStart + kAtOnce * kInterval - 1));
  EXPECT_TRUE(limit_.IsRested(kStart + kAtOnce * kInterval));
}

TEST_F(RateLimitTest, WhatIsChargedIsWaitedForButOnlyOnce) {
  limit_.Charge(kStart, kAtOnce - 1);
  EXPECT_EQ(limit_.Wait(kStart), 0);
  limit_.Charge(kStart, 31);
  EXPECT_EQ(limit_.Wait(kStart), 31 * kInterval);
  // Beyond that there is no more to wait for than there is already.
  limit_.Charge(kStart, 31);
  limit_.Charge(kStart);
  EXPECT_EQ(limit_.Wait(kStart), 32 * kInterval);
  EXPECT_EQ(limit_.Wait(kStart + 32 * kInterval), 0);
  EXPECT_EQ(limit_.Take(kStart + 31 * kInterval), kInterval);
}

TEST(RateLimitsTest, EachNameHasItsOwn) {
  RateLimits limits(1, kInterval);
  EXPECT_EQ(limits.Of("one", kStart)->Take(kStart), 0);
  EXPECT_EQ(limits.Of("another", kStart)->Take(kStart), 0);
  EXPECT_EQ(limits.Of("one", kStart)->Take(kStart), kInterval);
}

TEST(RateLimitsTest, WhoGoesAndComesAgainHasNoMoreThanWhoStays) {
  RateLimits limits(1, kInterval);
  EXPECT_EQ(limits.Of("one", kStart)->Take(kStart), 0);
  // Where those that are not needed are forgotten.
  static_cast<void>(limits.Of("another", kStart));
  EXPECT_EQ(limits.Of("one", kStart)->Take(kStart), kInterval);
  const auto held = limits.Of("one", kStart);
  static_cast<void>(limits.Of("a third", kStart + kInterval));
  EXPECT_EQ(limits.Of("one", kStart + kInterval), held);
}

TEST(RateLimitsTest, WhoIsGoneAndHasRestedIsForgotten) {
  RateLimits limits(1, kInterval);
  const std::weak_ptr<RateLimit> gone = limits.Of("one", kStart);
  EXPECT_EQ(limits.Of("one", kStart)->Take(kStart), 0);
  static_cast<void>(limits.Of("another", kStart));
  EXPECT_FALSE(gone.expired());
  static_cast<void>(limits.Of("a third", kStart + kInterval));
  EXPECT_TRUE(gone.expired());
}

}  // namespace
}  // namespace rknnd::base
