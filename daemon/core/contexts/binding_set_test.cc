// Tests of bindings through a session: what fits, what does not, and snapshots.

#include "daemon/core/contexts/binding_set.h"

#include <string>

#include "daemon/core/testing/core_fixture.h"
#include "gtest/gtest.h"

namespace rknnd::core {
namespace {

using driver::Direction;
using testing::TestSession;

class BindingSetTest : public testing::CoreTest {
 protected:
  BindingSetTest() : session_(Open()) {
    Upload(session_, kModel);
    Create(session_, 1, kModel);
    EXPECT_TRUE(AllocateNow(session_, 5, 4096, 0).ok());
  }
  absl::Status Bind(const BindRequest& request) {
    return session_->Bind(request);
  }
  static bool Mentions(const absl::Status& status, const std::string& text) {
    return status.message().find(text) != std::string::npos;
  }

  static constexpr char kModel[] = "inputs=2 outputs=1 bytes=1000";
  TestSession session_;
  uint32_t sequence_ = 0;
};

TEST_F(BindingSetTest, BufferThatFitsIsBound) {
  EXPECT_TRUE(Bind(BindTo(1, Direction::kInput, 0, 5, 4096)).ok());
  EXPECT_EQ(service->Buffers()[0].bindings, 1U);
}

TEST_F(BindingSetTest, WholeBufferAtAnOffsetIsBound) {
  BindRequest request = BindTo(1, Direction::kInput, 0, 5, 1000);
  request.offset = 3096;
  EXPECT_TRUE(Bind(request).ok());
}

TEST_F(BindingSetTest, UnknownContextBufferOrIndexIsRefused) {
  EXPECT_EQ(Bind(BindTo(2, Direction::kInput, 0, 5, 4096)).code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(Bind(BindTo(1, Direction::kInput, 0, 6, 4096)).code(),
            absl::StatusCode::kNotFound);
  const absl::Status index = Bind(BindTo(1, Direction::kInput, 2, 5, 4096));
  EXPECT_EQ(index.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(Mentions(index, "input 2 does not exist: model 'm.onnx' has 2"));
  EXPECT_EQ(Bind(BindTo(1, Direction::kOutput, UINT32_MAX, 5, 4096)).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(BindingSetTest, RangeOutsideTheBufferIsRefused) {
  BindRequest request = BindTo(1, Direction::kInput, 0, 5, 4096);
  request.offset = 1;
  EXPECT_FALSE(Bind(request).ok());
  request.offset = 4097;
  request.size = 0;
  EXPECT_FALSE(Bind(request).ok());
  request.offset = UINT64_MAX;
  request.size = 2;
  EXPECT_FALSE(Bind(request).ok());
  request.offset = 4000;
  request.size = UINT64_MAX - 100;
  EXPECT_FALSE(Bind(request).ok());
}

TEST_F(BindingSetTest, TooSmallBufferNamesTensorSizesAndStride) {
  BindRequest request = BindTo(1, Direction::kInput, 1, 5, 1000);
  request.format.w_stride = 1024;
  const absl::Status refused = Bind(request);
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(Mentions(refused,
                       "buffer bound to input 1 'in1' has 1000 bytes, 1024 "
                       "needed: width 1000 is stored with stride 1024"))
      << refused;
}

TEST_F(BindingSetTest, TooSmallBufferWithoutStrideNamesTheType) {
  BindRequest request = BindTo(1, Direction::kOutput, 0, 5, 999);
  EXPECT_TRUE(Mentions(Bind(request), "has 999 bytes, 1000 needed in UINT8"));
}

TEST_F(BindingSetTest, FormatTheDeviceRefusesIsRefused) {
  BindRequest request = BindTo(1, Direction::kInput, 0, 5, 4096);
  request.format.layout = driver::TensorLayout::kNc1hwc2;
  EXPECT_FALSE(Bind(request).ok());
}

TEST_F(BindingSetTest, OffsetBetweenTwoElementsIsRefused) {
  BindRequest request = BindTo(1, Direction::kInput, 0, 5, 4090);
  request.format.type = driver::TensorType::kFloat32;
  request.offset = 2;
  EXPECT_TRUE(Mentions(Bind(request), "offset 2 is not a multiple of"));
}

TEST_F(BindingSetTest, RefusedBindingLeavesTheOldOne) {
  ASSERT_TRUE(Bind(BindTo(1, Direction::kInput, 0, 5, 4096)).ok());
  EXPECT_FALSE(Bind(BindTo(1, Direction::kInput, 0, 5, 1)).ok());
  EXPECT_EQ(service->Buffers()[0].bindings, 1U);
}

TEST_F(BindingSetTest, RunBeforeAllIsBoundNamesTheFirstUnboundTensor) {
  ASSERT_TRUE(Bind(BindTo(1, Direction::kInput, 0, 5, 4096)).ok());
  ASSERT_TRUE(Bind(BindTo(1, Direction::kOutput, 0, 5, 4096)).ok());
  ASSERT_TRUE(Submit(session_, 1, 0).ok());
  EXPECT_EQ(session_.sink->last().status.code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(Mentions(session_.sink->last().status, "input 1 'in1'"));
}

TEST_F(BindingSetTest, UnboundTensorStopsTheNextRun) {
  MakeReady(session_, 2, kModel);
  ASSERT_TRUE(Bind(BindTo(2, Direction::kOutput, 0, 0, 0)).ok());
  ASSERT_TRUE(Submit(session_, 2, 0).ok());
  EXPECT_TRUE(Mentions(session_.sink->last().status, "output 0 'out0'"));
}

TEST_F(BindingSetTest, ReleasedBufferStaysWhileItIsBound) {
  ASSERT_TRUE(Bind(BindTo(1, Direction::kInput, 0, 5, 4096)).ok());
  ASSERT_TRUE(session_->ReleaseBuffer(5).ok());
  EXPECT_EQ(memory().io, 4096U);
  ASSERT_TRUE(Bind(BindTo(1, Direction::kInput, 0, 0, 0)).ok());
  EXPECT_EQ(memory().io, 0U);
}

TEST_F(BindingSetTest, RunningJobKeepsWhatWasBoundWhenItWasSubmitted) {
  MakeReady(session_, 2, kModel);  // buffers 200, 201 and 202
  device.HoldJobs(true);
  ASSERT_TRUE(Submit(session_, 2, 0).ok());
  RunReady();
  ASSERT_EQ(device.held(), 1U);
  const uint64_t before = memory().io;

  ASSERT_TRUE(AllocateNow(session_, 9, 4096, 0).ok());
  ASSERT_TRUE(Bind(BindTo(2, Direction::kInput, 0, 9, 4096)).ok());
  ASSERT_TRUE(session_->ReleaseBuffer(200).ok());
  EXPECT_EQ(memory().io, before + 4096);

  ASSERT_TRUE(device.Release());
  EXPECT_EQ(session_.sink->last().status, absl::OkStatus());
  EXPECT_EQ(memory().io, before);
}

TEST_F(BindingSetTest, OnlyTensorsInAnotherFormatAreConverted) {
  const auto converted = [this] {
    EXPECT_TRUE(Submit(session_, 1, 0, ++sequence_).ok());
    RunReady();
    return service->Contexts()[0].copied;
  };
  ASSERT_TRUE(Bind(BindTo(1, Direction::kInput, 0, 5, 4096)).ok());
  ASSERT_TRUE(Bind(BindTo(1, Direction::kInput, 1, 5, 4096)).ok());
  ASSERT_TRUE(AllocateNow(session_, 6, 4096, 0).ok());
  ASSERT_TRUE(Bind(BindTo(1, Direction::kOutput, 0, 6, 4096)).ok());
  EXPECT_EQ(converted().to_device_conversion, 0U);
  BindRequest floats = BindTo(1, Direction::kInput, 1, 5, 4096);
  floats.format.type = driver::TensorType::kFloat32;
  ASSERT_TRUE(Bind(floats).ok());
  EXPECT_EQ(converted().to_device_conversion, 4000U);
  EXPECT_EQ(converted().to_device_conversion, 8000U);
  // Bound again as the NPU has it: no more.
  ASSERT_TRUE(Bind(BindTo(1, Direction::kInput, 1, 5, 4096)).ok());
  BindRequest planes = BindTo(1, Direction::kOutput, 0, 6, 4096);
  planes.format.layout = driver::TensorLayout::kNchw;
  ASSERT_TRUE(Bind(planes).ok());
  EXPECT_EQ(converted().to_device_conversion, 8000U);
  EXPECT_EQ(converted().from_device_conversion, 2000U);
}

}  // namespace
}  // namespace rknnd::core
