// Frames through a session: memory that holds them, and what becomes of them
// when bindings and shapes change.

#include "daemon/core/contexts/bound_frame.h"

#include <string>

#include "daemon/core/testing/core_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rknnd::core {
namespace {

using driver::Direction;
using ::testing::HasSubstr;
using testing::TestSession;

class BoundFrameTest : public testing::CoreTest {
 protected:
  BoundFrameTest() : session_(Open()) {
    MakeReady(session_, 1, kModel);
    EXPECT_TRUE(AllocateNow(session_, 5, 4096, 0).ok());
    EXPECT_TRUE(AllocateNow(session_, 6, 4096, 0).ok());
  }

  // 64x48 pixels of NV12: 3072 bytes and 1536.
  static FrameRequest Nv12() {
    FrameRequest request;
    request.context = 1;
    request.format.width = 64;
    request.format.height = 48;
    request.planes[0] = {5, 0, 4096};
    request.planes[1] = {6, 100, 3996};
    return request;
  }
  std::string Refused(const FrameRequest& request) {
    const absl::Status status = session_->BindFrame(request);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  }
  uint64_t Converted() {
    return service->Contexts()[0].copied.to_device_conversion;
  }

  static constexpr char kModel[] = "inputs=2 outputs=1 bytes=1000";
  TestSession session_;
};

TEST_F(BoundFrameTest, FrameIsBoundInPlaceOfTheTensor) {
  ASSERT_TRUE(session_->BindFrame(Nv12()).ok());
  ASSERT_TRUE(Submit(session_, 1, 0).ok());
  RunReady();
  EXPECT_TRUE(session_.sink->last().status.ok());
  // Of the picture that comes out, not of the frame.
  EXPECT_EQ(Converted(), 1000U);
  uint32_t bindings = 0;
  for (const BufferReport& buffer : service->Buffers()) {
    bindings += buffer.id == 5 || buffer.id == 6 ? buffer.bindings : 0;
  }
  EXPECT_EQ(bindings, 2U);
}

TEST_F(BoundFrameTest, TensorTakesTheFramesPlace) {
  ASSERT_TRUE(session_->BindFrame(Nv12()).ok());
  ASSERT_TRUE(session_->Bind(BindTo(1, Direction::kInput, 0, 100, 1000)).ok());
  ASSERT_TRUE(Submit(session_, 1, 0).ok());
  RunReady();
  EXPECT_EQ(Converted(), 0U);
}

TEST_F(BoundFrameTest, BuffersOfBothPlanesStayWhileTheyAreBound) {
  const uint64_t before = memory().io;
  ASSERT_TRUE(session_->BindFrame(Nv12()).ok());
  ASSERT_TRUE(session_->ReleaseBuffer(5).ok());
  ASSERT_TRUE(session_->ReleaseBuffer(6).ok());
  EXPECT_EQ(memory().io, before);
  ASSERT_TRUE(session_->Bind(BindTo(1, Direction::kInput, 0, 100, 1000)).ok());
  EXPECT_EQ(memory().io, before - 2 * 4096);
}

TEST_F(BoundFrameTest, RunningJobKeepsItsFrame) {
  ASSERT_TRUE(session_->BindFrame(Nv12()).ok());
  device.HoldJobs(true);
  ASSERT_TRUE(Submit(session_, 1, 0).ok());
  RunReady();
  const uint64_t before = memory().io;
  ASSERT_TRUE(session_->ReleaseBuffer(5).ok());
  ASSERT_TRUE(session_->ReleaseBuffer(6).ok());
  ASSERT_TRUE(session_->Bind(BindTo(1, Direction::kInput, 0, 100, 1000)).ok());
  EXPECT_EQ(memory().io, before);
  device.Release();
  EXPECT_EQ(memory().io, before - 2 * 4096);
}

TEST_F(BoundFrameTest, PlaneOutsideItsMemoryIsRefusedWithTheNumbers) {
  FrameRequest request = Nv12();
  request.planes[0] = {5, 1025, 3071};
  EXPECT_THAT(Refused(request),
              HasSubstr("plane 0 of the frame for input 0 'in0' has 3071 "
                        "bytes, 3072 needed for 64x48 pixels"));
  request.planes[0] = {5, 4096, 1};
  EXPECT_THAT(Refused(request),
              HasSubstr("bytes 4096 to 4096+1 are not inside the buffer of "
                        "4096 bytes"));
  request.planes[0] = {5, UINT64_MAX, 2};
  EXPECT_THAT(Refused(request), HasSubstr("are not inside"));
  request = Nv12();
  request.planes[1].offset = 3000;
  request.planes[1].size = UINT64_MAX - 100;
  EXPECT_THAT(Refused(request), HasSubstr("plane 1"));
}

TEST_F(BoundFrameTest, PlanesAreAsManyAsTheFormatHas) {
  FrameRequest request = Nv12();
  request.planes[1] = {};
  EXPECT_THAT(Refused(request), HasSubstr("plane 1 of the frame for input 0 "
                                          "'in0' has no memory"));
  request = Nv12();
  request.format.pixels = driver::PixelFormat::kRgb888;
  EXPECT_THAT(Refused(request),
              HasSubstr("its pixel format has no such plane"));
}

TEST_F(BoundFrameTest, UnknownContextInputOrBufferIsRefused) {
  FrameRequest request = Nv12();
  request.context = 9;
  EXPECT_EQ(session_->BindFrame(request).code(), absl::StatusCode::kNotFound);
  request = Nv12();
  request.planes[1].buffer = 77;
  EXPECT_EQ(session_->BindFrame(request).code(), absl::StatusCode::kNotFound);
  request = Nv12();
  request.index = 2;
  EXPECT_THAT(Refused(request), HasSubstr("input 2 does not exist"));
}

TEST_F(BoundFrameTest, RefusedFrameLeavesWhatWasBound) {
  FrameRequest request = Nv12();
  request.format.width = 1001;
  EXPECT_THAT(Refused(request), HasSubstr("wider than 1000"));
  ASSERT_TRUE(Submit(session_, 1, 0).ok());
  RunReady();
  EXPECT_TRUE(session_.sink->last().status.ok());
  EXPECT_EQ(Converted(), 0U);
}

TEST_F(BoundFrameTest, ShapeThatDoesNotTakeTheFrameUnbindsIt) {
  constexpr char kRows[] = "inputs=1 outputs=1 bytes=100 row=32";
  const TestSession other = Open();
  Upload(other, kRows);
  Create(other, 1, kRows);
  for (const uint32_t buffer : {5U, 6U, 7U}) {
    ASSERT_TRUE(AllocateNow(other, buffer, 4096, 0).ok());
  }
  const auto choose = [&](uint32_t width) {
    return other->SetShapes(1,
                            {{{1, 1, width, 1}, driver::TensorLayout::kNhwc}});
  };
  ASSERT_TRUE(other->Bind(BindTo(1, Direction::kOutput, 0, 7, 4096)).ok());
  ASSERT_TRUE(choose(100).ok());
  ASSERT_TRUE(other->BindFrame(Nv12()).ok());
  ASSERT_TRUE(Submit(other, 1, 0).ok());
  RunReady();
  ASSERT_TRUE(other.sink->last().status.ok()) << other.sink->last().status;

  ASSERT_TRUE(choose(32).ok());
  ASSERT_TRUE(Submit(other, 1, 0).ok());

  EXPECT_THAT(std::string(other.sink->last().status.message()),
              HasSubstr("a frame of 64 pixels is wider than 32"));
  FrameRequest narrow = Nv12();
  narrow.format.width = 30;
  ASSERT_TRUE(other->BindFrame(narrow).ok());
  ASSERT_TRUE(choose(100).ok());
  ASSERT_TRUE(Submit(other, 1, 0).ok());
  RunReady();
  EXPECT_TRUE(other.sink->last().status.ok()) << other.sink->last().status;
}

TEST_F(BoundFrameTest, PlaneThatARunWouldWriteIsAConflict) {
  FrameRequest request = Nv12();
  // MakeReady's buffer of output 0.
  request.planes[1] = {102, 0, 4096};
  ASSERT_TRUE(session_->BindFrame(request).ok());
  ASSERT_TRUE(Submit(session_, 1, 0).ok());
  EXPECT_THAT(std::string(session_.sink->last().status.message()),
              HasSubstr("are in the same memory"));
}

}  // namespace
}  // namespace rknnd::core
