#include "driver/soft/timing/pacer.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace rknnd::soft {
namespace {

using base::kMicrosecond;
using base::kMillisecond;
using base::kSecond;

// A layer of so many milliseconds of computing, and nothing else.
std::vector<LayerTime> Work(double milliseconds, bool splits = false) {
  LayerTime layer;
  layer.compute = milliseconds * 1e6;
  layer.splits = splits;
  return {layer};
}

class PacerTest : public ::testing::Test {
 protected:
  // A job of 20 ms that has been waiting.
  PacedJob Waiting(base::Nanoseconds since) const {
    PacedJob job;
    job.layers = work_;
    job.submitted = since;
    return job;
  }

  const std::vector<LayerTime> work_ = Work(20);
  const SocProfile soc_ = *FindSoc("rk3588");
  SocClock soc_clock_;
  base::FakeClock clock_;
  Pacer pacer_{soc_, &soc_clock_, &clock_};
};

TEST_F(PacerTest, AJobThatComputesFasterEndsWhenTheSocWouldEndIt) {
  const base::Nanoseconds start = clock_.Now();
  const base::Nanoseconds end = pacer_.Start({1, Work(20)}).end;
  clock_.Advance(5 * kMillisecond);
  pacer_.Finish(1, end);
  EXPECT_EQ(clock_.Now(), start + 20 * kMillisecond);
}

TEST_F(PacerTest, AJobThatComputesLongerIsNotWaitedFor) {
  const base::Nanoseconds start = clock_.Now();
  const base::Nanoseconds end = pacer_.Start({1, Work(20)}).end;
  clock_.Advance(35 * kMillisecond);
  pacer_.Finish(1, end);
  EXPECT_EQ(clock_.Now(), start + 35 * kMillisecond);
}

TEST_F(PacerTest, OfJobsThatWaitWakingUpLateDoesNotAddUp) {
  const base::Nanoseconds start = clock_.Now();
  for (int job = 0; job < 10; ++job) {
    pacer_.Finish(1, pacer_.Start(Waiting(start)).end);
    clock_.Advance(60 * kMicrosecond);
  }
  EXPECT_EQ(clock_.Now(), start + 200 * kMillisecond + 60 * kMicrosecond);
}

TEST_F(PacerTest, JobsThatWaitFollowEachOtherAndTakeTheirTimeEach) {
  base::Nanoseconds before = clock_.Now();
  for (int job = 0; job < 3; ++job) {
    const PacedRun run = pacer_.Start(Waiting(kSecond));
    EXPECT_EQ(run.start, before);
    clock_.Advance(kMillisecond);
    before = pacer_.Finish(1, run.end);
    EXPECT_EQ(before - run.start, 20 * kMillisecond);
    clock_.Advance(60 * kMicrosecond);
  }
}

// As those of a program that waits for one before it sends the next.
TEST_F(PacerTest, AJobStartsNoSoonerThanItIsAskedFor) {
  pacer_.Finish(1, pacer_.Start({1, Work(20)}).end);
  clock_.Advance(100 * kMicrosecond);
  const base::Nanoseconds asked = clock_.Now();
  clock_.Advance(30 * kMicrosecond);
  const PacedRun run = pacer_.Start(Waiting(asked));
  EXPECT_EQ(run.start, asked);
  EXPECT_EQ(run.end, asked + 20 * kMillisecond);
}

TEST_F(PacerTest, AJobThatWasKeptFromItsCoreStartsWhenItComes) {
  const base::Nanoseconds asked = clock_.Now();
  clock_.Advance(50 * kMillisecond);
  EXPECT_EQ(pacer_.Start(Waiting(asked)).start, clock_.Now());
}

TEST_F(PacerTest, AJobThatComputesLongerEndsWhenItDoes) {
  const PacedRun run = pacer_.Start({1, Work(20)});
  clock_.Advance(35 * kMillisecond);
  EXPECT_EQ(pacer_.Finish(1, run.end), run.start + 35 * kMillisecond);
}

TEST_F(PacerTest, AJobAfterAPauseStartsWhenItComes) {
  pacer_.Finish(1, pacer_.Start({1, Work(20)}).end);
  clock_.Advance(kMillisecond);
  const base::Nanoseconds start = clock_.Now();
  EXPECT_EQ(pacer_.Start({1, Work(20)}).end, start + 20 * kMillisecond);
}

TEST_F(PacerTest, AfterAJobThatTookLongerTheNextStartsAtItsRealEnd) {
  const base::Nanoseconds end = pacer_.Start({1, Work(20)}).end;
  clock_.Advance(35 * kMillisecond);
  pacer_.Finish(1, end);
  EXPECT_EQ(pacer_.Start({1, Work(20)}).end, clock_.Now() + 20 * kMillisecond);
}

TEST_F(PacerTest, CoresDoNotWaitForEachOther) {
  const base::Nanoseconds start = clock_.Now();
  pacer_.Start({1, Work(20)});
  EXPECT_EQ(pacer_.Start({2, Work(20)}).end, start + 20 * kMillisecond);
}

TEST_F(PacerTest, AGangStartsWithTheLastOfItsCores) {
  const base::Nanoseconds end = pacer_.Start({2, Work(20)}).end;
  pacer_.Finish(2, end);
  EXPECT_EQ(pacer_.Start({7, Work(20)}).end, end + 20 * kMillisecond);
}

TEST_F(PacerTest, AGangSharesOutOnlyWhatSplits) {
  const base::Nanoseconds start = clock_.Now();
  std::vector<LayerTime> layers = Work(30, true);
  layers.push_back(Work(5)[0]);
  EXPECT_EQ(pacer_.Start({7, layers}).end, start + 15 * kMillisecond);
}

TEST_F(PacerTest, SlicesFollowEachOther) {
  EXPECT_EQ(pacer_.Start({1, Work(20), 4}).end,
            clock_.Now() + 80 * kMillisecond);
}

TEST_F(PacerTest, CoresWithSlicesOfTheirOwnTakeTurns) {
  EXPECT_EQ(pacer_.Start({7, Work(20), 4, 3}).end,
            clock_.Now() + 40 * kMillisecond);
}

TEST_F(PacerTest, NoFileHoldsACoreForLongByItsShapes) {
  EXPECT_EQ(pacer_.Start({1, Work(1e15), 1000}).end,
            clock_.Now() + 60 * kSecond);
}

TEST_F(PacerTest, JobsAtOnceShareTheMemory) {
  LayerTime mover;
  mover.bytes = 12e6;
  mover.bytes_rate = 12;  // GB/s
  const std::vector<LayerTime> layers = {mover};
  const base::Nanoseconds now = clock_.Now();
  EXPECT_EQ(pacer_.Start({1, layers}).end, now + kMillisecond);
  EXPECT_EQ(pacer_.Start({2, layers}).end, now + kMillisecond);
  // 28 GB/s for three.
  EXPECT_NEAR(static_cast<double>(pacer_.Start({4, layers}).end - now),
              12e6 / (28.0 / 3), 1.0);
}

TEST_F(PacerTest, ThrottlingMakesJobsLonger) {
  soc_clock_.Set(0.25);
  EXPECT_EQ(pacer_.Start({1, Work(20)}).end, clock_.Now() + 80 * kMillisecond);
}

TEST_F(PacerTest, TheFirstJobAfterAPowerDownPaysForWakingUp) {
  Pacer pacer(soc_, &soc_clock_, &clock_, {.wake_cost = 8 * kMillisecond});
  pacer.Finish(1, pacer.Start({1, Work(20)}).end);
  clock_.Advance(2 * kSecond);
  base::Nanoseconds start = clock_.Now();
  pacer.Finish(1, pacer.Start({1, Work(20)}).end);
  EXPECT_EQ(clock_.Now(), start + 20 * kMillisecond);

  clock_.Advance(4 * kSecond);
  start = clock_.Now();
  pacer.Finish(1, pacer.Start({1, Work(20)}).end);
  EXPECT_EQ(clock_.Now(), start + 28 * kMillisecond);
}

TEST_F(PacerTest, ACoreThatIsBusyKeepsTheNpuAwake) {
  Pacer pacer(soc_, &soc_clock_, &clock_, {.wake_cost = 8 * kMillisecond});
  pacer.Start({1, Work(20)});
  clock_.Advance(10 * kSecond);
  EXPECT_EQ(pacer.Start({2, Work(20)}).end, clock_.Now() + 20 * kMillisecond);
}

TEST(SocClockTest, StaysWithinWhatTheSocCan) {
  SocClock clock;
  EXPECT_EQ(clock.fraction(), 1);
  for (const double wrong :
       {1.2, 0.0, -1.0, std::numeric_limits<double>::quiet_NaN()}) {
    clock.Set(0.3);
    EXPECT_EQ(clock.fraction(), 0.3);
    clock.Set(wrong);
    EXPECT_EQ(clock.fraction(), 1) << wrong;
  }
}

}  // namespace
}  // namespace rknnd::soft
