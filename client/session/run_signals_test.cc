// How the ends of started runs are told: by notices, for event loops, and by
// fences; over daemons that die and come back.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "client/session/started_runs_fixture.h"

namespace rknnd::client {
namespace {

using base::Code;

class RunSignalsTest : public StartedRunsFixture {};

// ---- notices ----------------------------------------------------------------

TEST_F(RunSignalsTest, NoticeCanBeReadWhenARunHasEndedAndNotBefore) {
  const auto notice = Notice();
  const RunRef run = Start(1, notice->number());
  daemon_.AwaitRuns(1);
  EXPECT_FALSE(CanBeRead(notice->fd()));
  daemon_.Release(1);
  ASSERT_TRUE(CanBeRead(notice->fd(), kPatience));
  notice->Clear();
  EXPECT_TRUE(target_->Look(*run));
  EXPECT_FALSE(CanBeRead(notice->fd()));
}

TEST_F(RunSignalsTest, NoticeCanBeReadUntilItIsCleared) {
  const auto notice = Notice();
  EXPECT_FALSE(CanBeRead(notice->fd()));
  notice->Remind();
  EXPECT_TRUE(CanBeRead(notice->fd()));
  EXPECT_TRUE(CanBeRead(notice->fd()));
  notice->Clear();
  EXPECT_FALSE(CanBeRead(notice->fd()));
}

TEST_F(RunSignalsTest, DeathOfTheDaemonIsNoticedAndTheRunEndsOnTheNext) {
  const auto notice = Notice();
  const RunRef run = Start(1, notice->number());
  daemon_.AwaitRuns(1);
  daemon_.Stop();
  ASSERT_TRUE(CanBeRead(notice->fd(), kPatience));
  notice->Clear();  // nobody is there yet
  EXPECT_FALSE(target_->Look(*run));
  daemon_.set_runs(Runs::kAnswer);
  daemon_.Start();
  EXPECT_TRUE(EndsByNotice(*notice, run));
  EXPECT_EQ(run->code, Code::kOk);
}

TEST_F(RunSignalsTest, NoticeOfNoRunsDoesNotLookForADaemonThatIsAway) {
  const auto notice = Notice();
  daemon_.Stop();
  ASSERT_TRUE(CanBeRead(notice->fd(), kPatience));
  notice->Clear();
  EXPECT_FALSE(CanBeRead(notice->fd(), 50));
  // The next run does.
  const RunRef run = Start(1, notice->number());
  daemon_.set_runs(Runs::kAnswer);
  daemon_.Start();
  EXPECT_TRUE(EndsByNotice(*notice, run));
}

TEST_F(RunSignalsTest, RunThatIsRefusedIsTriedAgainByItsNotice) {
  const auto notice = Notice();
  daemon_.set_runs(Runs::kDrain);
  const RunRef run = Start(1, notice->number());
  ASSERT_TRUE(CanBeRead(notice->fd(), kPatience));
  notice->Clear();
  EXPECT_FALSE(target_->Look(*run));
  daemon_.set_runs(Runs::kAnswer);
  EXPECT_TRUE(EndsByNotice(*notice, run));
  EXPECT_EQ(run->code, Code::kOk);
}

TEST_F(RunSignalsTest, NumberOfANoticeIsGivenBack) {
  auto notice = Notice();
  const uint32_t number = notice->number();
  EXPECT_TRUE(daemon_.seen().open_fences.contains(number));
  notice.reset();
  const auto other = Notice();
  EXPECT_FALSE(daemon_.seen().open_fences.contains(number));
  EXPECT_EQ(daemon_.seen().open_fences.size(), 1U);
}

TEST_F(RunSignalsTest, DescriptorsOfANoticeAreClosedWithIt) {
  const int before = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
  close(before);
  for (int i = 0; i < 10; ++i) Notice().reset();
  Restart();
  Notice().reset();
  const int after = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
  close(after);
  EXPECT_LE(after, before + 1);
}

// ---- fences -----------------------------------------------------------------

TEST_F(RunSignalsTest, FenceIsRegisteredAndGivenBackWithItsRun) {
  auto event = base::MakeEventFd();
  auto fence = target_->RegisterFence(event->get());
  ASSERT_TRUE(fence.ok());
  RunRequest request;
  request.context = kContext;
  request.fence_in = *fence;
  const RunRef run = Start(request);
  daemon_.AwaitRuns(1);
  EXPECT_EQ(daemon_.seen().last_job.fence_in, *fence);
  EXPECT_TRUE(daemon_.seen().open_fences.contains(*fence));
  daemon_.Release(1);
  ASSERT_TRUE(Ends(run, Code::kOk));
  ASSERT_TRUE(target_->SetCoreMask(kContext, 1).ok());
  EXPECT_TRUE(daemon_.seen().open_fences.empty());
}

TEST_F(RunSignalsTest, FenceOfARunInFlightIsRegisteredAgainAfterARestart) {
  auto event = base::MakeEventFd();
  RunRequest request;
  request.context = kContext;
  request.fence_in = *target_->RegisterFence(event->get());
  event->reset();  // the session has its own
  const RunRef run = Start(request);
  daemon_.AwaitRuns(1);
  Restart();
  EXPECT_TRUE(Ends(run, Code::kOk));
  EXPECT_EQ(daemon_.seen().fences, 2U);
  EXPECT_EQ(daemon_.seen().last_job.fence_in, request.fence_in);
}

TEST_F(RunSignalsTest, FenceOfABlockingRunIsGivenBack) {
  daemon_.set_runs(Runs::kAnswer);
  auto event = base::MakeEventFd();
  RunRequest request;
  request.context = kContext;
  request.fence_in = *target_->RegisterFence(event->get());
  EXPECT_TRUE(target_->Run(request).ok());
  ASSERT_TRUE(target_->SetCoreMask(kContext, 1).ok());
  EXPECT_TRUE(daemon_.seen().open_fences.empty());
}

TEST_F(RunSignalsTest, MadeFenceCanBeReadOnceTheRunHasEnded) {
  auto fence = target_->MakeFence();
  ASSERT_TRUE(fence.ok());
  RunRequest request;
  request.context = kContext;
  request.fence_out = fence->number;
  const RunRef run = Start(request);
  daemon_.AwaitRuns(1);
  EXPECT_FALSE(CanBeRead(fence->fd.get()));
  daemon_.Release(1);
  EXPECT_TRUE(CanBeRead(fence->fd.get(), kPatience));
  EXPECT_TRUE(Ends(run, Code::kOk));
}

TEST_F(RunSignalsTest, MadeFenceWakesItsSleepersWhenTheDaemonDies) {
  auto fence = target_->MakeFence();
  ASSERT_TRUE(fence.ok());
  RunRequest request;
  request.context = kContext;
  request.fence_out = fence->number;
  const RunRef run = Start(request);
  daemon_.AwaitRuns(1);
  Restart();
  EXPECT_TRUE(CanBeRead(fence->fd.get(), kPatience));
  // And whoever asks waits for the end.
  EXPECT_TRUE(Ends(run, Code::kOk));
  // The next daemon has another end of it, for runs that are to follow.
  EXPECT_EQ(daemon_.seen().notices, 2U);
}

TEST_F(RunSignalsTest, RunThatWaitsForAnotherFindsItOnTheNextDaemon) {
  auto fence = target_->MakeFence();
  ASSERT_TRUE(fence.ok());
  RunRequest first;
  first.context = kContext;
  first.fence_out = fence->number;
  const RunRef a = Start(first);
  RunRequest second;
  second.context = kContext;
  second.fence_in = *target_->RegisterFence(fence->fd.get());
  const RunRef b = Start(second);
  daemon_.AwaitRuns(2);
  Restart(Runs::kHold);
  ASSERT_TRUE(target_->SetCoreMask(kContext, 1).ok());
  daemon_.AwaitRuns(4);
  EXPECT_EQ(daemon_.seen().open_fences.size(), 2U);
  EXPECT_EQ(daemon_.seen().notices, 2U);
  EXPECT_EQ(daemon_.seen().last_job.fence_in, second.fence_in);
  EXPECT_FALSE(daemon_.FenceCanBeRead(second.fence_in));
  daemon_.Release(1);
  ASSERT_TRUE(Ends(a, Code::kOk));
  EXPECT_TRUE(daemon_.FenceCanBeRead(second.fence_in, kPatience));
  daemon_.Release(1);
  EXPECT_TRUE(Ends(b, Code::kOk));
}

TEST_F(RunSignalsTest, RunThatIsChainedAfterTheRestartFindsTheOneBefore) {
  auto fence = target_->MakeFence();
  ASSERT_TRUE(fence.ok());
  RunRequest first;
  first.context = kContext;
  first.fence_out = fence->number;
  const RunRef a = Start(first);
  daemon_.AwaitRuns(1);
  Restart(Runs::kHold);
  ASSERT_TRUE(target_->SetCoreMask(kContext, 1).ok());
  daemon_.AwaitRuns(2);
  RunRequest second;
  second.context = kContext;
  second.fence_in = *target_->RegisterFence(fence->fd.get());
  const RunRef b = Start(second);
  daemon_.AwaitRuns(3);
  EXPECT_FALSE(daemon_.FenceCanBeRead(second.fence_in));
  daemon_.Release(1);
  ASSERT_TRUE(Ends(a, Code::kOk));
  EXPECT_TRUE(daemon_.FenceCanBeRead(second.fence_in, kPatience));
  daemon_.Release(1);
  EXPECT_TRUE(Ends(b, Code::kOk));
}

TEST_F(RunSignalsTest, FdThatIsNoneIsRefused) {
  const auto fence = target_->RegisterFence(-1);
  ASSERT_FALSE(fence.ok());
  EXPECT_EQ(daemon_.seen().fences, 0U);
}

}  // namespace
}  // namespace rknnd::client
