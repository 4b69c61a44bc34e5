// Tests of jobs that take several cores, and of cores that are lent out.

#include <bit>
#include <cstdint>
#include <vector>

#include "daemon/core/scheduling/scheduler.h"
#include "daemon/core/testing/scheduler_fixture.h"
#include "gtest/gtest.h"

namespace rknnd::core {
namespace {

using base::kMillisecond;
using base::kSecond;
using testing::kAny;
using testing::kRun;

class FairGangsTest : public testing::SchedulerTest {};

// ---- gangs ------------------------------------------------------------------

TEST_F(FairGangsTest, GangTakesAllItsCoresAtOnceAndGivesThemBack) {
  Job* gang = EnqueueGang(0, 0b011);
  Job* zero = Enqueue(1, 0b001);
  Job* one = Enqueue(2, 0b010);
  Job* two = Enqueue(3, 0b100);
  ASSERT_EQ(Take(), gang);
  EXPECT_EQ(gang->core, 0U);
  EXPECT_EQ(gang->granted, 0b011U);
  EXPECT_EQ(Take(), two);
  EXPECT_EQ(Take(), nullptr);
  EXPECT_EQ(scheduler_.counts().running, 2U);
  EXPECT_TRUE(Release(gang));
  EXPECT_EQ(Take(), zero);
  EXPECT_EQ(Take(), one);
}

TEST_F(FairGangsTest, CoresThatBecomeFreeAreKeptForTheWaitingGang) {
  const uint32_t slow =
      AddContext(contexts_[0]->traits().share, Priority::kMedium, 2 * kRun);
  Job* a = Enqueue(0, 0b001);
  Job* b = Enqueue(1, 0b010);
  ASSERT_EQ(Take(), a);
  ASSERT_EQ(Take(), b);
  Job* gang = EnqueueGang(2, 0b011);
  Job* young_zero = Enqueue(slow, 0b001);
  Job* young_any = Enqueue(4);
  // The core that is not the gang's is anybody's.
  EXPECT_EQ(Take(), young_any);
  EXPECT_EQ(young_any->core, 2U);
  EXPECT_FALSE(Release(a));
  EXPECT_EQ(Take(), nullptr);
  EXPECT_TRUE(Release(b));
  EXPECT_EQ(Take(), gang);
  Release(gang);
  EXPECT_EQ(Take(), young_zero);
}

TEST_F(FairGangsTest, JobThatEndsBeforeTheGangHasItsCoresMayPass) {
  const auto share = contexts_[0]->traits().share;
  const uint32_t slow = AddContext(share, Priority::kMedium, 3 * kRun);
  Job* a = Enqueue(0, 0b001);
  Job* b = Enqueue(slow, 0b010);
  ASSERT_EQ(Take(), a);
  ASSERT_EQ(Take(), b);
  Job* gang = EnqueueGang(2, 0b011);
  Job* passes = Enqueue(3, 0b001);
  clock_.Advance(kRun);
  EXPECT_TRUE(Release(a));
  EXPECT_EQ(Take(), passes);
  Job* too_late = Enqueue(4, 0b001);
  clock_.Advance(kRun + kMillisecond);
  EXPECT_FALSE(Release(passes));
  Release(b);
  EXPECT_EQ(Take(), gang);
  Release(gang);
  EXPECT_EQ(Take(), too_late);
}

TEST_F(FairGangsTest, GangWaitsForOlderJobsOfItsCores) {
  Job* running = Enqueue(0, 0b001);
  ASSERT_EQ(Take(), running);
  Job* older = Enqueue(1, 0b001);
  Job* older_any = Enqueue(2);
  Job* gang = EnqueueGang(3, 0b111);
  EXPECT_EQ(Take(), older_any);
  Release(running);
  EXPECT_EQ(Take(), older);
  EXPECT_EQ(Take(), nullptr);
  Release(older_any);
  EXPECT_EQ(Take(), nullptr);
  Release(older);
  EXPECT_EQ(Take(), gang);
}

// Three contexts that never pause, one in a gang: each gets its turn.
TEST_F(FairGangsTest, NeitherGangsNorSmallJobsStarve) {
  const uint32_t gang = AddContext(NewShare());
  const uint32_t any = AddContext(NewShare());
  Enqueue(0, 0b001);
  EnqueueGang(gang, 0b111);
  Enqueue(any);
  std::vector<int> turns(contexts_.size());
  std::vector<Job*> running;
  for (int round = 0; round < 90; ++round) {
    for (Job* job = Take(); job != nullptr; job = Take()) {
      running.push_back(job);
    }
    ASSERT_FALSE(running.empty());
    Job* done = running.front();
    running.erase(running.begin());
    const uint32_t context = done->hold.context->traits().number;
    ++turns[context];
    clock_.Advance(kRun / 3);
    Enqueue(context, done->cores.cores, done->cores.gang);
    Release(done);
  }
  for (const uint32_t context : {0U, gang, any}) {
    EXPECT_GE(turns[context], 8) << context;
  }
}

TEST_F(FairGangsTest, GangsOfAShareRunInTheOrderOfTheirAge) {
  Job* running = EnqueueGang(0, 0b011);
  ASSERT_EQ(Take(), running);
  Job* all = EnqueueGang(1, 0b111);
  Job* two = EnqueueGang(2, 0b011);
  EXPECT_EQ(Take(), nullptr);
  Release(running);
  EXPECT_EQ(Take(), all);
  Release(all);
  EXPECT_EQ(Take(), two);
}

TEST_F(FairGangsTest, GangsFollowEachOtherUpToTheirLead) {
  const uint32_t other = AddContext(NewShare());
  EnqueueGang(0, 0b111);
  EnqueueGang(0, 0b111);
  EnqueueGang(0, 0b111);
  Job* gang = Take();
  ASSERT_NE(gang, nullptr);
  Enqueue(other);
  EnqueueGang(0, 0b111);
  EnqueueGang(1, 0b111);
  EnqueueGang(1, 0b111);
  // Each takes 30 ms of cores.
  int gangs = 1;
  for (; gang != nullptr && gang->cores.gang; ++gangs) {
    Release(gang);
    gang = Take();
  }
  EXPECT_GE(gangs, 3);
  EXPECT_LE(gangs, 6);
}

TEST_F(FairGangsTest, CancelledGangKeepsNoCores) {
  const uint32_t slow =
      AddContext(contexts_[0]->traits().share, Priority::kMedium, 2 * kRun);
  Job* running = Enqueue(0, 0b001);
  ASSERT_EQ(Take(), running);
  Job* gang = EnqueueGang(1, 0b111);
  Job* young = Enqueue(slow, 0b010);
  EXPECT_EQ(Take(), nullptr);
  EXPECT_EQ(scheduler_.Cancel(*contexts_[1]), gang);
  EXPECT_EQ(Take(), young);
}

TEST_F(FairGangsTest, MoreSaysNothingOfAGangThatMustWait) {
  Enqueue(0, 0b001);
  EnqueueGang(1, 0b011);
  EXPECT_FALSE(scheduler_.TakeNext().more);
}

TEST_F(FairGangsTest, CoreWhoseJobHangsIsNotWaitedFor) {
  const uint32_t slow =
      AddContext(contexts_[0]->traits().share, Priority::kMedium, 20 * kSecond);
  Job* hangs = Enqueue(0, 0b001);
  ASSERT_EQ(Take(), hangs);
  Job* gang = EnqueueGang(1, 0b111);
  Job* other = Enqueue(slow);
  clock_.Advance(4 * kSecond);
  EXPECT_EQ(Take(), nullptr);
  clock_.Advance(2 * kSecond);
  EXPECT_EQ(Take(), other);
  // It came back after all.
  Release(hangs);
  EXPECT_EQ(Take(), nullptr);
  Release(other);
  EXPECT_EQ(Take(), gang);
}

// ---- batches ----------------------------------------------------------------

TEST_F(FairGangsTest, BatchSpreadsOverCoresThatNobodyWaitsFor) {
  const uint32_t batch =
      AddContext(NewShare(), Priority::kMedium, kRun, "internal=64 batch=2");
  Job* job = Enqueue(batch);
  ASSERT_EQ(Take(), job);
  EXPECT_EQ(std::popcount(job->granted), 2);
  EXPECT_EQ(job->core, static_cast<uint32_t>(std::countr_zero(job->granted)));
  // The third is left.
  EXPECT_NE(Enqueue(0), nullptr);
  EXPECT_NE(Take(), nullptr);
}

TEST_F(FairGangsTest, BatchLeavesCoresToThoseWhoWait) {
  const uint32_t batch =
      AddContext(NewShare(), Priority::kMedium, kRun, "internal=64 batch=8");
  Job* job = Enqueue(batch);
  Enqueue(0);
  Enqueue(1, 0b100);
  ASSERT_EQ(Take(), job);
  EXPECT_EQ(std::popcount(job->granted), 1);
}

TEST_F(FairGangsTest, BatchThatNamesItsCoreStaysThere) {
  const uint32_t batch =
      AddContext(NewShare(), Priority::kMedium, kRun, "internal=64 batch=8");
  Job* job = Enqueue(batch, 0b010);
  ASSERT_EQ(Take(), job);
  EXPECT_EQ(job->granted, 0b010U);
}

TEST_F(FairGangsTest, BatchIsChargedForAllItsCores) {
  const uint32_t batch =
      AddContext(NewShare(), Priority::kMedium, kRun, "internal=64 batch=3");
  Job* spread = Enqueue(batch);
  ASSERT_EQ(Take(), spread);
  ASSERT_EQ(spread->granted, kAny);
  Enqueue(batch, 0b001);
  for (uint32_t context = 0; context < 3; ++context) Enqueue(context, 0b001);
  Release(spread);
  // Three of the other share's before it is even with them.
  EXPECT_EQ(RunOnCore0(2)[batch], 0);
}

// ---- lent cores -------------------------------------------------------------

TEST_F(FairGangsTest, NothingBeginsOnALentCore) {
  scheduler_.SetLent(0b011);
  Job* a = Enqueue(0);
  Enqueue(1);
  EXPECT_EQ(Take(), a);
  EXPECT_EQ(a->core, 2U);
  EXPECT_EQ(Take(), nullptr);
  EXPECT_TRUE(scheduler_.SetLent(0));
  EXPECT_NE(Take(), nullptr);
}

TEST_F(FairGangsTest, JobsForLentCoresOnlyAreRefused) {
  scheduler_.SetLent(0b001);
  EXPECT_EQ(TryEnqueue(0, {0b001, false}), Scheduler::Entry::kLent);
  EXPECT_EQ(TryEnqueue(0, {0b011, true}), Scheduler::Entry::kLent);
  EXPECT_EQ(TryEnqueue(0, {0b010, false}), Scheduler::Entry::kQueued);
  EXPECT_EQ(TryEnqueue(1, {kAny, false}), Scheduler::Entry::kQueued);
  scheduler_.SetLent(kAny);
  EXPECT_EQ(TryEnqueue(2, {kAny, false}), Scheduler::Entry::kLent);
}

TEST_F(FairGangsTest, JobsForLentCoresOnlyAreTakenOutInOrder) {
  Job* zero = Enqueue(0, 0b001);
  Job* any = Enqueue(0);
  Job* gang = EnqueueGang(0, 0b011);
  scheduler_.SetLent(0b001);
  EXPECT_EQ(scheduler_.CancelLent(*contexts_[0]), zero);
  EXPECT_EQ(zero->next, gang);
  EXPECT_EQ(gang->next, nullptr);
  EXPECT_EQ(scheduler_.counts().queued, 1U);
  EXPECT_EQ(Take(), any);
}

TEST_F(FairGangsTest, GangThatGatheredKeepsNothingOnceACoreIsLent) {
  const uint32_t slow =
      AddContext(contexts_[0]->traits().share, Priority::kMedium, 2 * kRun);
  Job* running = Enqueue(0, 0b001);
  ASSERT_EQ(Take(), running);
  EnqueueGang(1, 0b111);
  Job* young = Enqueue(slow);
  EXPECT_EQ(Take(), nullptr);
  EXPECT_TRUE(scheduler_.SetLent(0b100));
  EXPECT_EQ(Take(), young);
}

}  // namespace
}  // namespace rknnd::core
