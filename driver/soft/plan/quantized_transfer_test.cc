// Quantised ports: what vendor programs are told, and what becomes of the
// numbers they bind.

#include "driver/soft/plan/quantized_transfer.h"

#include <cstring>
#include <vector>

#include "base/values/half.h"
#include "driver/soft/plan/io_transfer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rknnd::soft {
namespace {

using driver::Direction;
using driver::TensorFormat;
using driver::TensorLayout;
using driver::TensorType;
using ::testing::Each;
using ::testing::ElementsAre;

constexpr DataType kU8 = DataType::kUint8;
constexpr DataType kS8 = DataType::kInt8;

IoPort Port(Direction direction, DataType type, const Shape& shape,
            PortConversion conversion) {
  return *IoPort::Make(direction, "image", type, shape, 8,
                       std::move(conversion));
}

PortConversion Scaled(float scale, int32_t zero) {
  PortConversion conversion;
  conversion.quantization = Quantization{scale, zero};
  return conversion;
}

template <class T>
std::vector<uint8_t> Read(const IoPort& port, const TensorFormat& format,
                          int block, const std::vector<T>& client) {
  const auto layout = port.Resolve(format);
  EXPECT_TRUE(layout.ok()) << layout.status();
  EXPECT_EQ(layout->bytes, client.size() * sizeof(T));
  const TensorSpec spec{port.type(), port.shape(), {block}};
  std::vector<uint8_t> tensor(spec.bytes());
  std::vector<std::byte> scratch(TransferScratch(port.shape()));
  ReadInput(*layout, reinterpret_cast<const std::byte*>(client.data()), spec,
            reinterpret_cast<std::byte*>(tensor.data()), scratch.data(),
            port.conversion());
  return tensor;
}

template <class T>
std::vector<T> Write(const IoPort& port, const TensorFormat& format, int block,
                     const std::vector<uint8_t>& tensor) {
  const auto layout = port.Resolve(format);
  EXPECT_TRUE(layout.ok()) << layout.status();
  const TensorSpec spec{port.type(), port.shape(), {block}};
  EXPECT_EQ(spec.bytes(), tensor.size());
  std::vector<T> client(layout->bytes / sizeof(T));
  std::vector<std::byte> scratch(TransferScratch(port.shape()));
  WriteOutput(*layout, reinterpret_cast<std::byte*>(client.data()), spec,
              reinterpret_cast<const std::byte*>(tensor.data()), scratch.data(),
              port.conversion());
  return client;
}

TEST(QuantizedPortTest, UnsignedInputIsToldAsTheSignedOneItIsToVendors) {
  const IoPort port =
      Port(Direction::kInput, kU8, {1, 3, 4, 6}, Scaled(0.5F, 114));

  EXPECT_EQ(port.attr().type, TensorType::kInt8);
  EXPECT_EQ(port.attr().quantization, driver::Quantization::kAffine);
  EXPECT_EQ(port.attr().zero_point, -14);
  EXPECT_EQ(port.attr().scale, 0.5F);
  EXPECT_EQ(port.attr().layout, TensorLayout::kNhwc);
  EXPECT_EQ(port.attr().w_stride, 6U);
  EXPECT_EQ(port.attr().size, 72U);
}

TEST(QuantizedPortTest, NativeOutputHasBlocksOfSixteen) {
  const IoPort port =
      Port(Direction::kOutput, kS8, {1, 20, 4, 6}, Scaled(0.5F, 3));

  EXPECT_THAT(port.native().dims, ElementsAre(1, 2, 4, 6, 16));
  EXPECT_EQ(port.native().size, 2U * 4 * 6 * 16);
  EXPECT_EQ(port.attr().layout, TensorLayout::kNchw);
  EXPECT_EQ(port.attr().zero_point, 3);
}

TEST(QuantizedPortTest, RefusesTypesThatMeanNothingHere) {
  const IoPort port =
      Port(Direction::kOutput, kS8, {1, 3, 4, 6}, Scaled(0.5F, 3));

  EXPECT_FALSE(
      port.Resolve({.type = TensorType::kUint8, .layout = TensorLayout::kNchw})
          .ok());
  EXPECT_FALSE(
      port.Resolve({.type = TensorType::kInt32, .layout = TensorLayout::kNchw})
          .ok());
}

// Two pixels of three channels.
const std::vector<uint8_t> kPixelBytes = {0, 128, 255, 10, 20, 30};

TEST(ReadQuantizedTest, ImageIsQuantisedInEveryLayout) {
  // An image of 0..255 as numbers, at the vendor's usual scale.
  const IoPort port =
      Port(Direction::kInput, kS8, {1, 3, 1, 2}, Scaled(1.0F, -128));
  const TensorFormat nhwc = {.type = TensorType::kUint8,
                             .layout = TensorLayout::kNhwc};

  EXPECT_THAT(Read(port, nhwc, 3, kPixelBytes),
              ElementsAre(128, 0, 127, 138, 148, 158));
  EXPECT_THAT(Read(port, nhwc, 1, kPixelBytes),
              ElementsAre(128, 138, 0, 148, 127, 158));
  EXPECT_THAT(
      Read(port, {.type = TensorType::kUint8, .layout = TensorLayout::kNchw}, 3,
           kPixelBytes),
      ElementsAre(128, 127, 148, 0, 138, 158));
}

TEST(ReadQuantizedTest, MeanAndDeviationAreTakenOffImagesAndNumbers) {
  PortConversion conversion = Scaled(0.5F, 100);
  conversion.mean = {0, 128, 55};
  conversion.deviation = {1, 2, 4};
  const IoPort port =
      Port(Direction::kInput, kU8, {1, 3, 1, 2}, std::move(conversion));
  const std::vector<float> numbers(kPixelBytes.begin(), kPixelBytes.end());

  // (255 - 55) / 4 = 50: 100 steps, and 100 more.
  const auto image =
      Read(port, {.type = TensorType::kUint8, .layout = TensorLayout::kNhwc}, 3,
           kPixelBytes);
  EXPECT_THAT(image, ElementsAre(100, 100, 200, 120, 0, 88));
  EXPECT_EQ(
      Read(port, {.type = TensorType::kFloat32, .layout = TensorLayout::kNhwc},
           3, numbers),
      image);
}

TEST(ReadQuantizedTest, SignedBytesAreTheTensorItself) {
  PortConversion conversion = Scaled(0.5F, 100);
  conversion.mean = conversion.deviation = {3, 3, 3};
  const IoPort port =
      Port(Direction::kInput, kU8, {1, 3, 1, 2}, std::move(conversion));

  EXPECT_THAT(Read(port,
                   {.type = TensorType::kInt8,
                    .layout = TensorLayout::kNhwc,
                    .pass_through = true},
                   3, std::vector<int8_t>{-128, 0, 127, 1, 2, 3}),
              ElementsAre(0, 128, 255, 129, 130, 131));
}

TEST(ReadQuantizedTest, FloatsAreRoundedToEven) {
  const IoPort port =
      Port(Direction::kInput, kS8, {1, 3, 1, 2}, Scaled(2.0F, 0));

  EXPECT_THAT(
      Read(port, {.type = TensorType::kFloat32, .layout = TensorLayout::kNchw},
           1, std::vector<float>{1, 3, -1, 1e9F, -1e9F, 5}),
      ElementsAre(0, 2, 0, 127, 128, 2));
}

TEST(WriteQuantizedTest, NumbersAndBytesInEveryLayout) {
  const IoPort port =
      Port(Direction::kOutput, kU8, {1, 3, 1, 2}, Scaled(0.5F, 100));

  EXPECT_THAT(
      Write<float>(
          port, {.type = TensorType::kFloat32, .layout = TensorLayout::kNchw},
          3, {100, 101, 102, 0, 1, 2}),
      ElementsAre(0, -50, 0.5F, -49.5F, 1, -49));
  EXPECT_THAT(
      Write<int8_t>(port,
                    {.type = TensorType::kInt8, .layout = TensorLayout::kNhwc},
                    1, {100, 101, 102, 0, 1, 2}),
      ElementsAre(-28, -26, -127, -27, -128, -126));
}

TEST(WriteQuantizedTest, NativeFormFillsItsBlocksWithZeros) {
  const IoPort port =
      Port(Direction::kOutput, kS8, {1, 3, 1, 2}, Scaled(0.5F, 0));
  const auto native = Write<int8_t>(
      port, {.type = TensorType::kInt8, .layout = TensorLayout::kNc1hwc2}, 1,
      {1, 2, 3, 4, 5, 6});

  ASSERT_EQ(native.size(), 32U);
  EXPECT_THAT(std::vector(native.begin(), native.begin() + 3),
              ElementsAre(1, 3, 5));
  EXPECT_THAT(std::vector(native.begin() + 3, native.begin() + 16), Each(0));
  EXPECT_EQ(native[16], 2);
}

TEST(ReadFloatsTest, MeanAndDeviationAreTakenOffImages) {
  PortConversion conversion;
  conversion.mean = {1, 2, 3};
  conversion.deviation = {1, 2, 4};
  const IoPort port = *IoPort::Make(Direction::kInput, "x", DataType::kFloat32,
                                    {1, 3, 1, 2}, 8, conversion);
  for (const int block : {1, 8}) {
    const TensorSpec spec{DataType::kFloat32, {1, 3, 1, 2}, {block}};
    std::vector<float> tensor(spec.bytes() / sizeof(float));
    std::vector<std::byte> scratch(TransferScratch(port.shape()));
    const std::vector<uint8_t> pixels = {11, 22, 43, 1, 2, 3};
    const auto layout = *port.Resolve(
        {.type = TensorType::kUint8, .layout = TensorLayout::kNhwc});
    ReadInput(layout, reinterpret_cast<const std::byte*>(pixels.data()), spec,
              reinterpret_cast<std::byte*>(tensor.data()), scratch.data(),
              port.conversion());
    EXPECT_EQ(tensor[0], 10.0F);
    EXPECT_EQ(tensor[block == 1 ? 2 : 1], 10.0F);
    EXPECT_EQ(tensor[block == 1 ? 4 : 2], 10.0F);
    EXPECT_EQ(tensor[block == 1 ? 1 : 8], 0.0F);
  }
}

}  // namespace
}  // namespace rknnd::soft
