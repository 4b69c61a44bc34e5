// Tests of runs: results, times, tokens, wake-ups, deadlines, failures.

#include "daemon/core/running/runner_impl.h"

#include <sys/mman.h>

#include <set>
#include <string>

#include "base/posix/mapping.h"
#include "daemon/core/testing/core_fixture.h"
#include "daemon/core/testing/words.h"
#include "gtest/gtest.h"

namespace rknnd::core {
namespace {

using testing::TestSession;

class RunnerTest : public testing::CoreTest {};

TEST_F(RunnerTest, JobReadsItsInputAndWritesItsOutput) {
  const TestSession session = Open();
  Upload(session, "bytes=4");
  Create(session, 1, "bytes=4");
  auto input = AllocateNow(session, 1, 4096, 0);
  auto output = AllocateNow(session, 2, 4096, 0);
  ASSERT_TRUE(input.ok() && output.ok());
  ASSERT_TRUE(
      session->Bind(BindTo(1, driver::Direction::kInput, 0, 1, 4)).ok());
  BindRequest bind = BindTo(1, driver::Direction::kOutput, 0, 2, 4);
  bind.offset = 100;
  ASSERT_TRUE(session->Bind(bind).ok());
  auto in = base::Mapping::OfFd(input->fd.get(), 0, 4096,
                                base::Mapping::Access::kReadWrite);
  auto out = base::Mapping::OfFd(output->fd.get(), 0, 4096,
                                 base::Mapping::Access::kRead);
  ASSERT_TRUE(in.ok() && out.ok());
  in->data()[3] = std::byte{41};

  ASSERT_TRUE(Submit(session, 1, 0).ok());
  RunReady();

  EXPECT_EQ(out->data()[103], std::byte{42});
  EXPECT_EQ(out->data()[104], std::byte{0});
}

TEST_F(RunnerTest, CompletionTellsQueueRunAndTotalTime) {
  const TestSession session = Open();
  MakeReady(session, 1, "bytes=16");
  device.set_run_time(70);
  ASSERT_TRUE(Submit(session, 1, 0).ok());
  clock.Advance(500);
  RunReady();
  const JobCompletion answer = session.sink->last();
  EXPECT_EQ(answer.queue, 500);
  EXPECT_EQ(answer.run, 70);
  EXPECT_EQ(answer.total, 500);
}

TEST_F(RunnerTest, DeviceIsToldSinceWhenAJobWaits) {
  const TestSession session = Open();
  MakeReady(session, 1, "bytes=16");
  const base::Nanoseconds submitted = clock.Now();
  ASSERT_TRUE(Submit(session, 1, 0).ok());
  clock.Advance(500);
  RunReady();
  ASSERT_EQ(device.runs().size(), 1U);
  EXPECT_EQ(device.runs()[0].submitted, submitted);
}

TEST_F(RunnerTest, FailedJobIsAnsweredWithTheDevicesReason) {
  const TestSession session = Open();
  MakeReady(session, 1, "bytes=16");
  device.FailJobs(absl::UnavailableError("core 0 is lost"));
  ASSERT_TRUE(Submit(session, 1, 0).ok());
  RunReady();
  EXPECT_EQ(session.sink->last().status,
            absl::UnavailableError("core 0 is lost"));
  EXPECT_EQ(service->Status().jobs_failed, 1U);
}

TEST_F(RunnerTest, ContextsSpreadOverFreeCores) {
  const TestSession session = Open();
  for (uint32_t context = 1; context <= 3; ++context) {
    MakeReady(session, context, "bytes=16");
  }
  device.HoldJobs(true);
  for (uint32_t context = 1; context <= 3; ++context) {
    ASSERT_TRUE(Submit(session, context, context).ok());
  }
  RunReady();
  ASSERT_EQ(device.held(), 3U);
  std::set<uint32_t> cores;
  for (const auto& run : device.runs()) cores.insert(run.core);
  EXPECT_EQ(cores.size(), 3U);
}

TEST_F(RunnerTest, CoreMaskDecidesTheCore) {
  const TestSession session = Open();
  MakeReady(session, 1, "bytes=16");
  ASSERT_TRUE(SetCoreMaskNow(session, 1, 4).ok());
  ASSERT_TRUE(Submit(session, 1, 0).ok());
  RunReady();
  EXPECT_EQ(session.sink->last().core, 2U);
}

TEST_F(RunnerTest, AWorkerIsWokenForAJobThatCanRunBeside) {
  const TestSession session = Open();
  MakeReady(session, 1, "bytes=16");
  MakeReady(session, 2, "bytes=16");
  ASSERT_TRUE(Submit(session, 1, 0).ok());
  RunReady();
  EXPECT_EQ(waker.count, 0U);
  ASSERT_TRUE(Submit(session, 1, 0).ok());
  ASSERT_TRUE(Submit(session, 2, 1).ok());
  RunReady();
  EXPECT_EQ(waker.count, 1U);
}

TEST_F(RunnerTest, AWorkerIsWokenWhenADeviceThreadFreesACore) {
  const TestSession session = Open();
  MakeReady(session, 1, "bytes=16");
  device.HoldJobs(true);
  ASSERT_TRUE(Submit(session, 1, 0).ok());
  ASSERT_TRUE(Submit(session, 1, 1).ok());
  RunReady();
  ASSERT_EQ(device.held(), 1U);
  ASSERT_TRUE(device.Release());
  EXPECT_EQ(waker.count, 1U);
  RunReady();
  EXPECT_EQ(device.held(), 1U);
}

TEST_F(RunnerTest, JobPastItsDeadlineIsAnsweredAndNotRun) {
  const TestSession session = Open();
  MakeReady(session, 1, "bytes=16");
  JobSubmission submission;
  submission.context = 1;
  submission.timeout_ms = 20;
  ASSERT_TRUE(session->gate()->Submit(submission).ok());
  clock.Advance(20 * base::kMillisecond);
  RunReady();
  EXPECT_EQ(session.sink->last().status.code(),
            absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(device.runs().empty());
  ASSERT_TRUE(Submit(session, 1, 0).ok());
  RunReady();
  EXPECT_EQ(session.sink->last().status, absl::OkStatus());
}

TEST_F(RunnerTest, CountsFollowAJobThroughTheDaemon) {
  const TestSession session = Open();
  MakeReady(session, 1, "bytes=16");
  device.set_run_time(3 * base::kMicrosecond);
  device.HoldJobs(true);
  ASSERT_TRUE(Submit(session, 1, 0).ok());
  EXPECT_EQ(service->Status().jobs_queued, 1U);
  RunReady();
  EXPECT_EQ(service->Status().jobs_queued, 0U);
  EXPECT_EQ(service->Status().jobs_running, 1U);
  clock.Advance(3 * base::kMicrosecond);
  ASSERT_TRUE(device.Release());
  EXPECT_EQ(service->Status().jobs_running, 0U);
  EXPECT_EQ(service->Status().jobs_done, 1U);
  EXPECT_EQ(service->Sessions()[0].jobs, 1U);
  EXPECT_EQ(service->Sessions()[0].npu_us, 3U);
  EXPECT_EQ(service->Contexts()[0].jobs, 1U);
}

TEST_F(RunnerTest, EnterWorkerPreparesTheDevice) {
  service->runner().EnterWorker();
  EXPECT_EQ(device.entered(), 1U);
}

TEST_F(RunnerTest, CoreIsBusyFromTheStartOfAJobToItsEnd) {
  const TestSession session = Open();
  MakeReady(session, 1, "bytes=16", /*flags=*/0, /*core_mask=*/2);
  device.HoldJobs(true);
  ASSERT_TRUE(Submit(session, 1, 0).ok());
  clock.Advance(50);
  RunReady();
  clock.Advance(300);
  EXPECT_EQ(service->Status().cores[1].busy, 300);
  EXPECT_EQ(service->Status().cores[1].jobs, 0U);
  ASSERT_TRUE(device.Release());
  clock.Advance(1000);
  ASSERT_EQ(service->Status().cores.size(), 3U);
  EXPECT_EQ(service->Status().cores[1].busy, 300);
  EXPECT_EQ(service->Status().cores[1].jobs, 1U);
  EXPECT_EQ(service->Status().cores[0].busy, 0);
}

TEST_F(RunnerTest, CoreThatIsNeverIdleIsBusyAllTheTime) {
  const TestSession session = Open();
  MakeReady(session, 1, "bytes=16", /*flags=*/0, /*core_mask=*/1);
  device.HoldJobs(true);
  for (uint32_t i = 1; i <= 3; ++i) {
    ASSERT_TRUE(Submit(session, 1, 0, i).ok());
    RunReady();
    clock.Advance(100);
    EXPECT_EQ(service->Status().cores[0].busy, 100 * i);
    ASSERT_TRUE(device.Release());
    EXPECT_EQ(service->Status().cores[0].busy, 100 * i);
  }
  EXPECT_EQ(service->Status().cores[0].jobs, 3U);
}

TEST_F(RunnerTest, TimeOfAJobThatFailedIsNotThatOfTheGoodOnes) {
  const TestSession session = Open();
  MakeReady(session, 1, "bytes=16");
  device.set_run_time(3 * base::kMicrosecond);
  device.HoldJobs(true);
  for (uint32_t sequence = 1; sequence <= 2; ++sequence) {
    ASSERT_TRUE(Submit(session, 1, 0, sequence).ok());
    RunReady();
    clock.Advance(3 * base::kMicrosecond);
    ASSERT_TRUE(device.Release());
    device.FailJobs(absl::InternalError("the core stalled"));
  }
  EXPECT_EQ(service->Sessions()[0].jobs, 1U);
  EXPECT_EQ(service->Sessions()[0].run_us, 3U);
  EXPECT_EQ(service->Sessions()[0].npu_us, 6U);
}

TEST_F(RunnerTest, SessionSaysHowLongItsJobsWaited) {
  const TestSession session = Open();
  MakeReady(session, 1, "bytes=16");
  for (uint32_t i = 1; i <= 2; ++i) {
    ASSERT_TRUE(Submit(session, 1, 0, i).ok());
    clock.Advance(1500 * base::kMicrosecond);
    RunReady();
  }
  EXPECT_EQ(service->Sessions()[0].queue_us, 3000U);
}

constexpr uint32_t kGang012 = 7;

TEST_F(RunnerTest, GangJobRunsOnAllItsCoresInTheArenaOfTheLowest) {
  const TestSession session = Open();
  MakeReady(session, 1, "internal=8192", /*flags=*/0, kGang01);
  EXPECT_EQ(memory().internal, 8192U);
  ASSERT_TRUE(Submit(session, 1, 0).ok());
  RunReady();
  ASSERT_EQ(device.runs().size(), 1U);
  EXPECT_EQ(device.runs()[0].core, 0U);
  EXPECT_EQ(device.runs()[0].core_mask, 0b011U);
  EXPECT_EQ(device.runs()[0].internal_size, 8192U);
  EXPECT_EQ(device.runs()[0].gang_internal, 0U);
  EXPECT_EQ(session.sink->last().status, absl::OkStatus());
  EXPECT_EQ(session.sink->last().core, 0U);
}

TEST_F(RunnerTest, GangOfABatchModelHasTheArenaOfEachCore) {
  const TestSession session = Open();
  MakeReady(session, 1, "internal=8192 batch=4", /*flags=*/0, kGang012);
  EXPECT_EQ(memory().internal, 3 * 8192U);
  ASSERT_TRUE(Submit(session, 1, 0).ok());
  RunReady();
  ASSERT_EQ(device.runs().size(), 1U);
  EXPECT_EQ(device.runs()[0].gang_internal, 2U);
  // One of a single core takes no other's.
  ASSERT_TRUE(SetCoreMaskNow(session, 1, 2).ok());
  ASSERT_TRUE(Submit(session, 1, 0, 2).ok());
  RunReady();
  EXPECT_EQ(device.runs()[1].gang_internal, 0U);
  EXPECT_EQ(device.violations(), 0U);
}

TEST_F(RunnerTest, BatchWithoutAMaskSpreadsOverIdleCoresWithAnArenaOfEach) {
  const TestSession session = Open();
  MakeReady(session, 1, "internal=8192 batch=2");
  MakeReady(session, 2, "internal=8192 batch=2", /*flags=*/0, /*mask=*/2);
  ASSERT_TRUE(Submit(session, 1, 0).ok());
  RunReady();
  ASSERT_TRUE(Submit(session, 2, 1).ok());
  RunReady();
  ASSERT_EQ(device.runs().size(), 2U);
  EXPECT_EQ(device.runs()[0].core_mask, 0b011U);
  EXPECT_EQ(device.runs()[0].core, 0U);
  EXPECT_EQ(device.runs()[0].gang_internal, 1U);
  EXPECT_EQ(device.runs()[1].core_mask, 0b010U);
  EXPECT_EQ(device.runs()[1].gang_internal, 0U);
  EXPECT_EQ(device.violations(), 0U);
  for (const JobCompletion& answer : session.sink->all()) {
    EXPECT_EQ(answer.status, absl::OkStatus());
  }
}

// Layers of a dumped run are looked at one after the other.
TEST_F(RunnerTest, DumpedBatchRunsOnItsCoreAlone) {
  const TestSession session = Open();
  MakeReady(session, 1, "internal=8192 batch=3 layers=2");
  ASSERT_TRUE(session->ArmDump(1).ok());
  ASSERT_TRUE(Submit(session, 1, 0).ok());
  RunReady();
  ASSERT_EQ(device.runs().size(), 1U);
  EXPECT_EQ(device.runs()[0].core_mask, 0b001U);
  EXPECT_EQ(device.runs()[0].gang_internal, 0U);
}

TEST_F(RunnerTest, RunTimesOfTheModelAreRecorded) {
  const TestSession session = Open();
  MakeReady(session, 1, "bytes=16");
  device.set_run_time(7 * base::kMillisecond);
  ASSERT_TRUE(Submit(session, 1, 0).ok());
  RunReady();
  EXPECT_EQ(service->Models()[0].run, 7 * base::kMillisecond);
  device.set_run_time(15 * base::kMillisecond);
  device.FailJobs(absl::InternalError("the core stalled"));
  ASSERT_TRUE(Submit(session, 1, 0, 2).ok());
  RunReady();
  EXPECT_EQ(service->Models()[0].run, 7 * base::kMillisecond);
}

TEST_F(RunnerTest, AllCoresOfAGangAreBusy) {
  const TestSession session = Open();
  MakeReady(session, 1, "bytes=16", /*flags=*/0, kGang01);
  device.HoldJobs(true);
  ASSERT_TRUE(Submit(session, 1, 0).ok());
  RunReady();
  clock.Advance(300);
  EXPECT_EQ(service->Status().cores[0].busy, 300);
  EXPECT_EQ(service->Status().cores[1].busy, 300);
  EXPECT_EQ(service->Status().cores[2].busy, 0);
  EXPECT_EQ(service->Status().jobs_running, 1U);
  ASSERT_TRUE(device.Release());
  clock.Advance(100);
  for (const size_t core : {0, 1}) {
    EXPECT_EQ(service->Status().cores[core].busy, 300);
    EXPECT_EQ(service->Status().cores[core].jobs, 1U);
  }
  EXPECT_EQ(service->Status().jobs_done, 1U);
}

TEST_F(RunnerTest, EndOfAGangWakesAWorkerForWhoWaitedForItsCores) {
  const TestSession session = Open();
  MakeReady(session, 1, "bytes=16", /*flags=*/0, kGang012);
  MakeReady(session, 2, "bytes=16", /*flags=*/0, /*core_mask=*/1);
  MakeReady(session, 3, "bytes=16", /*flags=*/0, /*core_mask=*/4);
  device.HoldJobs(true);
  for (uint32_t context = 1; context <= 3; ++context) {
    ASSERT_TRUE(Submit(session, context, context).ok());
  }
  RunReady();
  ASSERT_EQ(device.held(), 1U);
  ASSERT_TRUE(device.Release());
  EXPECT_EQ(waker.count, 1U);
  RunReady();
  EXPECT_EQ(device.held(), 2U);
  EXPECT_EQ(device.violations(), 0U);
}

TEST_F(RunnerTest, SessionThatEndsTakesItsQueuedGangAlongAndFreesTheCores) {
  const TestSession session = Open();
  const TestSession other = Open(200);
  MakeReady(session, 1, "internal=4096", /*flags=*/0, kGang01);
  MakeReady(other, 1, "internal=4096", /*flags=*/0, /*core_mask=*/2);
  device.HoldJobs(true);
  ASSERT_TRUE(Submit(other, 1, 0).ok());
  RunReady();
  ASSERT_TRUE(Submit(session, 1, 0).ok());
  ASSERT_TRUE(Submit(other, 1, 1).ok());
  RunReady();
  ASSERT_EQ(device.held(), 1U);  // the gang waits for core 1
  service->CloseSession(session->id());
  ASSERT_TRUE(device.Release());
  RunReady();
  ASSERT_EQ(device.held(), 1U);
  EXPECT_EQ(device.runs().back().core_mask, 0b010U);
  ASSERT_TRUE(device.Release());
  EXPECT_EQ(other.sink->count(), 2U);
  EXPECT_EQ(session.sink->count(), 0U);
  EXPECT_EQ(service->Status().jobs_queued, 0U);
}

TEST_F(RunnerTest, CancelledGangWakesAWorkerForWhomItKeptFromItsCores) {
  const TestSession session = Open();
  const TestSession other = Open(200);
  MakeReady(session, 1, "bytes=16", /*flags=*/0, kGang01);
  MakeReady(other, 1, "bytes=16", /*flags=*/0, /*core_mask=*/2);
  MakeReady(other, 2, "bytes=16", /*flags=*/0, /*core_mask=*/1);
  device.HoldJobs(true);
  ASSERT_TRUE(Submit(other, 1, 0).ok());
  RunReady();
  ASSERT_TRUE(Submit(session, 1, 0).ok());
  // Would end later than the job that the gang waits for.
  clock.Advance(base::kMillisecond);
  ASSERT_TRUE(Submit(other, 2, 1).ok());
  RunReady();
  ASSERT_EQ(device.held(), 1U);  // core 0 is kept for the gang
  const uint32_t before = waker.count;
  ASSERT_TRUE(session->DestroyContext(1).ok());
  EXPECT_GT(waker.count, before);
  RunReady();
  EXPECT_EQ(device.held(), 2U);
}

TEST_F(RunnerTest, RunningGangOfASessionThatEndsGivesItsCoresBack) {
  const TestSession session = Open();
  const TestSession other = Open(200);
  MakeReady(session, 1, "internal=4096", /*flags=*/0, kGang012);
  MakeReady(other, 1, "internal=4096");
  device.HoldJobs(true);
  ASSERT_TRUE(Submit(session, 1, 0).ok());
  RunReady();
  ASSERT_TRUE(Submit(other, 1, 0).ok());
  service->CloseSession(session->id());
  RunReady();
  EXPECT_EQ(device.held(), 1U);
  ASSERT_TRUE(device.Release());
  RunReady();
  ASSERT_TRUE(device.Release());
  EXPECT_EQ(session.sink->count(), 0U);
  EXPECT_EQ(other.sink->last().status, absl::OkStatus());
  EXPECT_EQ(device.violations(), 0U);
}

TEST_F(RunnerTest, ContextThatGoesCancelsItsQueuedGang) {
  const TestSession session = Open();
  MakeReady(session, 1, "bytes=16", /*flags=*/0, kGang01);
  device.HoldJobs(true);
  ASSERT_TRUE(Submit(session, 1, 0).ok());
  ASSERT_TRUE(Submit(session, 1, 1).ok());
  RunReady();
  ASSERT_TRUE(session->DestroyContext(1).ok());
  EXPECT_EQ(session.sink->last().status.code(), absl::StatusCode::kCancelled);
  ASSERT_TRUE(device.Release());
  EXPECT_EQ(session.sink->last().status, absl::OkStatus());
}

TEST_F(RunnerTest, DrainWaitsForQueuedAndRunningGangs) {
  const TestSession session = Open();
  MakeReady(session, 1, "bytes=16", /*flags=*/0, kGang012);
  MakeReady(session, 2, "bytes=16", /*flags=*/0, kGang01);
  device.HoldJobs(true);
  ASSERT_TRUE(Submit(session, 1, 0).ok());
  ASSERT_TRUE(Submit(session, 2, 1).ok());
  RunReady();
  bool drained = false;
  DrainService([&] { drained = true; });
  ASSERT_TRUE(device.Release());
  RunReady();
  RunLoops();
  EXPECT_FALSE(drained);
  ASSERT_TRUE(device.Release());
  RunLoops();
  EXPECT_TRUE(drained);
  EXPECT_EQ(service->Status().jobs_done, 2U);
}

}  // namespace
}  // namespace rknnd::core
