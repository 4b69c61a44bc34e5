// Tests of shapes through a session: which are taken, what happens to memory
// and jobs when they change.

#include "daemon/core/contexts/shape_rows.h"

#include <algorithm>
#include <string>
#include <vector>

#include "daemon/core/testing/core_fixture.h"
#include "gtest/gtest.h"

namespace rknnd::core {
namespace {

using driver::Direction;
using driver::TensorLayout;
using testing::TestSession;

constexpr char kThree[] = "bytes=64 row=256 row=128 internal=100";
constexpr char kTwoInputs[] = "inputs=2 bytes=64 row=256";

InputShape Pixels(uint32_t count, TensorLayout layout = TensorLayout::kNhwc) {
  return {{1, 1, count, 1}, layout};
}

class ShapeRowsTest : public testing::CoreTest {
 protected:
  ShapeRowsTest() : session_(Open()) {}

  void Start(const std::string& model) {
    Upload(session_, model);
    ASSERT_EQ(Create(session_, 1, model), absl::OkStatus());
    ASSERT_TRUE(AllocateNow(session_, 5, 4096, 0).ok());
  }
  std::string ErrorOf(const std::vector<InputShape>& shapes) {
    const auto chosen = session_->SetShapes(1, shapes);
    EXPECT_EQ(chosen.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(chosen.status().message());
  }
  void BindBoth(uint64_t bytes) {
    ASSERT_TRUE(session_->Bind(BindTo(1, Direction::kInput, 0, 5, bytes)).ok());
    BindRequest output = BindTo(1, Direction::kOutput, 0, 5, bytes);
    output.offset = 2048;
    output.size = std::min<uint64_t>(bytes, 2048);
    ASSERT_TRUE(session_->Bind(output).ok());
  }
  absl::Status Run() {
    ++sequence_;
    EXPECT_TRUE(Submit(session_, 1, 0, sequence_).ok());
    RunReady();
    return session_.sink->all().back().status;
  }

  TestSession session_;
  uint32_t sequence_ = 0;
};

TEST_F(ShapeRowsTest, ListedShapesAreChosenInEitherLayout) {
  Start(kThree);
  EXPECT_EQ(session_->SetShapes(1, {Pixels(256)})->row, 1U);
  EXPECT_EQ(session_->SetShapes(1, {Pixels(64)})->row, 0U);
  const InputShape nchw = {{1, 1, 1, 128}, TensorLayout::kNchw};
  EXPECT_EQ(session_->SetShapes(1, {nchw})->row, 2U);
}

TEST_F(ShapeRowsTest, AnUnlistedShapeIsRefusedWithInputAndRows) {
  Start(kThree);
  EXPECT_EQ(ErrorOf({Pixels(100)}),
            "input 0 'in0' of shape 1x1x100x1 (NHWC) is in none of the rows "
            "that model 'm.onnx' lists: 0: 'in0' 1x1x64x1; 1: 'in0' "
            "1x1x256x1; 2: 'in0' 1x1x128x1");
  // Listed, but not with its channels first.
  EXPECT_NE(ErrorOf({Pixels(64, TensorLayout::kNchw)}).find("(NCHW)"),
            std::string::npos);
  EXPECT_NE(ErrorOf({{{}, TensorLayout::kNhwc}}).find("in none"),
            std::string::npos);
  ErrorOf({Pixels(64, TensorLayout::kNc1hwc2)});
}

TEST_F(ShapeRowsTest, ShapesOfDifferentRowsAreNotMixed) {
  Start(kTwoInputs);
  EXPECT_NE(ErrorOf({Pixels(64), Pixels(256)})
                .find("input 1 'in1' of shape 1x1x256x1 (NHWC) is not listed "
                      "together with"),
            std::string::npos);
  EXPECT_EQ(session_->SetShapes(1, {Pixels(256), Pixels(256)})->row, 1U);
}

TEST_F(ShapeRowsTest, EveryInputNeedsAShape) {
  Start(kTwoInputs);
  EXPECT_NE(ErrorOf({Pixels(64)}).find("1 shapes given, model 'm.onnx' has 2"),
            std::string::npos);
}

TEST_F(ShapeRowsTest, AFixedModelTakesItsOwnShapeOnly) {
  Start("bytes=64");
  EXPECT_TRUE(session_->SetShapes(1, {Pixels(64)}).ok());
  EXPECT_NE(ErrorOf({Pixels(65)}).find("has one fixed shape"),
            std::string::npos);
}

TEST_F(ShapeRowsTest, AnUnknownContextHasNoShape) {
  Start(kThree);
  EXPECT_EQ(session_->SetShapes(2, {Pixels(64)}).status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(ShapeRowsTest, NothingRunsBeforeAShapeIsChosen) {
  Start(kThree);
  BindBoth(4096);
  const absl::Status refused = Run();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(refused.message().find("lists 3 shapes and none is chosen"),
            std::string::npos);

  ASSERT_TRUE(session_->SetShapes(1, {Pixels(128)}).ok());
  EXPECT_TRUE(Run().ok());
}

TEST_F(ShapeRowsTest, MemoryThatFitsStaysBound) {
  Start(kThree);
  ASSERT_TRUE(session_->SetShapes(1, {Pixels(64)}).ok());
  BindBoth(256);
  ASSERT_TRUE(session_->SetShapes(1, {Pixels(256)}).ok());
  EXPECT_TRUE(Run().ok());
  EXPECT_EQ(service->Buffers()[0].bindings, 2U);
}

TEST_F(ShapeRowsTest, MemoryThatIsTooSmallIsUnboundAndTheRunSaysSo) {
  Start(kThree);
  ASSERT_TRUE(session_->SetShapes(1, {Pixels(64)}).ok());
  BindBoth(255);
  ASSERT_TRUE(session_->SetShapes(1, {Pixels(256)}).ok());
  const absl::Status refused = Run();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(refused.message().find("does not fit the shape chosen since"),
            std::string::npos);
  EXPECT_NE(refused.message().find("input 0 'in0' has 255 bytes, 256 needed"),
            std::string::npos);
  EXPECT_EQ(service->Buffers()[0].bindings, 0U);

  BindBoth(256);
  EXPECT_TRUE(Run().ok());
}

TEST_F(ShapeRowsTest, ARowNeedsItsOwnInternalMemoryAndTheCoreTheLargest) {
  Start(kThree);
  EXPECT_EQ(session_->GetMemorySize(1)->internal, 400U);
  ASSERT_TRUE(session_->SetShapes(1, {Pixels(64)}).ok());
  BindBoth(256);
  ASSERT_TRUE(Run().ok());
  ASSERT_TRUE(session_->SetShapes(1, {Pixels(256)}).ok());
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(device.violations(), 0U);
}

TEST_F(ShapeRowsTest, AQueuedJobKeepsTheShapeItCameWith) {
  Start(kThree);
  ASSERT_TRUE(session_->SetShapes(1, {Pixels(256)}).ok());
  BindBoth(256);
  ASSERT_TRUE(Submit(session_, 1, 0, 1).ok());
  ASSERT_TRUE(session_->SetShapes(1, {Pixels(64)}).ok());
  const uint64_t before = device.cleared();
  RunReady();
  EXPECT_TRUE(session_.sink->last().status.ok());
  service->runner().ClearIdle();
  // As much internal memory as the larger one has.
  EXPECT_EQ(device.cleared() - before, 400U);
}

TEST_F(ShapeRowsTest, ADuplicateChoosesItsOwnShape) {
  Start(kThree);
  ASSERT_TRUE(session_->SetShapes(1, {Pixels(256)}).ok());
  ContextRequest request;
  request.number = 2;
  request.duplicate_of = 1;
  bool made = false;
  session_->CreateContext(request,
                          [&made](const auto& model) { made = model.ok(); });
  ASSERT_TRUE(made);
  EXPECT_EQ(session_->SetShapes(2, {Pixels(64)})->row, 0U);
  BindBoth(256);
  EXPECT_TRUE(Run().ok());
}

}  // namespace
}  // namespace rknnd::core
