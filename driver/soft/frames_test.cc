// Frames through the device: the same answers as the same pixels bound as a
// tensor, whatever the model makes of bytes.

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "base/posix/unique_fd.h"
#include "driver/soft/plan/frame_transfer.h"
#include "driver/soft/soft_device.h"
#include "driver/soft/testing/allocations.h"
#include "driver/soft/testing/onnx_builder.h"
#include "driver/soft/testing/run_model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rknnd::soft {
namespace {

using driver::Frame;
using driver::PixelFormat;
using driver::TensorFormat;
using driver::TensorLayout;
using driver::TensorType;
using testing::BoundModel;
using ::testing::HasSubstr;
using testing::OnnxBuilder;
using testing::TestMemory;

constexpr TensorFormat kPixels{.type = TensorType::kUint8,
                               .layout = TensorLayout::kNhwc};
constexpr TensorFormat kAnswer{.type = TensorType::kFloat32,
                               .layout = TensorLayout::kNchw};
constexpr int64_t kHeight = 12;
constexpr int64_t kWidth = 20;

class FramesTest : public ::testing::Test {
 protected:
  FramesTest() : device_(*OpenSoftDevice({.kind = "soft", .soc = "rk3588"})) {
    device_->EnterWorker();
  }

  void Load(OnnxBuilder& builder, const std::string& options = "") {
    auto model = device_->Load({builder.Bytes(), options, "m.onnx"});
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
    auto bound = BoundModel::Make(*device_, *model_, {kPixels}, {kAnswer});
    ASSERT_TRUE(bound.ok()) << bound.status();
    bound_ = *std::move(bound);
  }

  // Frames of 52x36 in one memory, the second plane behind the first.
  Frame MakeFrame(PixelFormat pixels, driver::FrameFit fit) {
    Frame frame;
    frame.format = {.pixels = pixels, .width = 52, .height = 36, .fit = fit};
    frame.format.stride = {160, 64};
    frame.format.pad = {114, 115, 116};
    const auto sizes = model_->CheckFrame(0, 0, frame.format);
    EXPECT_TRUE(sizes.ok()) << sizes.status();
    memory_ = std::make_unique<TestMemory>(*device_, 16384);
    for (size_t i = 0; i < 16384; ++i) {
      memory_->data()[i] = static_cast<std::byte>(i * i / 7 + i);
    }
    frame.planes[0] = {memory_->memory(), 100};
    if ((*sizes)[1] != 0) frame.planes[1] = {memory_->memory(), 100 + 160 * 36};
    return frame;
  }

  // What the frame becomes, by the part of it that is tested by itself.
  std::vector<std::byte> PictureOf(const Frame& frame) {
    const Shape shape = {1, 3, kHeight, kWidth};
    std::vector<std::byte> scratch(FrameScratch(shape));
    const std::span<const std::byte> all(memory_->data(), 16384);
    size_t gone = 0;
    const auto picture = ConvertFrame(frame.format,
                                      {all.subspan(frame.planes[0].offset),
                                       all.subspan(frame.planes[1].offset)},
                                      shape, scratch.data(), &gone);
    return {picture->begin(), picture->end()};
  }

  std::vector<std::byte> Answer() {
    const auto size =
        *model_->CheckBinding(0, driver::Direction::kOutput, 0, kAnswer);
    const std::byte* data = bound_->output(0).data();
    return {data, data + size};
  }

  void ExpectSameAnswers() {
    for (const PixelFormat pixels :
         {PixelFormat::kNv12, PixelFormat::kNv21, PixelFormat::kRgb888,
          PixelFormat::kBgr888}) {
      for (const auto fit :
           {driver::FrameFit::kStretch, driver::FrameFit::kLetterbox}) {
        const Frame frame = MakeFrame(pixels, fit);
        const std::vector<std::byte> picture = PictureOf(frame);
        std::memcpy(bound_->input(0).data(), picture.data(), picture.size());
        ASSERT_TRUE(bound_->Run().status.ok());
        const std::vector<std::byte> wanted = Answer();
        std::memset(bound_->output(0).data(), 0, wanted.size());

        const driver::JobResult result = bound_->RunWithFrame(0, frame);

        ASSERT_TRUE(result.status.ok()) << result.status;
        EXPECT_EQ(Answer(), wanted) << static_cast<int>(pixels);
      }
    }
  }

  static OnnxBuilder ConvNet() {
    OnnxBuilder builder;
    std::vector<float> weights(8 * 3 * 9);
    for (size_t i = 0; i < weights.size(); ++i) {
      weights[i] = static_cast<float>(i % 7) / 10 - 0.3F;
    }
    builder.Input("x", {1, 3, kHeight, kWidth})
        .Floats("w", {8, 3, 3, 3}, weights)
        .Node("Conv", {"x", "w"}, {"y"}, "conv")
        .Output("y", {1, 8, kHeight - 2, kWidth - 2});
    return builder;
  }

  std::unique_ptr<driver::Device> device_;
  std::unique_ptr<driver::Model> model_;
  std::unique_ptr<BoundModel> bound_;
  std::unique_ptr<TestMemory> memory_;
};

TEST_F(FramesTest, FloatModelAnswersAsToItsPixels) {
  OnnxBuilder builder = ConvNet();
  Load(builder);
  ExpectSameAnswers();
}

TEST_F(FramesTest, ModelWithMeanAndDeviationAnswersAsToItsPixels) {
  OnnxBuilder builder = ConvNet();
  Load(builder, "mean_values: [[100, 110, 120]]\nstd_values: [[2, 3, 4]]\n");
  ExpectSameAnswers();
}

TEST_F(FramesTest, QuantisedModelAnswersAsToItsPixels) {
  OnnxBuilder builder;
  auto* const zero = builder.proto().mutable_graph()->add_initializer();
  zero->set_name("zero");
  zero->set_data_type(onnx::TensorProto::INT8);
  zero->set_raw_data(std::string(1, '\x85'));
  builder.Input("x", {1, 3, kHeight, kWidth})
      .Floats("scale", {}, {1.1F})
      .Node("QuantizeLinear", {"x", "scale", "zero"}, {"q"})
      .Node("DequantizeLinear", {"q", "scale", "zero"}, {"d"})
      .Node("Relu", {"d"}, {"y"})
      .Output("y", {1, 3, kHeight, kWidth});
  Load(builder);
  ASSERT_EQ(model_->info().programs[0].inputs[0].type, TensorType::kInt8);
  ExpectSameAnswers();
}

TEST_F(FramesTest, PlanesMayBeInTwoMemories) {
  OnnxBuilder builder = ConvNet();
  Load(builder);
  Frame frame = MakeFrame(PixelFormat::kNv12, driver::FrameFit::kLetterbox);
  ASSERT_TRUE(bound_->RunWithFrame(0, frame).status.ok());
  const std::vector<std::byte> wanted = Answer();
  TestMemory other(*device_, 8192);
  std::memcpy(other.data() + 33, memory_->data() + frame.planes[1].offset,
              64 * 18);
  std::memset(memory_->data() + frame.planes[1].offset, 0, 64 * 18);
  frame.planes[1] = {other.memory(), 33};

  ASSERT_TRUE(bound_->RunWithFrame(0, frame).status.ok());

  EXPECT_EQ(Answer(), wanted);
}

TEST_F(FramesTest, ReadOnlyMemoryHoldsFrames) {
  OnnxBuilder builder = ConvNet();
  Load(builder);
  Frame frame = MakeFrame(PixelFormat::kNv12, driver::FrameFit::kStretch);
  const auto read_only =
      *device_->Attach({memory_->fd(), 0, 16384}, driver::MemoryAccess::kRead);
  frame.planes[0].memory = frame.planes[1].memory = read_only.get();
  EXPECT_TRUE(bound_->RunWithFrame(0, frame).status.ok());
}

TEST_F(FramesTest, ConversionIsTimeOfTheInputOperatorAndAllocatesNothing) {
  OnnxBuilder builder = ConvNet();
  Load(builder);
  const Frame frame = MakeFrame(PixelFormat::kNv12, driver::FrameFit::kStretch);
  std::vector<int64_t> times;
  ASSERT_TRUE(bound_->RunWithFrame(0, frame, &times).status.ok());
  ASSERT_EQ(model_->info().programs[0].layers[0].type, "InputOperator");
  EXPECT_GT(times[0], 0);

  const uint64_t before = testing::Allocations();
  ASSERT_TRUE(bound_->RunWithFrame(0, frame).status.ok());
  EXPECT_EQ(testing::Allocations(), before);
}

TEST_F(FramesTest, FrameWhoseMemoryGoesAwayFailsItsJobAlone) {
  OnnxBuilder builder = ConvNet();
  Load(builder);
  Frame frame = MakeFrame(PixelFormat::kRgb888, driver::FrameFit::kStretch);
  base::UniqueFd fd(memfd_create("frame", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(fd.get(), 16384), 0);
  const auto memory =
      *device_->Attach({fd.get(), 0, 16384}, driver::MemoryAccess::kRead);
  frame.planes[0].memory = memory.get();
  ASSERT_TRUE(bound_->RunWithFrame(0, frame).status.ok());
  ASSERT_EQ(ftruncate(fd.get(), 0), 0);

  const driver::JobResult result = bound_->RunWithFrame(0, frame);

  EXPECT_EQ(result.status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(result.status.message()),
              HasSubstr("plane 0 of the frame for input 'x' went away"));
  EXPECT_TRUE(bound_->Run().status.ok());
}

}  // namespace
}  // namespace rknnd::soft
