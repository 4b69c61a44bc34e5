#include "driver/soft/plan/io_port.h"

#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rknnd::soft {
namespace {

using driver::Direction;
using driver::TensorFormat;
using driver::TensorLayout;
using driver::TensorType;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

IoPort ImageOf(Direction direction = Direction::kInput, int64_t channels = 3) {
  return *IoPort::Make(direction, "image", DataType::kFloat32,
                       {1, channels, 240, 320}, 8);
}

std::string PortError(const IoPort& port, const TensorFormat& format) {
  auto layout = port.Resolve(format);
  EXPECT_EQ(layout.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(layout.status().message());
}

TEST(IoPortTest, ImageInputLooksAsVendorProgramsExpect) {
  const driver::TensorAttr attr = ImageOf().attr();

  EXPECT_THAT(attr.dims, ElementsAre(1, 240, 320, 3));
  EXPECT_EQ(attr.layout, TensorLayout::kNhwc);
  EXPECT_EQ(attr.type, TensorType::kFloat16);
  EXPECT_EQ(attr.w_stride, 320U);
  EXPECT_EQ(attr.size, 2U * 240 * 320 * 3);
  EXPECT_GE(attr.size_with_stride, attr.size);
  EXPECT_EQ(attr.quantization, driver::Quantization::kAffine);
  EXPECT_EQ(attr.zero_point, 0);
  EXPECT_EQ(attr.scale, 1.0F);
}

TEST(IoPortTest, FourDimensionalOutputIsNchw) {
  const IoPort port = ImageOf(Direction::kOutput, 10);

  EXPECT_THAT(port.attr().dims, ElementsAre(1, 10, 240, 320));
  EXPECT_EQ(port.attr().layout, TensorLayout::kNchw);
  EXPECT_EQ(port.attr().w_stride, 0U);
  EXPECT_THAT(port.native().dims, ElementsAre(1, 2, 240, 320, 8));
  EXPECT_EQ(port.native().layout, TensorLayout::kNc1hwc2);
}

TEST(IoPortTest, OtherRanksKeepTheirOrder) {
  const IoPort port = *IoPort::Make(Direction::kOutput, "boxes",
                                    DataType::kFloat32, {1, 4420, 4}, 8);

  EXPECT_THAT(port.attr().dims, ElementsAre(1, 4420, 4));
  EXPECT_EQ(port.attr().layout, TensorLayout::kUndefined);
}

// The vendor's demos of classifiers ask their 2-D outputs for NCHW.
TEST(IoPortTest, OtherRanksTakeALayoutThatCanMeanTheirOwnOrderOnly) {
  for (const Direction direction : {Direction::kInput, Direction::kOutput}) {
    const auto takes = [&](const Shape& shape, TensorLayout layout) {
      return IoPort::Make(direction, "t", DataType::kFloat32, shape, 8)
          ->Resolve({.type = TensorType::kFloat32, .layout = layout})
          .ok();
    };
    for (const Shape& shape : {Shape{}, {5}, {1, 1000}, {1, 1, 7}, {1, 7, 1}}) {
      EXPECT_TRUE(takes(shape, TensorLayout::kNchw)) << ShapeText(shape);
      EXPECT_TRUE(takes(shape, TensorLayout::kNhwc)) << ShapeText(shape);
    }
    EXPECT_TRUE(takes({1, 84, 8400}, TensorLayout::kNchw));
    EXPECT_FALSE(takes({1, 84, 8400}, TensorLayout::kNhwc));
    EXPECT_FALSE(takes({1, 1000}, TensorLayout::kNc1hwc2));
  }
  const IoPort boxes = *IoPort::Make(Direction::kOutput, "boxes",
                                     DataType::kFloat32, {1, 84, 8400}, 8);
  EXPECT_THAT(PortError(boxes, {.type = TensorType::kFloat32,
                                .layout = TensorLayout::kNhwc}),
              HasSubstr("output 'boxes': layout 1 (NHWC) has no one meaning "
                        "for a tensor of 3 axes: use UNDEFINED"));
}

// The rule of rknn_api.h at rknn_tensor_attr.
TEST(IoPortTest, FourDimensionalInputsAreNhwcButForBoolAndInt64) {
  for (const DataType type :
       {DataType::kFloat32, DataType::kInt8, DataType::kUint8, DataType::kInt16,
        DataType::kUint16, DataType::kInt32, DataType::kUint32,
        DataType::kInt64, DataType::kBool}) {
    const IoPort port =
        *IoPort::Make(Direction::kInput, "x", type, {1, 3, 4, 5}, 8);
    if (type == DataType::kInt64 || type == DataType::kBool) {
      EXPECT_EQ(port.attr().layout, TensorLayout::kNchw) << DataTypeName(type);
      EXPECT_THAT(port.attr().dims, ElementsAre(1, 3, 4, 5));
      continue;
    }
    EXPECT_EQ(port.attr().layout, TensorLayout::kNhwc) << DataTypeName(type);
    EXPECT_THAT(port.attr().dims, ElementsAre(1, 4, 5, 3));
  }
}

TEST(IoPortTest, BytesOfTheFileHaveTheScaleThatTheNetworkGivesThem) {
  PortConversion conversion;
  conversion.stands_for = Quantization{0.25F, 7};
  for (const Direction direction : {Direction::kInput, Direction::kOutput}) {
    const IoPort signed_port =
        *IoPort::Make(direction, "t", DataType::kInt8, {1, 5}, 8, conversion);
    EXPECT_EQ(signed_port.attr().type, TensorType::kInt8);
    EXPECT_EQ(signed_port.attr().file_type, TensorType::kInt8);
    EXPECT_EQ(signed_port.attr().scale, 0.25F);
    EXPECT_EQ(signed_port.attr().zero_point, 7);
    EXPECT_EQ(signed_port.native().scale, 0.25F);
    const IoPort unsigned_port =
        *IoPort::Make(direction, "t", DataType::kUint8, {1, 5}, 8, conversion);
    EXPECT_EQ(unsigned_port.attr().type, TensorType::kUint8);
    EXPECT_EQ(unsigned_port.attr().scale, 0.25F);
    EXPECT_EQ(unsigned_port.attr().zero_point, 7);
  }
}

TEST(IoPortTest, FileTypeIsThatOfTheFileWhateverTheNpuHas) {
  const auto file_type = [](PortConversion conversion) {
    return IoPort::Make(Direction::kOutput, "y", DataType::kFloat32, {1, 5}, 8,
                        std::move(conversion))
        ->attr()
        .file_type;
  };
  PortConversion half;
  half.half = true;
  EXPECT_EQ(file_type({}), TensorType::kFloat32);
  EXPECT_EQ(file_type(half), TensorType::kFloat16);
}

TEST(IoPortTest, ScalarHasOneDimension) {
  const IoPort port =
      *IoPort::Make(Direction::kOutput, "n", DataType::kInt64, {}, 8);

  EXPECT_THAT(port.attr().dims, ElementsAre(1));
  EXPECT_EQ(port.attr().type, TensorType::kInt64);
  EXPECT_EQ(port.attr().size, 8U);
}

TEST(IoPortTest, InputOfManyChannelsIsNativelyBlocked) {
  const IoPort port = ImageOf(Direction::kInput, 20);

  EXPECT_THAT(port.native().dims, ElementsAre(1, 3, 240, 320, 8));
  EXPECT_EQ(port.native().size, 2U * 24 * 240 * 320);
}

// Table 5-2 of the vendor's guide: 16 pixels on most SoCs, 8 where a block of
// halves is 4.
TEST(IoPortTest, RowsOfImagesAreNativelyAligned) {
  for (const uint32_t half_block : {4U, 8U}) {
    const IoPort port =
        *IoPort::Make(Direction::kInput, "image", DataType::kFloat32,
                      {1, 3, 20, 35}, half_block);
    const uint32_t stride = half_block == 4 ? 40 : 48;

    EXPECT_EQ(port.attr().w_stride, 35U);
    EXPECT_EQ(port.native().layout, TensorLayout::kNhwc);
    EXPECT_EQ(port.native().w_stride, stride);
    EXPECT_EQ(port.native().size, 2U * 3 * 20 * 35);
    EXPECT_EQ(port.native().size_with_stride, 2U * 3 * 20 * stride);
    EXPECT_GE(port.attr().size_with_stride, port.native().size_with_stride);
  }
}

TEST(IoPortTest, PassThroughTakesTheNativeRows) {
  const IoPort port = *IoPort::Make(Direction::kInput, "image",
                                    DataType::kFloat32, {1, 3, 20, 35}, 8);
  const driver::TensorAttr& native = port.native();

  auto layout = port.Resolve({.type = native.type,
                              .layout = native.layout,
                              .pass_through = true,
                              .w_stride = native.w_stride});

  ASSERT_TRUE(layout.ok()) << layout.status();
  EXPECT_EQ(layout->row, 48 * 3);
  EXPECT_LE(layout->bytes, native.size_with_stride);
}

TEST(IoPortTest, OtherRanksAreFilledUpAtTheirEnd) {
  const IoPort port =
      *IoPort::Make(Direction::kInput, "boxes", DataType::kFloat32, {1, 5}, 8);

  EXPECT_EQ(port.native().size, 10U);
  EXPECT_EQ(port.native().size_with_stride, 16U);
}

TEST(IoPortTest, BlocksGoByTheType) {
  NativeForm form;
  form.half_block = 4;
  form.int8_block = 8;
  form.int16_block = 2;
  const Shape shape = {1, 13, 4, 4};
  const auto dims = [&](DataType type, PortConversion conversion = {}) {
    return IoPort::Make(Direction::kOutput, "y", type, shape, form,
                        std::move(conversion))
        ->native()
        .dims;
  };

  EXPECT_THAT(dims(DataType::kFloat32), ElementsAre(1, 4, 4, 4, 4));
  EXPECT_THAT(dims(DataType::kInt8), ElementsAre(1, 2, 4, 4, 8));
  EXPECT_THAT(dims(DataType::kUint8, {.quantization = Quantization{},
                                      .mean = {},
                                      .deviation = {},
                                      .table = {}}),
              ElementsAre(1, 2, 4, 4, 8));
  EXPECT_THAT(dims(DataType::kInt16), ElementsAre(1, 7, 4, 4, 2));
  EXPECT_THAT(dims(DataType::kInt64), ElementsAre(1, 13, 4, 4));
}

TEST(IoPortTest, BytesFollowTheTypeNotTheAttribute) {
  const IoPort port = ImageOf();
  const uint64_t pixels = 3 * 240 * 320;

  EXPECT_EQ(
      port.Resolve({.type = TensorType::kUint8, .layout = TensorLayout::kNhwc})
          ->bytes,
      pixels);
  EXPECT_EQ(port.Resolve({.type = TensorType::kFloat32,
                          .layout = TensorLayout::kNchw})
                ->bytes,
            pixels * 4);
}

TEST(IoPortTest, StridesMakeTheBufferLarger) {
  auto layout = ImageOf().Resolve({.type = TensorType::kUint8,
                                   .layout = TensorLayout::kNhwc,
                                   .w_stride = 336});

  ASSERT_TRUE(layout.ok());
  EXPECT_EQ(layout->bytes, (239U * 336 + 320) * 3);
}

TEST(IoPortTest, StrideBelowTheWidthIsRefused) {
  EXPECT_THAT(PortError(ImageOf(), {.type = TensorType::kUint8,
                                    .layout = TensorLayout::kNhwc,
                                    .w_stride = 319}),
              HasSubstr("w_stride 319 is less than the width 320"));
}

TEST(IoPortTest, StridesThatOverflowAreRefused) {
  const IoPort port = *IoPort::Make(Direction::kInput, "image",
                                    DataType::kFloat32, {4, 64, 240, 320}, 8);

  EXPECT_THAT(PortError(port, {.type = TensorType::kFloat32,
                               .layout = TensorLayout::kNchw,
                               .w_stride = UINT32_MAX - 15,
                               .h_stride = UINT32_MAX}),
              HasSubstr("make more bytes than there are"));
}

TEST(IoPortTest, TypesThatDoNotFitAreRefusedByNumber) {
  EXPECT_THAT(PortError(ImageOf(), {.type = TensorType::kInt64,
                                    .layout = TensorLayout::kNhwc}),
              HasSubstr("type 8 (INT64) cannot be bound here: use FP32"));
  EXPECT_THAT(
      PortError(ImageOf(Direction::kOutput),
                {.type = TensorType::kInt8, .layout = TensorLayout::kNchw}),
      HasSubstr("type 2 (INT8) cannot be bound here: use FP32, FP16"));
  EXPECT_THAT(PortError(ImageOf(), {.type = static_cast<TensorType>(77),
                                    .layout = TensorLayout::kNhwc}),
              HasSubstr("type 77"));
}

TEST(IoPortTest, LayoutsThatDoNotFitAreRefusedByNumber) {
  EXPECT_THAT(PortError(ImageOf(), {.type = TensorType::kUint8,
                                    .layout = TensorLayout::kUndefined}),
              HasSubstr("layout 3"));
  EXPECT_THAT(PortError(ImageOf(), {.type = TensorType::kUint8,
                                    .layout = static_cast<TensorLayout>(9)}),
              HasSubstr("layout 9 does not exist"));
}

TEST(IoPortTest, PassThroughWantsTheNativeForm) {
  EXPECT_TRUE(ImageOf()
                  .Resolve({.type = TensorType::kFloat16,
                            .layout = TensorLayout::kNhwc,
                            .pass_through = true})
                  .ok());
  EXPECT_THAT(PortError(ImageOf(), {.type = TensorType::kUint8,
                                    .layout = TensorLayout::kNhwc,
                                    .pass_through = true}),
              HasSubstr("FP16 already, but type 3 (UINT8) is given"));
}

TEST(IoPortTest, RepeatedPortIsSoManyOneBehindTheOther) {
  IoPort port = ImageOf(Direction::kInput, 20);
  const uint64_t one = port.attr().size;
  const uint64_t native = port.native().size;

  port.Repeat(4);

  EXPECT_THAT(port.attr().dims, ElementsAre(4, 240, 320, 20));
  EXPECT_THAT(port.native().dims, ElementsAre(4, 3, 240, 320, 8));
  EXPECT_EQ(port.attr().size, 4 * one);
  EXPECT_EQ(port.native().size, 4 * native);
  const auto layout = port.Resolve({.type = TensorType::kFloat16,
                                    .layout = TensorLayout::kNc1hwc2,
                                    .pass_through = true});
  ASSERT_TRUE(layout.ok()) << layout.status();
  EXPECT_EQ(layout->batch, 1);
  EXPECT_EQ(layout->bytes, 4 * native);
  EXPECT_EQ(layout->slice_step, native);
  EXPECT_EQ(layout->slice_bytes, native);
}

TEST(IoPortTest, RowsOfARepeatedPortLieApartAsItsStridesSay) {
  IoPort port = ImageOf();
  port.Repeat(2);

  const auto layout = port.Resolve({.type = TensorType::kUint8,
                                    .layout = TensorLayout::kNhwc,
                                    .w_stride = 336,
                                    .h_stride = 256});

  ASSERT_TRUE(layout.ok()) << layout.status();
  EXPECT_EQ(layout->slice_step, 256U * 336 * 3);
  EXPECT_EQ(layout->slice_bytes, (239U * 336 + 320) * 3);
  EXPECT_EQ(layout->bytes, layout->slice_step + layout->slice_bytes);
}

TEST(IoPortTest, RepeatedTensorWithoutRowsIsRepeatedWhole) {
  IoPort port =
      *IoPort::Make(Direction::kOutput, "n", DataType::kInt64, {1, 5}, 8);
  port.Repeat(3);

  const auto layout = port.Resolve(
      {.type = TensorType::kInt64, .layout = TensorLayout::kUndefined});

  EXPECT_THAT(port.attr().dims, ElementsAre(3, 5));
  ASSERT_TRUE(layout.ok()) << layout.status();
  EXPECT_EQ(layout->width, 5);
  EXPECT_EQ(layout->bytes, 120U);
  EXPECT_EQ(layout->slice_step, 40U);
}

TEST(IoPortTest, EmptyTensorIsRefused) {
  EXPECT_FALSE(
      IoPort::Make(Direction::kInput, "x", DataType::kFloat32, {1, 0}, 8).ok());
}

}  // namespace
}  // namespace rknnd::soft
