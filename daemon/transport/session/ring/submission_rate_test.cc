#include "daemon/transport/session/ring/submission_rate.h"

#include <gtest/gtest.h>

namespace rknnd::transport {
namespace {

constexpr base::Nanoseconds kStart = base::kSecond;

TEST(SubmissionRateTest, SoManyAtOnceAreNotTooOften) {
  SubmissionRate rate;
  for (uint32_t i = 0; i < SubmissionRate::kAtOnce; ++i) {
    ASSERT_TRUE(rate.Take(1, kStart));
  }
  EXPECT_FALSE(rate.Take(1, kStart));
}

TEST(SubmissionRateTest, AnEntryInEachIntervalIsNeverTooOften) {
  SubmissionRate rate;
  for (int i = 0; i < 100'000; ++i) {
    ASSERT_TRUE(rate.Take(1, kStart + i * SubmissionRate::kInterval));
  }
}

TEST(SubmissionRateTest, WhatWasTooOftenTakesNothingFromOthers) {
  SubmissionRate rate;
  ASSERT_TRUE(rate.Take(SubmissionRate::kAtOnce, kStart));
  for (int i = 0; i < 1000; ++i) ASSERT_FALSE(rate.Take(1, kStart));
  EXPECT_TRUE(rate.Take(1, kStart + SubmissionRate::kInterval));
}

TEST(SubmissionRateTest, TimeGivesBackNoMoreThanThereWas) {
  SubmissionRate rate;
  ASSERT_TRUE(rate.Take(SubmissionRate::kAtOnce, kStart));
  const base::Nanoseconds late = kStart + 3600 * base::kSecond;
  EXPECT_TRUE(rate.Take(SubmissionRate::kAtOnce, late));
  EXPECT_FALSE(rate.Take(1, late));
}

}  // namespace
}  // namespace rknnd::transport
