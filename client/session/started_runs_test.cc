// Runs that are started and not waited for: their ends, taking them back, how
// they wait, and many threads that start them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "client/session/started_runs_fixture.h"

namespace rknnd::client {
namespace {

using base::Code;

class StartedRunsTest : public StartedRunsFixture {};

TEST_F(StartedRunsTest, StartDoesNotWaitForTheEnd) {
  const RunRef run = Start(1);
  daemon_.AwaitRuns(1);
  EXPECT_FALSE(target_->Look(*run));
  daemon_.Release(1);
  EXPECT_TRUE(Ends(run, Code::kOk));
  EXPECT_EQ(run->report.run_ns, 5000U);
}

TEST_F(StartedRunsTest, AwaitGivesUpAtItsDeadlineAndCanBeCalledAgain) {
  const RunRef run = Start(1);
  EXPECT_FALSE(target_->Await(*run, clock_.Now() + 30 * base::kMillisecond));
  daemon_.Release(1);
  EXPECT_TRUE(Ends(run, Code::kOk));
}

TEST_F(StartedRunsTest, EntryCarriesWhatWasAskedFor) {
  RunRequest request;
  request.context = kContext;
  request.frame = 77;
  request.timeout_ms = 500;
  request.deadline_ns = 123456;
  request.set = 3;
  request.shared = true;
  const RunRef run = Start(request);
  daemon_.AwaitRuns(1);
  const wire::Submission job = daemon_.seen().last_job;
  EXPECT_EQ(job.frame, 77U);
  EXPECT_EQ(job.timeout_ms, 500U);
  EXPECT_EQ(job.deadline_ns, 123456U);
  EXPECT_EQ(job.set, 3U);
  EXPECT_EQ(job.flags, wire::kSubmitShared);
}

TEST_F(StartedRunsTest, FailedRunHasItsText) {
  daemon_.set_runs(Runs::kFail);
  const RunRef run = Start(1);
  EXPECT_TRUE(Ends(run, Code::kInternal));
  EXPECT_EQ(run->text, "told to fail");
}

TEST_F(StartedRunsTest, MoreThanTheRingHoldsAreRefusedAtOnce) {
  std::vector<RunRef> runs;
  for (uint32_t i = 0; i < RingClient::kMostRuns; ++i) {
    runs.push_back(Start(i));
  }
  RunRequest request;
  request.context = kContext;
  const auto refused = target_->Start(request);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kResourceExhausted);
  daemon_.Release(1);
  ASSERT_TRUE(Ends(runs[0], Code::kOk));
  EXPECT_TRUE(target_->Start(request).ok());
}

TEST_F(StartedRunsTest, EndsThatNobodyLookedAtHoldUpNobody) {
  daemon_.set_runs(Runs::kAnswer);
  std::vector<RunRef> runs;
  for (uint32_t i = 1; i <= 3 * RingClient::kMostRuns; ++i) {
    // Each has its answer before the next: the ring alone would be full.
    runs.push_back(Start(i));
    daemon_.AwaitRuns(i);
    if (i % RingClient::kMostRuns != 0) continue;
    ASSERT_TRUE(Ends(runs.back(), Code::kOk));
  }
  RunRequest request;
  request.context = kContext;
  EXPECT_TRUE(target_->Run(request).ok());
  for (const RunRef& run : runs) EXPECT_TRUE(Ends(run, Code::kOk));
}

TEST_F(StartedRunsTest, RecordOfARunIsNotUsedAgainWhileSomebodyHasIt) {
  daemon_.set_runs(Runs::kAnswer);
  const RunRef first = Start(1);
  ASSERT_TRUE(Ends(first, Code::kOk));
  const RunRef second = Start(2);
  EXPECT_NE(&*first, &*second);
  ASSERT_TRUE(Ends(second, Code::kOk));
  const StartedRun* record = nullptr;
  {
    const RunRef third = Start(3);
    record = &*third;
    ASSERT_TRUE(Ends(third, Code::kOk));
  }
  EXPECT_EQ(&*Start(4), record);
  daemon_.AwaitRuns(4);
}

// ---- cancel, queues ---------------------------------------------------------

TEST_F(StartedRunsTest, CancelTakesBackAFrameOrAll) {
  const RunRef first = Start(1);
  const RunRef second = Start(2);
  const RunRef third = Start(3);
  daemon_.AwaitRuns(3);
  EXPECT_EQ(*target_->Cancel(kContext, 2), 1U);
  EXPECT_TRUE(Ends(second, Code::kCancelled));
  EXPECT_EQ(*target_->Cancel(kContext, 2), 0U);
  EXPECT_EQ(*target_->Cancel(kContext, 0), 2U);
  EXPECT_TRUE(Ends(first, Code::kCancelled));
  EXPECT_TRUE(Ends(third, Code::kCancelled));
}

TEST_F(StartedRunsTest, CancelFindsRoomWhereRunsHaveAllOfIt) {
  std::vector<RunRef> runs;
  for (uint32_t i = 1; i <= RingClient::kMostRuns; ++i) {
    runs.push_back(Start(i));
  }
  daemon_.AwaitRuns(RingClient::kMostRuns);
  const auto cancelled = target_->Cancel(kContext, 0);
  ASSERT_TRUE(cancelled.ok()) << cancelled.error().message;
  EXPECT_EQ(*cancelled, RingClient::kMostRuns);
  for (const RunRef& run : runs) EXPECT_TRUE(Ends(run, Code::kCancelled));
}

TEST_F(StartedRunsTest, CancelFindsThemWhileTheyWaitForADaemon) {
  daemon_.set_runs(Runs::kDrain);
  const RunRef run = Start(1);
  daemon_.AwaitRuns(1);
  EXPECT_FALSE(target_->Await(*run, clock_.Now() + base::kMillisecond));
  EXPECT_EQ(*target_->Cancel(kContext, 0), 1U);
  EXPECT_TRUE(Ends(run, Code::kCancelled));
}

TEST_F(StartedRunsTest, QueuePolicyIsSetAgainAfterARestart) {
  ASSERT_TRUE(target_->SetQueue(kContext, {1, 4, 5000000}).ok());
  Restart();
  ASSERT_TRUE(target_->SetCoreMask(kContext, 1).ok());
  EXPECT_EQ(daemon_.seen().queues, 2U);
  EXPECT_EQ(daemon_.seen().last_queue.policy, 1U);
  EXPECT_EQ(daemon_.seen().last_queue.depth, 4U);
  EXPECT_EQ(daemon_.seen().last_queue.max_age_ns, 5000000U);
}

// ---- threads ----------------------------------------------------------------

TEST_F(StartedRunsTest, ManyThreadsOverRestartsLoseNoRun) {
  daemon_.set_runs(Runs::kAnswer);
  constexpr uint32_t kThreads = 4;
  constexpr int kRuns = 150;
  for (uint32_t i = 1; i < kThreads; ++i) MakeRunnable(kContext + i);
  std::atomic<int> good{0};
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (uint32_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      const auto notice = target_->MakeNotice();
      if (!notice.ok()) return;
      for (int n = 0; n < kRuns; ++n) {
        RunRequest request;
        request.context = kContext + i;
        request.notice = (*notice)->number();
        auto first = target_->Start(request);
        auto second = target_->Start(request);
        if (!first.ok() || !second.ok()) return;
        const bool ended =
            n % 2 == 0
                ? EndsByNotice(**notice, *second)
                : target_->Await(**second, clock_.Now() + 10 * base::kSecond);
        if (ended && (*second)->code == Code::kOk && target_->Look(**first)) {
          ++good;
        }
      }
    });
  }
  for (uint64_t deaths = 1; deaths <= 3; ++deaths) {
    daemon_.AwaitRuns(deaths * 100);
    daemon_.Stop();
    daemon_.Start();
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, static_cast<int>(kThreads) * kRuns);
}

}  // namespace
}  // namespace rknnd::client
