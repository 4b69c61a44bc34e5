// Compiled files as the software NPU sees them.

#include "driver/soft/import/rknn.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "driver/rknn_file/testing/rknn_builder.h"

namespace rknnd::soft {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::span<const std::byte> FileBytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string WhyNot(const std::string& file) {
  return std::string(WhyCompiledCannotRun(FileBytes(file), "a.rknn").message());
}

TEST(RknnTest, OnlyCompiledFilesAreTakenForOnes) {
  EXPECT_TRUE(IsCompiled(FileBytes("RKNN")));
  EXPECT_TRUE(IsCompiled(FileBytes("CYPTRKNN")));
  EXPECT_FALSE(IsCompiled(FileBytes("\x08\x07")));
}

TEST(RknnTest, ReasonNamesTargetToolkitAndInputs) {
  EXPECT_THAT(
      WhyNot(rknn_file::testing::Build(rknn_file::testing::SmallModel())),
      AllOf(HasSubstr("'a.rknn' is compiled for rk3588"),
            HasSubstr("give the ONNX model"), HasSubstr("toolkit 2.3.2"),
            HasSubstr("input 'x' 1x3x8x8 INT8, output 'y' 1x4 INT8")));
}

TEST(RknnTest, ManyInputsAreCountedAndNotListed) {
  rknn_file::testing::FileSpec spec = rknn_file::testing::SmallModel();
  spec.inputs.assign(9, 0);
  EXPECT_THAT(WhyNot(rknn_file::testing::Build(spec)), HasSubstr("and 5 more"));
}

TEST(RknnTest, DamagedFileIsSaidToBeOne) {
  EXPECT_THAT(WhyNot("RKNN\1\1\1\1{\"target_platform\":[\"rk3576\"]}"),
              AllOf(HasSubstr("compiled for rk3576"), HasSubstr("damaged")));
}

TEST(RknnTest, OtherKindsAreNamed) {
  EXPECT_THAT(WhyNot("CYPTRKNN"), HasSubstr("an encrypted .rknn model"));
  EXPECT_THAT(WhyNot("RKNX"), HasSubstr("RKNN3"));
}

TEST(RknnTest, DescriptionIsAsTheApiShowsTensors) {
  const auto model = DescribeCompiled(
      FileBytes(rknn_file::testing::Build(rknn_file::testing::SmallModel())),
      "a.rknn");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_FALSE(model->runnable.ok());
  EXPECT_EQ(model->weight_size, 128U);
  ASSERT_THAT(model->programs, SizeIs(1));
  const driver::ProgramInfo& program = model->programs[0];
  EXPECT_EQ(program.internal_size, 1088U);
  const driver::TensorAttr& input = program.inputs[0];
  EXPECT_EQ(input.layout, driver::TensorLayout::kNhwc);
  EXPECT_THAT(input.dims, ElementsAre(1, 8, 8, 3));
  EXPECT_EQ(input.size, 192U);
  EXPECT_EQ(input.size_with_stride, 1024U);
  EXPECT_EQ(input.zero_point, -3);
  EXPECT_EQ(program.native_inputs[0].layout, driver::TensorLayout::kNc1hwc2);
  EXPECT_THAT(program.native_inputs[0].dims, ElementsAre(1, 1, 8, 8, 16));
}

TEST(RknnTest, ShapeBeyondAllMemoryIsRefused) {
  rknn_file::testing::FileSpec spec = rknn_file::testing::SmallModel();
  spec.tensors[0].shape.assign(4, UINT32_MAX);
  EXPECT_THAT(
      std::string(
          DescribeCompiled(FileBytes(rknn_file::testing::Build(spec)), "a.rknn")
              .status()
              .message()),
      HasSubstr("larger than any memory"));
}

}  // namespace
}  // namespace rknnd::soft
