// Tests of a context's sets of bindings, through a session: which set a run
// meets, what a set shares with set 0, and what all sets hold.

#include "daemon/core/contexts/binding_sets.h"

#include <string>

#include "daemon/core/testing/core_fixture.h"
#include "daemon/core/testing/words.h"
#include "gtest/gtest.h"

namespace rknnd::core {
namespace {

using driver::Direction;
using testing::TestSession;

class BindingSetsTest : public testing::CoreTest {
 protected:
  static constexpr char kModel[] = "inputs=2 outputs=1 bytes=1000";

  BindingSetsTest() : session_(Open()) {
    Upload(session_, kModel);
    Create(session_, 1, kModel);
    for (uint32_t buffer = 1; buffer <= 6; ++buffer) {
      EXPECT_TRUE(AllocateNow(session_, buffer, 4096, 0).ok());
    }
  }
  absl::Status Bind(uint32_t set, Direction direction, uint32_t index,
                    uint32_t buffer) {
    BindRequest request =
        BindTo(1, direction, index, buffer, buffer == 0 ? 0 : 4096);
    request.set = set;
    return session_->Bind(request);
  }
  void BindFirstSet() {
    ASSERT_TRUE(Bind(0, Direction::kInput, 0, 1).ok());
    ASSERT_TRUE(Bind(0, Direction::kInput, 1, 2).ok());
    ASSERT_TRUE(Bind(0, Direction::kOutput, 0, 3).ok());
  }
  // How a run on `set` ended.
  absl::Status Run(uint32_t set) {
    JobSubmission submission;
    submission.context = 1;
    submission.sequence = ++sequence_;
    submission.frame = sequence_;
    submission.set = set;
    EXPECT_TRUE(session_->gate()->Submit(submission).ok());
    RunReady();
    return session_.sink->last().status;
  }
  uint32_t Bindings(uint32_t buffer) {
    for (const BufferReport& report : service->Buffers()) {
      if (report.id == buffer) return report.bindings;
    }
    return 0;
  }

  TestSession session_;
  uint32_t sequence_ = 0;
};

TEST_F(BindingSetsTest, SetWithNothingOfItsOwnIsSetZero) {
  EXPECT_EQ(Run(5).code(), absl::StatusCode::kFailedPrecondition);
  BindFirstSet();
  EXPECT_EQ(Run(0), absl::OkStatus());
  EXPECT_EQ(Run(7), absl::OkStatus());
}

TEST_F(BindingSetsTest, SetCompletesItselfFromSetZero) {
  ASSERT_TRUE(Bind(2, Direction::kInput, 0, 4).ok());
  EXPECT_EQ(Run(2).code(), absl::StatusCode::kFailedPrecondition);
  BindFirstSet();
  EXPECT_EQ(Run(2), absl::OkStatus());
}

TEST_F(BindingSetsTest, SetZeroHasNothingFromTheOthers) {
  ASSERT_TRUE(Bind(1, Direction::kInput, 0, 1).ok());
  ASSERT_TRUE(Bind(1, Direction::kInput, 1, 2).ok());
  ASSERT_TRUE(Bind(1, Direction::kOutput, 0, 3).ok());
  EXPECT_EQ(Run(1), absl::OkStatus());
  EXPECT_EQ(Run(0).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Run(2).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(BindingSetsTest, SetTakenAwayFromShowsSetZeroAgain) {
  BindFirstSet();
  // Where set 0's output is: a conflict in set 1 only.
  ASSERT_TRUE(Bind(1, Direction::kInput, 0, 3).ok());
  EXPECT_EQ(Run(1).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Run(0), absl::OkStatus());
  ASSERT_TRUE(Bind(1, Direction::kInput, 0, 0).ok());
  EXPECT_EQ(Run(1), absl::OkStatus());
}

TEST_F(BindingSetsTest, SetFollowsChangesOfSetZeroWhereItHasNothing) {
  BindFirstSet();
  ASSERT_TRUE(Bind(1, Direction::kInput, 0, 4).ok());
  ASSERT_TRUE(Bind(0, Direction::kOutput, 0, 0).ok());
  EXPECT_EQ(Run(1).code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(Bind(0, Direction::kInput, 0, 0).ok());
  ASSERT_TRUE(Bind(0, Direction::kOutput, 0, 5).ok());
  EXPECT_EQ(Run(1), absl::OkStatus());
  EXPECT_EQ(Run(0).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(BindingSetsTest, SetThatDoesNotExistIsRefusedByNumber) {
  BindFirstSet();
  const absl::Status bound = Bind(8, Direction::kInput, 0, 1);
  EXPECT_EQ(bound.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(bound.message().find("set 8"), std::string::npos) << bound;
  FrameRequest frame;
  frame.context = 1;
  frame.set = UINT32_MAX;
  EXPECT_EQ(session_->BindFrame(frame).code(),
            absl::StatusCode::kInvalidArgument);
  const absl::Status run = Run(8);
  EXPECT_EQ(run.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(run.message().find("set 8"), std::string::npos) << run;
}

TEST_F(BindingSetsTest, EachBindingOfABufferIsCountedOnce) {
  BindFirstSet();
  ASSERT_TRUE(Bind(1, Direction::kInput, 0, 4).ok());
  ASSERT_TRUE(Bind(7, Direction::kInput, 1, 4).ok());
  ASSERT_TRUE(Bind(7, Direction::kInput, 0, 1).ok());
  EXPECT_EQ(Bindings(4), 2U);
  EXPECT_EQ(Bindings(1), 2U);
  EXPECT_EQ(Bindings(3), 1U);
  ASSERT_TRUE(Bind(7, Direction::kInput, 1, 0).ok());
  EXPECT_EQ(Bindings(4), 1U);
}

TEST_F(BindingSetsTest, ReleasedBufferLivesAsLongAsASetHasIt) {
  BindFirstSet();
  ASSERT_TRUE(Bind(3, Direction::kInput, 0, 4).ok());
  ASSERT_TRUE(session_->ReleaseBuffer(4).ok());
  EXPECT_EQ(Run(3), absl::OkStatus());
  const uint64_t before = service->Memory().kinds.io;
  ASSERT_TRUE(Bind(3, Direction::kInput, 0, 0).ok());
  EXPECT_EQ(service->Memory().kinds.io, before - 4096);
}

TEST_F(BindingSetsTest, RunKeepsItsSetWhileItIsBoundAnew) {
  BindFirstSet();
  ASSERT_TRUE(Bind(1, Direction::kOutput, 0, 4).ok());
  device.HoldJobs(true);
  JobSubmission submission;
  submission.context = 1;
  submission.sequence = 1;
  submission.set = 1;
  ASSERT_TRUE(session_->gate()->Submit(submission).ok());
  RunReady();
  ASSERT_TRUE(Bind(1, Direction::kOutput, 0, 5).ok());
  ASSERT_TRUE(session_->ReleaseBuffer(4).ok());
  const uint64_t before = service->Memory().kinds.io;
  ASSERT_TRUE(device.Release());
  EXPECT_EQ(session_.sink->last().status, absl::OkStatus());
  EXPECT_EQ(service->Memory().kinds.io, before - 4096);
  EXPECT_EQ(device.violations(), 0U);
}

TEST_F(BindingSetsTest, ContextThatGoesTakesAllItsSets) {
  BindFirstSet();
  for (uint32_t set = 1; set < kBindingSets; ++set) {
    ASSERT_TRUE(Bind(set, Direction::kInput, 0, 4).ok());
  }
  ASSERT_TRUE(session_->ReleaseBuffer(4).ok());
  const uint64_t before = service->Memory().kinds.io;
  ASSERT_TRUE(session_->DestroyContext(1).ok());
  EXPECT_EQ(service->Memory().kinds.io, before - 4096);
}

TEST_F(BindingSetsTest, InternalMemoryIsOneForAllSets) {
  const std::string model = "inputs=2 outputs=1 bytes=1000 internal=2000";
  Upload(session_, model);
  ASSERT_TRUE(session_->DestroyContext(1).ok());
  ASSERT_EQ(Create(session_, 1, model, kInternalOutside), absl::OkStatus());
  BindFirstSet();
  ASSERT_TRUE(Bind(4, Direction::kInput, 0, 4).ok());
  EXPECT_EQ(Run(4).code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(session_->SetInternalMemory({1, 6, 0, 4096}).ok());
  EXPECT_EQ(Run(4), absl::OkStatus());
  EXPECT_EQ(Bindings(6), 1U);
  // Where a set's own tensor is, that set cannot run, and no other is harmed.
  ASSERT_TRUE(Bind(5, Direction::kInput, 0, 6).ok());
  EXPECT_EQ(Run(5).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Run(4), absl::OkStatus());
}

TEST_F(BindingSetsTest, ShapeIsOneForAllSetsAndWhatIsTooSmallIsNotReplaced) {
  const std::string model = "bytes=64 row=256";
  Upload(session_, model);
  ASSERT_TRUE(session_->DestroyContext(1).ok());
  ASSERT_EQ(Create(session_, 1, model), absl::OkStatus());
  const auto choose = [this](uint32_t pixels) {
    return session_->SetShapes(
        1, {{{1, 1, pixels, 1}, driver::TensorLayout::kNhwc}});
  };
  ASSERT_TRUE(choose(64).ok());
  ASSERT_TRUE(Bind(0, Direction::kInput, 0, 1).ok());
  ASSERT_TRUE(Bind(0, Direction::kOutput, 0, 2).ok());
  BindRequest small = BindTo(1, Direction::kOutput, 0, 3, 64);
  small.set = 1;
  ASSERT_TRUE(session_->Bind(small).ok());
  ASSERT_TRUE(Bind(2, Direction::kOutput, 0, 4).ok());
  EXPECT_EQ(Run(1), absl::OkStatus());

  ASSERT_TRUE(choose(256).ok());
  EXPECT_EQ(Run(0), absl::OkStatus());
  EXPECT_EQ(Run(2), absl::OkStatus());
  const absl::Status lost = Run(1);
  EXPECT_EQ(lost.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(lost.message().find("does not fit the shape chosen since"),
            std::string::npos)
      << lost;
  EXPECT_EQ(Bindings(3), 0U);
  ASSERT_TRUE(Bind(1, Direction::kOutput, 0, 5).ok());
  EXPECT_EQ(Run(1), absl::OkStatus());
}

TEST_F(BindingSetsTest, FrameOfASetIsItsOwn) {
  BindFirstSet();
  FrameRequest frame;
  frame.context = 1;
  frame.index = 0;
  frame.set = 6;
  frame.format.pixels = driver::PixelFormat::kRgb888;
  frame.format.width = 16;
  frame.format.height = 2;
  frame.format.stride[0] = 48;
  frame.planes[0] = {4, 0, 4096};
  const absl::Status bound = session_->BindFrame(frame);
  ASSERT_EQ(bound, absl::OkStatus());
  EXPECT_EQ(Bindings(4), 1U);
  EXPECT_EQ(Bindings(1), 1U);
  ASSERT_TRUE(Bind(0, Direction::kOutput, 0, 5).ok());
  EXPECT_EQ(Bindings(4), 1U);
  ASSERT_TRUE(Bind(6, Direction::kInput, 0, 0).ok());
  EXPECT_EQ(Bindings(4), 0U);
}

}  // namespace
}  // namespace rknnd::core
