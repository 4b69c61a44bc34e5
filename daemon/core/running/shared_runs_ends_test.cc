// Tests of what becomes of a reader whose fellow dies, is cancelled, fails,
// hangs or gives up: nothing that is the fellow's.

#include <atomic>
#include <thread>
#include <vector>

#include "daemon/core/testing/shared_runs_fixture.h"
#include "gtest/gtest.h"

namespace rknnd::core {
namespace {

using testing::kFrame;
using testing::Reader;

class SharedRunsEndsTest : public testing::SharedRunsFixture {
 protected:
  // The first one's run has begun, and the other waits for it.
  void RunForBoth(const Reader& a, const Reader& b) {
    device.HoldJobs(true);
    Ask(a);
    RunReady();
    Ask(b);
    RunReady();
  }
};

TEST_F(SharedRunsEndsTest, ReaderWhoseFellowDiedBeforeTheRunIsRunAllTheSame) {
  const Reader a = MakeReader(1), b = MakeReader(2);
  Ask(a);
  Ask(b);
  service->CloseSession(a.session->id());
  RunReady();
  EXPECT_EQ(runs(), 1U);
  EXPECT_EQ(b.last(), absl::OkStatus());
  EXPECT_EQ(b.answer(), 42);
}

TEST_F(SharedRunsEndsTest, ReaderWhoseFellowDiesDuringItsRunIsAnsweredWithIt) {
  Reader a = MakeReader(1);
  const Reader b = MakeReader(2);
  RunForBoth(a, b);
  service->CloseSession(a.session->id());
  a.session.session.reset();
  ASSERT_TRUE(device.Release());
  EXPECT_EQ(runs(), 1U);
  EXPECT_EQ(a.completions().size(), 0U);
  EXPECT_EQ(b.last(), absl::OkStatus());
  EXPECT_EQ(b.answer(), 42);
}

TEST_F(SharedRunsEndsTest, ReaderThatDiesWhileItWaitsLeavesTheRunAlone) {
  const Reader a = MakeReader(1), b = MakeReader(2);
  RunForBoth(a, b);
  service->CloseSession(b.session->id());
  ASSERT_TRUE(device.Release());
  EXPECT_EQ(a.last(), absl::OkStatus());
  EXPECT_EQ(b.completions().size(), 0U);
  EXPECT_EQ(service->Status().jobs_queued, 0U);
}

TEST_F(SharedRunsEndsTest, ReaderOfARunThatFailedHasARunOfItsOwn) {
  const Reader a = MakeReader(1), b = MakeReader(2), c = MakeReader(3);
  device.HoldJobs(true);
  Ask(a);
  RunReady();
  Ask(b);
  Ask(c);
  RunReady();
  device.FailJobs(absl::InternalError("a bad core"));
  ASSERT_TRUE(device.Release());
  EXPECT_EQ(a.last().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(b.completions().size(), 0U);

  device.FailJobs(absl::OkStatus());
  RunReady();
  ASSERT_TRUE(device.Release());

  // One of the two ran, for both.
  EXPECT_EQ(runs(), 2U);
  EXPECT_EQ(b.last(), absl::OkStatus());
  EXPECT_EQ(c.last(), absl::OkStatus());
}

TEST_F(SharedRunsEndsTest, WorkerIsWokenForAReaderWhoseRunFailed) {
  const Reader a = MakeReader(1), b = MakeReader(2);
  RunForBoth(a, b);
  device.FailJobs(absl::InternalError("a bad core"));
  const uint32_t before = waker.count;
  ASSERT_TRUE(device.Release());
  EXPECT_GT(waker.count, before);
  device.FailJobs(absl::OkStatus());
  device.HoldJobs(false);
  RunReady();
  EXPECT_EQ(b.last(), absl::OkStatus());
}

TEST_F(SharedRunsEndsTest, ReaderOfARunThatHangsHasARunOfItsOwn) {
  const Reader a = MakeReader(1), b = MakeReader(2);
  RunForBoth(a, b);
  clock.Advance(options.scheduling.hang + 1);
  service->runner().Expire();
  RunReady();
  EXPECT_EQ(a.last().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(device.held(), 2U);
  device.HoldJobs(false);
  while (device.Release()) {
  }
  EXPECT_EQ(b.last(), absl::OkStatus());
  EXPECT_EQ(a.completions().size(), 1U);
}

TEST_F(SharedRunsEndsTest, FellowsTimeoutIsNoEndOfOthersFrames) {
  const Reader a = MakeReader(1), b = MakeReader(2);
  device.HoldJobs(true);
  JobSubmission hasty = Shared();
  hasty.timeout_ms = 10;
  Ask(a, hasty);
  RunReady();
  Ask(b);
  RunReady();
  clock.Advance(11 * base::kMillisecond);
  service->runner().Expire();
  EXPECT_EQ(a.last().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(b.completions().size(), 0U);
  RunReady();
  while (device.Release()) RunReady();
  EXPECT_EQ(b.last(), absl::OkStatus());
  EXPECT_EQ(b.answer(), 42);
  EXPECT_EQ(a.completions().size(), 1U);
  EXPECT_EQ(b.completions().size(), 1U);
}

TEST_F(SharedRunsEndsTest, RunThatComesBackLateStillAnswersWhoWaits) {
  const Reader a = MakeReader(1), b = MakeReader(2);
  device.HoldJobs(true);
  JobSubmission hasty = Shared();
  hasty.timeout_ms = 10;
  Ask(a, hasty);
  RunReady();
  clock.Advance(11 * base::kMillisecond);
  service->runner().Expire();
  ASSERT_TRUE(device.Release());
  Ask(b);
  RunReady();
  EXPECT_EQ(runs(), 1U);
  EXPECT_EQ(b.last(), absl::OkStatus());
}

TEST_F(SharedRunsEndsTest, ReadersOwnTimeoutEndsItsWaiting) {
  const Reader a = MakeReader(1), b = MakeReader(2);
  device.HoldJobs(true);
  Ask(a);
  RunReady();
  JobSubmission hasty = Shared();
  hasty.timeout_ms = 10;
  Ask(b, hasty);
  RunReady();
  clock.Advance(11 * base::kMillisecond);
  service->runner().Expire();
  EXPECT_EQ(b.last().code(), absl::StatusCode::kDeadlineExceeded);
  ASSERT_TRUE(device.Release());
  EXPECT_EQ(a.last(), absl::OkStatus());
  EXPECT_EQ(b.completions().size(), 1U);
}

TEST_F(SharedRunsEndsTest, CancelledReaderLeavesTheRunToOthers) {
  const Reader a = MakeReader(1), b = MakeReader(2);
  Ask(a);
  Ask(b);
  ASSERT_TRUE(a.session->DestroyContext(1).ok());
  RunReady();
  EXPECT_EQ(a.last().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(b.last(), absl::OkStatus());
}

TEST_F(SharedRunsEndsTest, DrainWaitsForReadersToo) {
  const Reader a = MakeReader(1), b = MakeReader(2);
  RunForBoth(a, b);
  bool drained = false;
  DrainService([&] { drained = true; });
  RunLoops();
  EXPECT_FALSE(drained);
  ASSERT_TRUE(device.Release());
  RunLoops();
  EXPECT_TRUE(drained);
  EXPECT_EQ(b.last(), absl::OkStatus());
}

TEST_F(SharedRunsEndsTest, NewerFrameTakesNoFrameThatIsBeingRunForIt) {
  const Reader a = MakeReader(1), b = MakeReader(2);
  QueueRequest newest;
  newest.context = 1;
  newest.policy = QueuePolicy::kNewest;
  ASSERT_TRUE(b.session->SetQueue(newest).ok());
  RunForBoth(a, b);
  Ask(b, Shared(kFrame + 1, 1));
  EXPECT_EQ(b.completions().size(), 0U);
  // Of those behind it the newest stays.
  Ask(b, Shared(kFrame + 2, 2));
  ASSERT_EQ(b.completions().size(), 1U);
  EXPECT_EQ(b.completions()[0].frame, kFrame + 1);
  EXPECT_EQ(b.completions()[0].status.code(), absl::StatusCode::kAborted);
  ASSERT_TRUE(device.Release());
  ASSERT_EQ(b.completions().size(), 2U);
  EXPECT_EQ(b.completions()[1].frame, kFrame);
  EXPECT_EQ(b.last(), absl::OkStatus());
}

TEST_F(SharedRunsEndsTest, DeadlineIsKeptByAFrameThatIsBeingRunForIt) {
  const Reader a = MakeReader(1), b = MakeReader(2);
  device.HoldJobs(true);
  Ask(a);
  RunReady();
  JobSubmission soon = Shared();
  soon.deadline = 10 * base::kMillisecond;
  Ask(b, soon);
  RunReady();
  clock.Advance(11 * base::kMillisecond);
  service->runner().Expire();
  EXPECT_EQ(b.completions().size(), 0U);
  ASSERT_TRUE(device.Release());
  EXPECT_EQ(b.last(), absl::OkStatus());
}

TEST_F(SharedRunsEndsTest, ReaderOfARunThatHangsAndWhoseProgramDiedIsRun) {
  Reader a = MakeReader(1);
  const Reader b = MakeReader(2);
  RunForBoth(a, b);
  service->CloseSession(a.session->id());
  clock.Advance(options.scheduling.hang + 1);
  service->runner().Expire();
  RunReady();
  EXPECT_EQ(device.held(), 2U);
  device.HoldJobs(false);
  while (device.Release()) {
  }
  EXPECT_EQ(b.last(), absl::OkStatus());
}

TEST_F(SharedRunsEndsTest, CancelTakesBackAReaderThatWaitsForARun) {
  const Reader a = MakeReader(1), b = MakeReader(2);
  RunForBoth(a, b);
  JobSubmission cancel;
  cancel.operation = JobSubmission::Operation::kCancel;
  cancel.context = 1;
  cancel.slot = 5;
  cancel.sequence = 1;
  Ask(b, cancel);
  ASSERT_EQ(b.completions().size(), 2U);
  EXPECT_EQ(b.completions()[0].status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(b.completions()[1].count, 1U);
  ASSERT_TRUE(device.Release());
  EXPECT_EQ(a.last(), absl::OkStatus());
  EXPECT_EQ(b.completions().size(), 2U);
}

// For the thread sanitizer, most of all.
TEST_F(SharedRunsEndsTest, ReadersWorkersCancelsAndTheAlarmMayMeetAnywhere) {
  constexpr size_t kReaders = 4, kFrames = 300;
  std::vector<Reader> readers;
  for (size_t i = 0; i < kReaders; ++i) {
    readers.push_back(MakeReader(static_cast<int32_t>(i) + 1));
  }
  std::atomic<bool> over{false};
  std::vector<std::thread> workers;
  for (int i = 0; i < 3; ++i) {
    workers.emplace_back([&] {
      while (!over) {
        RunReady();
        service->runner().Expire();
        std::this_thread::yield();
      }
    });
  }
  std::vector<std::thread> programs;
  for (size_t i = 0; i < kReaders; ++i) {
    programs.emplace_back([&, i] {
      const Reader& reader = readers[i];
      size_t answers = 0;
      for (uint64_t frame = 1; frame <= kFrames; ++frame) {
        JobSubmission submission = Shared(frame);
        submission.timeout_ms = 1;
        Ask(reader, submission);
        ++answers;
        if ((frame + i) % 5 == 0) {
          JobSubmission cancel;
          cancel.operation = JobSubmission::Operation::kCancel;
          cancel.context = 1;
          cancel.slot = 1;
          cancel.sequence = 1;
          Ask(reader, cancel);
          ++answers;
        }
        if (i == 0) clock.Advance(100 * base::kMicrosecond);
        while (reader.session.sink->count() < answers) {
          std::this_thread::yield();
        }
      }
    });
  }
  for (std::thread& program : programs) program.join();
  over = true;
  for (std::thread& worker : workers) worker.join();
  for (const Reader& reader : readers) {
    EXPECT_EQ(reader.answer(), 42);
    for (const JobCompletion& answer : reader.completions()) {
      EXPECT_TRUE(answer.status.ok() || absl::IsCancelled(answer.status) ||
                  absl::IsDeadlineExceeded(answer.status))
          << answer.status;
    }
  }
  EXPECT_EQ(service->Status().jobs_queued, 0U);
  EXPECT_EQ(service->Status().jobs_running, 0U);
}

}  // namespace
}  // namespace rknnd::core
