#include "base/posix/clock.h"

#include <gtest/gtest.h>

namespace rknnd::base {
namespace {

TEST(MonotonicClockTest, NeverGoesBack) {
  const MonotonicClock clock;
  const Nanoseconds first = clock.Now();
  EXPECT_GT(first, 0);
  EXPECT_GE(clock.Now(), first);
}

TEST(FakeClockTest, MovesOnlyWhenTold) {
  FakeClock clock;
  const Nanoseconds start = clock.Now();
  EXPECT_EQ(clock.Now(), start);
  clock.Advance(3 * kMillisecond);
  EXPECT_EQ(clock.Now(), start + 3 * kMillisecond);
}

}  // namespace
}  // namespace rknnd::base
