#include "examples/demo/frame_schedule.h"

#include <gtest/gtest.h>

namespace rknnd::demo {
namespace {

constexpr base::Nanoseconds kBegin = 1000 * base::kSecond;
constexpr base::Nanoseconds kFrame = base::kSecond / 10;

class FrameScheduleTest : public testing::Test {
 protected:
  // Ten frames.
  FrameSchedule schedule_{10, kBegin, kBegin + base::kSecond};
};

TEST_F(FrameScheduleTest, FramesComeEvenlyFromTheBeginToTheEnd) {
  int frames = 0;
  for (base::Nanoseconds now = kBegin - kFrame; now < kBegin + 20 * kFrame;
       now += kFrame / 4) {
    if (!schedule_.IsDue(now)) continue;
    EXPECT_EQ(schedule_.Take(now), kBegin + frames * kFrame);
    ++frames;
  }
  EXPECT_EQ(frames, 10);
  EXPECT_EQ(schedule_.TakeLost(), 0U);
  EXPECT_EQ(schedule_.NextTime(), schedule_.end());
}

TEST_F(FrameScheduleTest, WhoIsLateGetsTheNewestFrame) {
  EXPECT_EQ(schedule_.Take(kBegin + 3 * kFrame + 1), kBegin + 3 * kFrame);
  EXPECT_EQ(schedule_.TakeLost(), 3U);
  EXPECT_EQ(schedule_.TakeLost(), 0U);
  EXPECT_EQ(schedule_.NextTime(), kBegin + 4 * kFrame);
}

TEST_F(FrameScheduleTest, FramesThatAreLeftAreLost) {
  schedule_.Leave(kBegin);
  schedule_.Leave(kBegin + 2 * kFrame);
  EXPECT_EQ(schedule_.TakeLost(), 3U);
  EXPECT_EQ(schedule_.NextTime(), kBegin + 3 * kFrame);
}

TEST_F(FrameScheduleTest, WhatWouldComeAfterTheEndIsNotLost) {
  EXPECT_EQ(schedule_.Take(kBegin + 50 * kFrame), kBegin + 9 * kFrame);
  EXPECT_EQ(schedule_.TakeLost(), 9U);
  EXPECT_FALSE(schedule_.IsDue(kBegin + 50 * kFrame));
}

TEST_F(FrameScheduleTest, LowerRateHoldsFromTheLastFrameOn) {
  schedule_.Take(kBegin);
  schedule_.SetRate(5);
  EXPECT_EQ(schedule_.rate(), 5);
  EXPECT_EQ(schedule_.NextTime(), kBegin + 2 * kFrame);
  EXPECT_EQ(schedule_.Take(kBegin + 2 * kFrame), kBegin + 2 * kFrame);
  EXPECT_EQ(schedule_.NextTime(), kBegin + 4 * kFrame);
}

}  // namespace
}  // namespace rknnd::demo
