// Tests of runs: results, times, tokens, wake-ups, deadlines, failures.

#include "daemon/core/runner_impl.h"

#include <sys/mman.h>

#include <set>
#include <string>

#include "base/posix/mapping.h"
#include "daemon/core/testing/core_fixture.h"
#include "gtest/gtest.h"

namespace rknnd::core {
namespace {

using testing::TestSession;

class RunnerTest : public testing::CoreTest {};

TEST_F(RunnerTest, JobReadsItsInputAndWritesItsOutput) {
  const TestSession session = Open();
  Upload(session, "bytes=4");
  Create(session, 1, "bytes=4");
  auto input = session->AllocateBuffer(1, 4096, 0);
  auto output = session->AllocateBuffer(2, 4096, 0);
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
  ASSERT_TRUE(session->SetCoreMask(1, 4).ok());
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
  ASSERT_TRUE(Submit(session, 1, 0, 1).ok());
  RunReady();
  device.FailJobs(absl::InternalError("the core stalled"));
  ASSERT_TRUE(Submit(session, 1, 0, 2).ok());
  RunReady();
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

}  // namespace
}  // namespace rknnd::core
