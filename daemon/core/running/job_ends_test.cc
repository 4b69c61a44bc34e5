// Tests of jobs that end in the queue: too late, their fence too late, taken
// back; and of what is left for others then.

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/posix/memfd.h"
#include "daemon/core/testing/core_fixture.h"
#include "daemon/core/testing/silent_fences.h"
#include "daemon/core/testing/words.h"
#include "gtest/gtest.h"

namespace rknnd::core {
namespace {

using testing::TestSession;

class JobEndsTest : public testing::CoreTest {
 protected:
  JobEndsTest() {
    options.fences = &fences_;
    StartService();
    session_ = Open();
    MakeReady(session_, 1, "bytes=16", 0, /*core_mask=*/1);
    device.HoldJobs(true);
  }
  ~JobEndsTest() override {
    session_ = {};
    device.HoldJobs(false);
    while (device.Release()) {
    }
    StopService();
    EXPECT_TRUE(fences_.watched.empty());
  }

  static JobSubmission Frame(uint64_t frame, uint32_t slot,
                             uint32_t context = 1) {
    JobSubmission job;
    job.context = context;
    job.slot = slot;
    job.sequence = 1;
    job.frame = frame;
    return job;
  }
  void Submit(const JobSubmission& job, const TestSession& session) {
    ASSERT_EQ(session->gate()->Submit(job), absl::OkStatus());
    RunReady();
  }
  void Submit(const JobSubmission& job) { Submit(job, session_); }
  void RegisterFence(uint32_t number) {
    Fence fence;
    fence.number = number;
    fence.fd = *base::MakeMemfd("fence", 4096);
    ASSERT_EQ(session_->RegisterFence(std::move(fence)), absl::OkStatus());
  }
  // Takes back frame `frame`, or all; the answer.
  JobCompletion Cancel(uint64_t frame, uint32_t context = 1,
                       uint32_t slot = 120) {
    JobSubmission job = Frame(frame, slot, context);
    job.operation = JobSubmission::Operation::kCancel;
    EXPECT_EQ(session_->gate()->Submit(job), absl::OkStatus());
    return session_.sink->last();
  }
  [[nodiscard]] std::vector<uint64_t> Frames(absl::StatusCode code) const {
    std::vector<uint64_t> frames;
    for (const JobCompletion& answer : session_.sink->all()) {
      if (answer.status.code() == code && answer.slot != 120) {
        frames.push_back(answer.frame);
      }
    }
    return frames;
  }
  void RunAll() {
    RunReady();
    while (device.Release()) RunReady();
  }
  [[nodiscard]] std::string LastText() const {
    return std::string(session_.sink->last().status.message());
  }
  using Numbers = std::vector<uint64_t>;

  testing::SilentFences fences_;
  TestSession session_;
};

// ---- limits -----------------------------------------------------------------

TEST_F(JobEndsTest, QueuedJobIsAnsweredAtItsTimeoutWhileAllCoresAreBusy) {
  Submit(Frame(1, 0));
  JobSubmission job = Frame(2, 1);
  job.timeout_ms = 30;
  Submit(job);
  PassTime(30 * kMs - 1);
  EXPECT_EQ(session_.sink->count(), 0U);
  PassTime(1);
  ASSERT_EQ(Frames(absl::StatusCode::kDeadlineExceeded), (Numbers{2}));
  EXPECT_EQ(LastText(),
            "frame 2 of context 1 waited 30 ms for its core, its timeout is 30 "
            "ms: it was not run");
  EXPECT_EQ(session_.sink->last().total, 30 * kMs);
  EXPECT_EQ(service->Status().jobs_queued, 0U);
  RunAll();
  EXPECT_EQ(Frames(absl::StatusCode::kOk), (Numbers{1}));
}

TEST_F(JobEndsTest, JobThatCouldNotBeginByItsDeadlineIsAnsweredThenAndNotRun) {
  Submit(Frame(1, 0));
  JobSubmission job = Frame(2, 1);
  job.deadline = 7 * kMs;
  Submit(job);
  PassTime(7 * kMs);
  ASSERT_EQ(Frames(absl::StatusCode::kDeadlineExceeded), (Numbers{2}));
  EXPECT_EQ(LastText(),
            "frame 2 of context 1 waited 7 ms for its core, its deadline to "
            "begin was 7 ms: it was not run");
  RunAll();
  EXPECT_EQ(device.runs().size(), 1U);
}

TEST_F(JobEndsTest, JobThatBeganByItsDeadlineMayTakeItsTime) {
  JobSubmission job = Frame(1, 0);
  job.deadline = 7 * kMs;
  job.timeout_ms = 50;
  Submit(job);
  PassTime(49 * kMs);
  EXPECT_EQ(session_.sink->count(), 0U);
  RunAll();
  EXPECT_EQ(Frames(absl::StatusCode::kOk), (Numbers{1}));
}

TEST_F(JobEndsTest, TimeoutHoldsForAJobThatBeganByItsDeadline) {
  JobSubmission job = Frame(1, 0);
  job.deadline = 7 * kMs;
  job.timeout_ms = 50;
  Submit(job);
  PassTime(50 * kMs);
  EXPECT_EQ(Frames(absl::StatusCode::kDeadlineExceeded), (Numbers{1}));
}

TEST_F(JobEndsTest, DeadlineBeyondTheClockIsNone) {
  JobSubmission job = Frame(1, 0);
  job.deadline = kNever;
  Submit(job);
  job = Frame(2, 1);
  job.timeout_ms = UINT32_MAX;
  Submit(job);
  RunAll();
  EXPECT_EQ(Frames(absl::StatusCode::kOk), (Numbers{1, 2}));
}

TEST_F(JobEndsTest, JobBehindOneThatTimedOutRuns) {
  Submit(Frame(1, 0));
  JobSubmission job = Frame(2, 1);
  job.timeout_ms = 30;
  Submit(job);
  Submit(Frame(3, 2));
  PassTime(30 * kMs);
  RunAll();
  EXPECT_EQ(Frames(absl::StatusCode::kOk), (Numbers{1, 3}));
}

TEST_F(JobEndsTest, FenceThatNeverComesIsWaitedForUntilTheTimeout) {
  RegisterFence(5);
  JobSubmission job = Frame(1, 0);
  job.fence_in = 5;
  job.timeout_ms = 40;
  Submit(job);
  PassTime(40 * kMs);
  ASSERT_EQ(Frames(absl::StatusCode::kDeadlineExceeded), (Numbers{1}));
  EXPECT_NE(LastText().find("waited 40 ms for its fence"), std::string::npos)
      << LastText();
  EXPECT_TRUE(fences_.watched.empty());
}

TEST_F(JobEndsTest, FenceOfAJobWithoutALimitIsWaitedForAsTheDaemonAllows) {
  RegisterFence(5);
  JobSubmission job = Frame(1, 0);
  job.fence_in = 5;
  Submit(job);
  PassTime(options.scheduling.fence_timeout - 1);
  EXPECT_EQ(session_.sink->count(), 0U);
  PassTime(1);
  ASSERT_EQ(Frames(absl::StatusCode::kDeadlineExceeded), (Numbers{1}));
  EXPECT_NE(LastText().find("'fence_timeout'"), std::string::npos);
}

TEST_F(JobEndsTest, AlarmOfAFenceThatCameHarmsNobody) {
  RegisterFence(5);
  Submit(Frame(1, 0));
  JobSubmission job = Frame(2, 1);
  job.fence_in = 5;
  Submit(job);
  ASSERT_EQ(fences_.watched.size(), 1U);
  service->runner().FenceReady(fences_.watched.begin()->first,
                               FenceState::kSignalled);
  PassTime(4 * base::kSecond);
  ASSERT_TRUE(device.Release());
  RunReady();
  PassTime(4 * base::kSecond);
  ASSERT_TRUE(device.Release());
  PassTime(4 * base::kSecond);
  EXPECT_EQ(Frames(absl::StatusCode::kOk), (Numbers{1, 2}));
  EXPECT_EQ(session_.sink->count(), 2U);
}

TEST_F(JobEndsTest, InnocentJobThatAResetTookAlongIsForItsClientToRunAgain) {
  // ABORTED would say that the frame was dropped.
  device.FailJobs(absl::AbortedError("the driver reset the NPU"));
  Submit(Frame(1, 0));
  ASSERT_TRUE(device.Release());
  EXPECT_EQ(session_.sink->last().status,
            absl::UnavailableError("the driver reset the NPU"));
  EXPECT_EQ(service->Status().jobs_dropped, 0U);
}

// ---- cancel -----------------------------------------------------------------

TEST_F(JobEndsTest, CancelTakesBackTheFrameThatIsNamedAndSaysHowMany) {
  for (uint64_t frame = 1; frame <= 4; ++frame) {
    Submit(Frame(frame, static_cast<uint32_t>(frame)));
  }
  const JobCompletion answer = Cancel(3);
  EXPECT_EQ(answer.status, absl::OkStatus());
  EXPECT_EQ(answer.count, 1U);
  EXPECT_EQ(answer.slot, 120U);
  EXPECT_EQ(Frames(absl::StatusCode::kCancelled), (Numbers{3}));
  EXPECT_EQ(session_.sink->all()[0].status.message(),
            "frame 3 of context 1 was cancelled while it waited");
  RunAll();
  EXPECT_EQ(Frames(absl::StatusCode::kOk), (Numbers{1, 2, 4}));
}

TEST_F(JobEndsTest, CancelOfZeroTakesBackAllThatWaitAndAnswersThemFirst) {
  for (uint64_t frame = 1; frame <= 4; ++frame) {
    Submit(Frame(frame, static_cast<uint32_t>(frame)));
  }
  EXPECT_EQ(Cancel(0).count, 3U);
  EXPECT_EQ(Frames(absl::StatusCode::kCancelled), (Numbers{2, 3, 4}));
  EXPECT_EQ(session_.sink->count(), 4U);
  RunAll();
  EXPECT_EQ(Frames(absl::StatusCode::kOk), (Numbers{1}));
}

TEST_F(JobEndsTest, CancelOfARunningFrameTakesNothingBack) {
  Submit(Frame(1, 0));
  EXPECT_EQ(Cancel(1).count, 0U);
  EXPECT_EQ(Cancel(0).count, 0U);
  RunAll();
  EXPECT_EQ(Frames(absl::StatusCode::kOk), (Numbers{1}));
}

TEST_F(JobEndsTest, CancelOfNothingAndTwiceIsNoError) {
  EXPECT_EQ(Cancel(0).count, 0U);
  EXPECT_EQ(Cancel(77).status, absl::OkStatus());
  Submit(Frame(1, 0));
  Submit(Frame(2, 1));
  EXPECT_EQ(Cancel(2).count, 1U);
  EXPECT_EQ(Cancel(2).count, 0U);
  EXPECT_EQ(Frames(absl::StatusCode::kCancelled), (Numbers{2}));
}

TEST_F(JobEndsTest, CancelTakesBackEveryFrameOfThatNumber) {
  Submit(Frame(1, 0));
  Submit(Frame(9, 1));
  Submit(Frame(9, 2));
  EXPECT_EQ(Cancel(9).count, 2U);
}

TEST_F(JobEndsTest, CancelledSlotsAreFreeAgain) {
  Submit(Frame(1, 0));
  Submit(Frame(2, 1));
  EXPECT_EQ(Cancel(2).count, 1U);
  Submit(Frame(3, 1));
  Submit(Frame(4, 120));  // the cancel's own
  RunAll();
  EXPECT_EQ(session_.sink->count(), 5U);
}

TEST_F(JobEndsTest, CancelReachesJobsThatWaitForAFence) {
  RegisterFence(5);
  JobSubmission job = Frame(1, 0);
  job.fence_in = 5;
  Submit(job);
  EXPECT_EQ(Cancel(1).count, 1U);
  EXPECT_TRUE(fences_.watched.empty());
  EXPECT_EQ(Frames(absl::StatusCode::kCancelled), (Numbers{1}));
}

TEST_F(JobEndsTest, CancelInAContextThatDoesNotExistIsAnError) {
  EXPECT_EQ(Cancel(0, 99).status.code(), absl::StatusCode::kNotFound);
  const TestSession other = Open(200);
  MakeReady(other, 7, "bytes=16");
  EXPECT_EQ(Cancel(0, 7).status.code(), absl::StatusCode::kNotFound);
}

TEST_F(JobEndsTest, CancelOfAnotherContextLeavesThisOneAlone) {
  MakeReady(session_, 2, "bytes=16", 0, /*core_mask=*/1);
  Submit(Frame(1, 0));
  Submit(Frame(2, 1));
  Submit(Frame(2, 2, 2));
  EXPECT_EQ(Cancel(2, 2).count, 1U);
  RunAll();
  EXPECT_EQ(Frames(absl::StatusCode::kOk), (Numbers{1, 2}));
}

TEST_F(JobEndsTest, CancelInASlotInFlightIsAViolation) {
  Submit(Frame(1, 0));
  JobSubmission cancel = Frame(0, 0);
  cancel.operation = JobSubmission::Operation::kCancel;
  EXPECT_EQ(session_->gate()->Submit(cancel).code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(JobEndsTest, CancelIsServedWhileTheDaemonDrainsAndLetsItEnd) {
  Submit(Frame(1, 0));
  Submit(Frame(2, 1));
  bool drained = false;
  DrainService([&] { drained = true; });
  EXPECT_EQ(Cancel(2).count, 1U);
  ASSERT_TRUE(device.Release());
  RunLoops();
  EXPECT_TRUE(drained);
}

TEST_F(JobEndsTest, CancelCountsAsNoJob) {
  Cancel(0);
  EXPECT_EQ(service->Status().jobs_done, 0U);
  EXPECT_EQ(service->Status().jobs_failed, 0U);
}

TEST_F(JobEndsTest, CancelledGangLetsThoseRunThatItKeptFromTheirCores) {
  const TestSession other = Open(200);
  MakeReady(other, 1, "bytes=16", 0, /*core_mask=*/2);
  MakeReady(other, 2, "bytes=16", 0, /*core_mask=*/1);
  MakeReady(session_, 2, "bytes=16", 0, /*core_mask=*/3);
  Submit(Frame(1, 0), other);
  Submit(Frame(2, 1, 2));         // the gang waits for core 1
  Submit(Frame(3, 1, 2), other);  // and may keep core 0 from this one
  EXPECT_EQ(Cancel(2, 2).count, 1U);
  RunReady();
  EXPECT_EQ(device.held(), 2U);
}

TEST_F(JobEndsTest, GangThatTimesOutWakesAWorkerForWhomItKept) {
  const TestSession other = Open(200);
  MakeReady(other, 1, "bytes=16", 0, /*core_mask=*/2);
  MakeReady(other, 2, "bytes=16", 0, /*core_mask=*/1);
  MakeReady(session_, 2, "bytes=16", 0, /*core_mask=*/3);
  Submit(Frame(1, 0), other);
  JobSubmission gang = Frame(2, 1, 2);
  gang.timeout_ms = 20;
  Submit(gang);
  Submit(Frame(3, 1, 2), other);
  const uint32_t woken = waker.count;
  clock.Advance(20 * kMs);
  service->runner().Expire();
  EXPECT_GT(waker.count, woken);
  RunReady();
  EXPECT_EQ(device.held(), 2U);
}

}  // namespace
}  // namespace rknnd::core
