// Limits, queues and cancels as a client meets them: through its ring and its
// socket, answered by workers and their timer while the device has the cores.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "daemon/transport/session/testing/test_daemon.h"
#include "proto/wire/codec.h"

namespace rknnd::transport {
namespace {

using ::testing::HasSubstr;
using testing::TestClient;
using testing::TestDaemon;

class LifecycleTest : public ::testing::Test {
 protected:
  LifecycleTest() : client_(daemon_.Connect()) {
    client_.SayHello();
    client_.MakeReady(1);
    daemon_.device().HoldJobs(true);
  }
  ~LifecycleTest() override {
    daemon_.device().HoldJobs(false);
    while (daemon_.device().Release()) {
    }
  }

  void Submit(uint32_t slot, uint64_t frame, uint32_t timeout_ms = 0,
              wire::RingOperation operation = wire::RingOperation::kRun) {
    wire::Submission entry{};
    entry.context = 1;
    entry.slot = slot;
    entry.frame = frame;
    entry.timeout_ms = timeout_ms;
    entry.operation = static_cast<uint32_t>(operation);
    client_.Submit(entry);
  }
  // Of context 1, on its core.
  void SubmitRunning(uint32_t slot, uint64_t frame, uint32_t timeout_ms = 0) {
    Submit(slot, frame, timeout_ms);
    WaitUntilHeld();
  }
  // The device has a job that it does not end.
  void WaitUntilHeld() {
    daemon_.WaitUntil([this](const core::StatusReport& /*status*/) {
      return daemon_.device().held() == 1;
    });
  }
  wire::Frame SetQueue(uint32_t policy, uint32_t depth,
                       uint64_t max_age_ns = 0) {
    wire::SetQueue queue{};
    queue.context = 1;
    queue.policy = policy;
    queue.depth = depth;
    queue.max_age_ns = max_age_ns;
    return client_.Call(wire::Verb::kSetQueue, queue);
  }
  static std::string ReasonOf(const wire::Frame& reply) {
    return wire::DecodeFailure(reply).message;
  }
  const wire::Completion& Completion(uint32_t slot) {
    return client_.ring()->completions[slot];
  }

  TestDaemon daemon_;
  TestClient client_;
};

TEST_F(LifecycleTest, WorkersTimerAnswersARunningJobAtItsTimeout) {
  SubmitRunning(3, 7, /*timeout_ms=*/5);
  EXPECT_FALSE(client_.HasEnded(3));
  daemon_.Advance(5 * base::kMillisecond);
  EXPECT_EQ(client_.WaitFor(3), base::Code::kDeadlineExceeded);
  EXPECT_THAT(client_.ReasonOf(3), HasSubstr("its timeout is 5 ms"));
  EXPECT_EQ(Completion(3).frame, 7U);
  // The slot is the client's again, at once.
  Submit(3, 8);
  ASSERT_TRUE(daemon_.device().Release());
  WaitUntilHeld();
  EXPECT_FALSE(client_.HasEnded(3));
  ASSERT_TRUE(daemon_.device().Release());
  EXPECT_EQ(client_.WaitFor(3), base::Code::kOk);
  EXPECT_EQ(Completion(3).frame, 8U);
}

TEST_F(LifecycleTest, CancelInTheRingIsAnsweredBehindWhatItTookBack) {
  SubmitRunning(0, 1);
  Submit(1, 2);
  Submit(2, 3);
  Submit(9, 0, 0, wire::RingOperation::kCancel);
  EXPECT_EQ(client_.WaitFor(9), base::Code::kOk);
  EXPECT_EQ(Completion(9).count, 2U);
  EXPECT_TRUE(client_.HasEnded(1));
  EXPECT_TRUE(client_.HasEnded(2));
  EXPECT_EQ(client_.WaitFor(1), base::Code::kCancelled);
  EXPECT_FALSE(client_.HasEnded(0));
  ASSERT_TRUE(daemon_.device().Release());
  EXPECT_EQ(client_.WaitFor(0), base::Code::kOk);
}

TEST_F(LifecycleTest, DroppedFrameIsAnsweredAndTheNextOneTellsOfIt) {
  ASSERT_EQ(SetQueue(1, 0).code, base::Code::kOk);
  SubmitRunning(0, 1);
  Submit(1, 2);
  Submit(2, 3);
  EXPECT_EQ(client_.WaitFor(1), base::Code::kAborted);
  EXPECT_THAT(client_.ReasonOf(1), HasSubstr("frame 3 came while it waited"));
  ASSERT_TRUE(daemon_.device().Release());
  EXPECT_EQ(client_.WaitFor(0), base::Code::kOk);
  EXPECT_EQ(Completion(0).drops, 1U);
}

TEST_F(LifecycleTest, WrongQueuesAreRefusedAndNothingChanges) {
  EXPECT_THAT(ReasonOf(SetQueue(2, 0)), HasSubstr("queue policy 2"));
  EXPECT_THAT(ReasonOf(SetQueue(1, 1'000'000)),
              HasSubstr("'jobs_per_context'"));
  EXPECT_THAT(ReasonOf(SetQueue(0, 1, ~uint64_t{0})), HasSubstr("max_age_ns"));
  wire::SetQueue elsewhere{};
  elsewhere.context = 77;
  EXPECT_EQ(client_.Call(wire::Verb::kSetQueue, elsewhere).code,
            base::Code::kNotFound);
  SubmitRunning(0, 1);
  Submit(1, 2);
  Submit(2, 3);
  for (uint32_t slot = 0; slot < 3; ++slot) {
    WaitUntilHeld();
    ASSERT_TRUE(daemon_.device().Release());
    EXPECT_EQ(client_.WaitFor(slot), base::Code::kOk);
  }
}

TEST_F(LifecycleTest, ClientThatDiesUnderALateJobLeavesNothing) {
  SubmitRunning(0, 1, /*timeout_ms=*/5);
  daemon_.Advance(5 * base::kMillisecond);
  ASSERT_EQ(client_.WaitFor(0), base::Code::kDeadlineExceeded);
  Submit(0, 2);
  client_.Close();
  daemon_.WaitUntil([](const core::StatusReport& status) {
    return status.sessions == 0 && status.jobs_queued == 0;
  });
  EXPECT_EQ(daemon_.Status().jobs_running, 1U);
  ASSERT_TRUE(daemon_.device().Release());
  EXPECT_EQ(daemon_.Status().jobs_running, 0U);
  EXPECT_EQ(daemon_.Status().memory.io, 0U);
}

}  // namespace
}  // namespace rknnd::transport
