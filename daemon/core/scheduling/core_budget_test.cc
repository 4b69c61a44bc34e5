// One user's long jobs leave cores to others.

#include "daemon/core/scheduling/core_budget.h"

#include <atomic>
#include <memory>
#include <vector>

#include "daemon/core/testing/scheduler_fixture.h"

namespace rknnd::core {
namespace {

using testing::kRun;
using testing::SchedulerTest;

// The budget of the fixture's three cores is three seconds.
class CoreBudgetTest : public SchedulerTest {
 protected:
  std::shared_ptr<ShareGroup> NewUser() {
    return std::make_shared<ShareGroup>(users_);
  }
  uint32_t AddLong(const std::shared_ptr<ShareGroup>& user,
                   base::Nanoseconds run) {
    return AddContext(NewShare(100, user), Priority::kMedium, run);
  }

  const ShareGroup::Count users_ = std::make_shared<std::atomic<uint32_t>>();
  const std::shared_ptr<ShareGroup> user_ = NewUser();
};

TEST_F(CoreBudgetTest, LongJobsOfOneUserLeaveCoresToAnother) {
  const auto other = NewUser();
  for (int i = 0; i < 3; ++i) Enqueue(AddLong(user_, 40 * base::kSecond));
  Job* const first = Take();
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(Take(), nullptr);
  Enqueue(AddLong(other, kRun));
  Job* const neighbour = Take();
  ASSERT_NE(neighbour, nullptr);
  // Its core is of no use to those that are held.
  EXPECT_FALSE(Release(neighbour));
  EXPECT_EQ(Take(), nullptr);
  // The next one begins where the first has ended.
  EXPECT_TRUE(Release(first, 40 * base::kSecond));
  EXPECT_NE(Take(), nullptr);
  EXPECT_EQ(Take(), nullptr);
}

TEST_F(CoreBudgetTest, MasksMakeNoDifference) {
  const auto other = NewUser();
  for (const uint32_t mask : {0b001U, 0b010U, 0b100U}) {
    Enqueue(AddLong(user_, 40 * base::kSecond), mask);
  }
  EXPECT_NE(Take(), nullptr);
  EXPECT_EQ(Take(), nullptr);
}

TEST_F(CoreBudgetTest, WhatFitsRunsTogether) {
  const auto other = NewUser();
  for (int i = 0; i < 3; ++i) Enqueue(AddLong(user_, base::kSecond));
  for (int i = 0; i < 3; ++i) EXPECT_NE(Take(), nullptr);
}

TEST_F(CoreBudgetTest, WhoIsAloneHasAllCores) {
  for (int i = 0; i < 3; ++i) Enqueue(AddLong(user_, 40 * base::kSecond));
  for (int i = 0; i < 3; ++i) EXPECT_NE(Take(), nullptr);
}

TEST_F(CoreBudgetTest, GangIsCountedWithAllItsCores) {
  const auto other = NewUser();
  Enqueue(AddLong(user_, kRun), 0b100);
  Job* const small = Take();
  EnqueueGang(AddLong(user_, 2 * base::kSecond), 0b011);
  EXPECT_EQ(Take(), nullptr);
  Release(small);
  EXPECT_NE(Take(), nullptr);
}

TEST_F(CoreBudgetTest, ThoseThatWaitComeInTheirOrder) {
  const auto other = NewUser();
  std::vector<uint32_t> contexts;
  for (int i = 0; i < 5; ++i) {
    contexts.push_back(AddLong(user_, 10 * base::kSecond));
    Enqueue(contexts.back());
  }
  for (const uint32_t context : contexts) {
    Job* const job = Take();
    ASSERT_NE(job, nullptr);
    EXPECT_EQ(job->hold.context->traits().number, context);
    EXPECT_EQ(Take(), nullptr);
    Release(job, 10 * base::kSecond);
  }
  EXPECT_EQ(user_->running, 0);
}

TEST_F(CoreBudgetTest, JobsThatWaitCanBeTakenBack) {
  const auto other = NewUser();
  Enqueue(AddLong(user_, 10 * base::kSecond));
  Job* const running = Take();
  const uint32_t waits = AddLong(user_, 10 * base::kSecond);
  Job* const job = Enqueue(waits);
  EXPECT_EQ(Take(), nullptr);  // and it is held
  EXPECT_EQ(scheduler_.Cancel(*contexts_[waits]), job);
  EXPECT_EQ(user_->first_held, nullptr);
  Job* const again = Enqueue(waits);
  EXPECT_EQ(Take(), nullptr);
  EXPECT_TRUE(scheduler_.Remove(again));
  Release(running, 10 * base::kSecond);
  EXPECT_EQ(Take(), nullptr);
  EXPECT_EQ(scheduler_.counts().queued, 0U);
}

TEST_F(CoreBudgetTest, JobLongerThanAnyMayBeIsRefused) {
  const SchedulingOptions defaults;
  EXPECT_EQ(TryEnqueue(AddLong(user_, defaults.longest_run)),
            Scheduler::Entry::kQueued);
  EXPECT_EQ(TryEnqueue(AddLong(user_, defaults.longest_run + 1)),
            Scheduler::Entry::kLong);
  // Of all its cores together.
  EXPECT_EQ(TryEnqueue(AddLong(user_, defaults.longest_run / 2), {0b111, true}),
            Scheduler::Entry::kLong);
  EXPECT_EQ(TryEnqueue(AddLong(user_, defaults.longest_run / 3), {0b111, true}),
            Scheduler::Entry::kQueued);
}

}  // namespace
}  // namespace rknnd::core
