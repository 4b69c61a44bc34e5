// Tests of submissions: what breaks the protocol, what is answered with an
// error, what happens to jobs whose context or session goes.

#include "daemon/core/running/job_gate_impl.h"

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "daemon/core/testing/core_fixture.h"
#include "gtest/gtest.h"

namespace rknnd::core {
namespace {

using testing::TestSession;

class JobGateTest : public testing::CoreTest {
 protected:
  JobGateTest() : session_(Open()) { MakeReady(session_, 1, "bytes=8"); }

  TestSession session_;
};

TEST_F(JobGateTest, JobIsAnsweredInItsSlotWithItsFrame) {
  ASSERT_TRUE(Submit(session_, 1, 17, 5).ok());
  RunReady();
  ASSERT_EQ(session_.sink->count(), 1U);
  const JobCompletion answer = session_.sink->last();
  EXPECT_EQ(answer.status, absl::OkStatus());
  EXPECT_EQ(answer.slot, 17U);
  EXPECT_EQ(answer.sequence, 5U);
  EXPECT_EQ(answer.frame, 1005U);
}

TEST_F(JobGateTest, SlotOutOfRangeIsAViolation) {
  EXPECT_EQ(Submit(session_, 1, kJobSlots).code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Submit(session_, 1, UINT32_MAX).code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(session_.sink->count(), 0U);
}

TEST_F(JobGateTest, SlotInFlightIsAViolation) {
  ASSERT_TRUE(Submit(session_, 1, 3).ok());
  EXPECT_EQ(Submit(session_, 1, 3).code(),
            absl::StatusCode::kFailedPrecondition);
  RunReady();
  EXPECT_EQ(session_.sink->count(), 1U);
}

TEST_F(JobGateTest, SlotIsFreeAgainAfterItsCompletion) {
  ASSERT_TRUE(Submit(session_, 1, 3, 1).ok());
  RunReady();
  ASSERT_TRUE(Submit(session_, 1, 3, 2).ok());
  RunReady();
  EXPECT_EQ(session_.sink->count(), 2U);
}

TEST_F(JobGateTest, UnknownContextIsAnsweredAndFreesTheSlot) {
  EXPECT_TRUE(Submit(session_, 99, 3).ok());
  EXPECT_EQ(session_.sink->last().status.code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(Submit(session_, 1, 3).ok());
}

TEST_F(JobGateTest, AnotherSessionsContextDoesNotExist) {
  const TestSession other = Open(2);
  EXPECT_TRUE(Submit(other, 1, 0).ok());
  EXPECT_EQ(other.sink->last().status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(session_.sink->count(), 0U);
}

TEST_F(JobGateTest, FullContextAnswersAtOnceAndNamesTheLimit) {
  for (uint32_t slot = 0; slot < options.limits.jobs_per_context; ++slot) {
    ASSERT_TRUE(Submit(session_, 1, slot).ok());
  }
  ASSERT_TRUE(Submit(session_, 1, 100).ok());
  ASSERT_EQ(session_.sink->count(), 1U);
  const absl::Status status = session_.sink->last().status;
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find("'jobs_per_context'"), std::string::npos);
}

// Submits the next job as soon as it has an answer.
class EagerSink final : public CompletionSink {
 public:
  void Complete(const JobCompletion& completion) override {
    statuses.push_back(completion.status);
    if (left == 0) return;
    --left;
    JobSubmission next;
    next.context = 1;
    next.slot = completion.slot;
    next.sequence = completion.sequence + 1;
    // By another worker: this one has more to do.
    std::thread([&] { EXPECT_TRUE(gate->Submit(next).ok()); }).join();
  }
  JobGate* gate = nullptr;
  int left = 3;
  std::vector<absl::Status> statuses;
};

TEST_F(JobGateTest, ContextThatIsKeptFullIsNeverTooFull) {
  const auto sink = std::make_shared<EagerSink>();
  auto opened =
      service->OpenSession({5, 1000, {}, "cam", false}, sink, nullptr);
  ASSERT_TRUE(opened.ok());
  MakeReady({*opened, nullptr, nullptr}, 1, "internal=4096");
  const std::shared_ptr<JobGate> gate = (*opened)->gate();
  sink->gate = gate.get();
  for (uint32_t slot = 0; slot < options.limits.jobs_per_context; ++slot) {
    JobSubmission job;
    job.context = 1;
    job.slot = slot;
    job.sequence = 1;
    ASSERT_TRUE(gate->Submit(job).ok());
  }
  RunReady();
  EXPECT_EQ(sink->statuses.size(), options.limits.jobs_per_context + 3);
  for (const absl::Status& status : sink->statuses) {
    EXPECT_EQ(status, absl::OkStatus());
  }
}

TEST_F(JobGateTest, InfoOnlyContextAnswersQueriesAndDoesNotRun) {
  Upload(session_, "internal=4096 weight=77");
  ASSERT_EQ(Create(session_, 2, "internal=4096 weight=77", 0x100),
            absl::OkStatus());
  EXPECT_EQ(memory().internal, 0U);
  EXPECT_EQ(session_->GetMemorySize(2)->weight, 77U);
  ASSERT_TRUE(Submit(session_, 2, 0).ok());
  EXPECT_EQ(session_.sink->last().status.code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(JobGateTest, DestroyedContextAnswersItsQueuedJobs) {
  device.HoldJobs(true);
  ASSERT_TRUE(Submit(session_, 1, 0, 1).ok());
  ASSERT_TRUE(Submit(session_, 1, 1, 2).ok());
  RunReady();

  ASSERT_TRUE(session_->DestroyContext(1).ok());

  ASSERT_EQ(session_.sink->count(), 1U);
  EXPECT_EQ(session_.sink->last().slot, 1U);
  EXPECT_EQ(session_.sink->last().status.code(), absl::StatusCode::kCancelled);
  ASSERT_TRUE(device.Release());
  ASSERT_EQ(session_.sink->count(), 2U);
  EXPECT_EQ(session_.sink->last().slot, 0U);
  EXPECT_EQ(session_.sink->last().status, absl::OkStatus());
}

TEST_F(JobGateTest, NumberOfADestroyedContextIsNewWhileItsJobRuns) {
  device.HoldJobs(true);
  ASSERT_TRUE(Submit(session_, 1, 0, 1).ok());
  RunReady();
  ASSERT_TRUE(session_->DestroyContext(1).ok());
  for (uint32_t buffer : {100, 101}) {
    ASSERT_TRUE(session_->ReleaseBuffer(buffer).ok());
  }
  MakeReady(session_, 1, "bytes=8");
  ASSERT_TRUE(Submit(session_, 1, 1, 2).ok());
  RunReady();
  EXPECT_TRUE(device.Release());
  EXPECT_TRUE(device.Release());
  EXPECT_EQ(session_.sink->count(), 2U);
}

TEST_F(JobGateTest, EndedSessionRefusesSubmissions) {
  const auto gate = session_->gate();
  service->CloseSession(session_->id());
  EXPECT_EQ(gate->Submit({}).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(JobGateTest, QueuedJobsOfAClosedSessionVanish) {
  const TestSession other = Open(2);
  MakeReady(other, 1, "bytes=8");
  ASSERT_TRUE(Submit(session_, 1, 0).ok());
  ASSERT_TRUE(Submit(session_, 1, 1).ok());
  ASSERT_TRUE(Submit(other, 1, 0).ok());

  service->CloseSession(session_->id());
  RunReady();

  EXPECT_EQ(session_.sink->count(), 0U);
  EXPECT_EQ(other.sink->count(), 1U);
  EXPECT_EQ(service->Status().jobs_queued, 0U);
}

}  // namespace
}  // namespace rknnd::core
