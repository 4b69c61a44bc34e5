// Tests of how jobs of one context wait: in order, newest first, not too old;
// and of what is told of frames that were dropped.

#include <string>
#include <vector>

#include "daemon/core/testing/core_fixture.h"
#include "daemon/core/testing/words.h"
#include "gtest/gtest.h"

namespace rknnd::core {
namespace {

using testing::TestSession;

class QueuePolicyTest : public testing::CoreTest {
 protected:
  QueuePolicyTest() : session_(Open()) {
    MakeReady(session_, 1, "bytes=16", 0, /*core_mask=*/1);
    device.HoldJobs(true);
  }

  absl::Status SetQueue(QueuePolicy policy, uint32_t depth = 0,
                        base::Nanoseconds max_age = 0, uint32_t context = 1) {
    return session_->SetQueue({context, policy, depth, max_age});
  }
  // Frame `frame` in a slot of its own.
  void Push(uint64_t frame, uint32_t context = 1) {
    JobSubmission submission;
    submission.context = context;
    submission.slot = next_slot_++;
    submission.sequence = 1;
    submission.frame = frame;
    ASSERT_TRUE(session_->gate()->Submit(submission).ok());
  }
  void RunAll() {
    RunReady();
    while (device.Release()) RunReady();
  }
  // Frames by their answer's code, in the order in which they were answered.
  std::vector<uint64_t> Frames(absl::StatusCode code) const {
    std::vector<uint64_t> frames;
    for (const JobCompletion& answer : session_.sink->all()) {
      if (answer.status.code() == code) frames.push_back(answer.frame);
    }
    return frames;
  }
  using Numbers = std::vector<uint64_t>;

  TestSession session_;
  uint32_t next_slot_ = 0;
};

TEST_F(QueuePolicyTest, NewestFrameTakesThePlaceOfTheOneThatWaits) {
  ASSERT_TRUE(SetQueue(QueuePolicy::kNewest).ok());
  Push(11);
  RunReady();
  for (uint64_t frame = 12; frame <= 14; ++frame) Push(frame);
  EXPECT_EQ(Frames(absl::StatusCode::kAborted), (Numbers{12, 13}));
  EXPECT_EQ(session_.sink->all()[0].status.message(),
            "frame 12 of context 1 was dropped: frame 13 came while it waited");
  RunAll();
  EXPECT_EQ(Frames(absl::StatusCode::kOk), (Numbers{11, 14}));
}

TEST_F(QueuePolicyTest, NewestKeepsAsManyAsItsDepth) {
  ASSERT_TRUE(SetQueue(QueuePolicy::kNewest, 3).ok());
  for (uint64_t frame = 1; frame <= 6; ++frame) Push(frame);
  EXPECT_EQ(Frames(absl::StatusCode::kAborted), (Numbers{1, 2, 3}));
  RunReady();
  Push(7);
  EXPECT_EQ(Frames(absl::StatusCode::kAborted), (Numbers{1, 2, 3}));
  Push(8);
  EXPECT_EQ(Frames(absl::StatusCode::kAborted), (Numbers{1, 2, 3, 5}));
  RunAll();
  EXPECT_EQ(Frames(absl::StatusCode::kOk), (Numbers{4, 6, 7, 8}));
}

TEST_F(QueuePolicyTest, NewestAtTheLimitOfTheContextDropsToo) {
  const uint32_t limit = options.limits.jobs_per_context;
  ASSERT_TRUE(SetQueue(QueuePolicy::kNewest, limit).ok());
  Push(1);
  RunReady();
  for (uint64_t frame = 2; frame <= limit + 3; ++frame) Push(frame);
  EXPECT_TRUE(Frames(absl::StatusCode::kResourceExhausted).empty());
  RunAll();
  EXPECT_EQ(Frames(absl::StatusCode::kAborted).size() +
                Frames(absl::StatusCode::kOk).size(),
            limit + 3);
  EXPECT_EQ(Frames(absl::StatusCode::kOk).back(), limit + 3);
}

TEST_F(QueuePolicyTest, NewestIsTakenWhereAContextMayHaveOneJobOnly) {
  session_ = {};
  device.HoldJobs(false);
  options.limits.jobs_per_context = 1;
  StartService();
  session_ = Open();
  MakeReady(session_, 1, "bytes=16", 0, /*core_mask=*/1);
  device.HoldJobs(true);
  ASSERT_TRUE(SetQueue(QueuePolicy::kNewest).ok());
  Push(1);
  RunReady();
  for (uint64_t frame = 2; frame <= 5; ++frame) Push(frame);
  RunAll();
  EXPECT_EQ(Frames(absl::StatusCode::kAborted), (Numbers{2, 3, 4}));
  EXPECT_EQ(Frames(absl::StatusCode::kOk), (Numbers{1, 5}));
}

TEST_F(QueuePolicyTest, RunningFrameIsNeverDropped) {
  ASSERT_TRUE(SetQueue(QueuePolicy::kNewest).ok());
  Push(1);
  RunReady();
  for (uint64_t frame = 2; frame <= 20; ++frame) Push(frame);
  RunAll();
  EXPECT_EQ(Frames(absl::StatusCode::kOk), (Numbers{1, 20}));
}

TEST_F(QueuePolicyTest, FullFifoAnswersAtOnceAndKeepsTheOlder) {
  ASSERT_TRUE(SetQueue(QueuePolicy::kFifo, 2).ok());
  Push(1);
  RunReady();
  for (uint64_t frame = 2; frame <= 4; ++frame) Push(frame);
  ASSERT_EQ(Frames(absl::StatusCode::kResourceExhausted), (Numbers{4}));
  EXPECT_NE(session_.sink->last().status.message().find("2 may wait"),
            std::string::npos);
  RunAll();
  EXPECT_EQ(Frames(absl::StatusCode::kOk), (Numbers{1, 2, 3}));
  EXPECT_EQ(service->Status().jobs_dropped, 0U);
}

TEST_F(QueuePolicyTest, FrameOlderThanTheMaximumIsDroppedAndNotRun) {
  ASSERT_TRUE(SetQueue(QueuePolicy::kFifo, 0, 30 * kMs).ok());
  Push(1);
  RunReady();
  Push(2);
  PassTime(10 * kMs);
  Push(3);
  PassTime(20 * kMs - 1);
  EXPECT_EQ(session_.sink->count(), 0U);
  PassTime(1);
  EXPECT_EQ(Frames(absl::StatusCode::kAborted), (Numbers{2}));
  EXPECT_EQ(session_.sink->last().status.message(),
            "frame 2 of context 1 was dropped: it waited 30 ms for its core, "
            "its queue's maximum age is 30 ms");
  RunAll();
  EXPECT_EQ(Frames(absl::StatusCode::kOk), (Numbers{1, 3}));
  EXPECT_EQ(device.runs().size(), 2U);
}

TEST_F(QueuePolicyTest, TooOldWhenItsTurnComesIsDroppedWithoutTheAlarm) {
  ASSERT_TRUE(SetQueue(QueuePolicy::kNewest, 1, 30 * kMs).ok());
  Push(1);
  RunReady();
  Push(2);
  clock.Advance(40 * kMs);
  ASSERT_TRUE(device.Release());
  RunReady();
  EXPECT_EQ(Frames(absl::StatusCode::kAborted), (Numbers{2}));
  EXPECT_EQ(device.runs().size(), 1U);
  EXPECT_EQ(service->Status().jobs_dropped, 1U);
  Push(3);
  RunAll();
  EXPECT_EQ(Frames(absl::StatusCode::kOk), (Numbers{1, 3}));
}

TEST_F(QueuePolicyTest, NextAnswerTellsHowManyWereDropped) {
  ASSERT_TRUE(SetQueue(QueuePolicy::kNewest).ok());
  Push(1);
  RunReady();
  for (uint64_t frame = 2; frame <= 4; ++frame) Push(frame);
  RunAll();
  std::vector<uint32_t> drops;
  for (const JobCompletion& answer : session_.sink->all()) {
    if (answer.status.ok()) drops.push_back(answer.drops);
  }
  EXPECT_EQ(drops, (std::vector<uint32_t>{2, 0}));
}

TEST_F(QueuePolicyTest, DropsAreCountedForContextSessionModelAndDaemon) {
  ASSERT_TRUE(SetQueue(QueuePolicy::kNewest).ok());
  MakeReady(session_, 2, "bytes=16 name=other");
  for (uint64_t frame = 1; frame <= 4; ++frame) Push(frame);
  Push(5, 2);
  RunAll();
  EXPECT_EQ(service->Status().jobs_dropped, 3U);
  EXPECT_EQ(service->Sessions()[0].drops, 3U);
  ASSERT_EQ(service->Contexts().size(), 2U);
  EXPECT_EQ(service->Contexts()[0].drops, 3U);
  EXPECT_EQ(service->Contexts()[0].policy, QueuePolicy::kNewest);
  EXPECT_EQ(service->Contexts()[1].drops, 0U);
}

TEST_F(QueuePolicyTest, ReportTellsHowManyWait) {
  Push(1);
  RunReady();
  Push(2);
  Push(3);
  EXPECT_EQ(service->Contexts()[0].queued, 2U);
  RunAll();
  EXPECT_EQ(service->Contexts()[0].queued, 0U);
}

TEST_F(QueuePolicyTest, PolicyIsInForceFromTheNextJobOn) {
  Push(1);
  Push(2);
  Push(3);
  ASSERT_TRUE(SetQueue(QueuePolicy::kNewest, 1, 10 * kMs).ok());
  EXPECT_EQ(session_.sink->count(), 0U);
  PassTime(20 * kMs);  // the age is of those that come now
  EXPECT_EQ(session_.sink->count(), 0U);
  Push(4);
  EXPECT_EQ(Frames(absl::StatusCode::kAborted), (Numbers{1, 2, 3}));
}

TEST_F(QueuePolicyTest, OtherContextsQueuesAreTheirOwn) {
  MakeReady(session_, 2, "bytes=16", 0, /*core_mask=*/1);
  ASSERT_TRUE(SetQueue(QueuePolicy::kNewest).ok());
  Push(1, 2);
  Push(2, 2);
  Push(3);
  Push(4);
  RunAll();
  EXPECT_EQ(Frames(absl::StatusCode::kAborted), (Numbers{3}));
  EXPECT_EQ(Frames(absl::StatusCode::kOk).size(), 3U);
}

TEST_F(QueuePolicyTest, WrongValuesAreRefusedWithTheLimitsName) {
  EXPECT_EQ(SetQueue(QueuePolicy::kFifo, 1, 0, 99).code(),
            absl::StatusCode::kNotFound);
  const absl::Status depth =
      SetQueue(QueuePolicy::kFifo, options.limits.jobs_per_context + 1);
  EXPECT_EQ(depth.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(depth.message().find("'jobs_per_context'"), std::string::npos);
  EXPECT_EQ(SetQueue(static_cast<QueuePolicy>(7)).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(SetQueue(QueuePolicy::kFifo, 0, -1).code(),
            absl::StatusCode::kInvalidArgument);
  service->CloseSession(session_->id());
  EXPECT_EQ(SetQueue(QueuePolicy::kFifo).code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(QueuePolicyTest, AgeBeyondTheClockIsNoBound) {
  ASSERT_TRUE(SetQueue(QueuePolicy::kFifo, 0, kNever).ok());
  Push(1);
  PassTime(1000 * base::kSecond);
  RunAll();
  EXPECT_EQ(Frames(absl::StatusCode::kOk), (Numbers{1}));
}

TEST_F(QueuePolicyTest, FrameNumbersMayWrapAndRepeat) {
  ASSERT_TRUE(SetQueue(QueuePolicy::kNewest).ok());
  Push(1);
  RunReady();
  for (const uint64_t frame : {UINT64_MAX, uint64_t{0}, uint64_t{0}}) {
    Push(frame);
  }
  RunAll();
  EXPECT_EQ(Frames(absl::StatusCode::kAborted), (Numbers{UINT64_MAX, 0}));
  EXPECT_EQ(Frames(absl::StatusCode::kOk), (Numbers{1, 0}));
}

TEST_F(QueuePolicyTest, SessionThatEndsWithFramesWaitingLeavesNothing) {
  ASSERT_TRUE(SetQueue(QueuePolicy::kNewest, 2, 10 * kMs).ok());
  for (uint64_t frame = 1; frame <= 3; ++frame) Push(frame);
  const size_t before = session_.sink->count();
  service->CloseSession(session_->id());
  PassTime(20 * kMs);
  EXPECT_EQ(session_.sink->count(), before);
  EXPECT_EQ(service->Status().jobs_queued, 0U);
  EXPECT_EQ(waker.alarm, kNever);
}

}  // namespace
}  // namespace rknnd::core
