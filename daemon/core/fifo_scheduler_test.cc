// Tests of the run queue: order, core masks, tokens, cancelling.

#include "daemon/core/fifo_scheduler.h"

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "base/posix/clock.h"
#include "daemon/core/testing/fake_device.h"
#include "gtest/gtest.h"

namespace rknnd::core {
namespace {

constexpr uint32_t kAny = 0b111;

class FifoSchedulerTest : public ::testing::Test {
 protected:
  FifoSchedulerTest() {
    auto loaded = device_.Load({{}, "", "m"});
    auto model = std::make_shared<LoadedModel>();
    model->model = *std::move(loaded);
    model_ = std::move(model);
    for (uint32_t i = 0; i < contexts_.size(); ++i) {
      ContextTraits traits;
      traits.number = i;
      contexts_[i] = std::make_shared<RunContext>(traits, model_, nullptr);
    }
  }

  Job* Enqueue(uint32_t context, uint32_t cores = kAny, bool gang = false) {
    jobs_.push_back(std::make_unique<Job>());
    Job* job = jobs_.back().get();
    job->hold.context = contexts_[context];
    job->cores = {cores, gang};
    EXPECT_TRUE(scheduler_.Enqueue(job));
    return job;
  }
  Job* EnqueueGang(uint32_t context, uint32_t cores) {
    return Enqueue(context, cores, true);
  }
  Job* Take() { return scheduler_.TakeNext().job; }
  bool Release(Job* job) {
    return scheduler_.Release(*job->hold.context, job->granted);
  }

  base::FakeClock clock_;
  testing::FakeDevice device_{3, &clock_};
  std::shared_ptr<const LoadedModel> model_;
  std::array<std::shared_ptr<RunContext>, 6> contexts_;
  std::vector<std::unique_ptr<Job>> jobs_;
  FifoScheduler scheduler_{3, 4};
};

TEST_F(FifoSchedulerTest, ContextsTakeTurnsByTheAgeOfTheirOldestJob) {
  Job* first = Enqueue(0);
  Job* second = Enqueue(1);
  Job* third = Enqueue(2);
  EXPECT_EQ(Take(), first);
  EXPECT_EQ(Take(), second);
  EXPECT_EQ(Take(), third);
  EXPECT_EQ(Take(), nullptr);
}

TEST_F(FifoSchedulerTest, JobsOfOneContextRunInOrderAndOneAtATime) {
  Job* first = Enqueue(0);
  Job* second = Enqueue(0);
  ASSERT_EQ(Take(), first);
  EXPECT_EQ(Take(), nullptr);
  EXPECT_TRUE(Release(first));
  EXPECT_EQ(Take(), second);
}

TEST_F(FifoSchedulerTest, ContextThatHasRunIsOlderThanLaterComers) {
  Job* running = Enqueue(0);
  Job* older = Enqueue(0);
  ASSERT_EQ(Take(), running);
  Job* younger = Enqueue(1);
  Release(running);
  EXPECT_EQ(Take(), older);
  EXPECT_EQ(Take(), younger);
}

TEST_F(FifoSchedulerTest, EachCoreIsGrantedOnce) {
  for (uint32_t context = 0; context < 4; ++context) Enqueue(context);
  const Job* a = Take();
  const Job* b = Take();
  const Job* c = Take();
  ASSERT_TRUE(a != nullptr && b != nullptr && c != nullptr);
  EXPECT_EQ(0b111U, 1U << a->core | 1U << b->core | 1U << c->core);
  EXPECT_EQ(Take(), nullptr);
}

TEST_F(FifoSchedulerTest, ExplicitCoreIsKept) {
  Job* job = Enqueue(0, 0b100);
  ASSERT_EQ(Take(), job);
  EXPECT_EQ(job->core, 2U);
}

TEST_F(FifoSchedulerTest, JobForABusyCoreBlocksNoOther) {
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

TEST_F(FifoSchedulerTest, AnyCoreLeavesACoreThatSomebodyInsistsOn) {
  Job* any = Enqueue(0);
  Job* explicit_zero = Enqueue(1, 0b001);
  ASSERT_EQ(Take(), any);
  EXPECT_EQ(any->core, 1U);
  EXPECT_EQ(Take(), explicit_zero);
}

TEST_F(FifoSchedulerTest, MoreSaysWhetherAnotherJobCanRun) {
  Enqueue(0, 0b001);
  Enqueue(1, 0b001);
  Enqueue(2, 0b010);
  EXPECT_TRUE(scheduler_.TakeNext().more);
  EXPECT_FALSE(scheduler_.TakeNext().more);
}

TEST_F(FifoSchedulerTest, FullContextRefusesAndOthersDoNot) {
  for (int i = 0; i < 4; ++i) Enqueue(0);
  Job extra;
  extra.hold.context = contexts_[0];
  extra.cores = {kAny, false};
  EXPECT_FALSE(scheduler_.Enqueue(&extra));
  Enqueue(1);
  EXPECT_EQ(scheduler_.counts().queued, 5U);
}

TEST_F(FifoSchedulerTest, RunningJobCountsTowardsTheLimit) {
  for (int i = 0; i < 4; ++i) Enqueue(0);
  Job* running = Take();
  Job extra;
  extra.hold.context = contexts_[0];
  extra.cores = {kAny, false};
  EXPECT_FALSE(scheduler_.Enqueue(&extra));
  Release(running);
  EXPECT_TRUE(scheduler_.Enqueue(&extra));
  scheduler_.Cancel(*contexts_[0]);
}

TEST_F(FifoSchedulerTest, CancelTakesQueuedJobsInOrderAndLeavesTheRunning) {
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

TEST_F(FifoSchedulerTest, CancelledContextLeavesItsNeighboursInTheList) {
  Job* a = Enqueue(0);
  Enqueue(1);
  Job* c = Enqueue(2);
  scheduler_.Cancel(*contexts_[1]);
  EXPECT_EQ(Take(), a);
  EXPECT_EQ(Take(), c);
  EXPECT_EQ(Take(), nullptr);
}

TEST_F(FifoSchedulerTest, CancelOfAnIdleContextTakesNothing) {
  EXPECT_EQ(scheduler_.Cancel(*contexts_[0]), nullptr);
}

TEST_F(FifoSchedulerTest, ContextWorksAgainAfterCancel) {
  Enqueue(0);
  scheduler_.Cancel(*contexts_[0]);
  Job* later = Enqueue(0);
  EXPECT_EQ(Take(), later);
}

TEST_F(FifoSchedulerTest, GangTakesAllItsCoresAtOnceAndGivesThemBack) {
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

TEST_F(FifoSchedulerTest, CoresThatBecomeFreeAreKeptForTheWaitingGang) {
  Job* a = Enqueue(0, 0b001);
  Job* b = Enqueue(1, 0b010);
  ASSERT_EQ(Take(), a);
  ASSERT_EQ(Take(), b);
  Job* gang = EnqueueGang(2, 0b011);
  Job* young_zero = Enqueue(3, 0b001);
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

TEST_F(FifoSchedulerTest, GangWaitsForOlderJobsOfItsCores) {
  Job* running = Enqueue(0, 0b001);
  ASSERT_EQ(Take(), running);
  Job* older = Enqueue(1, 0b001);
  Job* older_any = Enqueue(2);
  Job* gang = EnqueueGang(3, 0b111);
  // Older than the gang: it may take a core that is kept for it.
  EXPECT_EQ(Take(), older_any);
  Release(running);
  EXPECT_EQ(Take(), older);
  EXPECT_EQ(Take(), nullptr);
  Release(older_any);
  EXPECT_EQ(Take(), nullptr);
  Release(older);
  EXPECT_EQ(Take(), gang);
}

// Two contexts that never pause, one in a gang: each gets its turn.
TEST_F(FifoSchedulerTest, NeitherGangsNorSmallJobsStarve) {
  Enqueue(0, 0b001);
  EnqueueGang(1, 0b111);
  Enqueue(2);
  std::array<int, 3> turns{};
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
    Release(done);
    Enqueue(context, done->cores.cores, done->cores.gang);
  }
  for (const int count : turns) EXPECT_GE(count, 20);
}

TEST_F(FifoSchedulerTest, GangsRunInTheOrderOfTheirAge) {
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

TEST_F(FifoSchedulerTest, CancelledGangKeepsNoCores) {
  Job* running = Enqueue(0, 0b001);
  ASSERT_EQ(Take(), running);
  Job* gang = EnqueueGang(1, 0b111);
  Job* young = Enqueue(2, 0b010);
  EXPECT_EQ(Take(), nullptr);
  EXPECT_EQ(scheduler_.Cancel(*contexts_[1]), gang);
  EXPECT_EQ(Take(), young);
}

TEST_F(FifoSchedulerTest, MoreSaysNothingOfAGangThatMustWait) {
  Enqueue(0, 0b001);
  EnqueueGang(1, 0b011);
  EXPECT_FALSE(scheduler_.TakeNext().more);
}

TEST_F(FifoSchedulerTest, EqualHistoriesGiveEqualTurns) {
  const auto turns = [this] {
    FifoScheduler scheduler(3, 64);
    std::vector<uint32_t> order;
    std::vector<std::unique_ptr<Job>> jobs;
    std::vector<Job*> running;
    uint32_t noise = 7;
    for (int i = 0; i < 200; ++i) {
      noise = noise * 1664525U + 1013904223U;
      const uint32_t context = noise >> 29 & 3;
      jobs.push_back(std::make_unique<Job>());
      jobs.back()->hold.context = contexts_[context];
      jobs.back()->cores = context == 0   ? CoreChoice{0b011, true}
                           : context == 1 ? CoreChoice{0b111, true}
                           : context == 2 ? CoreChoice{0b100, false}
                                          : CoreChoice{kAny, false};
      EXPECT_TRUE(scheduler.Enqueue(jobs.back().get()));
      for (Job* job = scheduler.TakeNext().job; job != nullptr;
           job = scheduler.TakeNext().job) {
        for (const Job* other : running) {
          EXPECT_EQ(other->granted & job->granted, 0U);
        }
        running.push_back(job);
        order.push_back(job->granted);
      }
      Job* done = running[noise >> 16 & 1 ? running.size() - 1 : 0];
      running.erase(std::find(running.begin(), running.end(), done));
      scheduler.Release(*done->hold.context, done->granted);
    }
    for (Job* job : running)
      scheduler.Release(*job->hold.context, job->granted);
    for (const auto& context : contexts_) scheduler.Cancel(*context);
    return order;
  };
  EXPECT_EQ(turns(), turns());
}

}  // namespace
}  // namespace rknnd::core
