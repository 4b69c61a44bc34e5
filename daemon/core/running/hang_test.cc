// Tests of jobs that are on their core for too long: who is answered when, what
// stays theirs until the device gives it back, and who goes on meanwhile.

#include <string>

#include "daemon/core/running/hang_watch.h"
#include "daemon/core/testing/core_fixture.h"
#include "daemon/core/testing/words.h"
#include "gtest/gtest.h"

namespace rknnd::core {
namespace {

using testing::TestSession;

constexpr char kHangModel[] = "bytes=16 internal=4096";

class HangTest : public testing::CoreTest {
 protected:
  HangTest() {
    options.log = &log_;
    StartService();
    device.HoldJobs(true);
  }

  TestSession OpenOn(uint32_t core, int32_t pid = 100) {
    TestSession session = Open(pid);
    MakeReady(session, 1, kHangModel, 0, 1U << core);
    return session;
  }
  // Submits a job and lets a worker take it.
  void Start(const TestSession& session, uint32_t slot, uint32_t sequence = 1,
             uint32_t timeout_ms = 0) {
    JobSubmission submission;
    submission.context = 1;
    submission.slot = slot;
    submission.sequence = sequence;
    submission.frame = 1000 + sequence;
    submission.timeout_ms = timeout_ms;
    ASSERT_TRUE(session->gate()->Submit(submission).ok());
    RunReady();
  }
  static absl::StatusCode Code(const TestSession& session) {
    return session.sink->last().status.code();
  }
  static std::string Text(const TestSession& session) {
    return std::string(session.sink->last().status.message());
  }

  testing::RecordingLog log_;
};

TEST_F(HangTest, RunningJobIsAnsweredAtItsTimeout) {
  const TestSession session = OpenOn(1);
  Start(session, 5, 7, /*timeout_ms=*/40);
  PassTime(40 * kMs - 1);
  EXPECT_EQ(session.sink->count(), 0U);
  PassTime(1);
  ASSERT_EQ(session.sink->count(), 1U);
  const JobCompletion answer = session.sink->last();
  EXPECT_EQ(answer.status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(answer.slot, 5U);
  EXPECT_EQ(answer.sequence, 7U);
  EXPECT_EQ(answer.frame, 1007U);
  EXPECT_EQ(answer.core, 1U);
  EXPECT_EQ(answer.run, 40 * kMs);
  EXPECT_EQ(answer.total, 40 * kMs);
  EXPECT_NE(Text(session).find("frame 1007 of context 1 has been on core 1 for "
                               "40 ms, after 0 ms in the queue, its timeout is "
                               "40 ms"),
            std::string::npos)
      << Text(session);
}

TEST_F(HangTest, JobWithoutALimitIsAnsweredWhenItHangs) {
  const TestSession session = OpenOn(0);
  Start(session, 0);
  PassTime(options.scheduling.hang - 1);
  EXPECT_EQ(session.sink->count(), 0U);
  PassTime(1);
  EXPECT_EQ(Code(session), absl::StatusCode::kDeadlineExceeded);
  EXPECT_NE(Text(session).find("hangs: it has been on core 0 for 5000 ms"),
            std::string::npos)
      << Text(session);
  EXPECT_EQ(service->Status().jobs_hung, 1U);
  EXPECT_EQ(service->Status().jobs_running, 1U);
}

TEST_F(HangTest, SlowModelIsGivenTwentyTimesWhatItIsExpectedToTake) {
  const TestSession session = Open();
  MakeReady(session, 1, "bytes=16 modelled=2000", 0, /*core_mask=*/1);
  Start(session, 0);
  PassTime(40 * base::kSecond);
  EXPECT_EQ(session.sink->count(), 0U);
  PassTime(kMs);
  EXPECT_EQ(Code(session), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(service->Status().jobs_hung, 1U);
}

TEST_F(HangTest, CoresAreCountedAsHangingUntilTheyAreBack) {
  const TestSession first = OpenOn(0);
  const TestSession second = OpenOn(1, 200);
  Start(first, 0);
  Start(second, 0);
  EXPECT_EQ(service->Status().cores_hung, 0U);
  PassTime(options.scheduling.hang);
  EXPECT_EQ(service->Status().cores_hung, 2U);
  ASSERT_TRUE(device.Release());
  RunReady();
  EXPECT_EQ(service->Status().cores_hung, 1U);
  ASSERT_TRUE(device.Release());
  RunReady();
  EXPECT_EQ(service->Status().cores_hung, 0U);
  EXPECT_EQ(service->Status().jobs_hung, 2U);
}

TEST_F(HangTest, TimeoutBeyondTheHangIsNoReasonToWaitForIt) {
  const TestSession session = OpenOn(0);
  Start(session, 0, 1, /*timeout_ms=*/60'000);
  PassTime(options.scheduling.hang);
  EXPECT_EQ(session.sink->count(), 1U);
  PassTime(60 * base::kSecond);
  EXPECT_EQ(session.sink->count(), 1U);
}

TEST_F(HangTest, OthersGoOnAndOnlyItsContextAndItsCoreWait) {
  const TestSession hung = OpenOn(0);
  const TestSession behind = OpenOn(0, 200);
  const TestSession beside = OpenOn(2, 300);
  Start(hung, 0);
  device.HoldJobs(false);
  PassTime(options.scheduling.hang);
  ASSERT_EQ(hung.sink->count(), 1U);
  Start(beside, 0);
  EXPECT_EQ(Code(beside), absl::StatusCode::kOk);
  MakeReady(hung, 2, kHangModel, 0, 2);
  ASSERT_TRUE(Submit(hung, 2, 1).ok());
  Start(hung, 2);
  Start(behind, 0);
  EXPECT_EQ(hung.sink->count(), 2U);  // that of its other context
  EXPECT_EQ(behind.sink->count(), 0U);
  EXPECT_EQ(service->Status().jobs_queued, 2U);
  ASSERT_TRUE(device.Release());
  RunReady();
  EXPECT_EQ(hung.sink->count(), 3U);
  EXPECT_EQ(Code(behind), absl::StatusCode::kOk);
}

TEST_F(HangTest, LateResultIsNoSecondAnswerAndNoneToWhoHasTheSlotNow) {
  const TestSession session = OpenOn(0);
  Start(session, 3, 1, /*timeout_ms=*/20);
  PassTime(20 * kMs);
  ASSERT_EQ(session.sink->count(), 1U);
  // The client has seen its completion and uses the slot again.
  Start(session, 3, 2);
  EXPECT_EQ(device.held(), 1U);  // behind it, as jobs of one context are
  ASSERT_TRUE(device.Release());
  EXPECT_EQ(session.sink->count(), 1U);
  RunReady();
  ASSERT_EQ(device.held(), 1U);
  ASSERT_TRUE(device.Release());
  ASSERT_EQ(session.sink->count(), 2U);
  EXPECT_EQ(session.sink->last().sequence, 2U);
  EXPECT_EQ(session.sink->last().status, absl::OkStatus());
  Start(session, 3, 3);
  EXPECT_TRUE(device.Release());
  EXPECT_EQ(session.sink->count(), 3U);
}

TEST_F(HangTest, LateFailureIsThrownAwayToo) {
  const TestSession session = OpenOn(0);
  Start(session, 3, 1, /*timeout_ms=*/20);
  PassTime(20 * kMs);
  device.FailJobs(absl::InternalError("the core stalled"));
  ASSERT_TRUE(device.Release());
  EXPECT_EQ(session.sink->count(), 1U);
  EXPECT_EQ(service->Status().jobs_running, 0U);
  EXPECT_EQ(service->Status().jobs_failed, 1U);
}

TEST_F(HangTest, CoreAndMemoryArePinnedUntilTheDeviceGivesThemBack) {
  const TestSession session = OpenOn(0);
  Start(session, 0);
  const uint32_t held = device.memories();
  PassTime(options.scheduling.hang);
  ASSERT_EQ(session.sink->count(), 1U);
  ASSERT_TRUE(session->DestroyContext(1).ok());
  for (uint32_t buffer : {100, 101}) {
    ASSERT_TRUE(session->ReleaseBuffer(buffer).ok());
  }
  RunLoops();
  EXPECT_EQ(device.memories(), held);
  ASSERT_TRUE(device.Release());
  RunLoops();
  EXPECT_LE(device.memories(), held - 2);
  EXPECT_EQ(memory().io, 0U);
  EXPECT_EQ(device.violations(), 0U);
}

TEST_F(HangTest, SessionThatEndsUnderItsHungJobLeavesNothing) {
  const TestSession session = OpenOn(0);
  Start(session, 0, 1, /*timeout_ms=*/20);
  PassTime(20 * kMs);
  service->CloseSession(session->id());
  PassTime(options.scheduling.hang);
  EXPECT_EQ(service->Status().jobs_running, 1U);
  ASSERT_TRUE(device.Release());
  RunLoops();
  EXPECT_EQ(session.sink->count(), 1U);
  EXPECT_EQ(service->Status().jobs_running, 0U);
  EXPECT_EQ(memory().io, 0U);
}

TEST_F(HangTest, DeviceMayEndWhatNobodyWaitsForAnyMore) {
  const TestSession late = OpenOn(0);
  const TestSession gone = OpenOn(1);
  const TestSession stays = OpenOn(2);
  Start(late, 0, 1, /*timeout_ms=*/20);
  Start(gone, 0, 1);
  Start(stays, 0, 1);
  EXPECT_EQ(device.unwanted(), 0U);
  PassTime(20 * kMs);
  EXPECT_EQ(device.unwanted(), 1U);
  service->CloseSession(gone->id());
  RunLoops();
  EXPECT_EQ(device.unwanted(), 2U);
  while (device.Release()) {
  }
  RunLoops();
  EXPECT_EQ(stays.sink->last().status, absl::OkStatus());
}

TEST_F(HangTest, JobOfASessionThatHasEndedIsReportedWhenItHangs) {
  const TestSession session = OpenOn(0);
  Start(session, 0);
  service->CloseSession(session->id());
  PassTime(options.scheduling.hang);
  EXPECT_EQ(session.sink->count(), 0U);
  EXPECT_EQ(service->Status().jobs_hung, 1U);
  ASSERT_TRUE(device.Release());
  EXPECT_EQ(session.sink->count(), 0U);
}

TEST_F(HangTest, OperatorIsToldOnceAndAgainWhenTheCoreIsBack) {
  const TestSession session = OpenOn(2);
  Start(session, 0, 12, /*timeout_ms=*/20);
  // That a program is impatient is its own affair.
  PassTime(20 * kMs);
  EXPECT_TRUE(log_.lines.empty());
  PassTime(options.scheduling.hang);
  ASSERT_EQ(log_.lines.size(), 1U);
  EXPECT_NE(log_.lines[0].find("frame 1012 of context 1 of session 1 (pid 100 "
                               "'cam'), model 'm.onnx', did not finish on core "
                               "2 within 5000 ms"),
            std::string::npos)
      << log_.lines[0];
  PassTime(base::kSecond);
  ASSERT_TRUE(device.Release());
  RunLoops();
  ASSERT_EQ(log_.lines.size(), 2U);
  EXPECT_NE(log_.lines[1].find("after 6020 ms: core 2 can be used again"),
            std::string::npos)
      << log_.lines[1];
}

TEST_F(HangTest, HungGangHoldsAllItsCores) {
  const TestSession gang = Open();
  MakeReady(gang, 1, kHangModel, 0, /*core_mask=*/3);
  const TestSession second = OpenOn(1, 200);
  Start(gang, 0);
  device.HoldJobs(false);
  PassTime(options.scheduling.hang);
  EXPECT_EQ(Code(gang), absl::StatusCode::kDeadlineExceeded);
  Start(second, 0);
  EXPECT_EQ(second.sink->count(), 0U);
  ASSERT_TRUE(device.Release());
  RunReady();
  EXPECT_EQ(Code(second), absl::StatusCode::kOk);
  EXPECT_EQ(device.violations(), 0U);
}

TEST_F(HangTest, CoresThatAGangKeptAreOthersOnceItsLastOneHangs) {
  const TestSession stuck = OpenOn(0);
  Start(stuck, 0);
  const TestSession gang = Open(200);
  MakeReady(gang, 1, kHangModel, 0, /*core_mask=*/3);
  Start(gang, 0);
  // Its run is expected to end after that of the core the gang waits for.
  const TestSession other = Open(300);
  MakeReady(other, 1, "bytes=16 modelled=50000", 0, /*core_mask=*/2);
  Start(other, 0);
  ASSERT_EQ(device.held(), 1U);
  PassTime(options.scheduling.hang);
  EXPECT_EQ(device.held(), 2U);
}

TEST_F(HangTest, IdleDaemonHasNoAlarmSet) {
  const TestSession session = OpenOn(0);
  device.HoldJobs(false);
  Start(session, 0);
  EXPECT_EQ(Code(session), absl::StatusCode::kOk);
  PassTime(options.scheduling.hang);
  EXPECT_EQ(waker.alarm, kNever);
  const uint32_t alarms = waker.alarms;
  PassTime(600 * base::kSecond);
  EXPECT_EQ(waker.alarms, alarms);
}

TEST_F(HangTest, JobThatComesAfterALookThatFoundNothingIsWatchedToo) {
  const TestSession session = OpenOn(0);
  device.HoldJobs(false);
  Start(session, 0, 1);
  PassTime(2 * options.scheduling.hang);
  device.HoldJobs(true);
  Start(session, 0, 2);
  PassTime(options.scheduling.hang);
  EXPECT_EQ(session.sink->count(), 2U);
  EXPECT_EQ(service->Status().jobs_hung, 1U);
}

TEST_F(HangTest, WatchOverJobsWithoutALimitSetsOneAlarmInAHangPeriod) {
  const TestSession session = OpenOn(0);
  device.HoldJobs(false);
  for (uint32_t frame = 1; frame <= 1000; ++frame) {
    Start(session, 0, frame);
    PassTime(20 * kMs);  // 50 frames a second, for 20 s
  }
  EXPECT_EQ(session.sink->count(), 1000U);
  EXPECT_LE(waker.alarms, 5U);
}

TEST_F(HangTest, JobThatBeginsLateInAPeriodIsFoundAfterItsOwnTime) {
  const TestSession first = OpenOn(0);
  const TestSession second = OpenOn(1, 200);
  Start(first, 0);
  PassTime(3 * base::kSecond);
  Start(second, 0);
  PassTime(2 * base::kSecond);
  EXPECT_EQ(first.sink->count(), 1U);
  EXPECT_EQ(second.sink->count(), 0U);
  PassTime(3 * base::kSecond);
  EXPECT_EQ(second.sink->count(), 1U);
  EXPECT_EQ(service->Status().jobs_hung, 2U);
}

TEST_F(HangTest, TimeOnTheCoreIsChargedToTheEnd) {
  const TestSession session = OpenOn(0);
  Start(session, 0, 1, /*timeout_ms=*/20);
  PassTime(50 * kMs);
  ASSERT_TRUE(device.Release());
  EXPECT_EQ(service->Sessions()[0].npu_us, 50'000U);
  EXPECT_EQ(service->Sessions()[0].jobs, 0U);
  EXPECT_EQ(service->Status().cores[0].busy, 50 * kMs);
}

}  // namespace
}  // namespace rknnd::core
