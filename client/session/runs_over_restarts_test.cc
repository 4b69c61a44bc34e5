// What becomes of started runs when their daemon dies, drains or stays away.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <thread>
#include <utility>

#include "client/session/started_runs_fixture.h"

namespace rknnd::client {
namespace {

using base::Code;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RunsOverRestartsTest : public StartedRunsFixture {};

TEST_F(RunsOverRestartsTest, RunsInFlightRunAgainInTheirOrder) {
  const RunRef first = Start(1);
  const RunRef second = Start(2);
  const RunRef third = Start(3);
  daemon_.AwaitRuns(3);
  Restart();
  EXPECT_TRUE(Ends(third, Code::kOk));
  EXPECT_TRUE(Ends(first, Code::kOk));
  EXPECT_TRUE(Ends(second, Code::kOk));
  EXPECT_THAT(daemon_.seen().frames, ElementsAre(1, 2, 3, 1, 2, 3));
}

TEST_F(RunsOverRestartsTest, NewRunsComeAfterThoseThatWereRefused) {
  const auto notice = Notice();
  daemon_.set_runs(Runs::kDrain);
  const RunRef first = Start(1, notice->number());
  ASSERT_TRUE(CanBeRead(notice->fd(), kPatience));
  notice->Clear();
  EXPECT_FALSE(target_->Look(*first));
  daemon_.set_runs(Runs::kAnswer);
  const RunRef second = Start(2, notice->number());
  EXPECT_TRUE(Ends(second, Code::kOk));
  EXPECT_TRUE(Ends(first, Code::kOk));
  EXPECT_THAT(daemon_.seen().frames, ElementsAre(1, 1, 2));
}

TEST_F(RunsOverRestartsTest, RefusedRunIsPutAgainWithWhatIsLeftOfItsTime) {
  const auto notice = Notice();
  daemon_.set_runs(Runs::kDrain);
  RunRequest request;
  request.context = kContext;
  request.timeout_ms = 60'000;
  request.deadline_ns = 60 * base::kSecond;
  request.notice = notice->number();
  const RunRef run = Start(request);
  ASSERT_TRUE(CanBeRead(notice->fd(), kPatience));
  notice->Clear();
  EXPECT_FALSE(target_->Look(*run));
  daemon_.set_runs(Runs::kAnswer);
  ASSERT_TRUE(EndsByNotice(*notice, run));
  EXPECT_EQ(run->code, Code::kOk);
  const wire::Submission job = daemon_.seen().last_job;
  EXPECT_LT(job.timeout_ms, request.timeout_ms);
  EXPECT_LT(job.deadline_ns, request.deadline_ns);
}

TEST_F(RunsOverRestartsTest, RefusedRunWhoseTimeIsUpIsNotPutAgain) {
  const auto notice = Notice();
  daemon_.set_runs(Runs::kDrain);
  RunRequest request;
  request.context = kContext;
  request.deadline_ns = base::kMillisecond;
  request.notice = notice->number();
  const RunRef run = Start(request);
  ASSERT_TRUE(EndsByNotice(*notice, run));
  EXPECT_EQ(run->code, Code::kDeadlineExceeded);
  EXPECT_EQ(daemon_.seen().runs, 1U);
}

TEST_F(RunsOverRestartsTest, LookWaitsForNobodyAndGivesFencesBackLater) {
  const auto fence = base::MakeEventFd();
  ASSERT_TRUE(fence.ok());
  RunRequest request;
  request.context = kContext;
  request.frame = 1;
  request.fence_in = *target_->RegisterFence(fence->get());
  const RunRef run = Start(request);
  daemon_.AwaitRuns(1);
  daemon_.set_reads_rings(false);
  const RunRef other = Start(2);
  daemon_.Release(1);
  while (!target_->Look(*run)) {
  }
  // The fence cannot be given back yet, and each look tries. One may be late
  // on a busy machine; the shortest of some waits for nobody.
  base::Nanoseconds shortest = base::kSecond;
  for (int i = 0; i < 5; ++i) {
    const base::Nanoseconds begun = clock_.Now();
    EXPECT_FALSE(target_->Look(*other));
    shortest = std::min(shortest, clock_.Now() - begun);
  }
  EXPECT_LT(shortest, Connection::kNotifyPatience / 2);

  daemon_.set_reads_rings(true);
  daemon_.Release(1);
  EXPECT_TRUE(Ends(other, Code::kOk));
  EXPECT_TRUE(target_->Look(*run));
  EXPECT_TRUE(target_->MakeFence().ok());
  EXPECT_FALSE(daemon_.seen().open_fences.contains(request.fence_in));
}

TEST_F(RunsOverRestartsTest, RunThatEndedBeforeTheDeathIsNotRunAgain) {
  const RunRef first = Start(1);
  const RunRef second = Start(2);
  daemon_.AwaitRuns(2);
  daemon_.Release(1);
  ASSERT_TRUE(Ends(first, Code::kOk));
  Restart();
  EXPECT_TRUE(Ends(second, Code::kOk));
  EXPECT_THAT(daemon_.seen().frames, ElementsAre(1, 2, 2));
}

TEST_F(RunsOverRestartsTest, NewRunsComeAfterThoseThatWereInFlight) {
  const RunRef first = Start(1);
  daemon_.AwaitRuns(1);
  Restart();
  RunRequest request;
  request.context = kContext;
  request.frame = 2;
  EXPECT_TRUE(target_->Run(request).ok());
  EXPECT_TRUE(Ends(first, Code::kOk));
  EXPECT_THAT(daemon_.seen().frames, ElementsAre(1, 1, 2));
}

TEST_F(RunsOverRestartsTest, StartWithoutADaemonWaitsForOneInItsCallersPlace) {
  daemon_.Stop();
  // Found out by the first; both come back at once.
  const RunRef first = Start(1);
  EXPECT_FALSE(target_->Await(*first, clock_.Now()));
  const RunRef second = Start(2);
  EXPECT_FALSE(target_->Look(*second));
  daemon_.set_runs(Runs::kAnswer);
  daemon_.Start();
  EXPECT_TRUE(Ends(second, Code::kOk));
  EXPECT_TRUE(Ends(first, Code::kOk));
  EXPECT_THAT(daemon_.seen().frames, ElementsAre(1, 2));
}

TEST_F(RunsOverRestartsTest, DaemonThatStaysAwayEndsThem) {
  SessionOptions options = Options();
  options.rebuild_bound = 40 * base::kMillisecond;
  target_.reset();
  Open(std::move(options));
  const RunRef run = Start(1);
  daemon_.AwaitRuns(1);
  daemon_.Stop();
  ASSERT_TRUE(Ends(run, Code::kUnavailable));
  EXPECT_THAT(run->text, HasSubstr("nobody is there"));
  daemon_.Start();
}

TEST_F(RunsOverRestartsTest, RunsOwnTimeHoldsOverTheRebuild) {
  SessionOptions options = Options();
  options.run_grace = 10 * base::kMillisecond;
  target_.reset();
  Open(std::move(options));
  RunRequest request;
  request.context = kContext;
  request.timeout_ms = 30;
  const RunRef run = Start(request);
  daemon_.AwaitRuns(1);
  daemon_.Stop();
  EXPECT_TRUE(Ends(run, Code::kDeadlineExceeded));
  daemon_.Start();
}

TEST_F(RunsOverRestartsTest, RefusedByADaemonThatGoesTheyRunOnTheNext) {
  daemon_.set_runs(Runs::kDrain);
  const RunRef first = Start(1);
  const RunRef second = Start(2);
  daemon_.AwaitRuns(2);
  EXPECT_FALSE(target_->Await(*first, clock_.Now() + base::kMillisecond));
  Restart();
  EXPECT_TRUE(Ends(first, Code::kOk));
  EXPECT_TRUE(Ends(second, Code::kOk));
}

TEST_F(RunsOverRestartsTest, RunThatKillsEveryDaemonIsGivenUp) {
  const RunRef run = Start(1);
  for (uint64_t deaths = 1; !target_->Look(*run); ++deaths) {
    ASSERT_LT(deaths, 20U);
    daemon_.AwaitRuns(deaths);
    Restart(Runs::kHold);
    (void)target_->SetCoreMask(kContext, 1);
  }
  EXPECT_EQ(run->code, Code::kUnavailable);
  EXPECT_THAT(run->text, HasSubstr("went away 5 times"));
}

TEST_F(RunsOverRestartsTest, RunIsNotBlamedForDeathsBeforeItHadACore) {
  daemon_.set_begun(FakeDaemon::Begun::kNone);
  Restart(Runs::kHold);
  ASSERT_TRUE(target_->SetCoreMask(kContext, 1).ok());
  const RunRef run = Start(1);
  for (uint64_t deaths = 1; deaths <= 8; ++deaths) {
    daemon_.AwaitRuns(deaths);
    Restart(deaths < 8 ? Runs::kHold : Runs::kAnswer);
    (void)target_->SetCoreMask(kContext, 1);
  }
  EXPECT_TRUE(Ends(run, Code::kOk));
}

TEST_F(RunsOverRestartsTest, RunThatNobodyAnswersTellsWhoHasTheCores) {
  SessionOptions options = Options();
  options.longest_run = 30 * base::kMillisecond;
  Open(std::move(options));
  daemon_.set_runs(Runs::kIgnore);
  wire::Report report;
  report.core_reports.resize(1);
  report.core_reports[0].running_ns = 7 * uint64_t{base::kSecond};
  wire::SetText(report.core_reports[0].holder, "session 4 (pid 12 'cam')");
  daemon_.set_report(report);
  const RunRef run = Start(1);
  EXPECT_TRUE(Ends(run, Code::kDeadlineExceeded));
  EXPECT_THAT(run->text, HasSubstr("core 0 is held for 7 s by session 4"));
}

TEST_F(RunsOverRestartsTest, ContextThatIsDestroyedEndsItsRuns) {
  const RunRef run = Start(1);
  ASSERT_TRUE(target_->DestroyContext(kContext).ok());
  EXPECT_TRUE(Ends(run, Code::kCancelled));
}

TEST_F(RunsOverRestartsTest, ContextThatIsDestroyedWithoutADaemonEndsItsRuns) {
  const RunRef run = Start(1);
  daemon_.AwaitRuns(1);
  daemon_.Stop();
  ASSERT_TRUE(target_->DestroyContext(kContext).ok());
  EXPECT_TRUE(target_->Look(*run));
  EXPECT_EQ(run->code, Code::kCancelled);
  daemon_.Start();
}

TEST_F(RunsOverRestartsTest, TimeWithoutADaemonIsNotARunsOwn) {
  std::promise<void> away;
  std::atomic<int> dials{0};
  SessionOptions options = Options();
  options.longest_run = 2 * base::kSecond;
  options.first_delay = options.longest_delay = 250 * base::kMillisecond;
  options.dial = [&, dial = options.dial] {
    // By the delays between them alone it is away for longer than that.
    if (++dials == 12) away.set_value();
    return dial();
  };
  target_.reset();
  Open(std::move(options));
  const RunRef started = Start(1);
  daemon_.AwaitRuns(1);
  daemon_.Stop();
  daemon_.set_runs(Runs::kAnswer);
  std::thread waiting([&] { EXPECT_TRUE(Ends(started, Code::kOk)); });
  std::thread running([&] {
    RunRequest request;
    request.context = kContext;
    const auto report = target_->Run(request);
    EXPECT_TRUE(report.ok()) << report.error().message;
  });
  EXPECT_EQ(away.get_future().wait_for(std::chrono::milliseconds(kPatience)),
            std::future_status::ready);
  daemon_.Start();
  waiting.join();
  running.join();
}

// ---- bindings ---------------------------------------------------------------

TEST_F(RunsOverRestartsTest, RunsInFlightRunAgainOnWhatTheyWereBoundTo) {
  const uint32_t a = BindNewInput();
  const RunRef first = Start(1);
  const uint32_t b = BindNewInput();
  const RunRef second = Start(2);
  const uint32_t c = BindNewInput();
  daemon_.AwaitRuns(2);
  Restart(Runs::kHold);
  ASSERT_TRUE(target_->SetCoreMask(kContext, 1).ok());
  daemon_.AwaitRuns(4);
  const RunRef third = Start(3);
  daemon_.AwaitRuns(5);
  EXPECT_THAT(daemon_.seen().inputs, ElementsAre(a, b, a, b, c));
  daemon_.Release(3);
  EXPECT_TRUE(Ends(third, Code::kOk));
  EXPECT_TRUE(Ends(first, Code::kOk));
  EXPECT_TRUE(Ends(second, Code::kOk));
}

TEST_F(RunsOverRestartsTest, RunOfASetThatWasNotBoundRunsAgainAsInSetZero) {
  const uint32_t zero = BindNewInput();
  RunRequest request;
  request.context = kContext;
  request.set = 1;
  const RunRef first = Start(request);
  const uint32_t one = BindNewInput(1);
  const RunRef second = Start(request);
  daemon_.AwaitRuns(2);
  Restart(Runs::kHold);
  ASSERT_TRUE(target_->SetCoreMask(kContext, 1).ok());
  daemon_.AwaitRuns(4);
  EXPECT_THAT(daemon_.seen().inputs, ElementsAre(zero, one, zero, one));
  daemon_.Release(2);
  EXPECT_TRUE(Ends(first, Code::kOk));
  EXPECT_TRUE(Ends(second, Code::kOk));
}

TEST_F(RunsOverRestartsTest, RefusedRunIsPutAgainOnWhatItWasBoundTo) {
  daemon_.set_runs(Runs::kDrain);
  const uint32_t a = BindNewInput();
  const RunRef first = Start(1);
  daemon_.AwaitRuns(1);
  const uint32_t b = BindNewInput();
  daemon_.set_runs(Runs::kAnswer);
  EXPECT_TRUE(Ends(first, Code::kOk));
  EXPECT_TRUE(Ends(Start(2), Code::kOk));
  EXPECT_THAT(daemon_.seen().inputs, ElementsAre(a, a, b));
}

TEST_F(RunsOverRestartsTest, MemoryThatIsGoneKeepsNoOtherFromBeingBoundBack) {
  const RunRef first = Start(1);
  const uint32_t input = BindNewInput();
  const uint32_t output = BindNewOutput();
  target_->ReleaseBuffer(input);
  daemon_.AwaitRuns(1);
  Restart();
  EXPECT_TRUE(Ends(first, Code::kOk));
  EXPECT_TRUE(daemon_.seen().last_bind.output);
  EXPECT_EQ(daemon_.seen().last_bind.buffer, output);
}

TEST_F(RunsOverRestartsTest, SessionThatCannotBeBoundBackIsMadeAgain) {
  const RunRef first = Start(1);
  const uint32_t now = BindNewInput();
  daemon_.AwaitRuns(1);
  daemon_.Stop();
  // Its input and output, and then what the run was bound to.
  daemon_.HangAtBind(3);
  daemon_.set_runs(Runs::kAnswer);
  daemon_.Start();
  std::thread waiting([&] { EXPECT_TRUE(Ends(first, Code::kOk)); });
  daemon_.AwaitHang();
  daemon_.RefuseOneBind();
  daemon_.GoOn();
  waiting.join();
  EXPECT_TRUE(Ends(Start(2), Code::kOk));
  EXPECT_EQ(daemon_.seen().inputs.back(), now);
}

// ---- fences that no daemon could tell ---------------------------------------

TEST_F(RunsOverRestartsTest, FenceOfARunThatEndedOnTheNextDaemonIsSignalled) {
  auto fence = target_->MakeFence();
  ASSERT_TRUE(fence.ok());
  RunRequest request;
  request.context = kContext;
  request.fence_out = fence->number;
  const RunRef run = Start(request);
  daemon_.AwaitRuns(1);
  Restart();
  ASSERT_TRUE(Ends(run, Code::kOk));
  // Its end led to the daemon that died; another run is to come after it.
  const auto after = target_->RegisterFence(fence->fd.get());
  ASSERT_TRUE(after.ok());
  EXPECT_TRUE(daemon_.FenceCanBeRead(*after));
}

TEST_F(RunsOverRestartsTest, FenceOfARunThatFailedThereIsNot) {
  auto fence = target_->MakeFence();
  ASSERT_TRUE(fence.ok());
  RunRequest request;
  request.context = kContext;
  request.fence_out = fence->number;
  const RunRef run = Start(request);
  daemon_.AwaitRuns(1);
  Restart(Runs::kFail);
  ASSERT_TRUE(target_->Await(*run, clock_.Now() + 10 * base::kSecond));
  ASSERT_NE(run->code, Code::kOk);
  const auto after = target_->RegisterFence(fence->fd.get());
  ASSERT_TRUE(after.ok());
  EXPECT_FALSE(daemon_.FenceCanBeRead(*after));
}

// ---- a daemon that hangs ----------------------------------------------------

TEST_F(RunsOverRestartsTest, HangWhileARunIsBoundAgainHoldsUpNoOther) {
  constexpr uint32_t kOther = kContext + 1;
  MakeRunnable(kOther);
  BindNewInput();
  const RunRef first = Start(1);
  const uint32_t now = BindNewInput();
  daemon_.AwaitRuns(1);
  daemon_.Stop();
  // Two contexts' inputs and outputs, and then what the run was bound to.
  daemon_.HangAtBind(5);
  daemon_.set_runs(Runs::kAnswer);
  daemon_.Start();
  std::thread waiting([&] { EXPECT_TRUE(Ends(first, Code::kOk)); });
  daemon_.AwaitHang();
  std::promise<RunRef> begun;
  std::future<RunRef> others = begun.get_future();
  std::thread beginning([&] {
    const RunRef run = Start(2, 0, kOther);
    EXPECT_FALSE(target_->Look(*run));
    begun.set_value(run);
  });
  EXPECT_EQ(others.wait_for(std::chrono::milliseconds(kPatience)),
            std::future_status::ready);
  // One of the same context waits until it is bound as it was.
  const RunRef third = Start(3);
  daemon_.GoOn();
  beginning.join();
  waiting.join();
  EXPECT_TRUE(Ends(others.get(), Code::kOk));
  EXPECT_TRUE(Ends(third, Code::kOk));
  EXPECT_EQ(daemon_.seen().inputs.back(), now);
}

TEST_F(RunsOverRestartsTest, SynchronousRunWaitsUntilItsContextIsAsItWas) {
  daemon_.set_runs(Runs::kDrain);
  const uint32_t then = BindNewInput();
  const RunRef first = Start(1);
  daemon_.AwaitRuns(1);
  const uint32_t now = BindNewInput();
  daemon_.set_runs(Runs::kAnswer);
  daemon_.HangAtBind(1);
  std::thread waiting([&] { EXPECT_TRUE(Ends(first, Code::kOk)); });
  daemon_.AwaitHang();
  std::thread running([&] {
    RunRequest request;
    request.context = kContext;
    EXPECT_TRUE(target_->Run(request).ok());
  });
  daemon_.GoOn();
  running.join();
  waiting.join();
  EXPECT_THAT(daemon_.seen().inputs, ElementsAre(then, then, now));
}

TEST_F(RunsOverRestartsTest, DaemonThatTakesLongToStartIsWaitedFor) {
  SessionOptions options = Options();
  options.redial_after = 5 * base::kMillisecond;
  target_.reset();
  Open(std::move(options));
  daemon_.Stop();
  auto listener = base::ListenUnix(daemon_.path(), 0600);
  ASSERT_TRUE(listener.ok());
  std::thread running([&] {
    RunRequest request;
    request.context = kContext;
    EXPECT_TRUE(target_->Run(request).ok());
  });
  // It is asked again and again, and never answers.
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(CanBeRead(listener->get(), kPatience));
    EXPECT_TRUE(base::Accept(listener->get())->valid());
  }
  listener->reset();
  daemon_.set_runs(Runs::kAnswer);
  daemon_.Start();
  running.join();
}

TEST_F(RunsOverRestartsTest, DaemonThatIsBeingStartedHoldsUpNoStart) {
  // Whoever waited for its answer would do so for longer than a test lasts.
  SessionOptions options = Options();
  options.rebuild_bound = options.redial_after = 3600 * base::kSecond;
  target_.reset();
  Open(std::move(options));
  const RunRef first = Start(1);
  daemon_.AwaitRuns(1);
  daemon_.Stop();
  // It listens, and answers nobody yet.
  auto listener = base::ListenUnix(daemon_.path(), 0600);
  ASSERT_TRUE(listener.ok());
  for (uint64_t frame = 2; frame < 6; ++frame) {
    EXPECT_FALSE(target_->Await(*Start(frame), clock_.Now()));
  }
  // All have waited at one connection.
  EXPECT_TRUE(base::Accept(listener->get())->valid());
  EXPECT_FALSE(base::Accept(listener->get())->valid());
  listener->reset();
  daemon_.set_runs(Runs::kAnswer);
  daemon_.Start();
  EXPECT_TRUE(Ends(first, Code::kOk));
}

}  // namespace
}  // namespace rknnd::client
