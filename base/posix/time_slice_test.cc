#include "base/posix/time_slice.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

namespace rknnd::base {
namespace {

// In a thread of its own, as it stays.
TEST(TimeSliceTest, AThreadHasWhatItAskedForOrWhatItHad) {
  std::thread([] {
    const Nanoseconds before = Slice();
    if (AskForSlice(kShortestSlice)) {
      EXPECT_EQ(Slice(), kShortestSlice);
      EXPECT_TRUE(AskForSlice(5 * kMillisecond));
      EXPECT_EQ(Slice(), 5 * kMillisecond);
    } else {
      EXPECT_EQ(Slice(), before);
    }
    EXPECT_EQ(sched_getscheduler(0), SCHED_OTHER);
  }).join();
}

TEST(TimeSliceTest, WhoHasNoTurnsIsLeftAlone) {
  std::thread([] {
    const sched_param lowest{};
    ASSERT_EQ(sched_setscheduler(0, SCHED_IDLE, &lowest), 0);
    EXPECT_FALSE(AskForSlice(kShortestSlice));
    EXPECT_EQ(sched_getscheduler(0), SCHED_IDLE);
  }).join();
}

}  // namespace
}  // namespace rknnd::base
