// Tests of the run queue, each of one rule: order, shares, classes, core masks,
// what is taken back. Gangs are in scheduler_gangs_test.cc, random histories in
// fair_simulation_test.cc.

#include "daemon/core/scheduling/scheduler.h"

#include <array>
#include <cstdint>
#include <vector>

#include "daemon/core/testing/scheduler_fixture.h"
#include "gtest/gtest.h"

namespace rknnd::core {
namespace {

using testing::kAny;
using testing::kRun;

class SchedulerTurnsTest : public testing::SchedulerTest {};

TEST_F(SchedulerTurnsTest, ContextsOfAShareTakeTurnsByTheAgeOfTheirOldestJob) {
  Job* first = Enqueue(0);
  Job* second = Enqueue(1, 0b010);
  Job* third = Enqueue(2);
  EXPECT_EQ(Take(), first);
  EXPECT_EQ(Take(), second);
  EXPECT_EQ(Take(), third);
  EXPECT_EQ(Take(), nullptr);
}

TEST_F(SchedulerTurnsTest, JobsOfOneContextRunInOrderAndOneAtATime) {
  Job* first = Enqueue(0);
  Job* second = Enqueue(0);
  ASSERT_EQ(Take(), first);
  EXPECT_EQ(Take(), nullptr);
  EXPECT_TRUE(Release(first));
  EXPECT_EQ(Take(), second);
}

TEST_F(SchedulerTurnsTest, ContextThatHasRunIsOlderThanLaterComersOfItsShare) {
  Job* running = Enqueue(0);
  Job* older = Enqueue(0);
  ASSERT_EQ(Take(), running);
  Job* younger = Enqueue(1);
  Release(running);
  EXPECT_EQ(Take(), older);
  EXPECT_EQ(Take(), younger);
}

TEST_F(SchedulerTurnsTest, EachCoreIsGrantedOnce) {
  for (uint32_t context = 0; context < 4; ++context) Enqueue(context);
  const Job* a = Take();
  const Job* b = Take();
  const Job* c = Take();
  ASSERT_TRUE(a != nullptr && b != nullptr && c != nullptr);
  EXPECT_EQ(0b111U, 1U << a->core | 1U << b->core | 1U << c->core);
  EXPECT_EQ(Take(), nullptr);
}

TEST_F(SchedulerTurnsTest, ExplicitCoreIsKept) {
  Job* job = Enqueue(0, 0b100);
  ASSERT_EQ(Take(), job);
  EXPECT_EQ(job->core, 2U);
}

TEST_F(SchedulerTurnsTest, JobForABusyCoreBlocksNoOther) {
  Job* running = Enqueue(0, 0b001);
  ASSERT_EQ(Take(), running);
  Job* waits = Enqueue(1, 0b001);
  Job* other = Enqueue(2, 0b010);
  Job* any = Enqueue(3);
  EXPECT_EQ(Take(), other);
  EXPECT_EQ(Take(), any);
  EXPECT_EQ(any->core, 2U);
  Release(running);
  EXPECT_EQ(Take(), waits);
}

TEST_F(SchedulerTurnsTest, AnyCoreLeavesACoreThatSomebodyInsistsOn) {
  Job* any = Enqueue(0);
  Job* explicit_zero = Enqueue(1, 0b001);
  ASSERT_EQ(Take(), any);
  EXPECT_EQ(any->core, 1U);
  EXPECT_EQ(Take(), explicit_zero);
}

TEST_F(SchedulerTurnsTest, MoreSaysWhetherAnotherJobCanRun) {
  Enqueue(0, 0b001);
  Enqueue(1, 0b001);
  Enqueue(2, 0b010);
  EXPECT_TRUE(scheduler_.TakeNext().more);
  EXPECT_FALSE(scheduler_.TakeNext().more);
}

TEST_F(SchedulerTurnsTest, FullContextRefusesAndOthersDoNot) {
  for (int i = 0; i < 4; ++i) Enqueue(0);
  EXPECT_EQ(TryEnqueue(0), Scheduler::Entry::kFull);
  Enqueue(1);
  EXPECT_EQ(scheduler_.counts().queued, 5U);
}

TEST_F(SchedulerTurnsTest, RunningJobCountsTowardsTheLimit) {
  for (int i = 0; i < 4; ++i) Enqueue(0);
  Job* running = Take();
  EXPECT_EQ(TryEnqueue(0), Scheduler::Entry::kFull);
  Release(running);
  EXPECT_EQ(TryEnqueue(0), Scheduler::Entry::kQueued);
}

// ---- shares and classes -----------------------------------------------------

TEST_F(SchedulerTurnsTest, ShareOfManyContextsGetsWhatOneOfASingleOneGets) {
  const uint32_t single = AddContext(NewShare());
  for (uint32_t i = 0; i < contexts_.size(); ++i) Enqueue(i, 0b001);
  const std::vector<int> had = RunOnCore0(100);
  EXPECT_NEAR(had[single], 50, 1);
}

TEST_F(SchedulerTurnsTest, FortyProcessesOfAUserGetWhatOneOfAnotherGets) {
  const auto group = std::make_shared<ShareGroup>();
  std::vector<uint32_t> crowd;
  for (int i = 0; i < 40; ++i) {
    crowd.push_back(AddContext(NewShare(100, group)));
  }
  const uint32_t single =
      AddContext(NewShare(100, std::make_shared<ShareGroup>()));
  for (const uint32_t context : crowd) Enqueue(context, 0b001);
  Enqueue(single, 0b001);
  const std::vector<int> had = RunOnCore0(800);
  EXPECT_NEAR(had[single], 400, 8);
  // And they are alike among each other.
  for (const uint32_t context : crowd) EXPECT_NEAR(had[context], 10, 1);
}

TEST_F(SchedulerTurnsTest, ProcessesThatEndWithTheirFirstJobAreOneUsersToo) {
  const auto group = std::make_shared<ShareGroup>();
  const uint32_t single =
      AddContext(NewShare(100, std::make_shared<ShareGroup>()));
  Enqueue(single, 0b001);
  const auto begin = [&] {
    const uint32_t fresh = AddContext(NewShare(100, group));
    Enqueue(fresh, 0b001);
  };
  for (int i = 0; i < 8; ++i) begin();
  int had = 0;
  for (int i = 0; i < 200; ++i) {
    Job* const job = Take();
    ASSERT_NE(job, nullptr);
    const uint32_t context = job->hold.context->traits().number;
    clock_.Advance(kRun);
    if (context == single) {
      ++had;
      Enqueue(single, 0b001);
      Release(job);
      continue;
    }
    Release(job);
    // Its process has gone, and another one comes.
    job->hold.context = nullptr;
    contexts_[context] = contexts_[single];
    begin();
  }
  EXPECT_GE(had, 80);
}

TEST_F(SchedulerTurnsTest, IdleProcessesTakeNothingOfTheirUsersWeight) {
  const auto group = std::make_shared<ShareGroup>();
  std::vector<uint32_t> crowd;
  for (int i = 0; i < 40; ++i) {
    crowd.push_back(AddContext(NewShare(100, group)));
  }
  const uint32_t single =
      AddContext(NewShare(100, std::make_shared<ShareGroup>()));
  // All have had a job once.
  for (const uint32_t context : crowd) {
    Enqueue(context, 0b001);
    Release(Take());
  }
  Enqueue(crowd[0], 0b001);
  Enqueue(single, 0b001);
  EXPECT_NEAR(RunOnCore0(200)[single], 100, 2);
}

TEST_F(SchedulerTurnsTest, UsersWeightIsThatOfItsProcessesTogether) {
  const auto group = std::make_shared<ShareGroup>();
  const uint32_t one = AddContext(NewShare(300, group));
  const uint32_t two = AddContext(NewShare(300, group));
  const uint32_t single =
      AddContext(NewShare(100, std::make_shared<ShareGroup>()));
  for (const uint32_t context : {one, two, single}) Enqueue(context, 0b001);
  const std::vector<int> had = RunOnCore0(400);
  EXPECT_NEAR(had[single], 100, 4);
  EXPECT_NEAR(had[one], had[two], 2);
}

TEST_F(SchedulerTurnsTest, ManyContextsTakeNoCoresBeforeTheyAreCharged) {
  const uint32_t single = AddContext(NewShare());
  for (uint32_t i = 0; i < 6; ++i) Enqueue(i);
  Job* other = Enqueue(single);
  ASSERT_NE(Take(), nullptr);
  EXPECT_EQ(Take(), other);
}

TEST_F(SchedulerTurnsTest, TwiceTheWeightIsTwiceTheTime) {
  const uint32_t heavy = AddContext(NewShare(200));
  Enqueue(heavy, 0b001);
  Enqueue(heavy, 0b001);
  Enqueue(0, 0b001);
  Enqueue(0, 0b001);
  EXPECT_NEAR(RunOnCore0(90)[heavy], 60, 1);
}

TEST_F(SchedulerTurnsTest, TimeCountsAndNotJobs) {
  const uint32_t quick = AddContext(NewShare(), Priority::kMedium, kRun / 4);
  for (const uint32_t context : {quick, 0U}) {
    Enqueue(context, 0b001);
    Enqueue(context, 0b001);
  }
  const std::vector<int> had = RunOnCore0(100);
  EXPECT_NEAR(had[quick], 80, 2);
}

TEST_F(SchedulerTurnsTest, WhatARunReallyTookIsCharged) {
  const uint32_t other = AddContext(NewShare());
  // Expected to take as long as the other's; takes three times that.
  std::array<int, 2> had{};
  for (const uint32_t context : {0U, other}) {
    Enqueue(context, 0b001);
    Enqueue(context, 0b001);
  }
  for (int i = 0; i < 80; ++i) {
    Job* job = Take();
    ASSERT_NE(job, nullptr);
    const bool is_other = job->hold.context == contexts_[other];
    ++had[is_other ? 1 : 0];
    Enqueue(is_other ? other : 0, 0b001);
    Release(job, is_other ? kRun : 3 * kRun);
  }
  EXPECT_NEAR(had[1], 60, 2);
}

TEST_F(SchedulerTurnsTest, HigherClassComesFirst) {
  const auto share = NewShare();
  const uint32_t low = AddContext(share, Priority::kLow);
  const uint32_t high = AddContext(share, Priority::kHigh);
  Job* last = Enqueue(low, 0b001);
  Job* second = Enqueue(0, 0b001);
  Job* first = Enqueue(high, 0b001);
  for (Job* job : {first, second, last}) {
    ASSERT_EQ(Take(), job);
    Release(job);
  }
}

TEST_F(SchedulerTurnsTest, LowJobPassedOverForTheBoundHasItsTurnOnce) {
  const auto share = NewShare();
  const uint32_t low = AddContext(NewShare(), Priority::kLow);
  for (int i = 0; i < 2; ++i) {
    const uint32_t high = AddContext(share, Priority::kHigh);
    Enqueue(high, 0b001);
    Enqueue(high, 0b001);
  }
  Enqueue(low, 0b001);
  Enqueue(low, 0b001);
  // A second of jobs of 10 ms, then another.
  const std::vector<int> had = RunOnCore0(100);
  EXPECT_EQ(had[low], 1);
  EXPECT_EQ(RunOnCore0(100)[low], 1);
}

// ---- what is taken back, held, let go ---------------------------------------

TEST_F(SchedulerTurnsTest, CancelTakesQueuedJobsInOrderAndLeavesTheRunning) {
  Job* running = Enqueue(0);
  Job* second = Enqueue(0);
  Job* third = Enqueue(0);
  Job* other = Enqueue(1);
  ASSERT_EQ(Take(), running);

  Job* cancelled = scheduler_.Cancel(*contexts_[0]);

  ASSERT_EQ(cancelled, second);
  EXPECT_EQ(cancelled->next, third);
  EXPECT_EQ(third->next, nullptr);
  EXPECT_EQ(scheduler_.counts().queued, 1U);
  EXPECT_EQ(scheduler_.counts().running, 1U);
  EXPECT_EQ(Take(), other);
  Release(running);
  EXPECT_EQ(Take(), nullptr);
}

TEST_F(SchedulerTurnsTest, CancelledContextLeavesItsNeighboursInTheLine) {
  Job* a = Enqueue(0);
  Enqueue(1);
  Job* c = Enqueue(2);
  scheduler_.Cancel(*contexts_[1]);
  EXPECT_EQ(Take(), a);
  EXPECT_EQ(Take(), c);
  EXPECT_EQ(Take(), nullptr);
}

TEST_F(SchedulerTurnsTest, CancelOfAnIdleContextTakesNothing) {
  EXPECT_EQ(scheduler_.Cancel(*contexts_[0]), nullptr);
}

TEST_F(SchedulerTurnsTest, ContextWorksAgainAfterCancel) {
  Enqueue(0);
  scheduler_.Cancel(*contexts_[0]);
  Job* later = Enqueue(0);
  EXPECT_EQ(Take(), later);
}

TEST_F(SchedulerTurnsTest, RemovedJobLeavesThoseBehindItInPlace) {
  Job* first = Enqueue(0);
  Job* second = Enqueue(0);
  Job* third = Enqueue(0);
  EXPECT_TRUE(scheduler_.Remove(second));
  EXPECT_FALSE(scheduler_.Remove(second));
  ASSERT_EQ(Take(), first);
  EXPECT_FALSE(scheduler_.Remove(first)) << "it runs";
  Release(first);
  EXPECT_EQ(Take(), third);
}

// A camera whose frames are replaced while it waits must not wait for ever.
TEST_F(SchedulerTurnsTest, JobThatReplacesAnotherTakesItsTurn) {
  Job* old = Enqueue(0);
  Job* other = Enqueue(1);
  Job* newer = Enqueue(0);
  EXPECT_TRUE(scheduler_.Remove(old));
  EXPECT_EQ(Take(), newer);
  EXPECT_EQ(Take(), other);
}

TEST_F(SchedulerTurnsTest, HeldJobHoldsUpItsContextAndNobodyElse) {
  Job* held = EnqueueHeld(0);
  Job* behind = Enqueue(0);
  Job* other = Enqueue(1);
  EXPECT_EQ(Take(), other);
  EXPECT_EQ(Take(), nullptr);
  EXPECT_TRUE(scheduler_.Unhold(held));
  EXPECT_EQ(Take(), held);
  Release(held);
  EXPECT_EQ(Take(), behind);
}

TEST_F(SchedulerTurnsTest, UnholdOfWhatIsNotQueuedDoesNothing) {
  Job* held = EnqueueHeld(0);
  EXPECT_TRUE(scheduler_.Remove(held));
  EXPECT_FALSE(scheduler_.Unhold(held));
  EXPECT_EQ(Take(), nullptr);
}

TEST_F(SchedulerTurnsTest, RemovedHeldJobLetsThoseBehindItRun) {
  Job* held = EnqueueHeld(0);
  Job* behind = Enqueue(0);
  EXPECT_EQ(Take(), nullptr);
  EXPECT_TRUE(scheduler_.Remove(held));
  EXPECT_EQ(Take(), behind);
}

}  // namespace
}  // namespace rknnd::core
