#include "base/posix/spinning.h"

#include <gtest/gtest.h>

namespace rknnd::base {
namespace {

TEST(SpinForTest, EndsWithWhatItWaitsFor) {
  const FakeClock clock;  // stands still: only the answer ends it
  int looks = 0;
  EXPECT_TRUE(SpinFor(clock, kSecond, [&looks] { return ++looks == 100; }));
  EXPECT_EQ(looks, 100);
}

TEST(SpinForTest, EndsWhenTheTimeIsOver) {
  FakeClock clock;
  EXPECT_FALSE(SpinFor(clock, 5 * kMicrosecond, [&clock] {
    clock.Advance(kMicrosecond);
    return false;
  }));
}

TEST(SpinHabitTest, TriesEachTimeWhileItPaysOff) {
  SpinHabit habit;
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(habit.Try());
    habit.Note(true);
  }
}

TEST(SpinHabitTest, TriesLessAndLessOftenWhileItDoesNot) {
  SpinHabit habit;
  int tries = 0;
  for (int i = 0; i < 100'000; ++i) {
    if (!habit.Try()) continue;
    ++tries;
    habit.Note(false);
  }
  // A few at once, then in growing distances, then one in a thousand.
  EXPECT_GT(tries, 50);
  EXPECT_LT(tries, 200);
}

TEST(SpinHabitTest, OneSuccessBringsTheHabitBack) {
  SpinHabit habit;
  for (int i = 0; i < 5000; ++i) {
    if (habit.Try()) habit.Note(false);
  }
  while (!habit.Try()) {
  }
  habit.Note(true);
  EXPECT_TRUE(habit.Try());
  habit.Note(false);
  EXPECT_TRUE(habit.Try());
}

// Nothing but such losses until there is a pause; how many times that is.
int PauseAfterLosses(SpinHabit* habit, Nanoseconds loss = kMillisecond) {
  while (habit->Try()) habit->NoteLoss(loss);
  int skipped = 1;
  while (!habit->Try()) ++skipped;
  return skipped;
}

TEST(SpinHabitTest, LossesAreRiskedLessAndLessOften) {
  SpinHabit habit;
  constexpr int kFrames = 1'000'000;
  int losses = 0;
  for (int i = 0; i < kFrames; ++i) {
    if (!habit.Try()) continue;
    habit.NoteLoss(4 * kMillisecond);
    ++losses;
  }
  // Where each time is a loss they are far rarer than one frame in a hundred.
  EXPECT_LT(losses, kFrames / 10'000);
}

TEST(SpinHabitTest, PauseIsShortAgainWhenLossesWereMadeUpFor) {
  SpinHabit habit;
  const int first = PauseAfterLosses(&habit);
  EXPECT_EQ(PauseAfterLosses(&habit), 2 * first);

  constexpr int kMost = SpinHabit::kMostSaved / SpinHabit::kGain;
  for (int i = 0; i <= kMost; ++i) habit.Note(true);

  EXPECT_EQ(PauseAfterLosses(&habit), first);
}

TEST(SpinHabitTest, LossThatSuccessesPaidForChangesNothing) {
  SpinHabit habit;
  for (int i = 0; i < 1000; ++i) habit.Note(true);

  habit.NoteLoss(4 * kMillisecond);

  EXPECT_TRUE(habit.Try());
}

TEST(SpinHabitTest, PauseIsAsLongAsTheLossWas) {
  SpinHabit small, great;
  EXPECT_EQ(PauseAfterLosses(&small, 50 * kMicrosecond), 11);
  EXPECT_EQ(PauseAfterLosses(&great, 4 * kMillisecond), 801);
}

TEST(UsableCpusTest, IsAtLeastOne) { EXPECT_GE(UsableCpus(), 1U); }

}  // namespace
}  // namespace rknnd::base
