#include "examples/demo/frame_rate.h"

#include <gtest/gtest.h>

namespace rknnd::demo {
namespace {

constexpr int kCameras = 4;
constexpr base::Nanoseconds kHalfSecond = base::kSecond / 2;

// So many of all cameras together.
FrameRate::Part Frames(size_t count, double latency_us, size_t lost = 0) {
  FrameRate::Part part;
  part.latencies_us.assign(kCameras,
                           std::vector<double>(count / kCameras, latency_us));
  part.lost = lost;
  return part;
}

TEST(FrameRateTest, FastMachineFilmsAtTheHighestRate) {
  FrameRate rate(30, kCameras);
  rate.Measured(1000);
  EXPECT_EQ(rate.rate(), 30);
  EXPECT_NEAR(rate.LongestLatencyUs(), 66'667, 1);
}

TEST(FrameRateTest, SlowMachineFilmsWithRoomToSpare) {
  FrameRate rate(30, kCameras);
  rate.Measured(100);  // 25 of each camera
  EXPECT_EQ(rate.rate(), 15);
}

TEST(FrameRateTest, HighestRateMayBeAny) {
  FrameRate fast(24, kCameras);
  fast.Measured(1000);
  EXPECT_EQ(fast.rate(), 24);
  FrameRate slow(24, kCameras);
  slow.Measured(120);
  EXPECT_EQ(slow.rate(), 20);
  FrameRate lowest(0.01, kCameras);
  lowest.Measured(0);
  EXPECT_EQ(lowest.rate(), 0.01);
}

TEST(FrameRateTest, TwoFrameTimesHoldWhatWasMeasured) {
  for (const int cameras : {1, 4, 64}) {
    for (double fps = 0.8; fps < 10'000; fps *= 1.1) {
      FrameRate rate(30, cameras);
      rate.Measured(fps);
      const double latency_us = kFramesInFlight * cameras / fps * 1e6;
      EXPECT_LE(latency_us, rate.LongestLatencyUs()) << fps << ' ' << cameras;
      EXPECT_GT(rate.rate(), 0);
    }
  }
}

TEST(FrameRateTest, MachineThatKeepsUpKeepsItsRate) {
  FrameRate rate(30, kCameras);
  for (int i = 0; i < 20; ++i) {
    EXPECT_FALSE(rate.Watch(i * kHalfSecond, Frames(60, 60'000)));
  }
  EXPECT_EQ(rate.rate(), 30);
}

TEST(FrameRateTest, LateFramesLowerTheRateBelowThem) {
  FrameRate rate(30, kCameras);
  EXPECT_FALSE(rate.Watch(0, Frames(60, 10'000)));
  EXPECT_FALSE(rate.Watch(1 * kHalfSecond, Frames(60, 10'000)));
  // One of two parts is late, but has fewer frames.
  EXPECT_FALSE(rate.Watch(2 * kHalfSecond, Frames(20, 200'000)));
  EXPECT_TRUE(rate.Watch(3 * kHalfSecond, Frames(20, 200'000)));
  EXPECT_EQ(rate.rate(), 6);
  EXPECT_GT(rate.LongestLatencyUs(), 200'000);
}

TEST(FrameRateTest, LatenciesOfTheOldRateAreNotHeldAgainstTheNewOne) {
  FrameRate rate(30, kCameras);
  ASSERT_TRUE(rate.Watch(0, Frames(60, 500'000)));
  ASSERT_EQ(rate.rate(), 3);
  EXPECT_FALSE(rate.Watch(1 * kHalfSecond, Frames(4, 600'000)));
  EXPECT_FALSE(rate.Watch(2 * kHalfSecond, Frames(8, 600'000)));
  EXPECT_EQ(rate.rate(), 3);
}

TEST(FrameRateTest, MachineThatBecomesStillSlowerIsFollowed) {
  FrameRate rate(30, kCameras);
  EXPECT_TRUE(rate.Watch(0, Frames(60, 100'000)));
  EXPECT_EQ(rate.rate(), 15);
  EXPECT_TRUE(rate.Watch(2 * kHalfSecond, Frames(8, 1'000'000)));
  EXPECT_EQ(rate.rate(), 1);
  // At one frame a second a part may have none.
  EXPECT_FALSE(rate.Watch(3 * kHalfSecond, {}));
  EXPECT_TRUE(rate.Watch(4 * kHalfSecond, Frames(4, 4'000'000)));
  EXPECT_EQ(rate.rate(), 0.3);
}

TEST(FrameRateTest, OneCameraThatIsLateLowersTheRateOfAll) {
  FrameRate rate(30, kCameras);
  FrameRate::Part part = Frames(60, 10'000);
  part.latencies_us[2] = {100'000, 100'000, 100'000};
  EXPECT_TRUE(rate.Watch(0, part));
  EXPECT_EQ(rate.rate(), 15);
}

TEST(FrameRateTest, SlowestRateStays) {
  FrameRate rate(0.01, kCameras);
  EXPECT_FALSE(rate.Watch(0, Frames(4, 1e12)));
  EXPECT_EQ(rate.rate(), 0.01);
}

TEST(FrameRateTest, LostFramesLowerTheRate) {
  FrameRate rate(30, kCameras);
  for (int i = 0; i < 4; ++i) {
    EXPECT_FALSE(rate.Watch(i * kHalfSecond, Frames(40, 50'000, 20)));
  }
  EXPECT_TRUE(rate.Watch(4 * kHalfSecond, Frames(40, 50'000, 20)));
  EXPECT_EQ(rate.rate(), 15);
}

TEST(FrameRateTest, OneStallIsNotASlowMachine) {
  FrameRate rate(30, kCameras);
  for (int i = 0; i < 4; ++i) {
    ASSERT_FALSE(rate.Watch(i * kHalfSecond, Frames(60, 10'000)));
  }
  EXPECT_FALSE(rate.Watch(4 * kHalfSecond, Frames(8, 450'000, 52)));
  for (int i = 5; i < 10; ++i) {
    EXPECT_FALSE(rate.Watch(i * kHalfSecond, Frames(60, 10'000)));
  }
}

}  // namespace
}  // namespace rknnd::demo
