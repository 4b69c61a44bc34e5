// Tests of the run queue: order, core masks, tokens, cancelling.

#include "daemon/core/fifo_scheduler.h"

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
    auto loaded = device_.Load({}, "", "m");
    auto model = std::make_shared<LoadedModel>();
    model->model = *std::move(loaded);
    model_ = std::move(model);
    for (uint32_t i = 0; i < contexts_.size(); ++i) {
      ContextTraits traits;
      traits.number = i;
      contexts_[i] = std::make_shared<RunContext>(traits, model_, nullptr);
    }
  }

  Job* Enqueue(uint32_t context, uint32_t cores = kAny) {
    jobs_.push_back(std::make_unique<Job>());
    Job* job = jobs_.back().get();
    job->hold.context = contexts_[context];
    job->cores = cores;
    EXPECT_TRUE(scheduler_.Enqueue(job));
    return job;
  }
  Job* Take() { return scheduler_.TakeNext().job; }
  bool Release(Job* job) {
    return scheduler_.Release(*job->hold.context, job->core);
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
  extra.cores = kAny;
  EXPECT_FALSE(scheduler_.Enqueue(&extra));
  Enqueue(1);
  EXPECT_EQ(scheduler_.counts().queued, 5U);
}

TEST_F(FifoSchedulerTest, RunningJobCountsTowardsTheLimit) {
  for (int i = 0; i < 4; ++i) Enqueue(0);
  Job* running = Take();
  Job extra;
  extra.hold.context = contexts_[0];
  extra.cores = kAny;
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

}  // namespace
}  // namespace rknnd::core
