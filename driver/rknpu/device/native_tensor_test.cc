// Where elements lie in the NPU's layouts, with places worked out by hand.

#include "driver/rknpu/device/native_tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace rknnd::rknpu {
namespace {

Tensor Int8(std::vector<uint32_t> shape, std::vector<uint32_t> native,
            uint64_t bytes) {
  Tensor tensor;
  tensor.name = "t";
  tensor.type = ElementType::kInt8;
  tensor.layout = Layout::kFeature;
  tensor.kind = TensorClass::kInternal;
  tensor.shape = std::move(shape);
  tensor.native_shape = std::move(native);
  tensor.bytes = bytes;
  return tensor;
}

// Element i is i + 1; what is 0 belongs to no element.
std::vector<std::byte> Packed(const Tensor& tensor) {
  const auto native = NativeTensor::Make(tensor);
  if (!native.ok()) {
    ADD_FAILURE() << native.status();
    return {};
  }
  std::vector<std::byte> dense(native->dense_bytes());
  for (size_t i = 0; i < dense.size(); ++i) {
    dense[i] = static_cast<std::byte>(i + 1);
  }
  std::vector<std::byte> bytes(tensor.bytes);
  native->Pack(dense.data(), bytes.data());
  std::vector<std::byte> back(dense.size());
  native->Unpack(bytes.data(), back.data());
  EXPECT_EQ(back, dense);
  return bytes;
}

TEST(NativeTensorTest, ChannelsLieInBlocksOf16AndSurfacesInFours) {
  // 18 channels of 1x3 pixels: a surface has 4 atoms.
  const std::vector<std::byte> bytes =
      Packed(Int8({1, 18, 1, 3}, {1, 2, 1, 3, 16}, 128));

  EXPECT_EQ(bytes[0], std::byte{1});
  EXPECT_EQ(bytes[1], std::byte{4}) << "channel 1, pixel 0";
  EXPECT_EQ(bytes[16], std::byte{2}) << "channel 0, pixel 1";
  EXPECT_EQ(bytes[48], std::byte{0}) << "the fourth atom is nobody's";
  EXPECT_EQ(bytes[64], std::byte{49}) << "channel 16, pixel 0";
  EXPECT_EQ(bytes[64 + 33], std::byte{54}) << "channel 17, pixel 2";
  EXPECT_EQ(bytes[64 + 34], std::byte{0});
}

TEST(NativeTensorTest, OnePixelIsOneAtom) {
  const std::vector<std::byte> bytes =
      Packed(Int8({1, 20, 1, 1}, {1, 2, 1, 1, 16}, 32));

  EXPECT_EQ(bytes[16], std::byte{17});
}

TEST(NativeTensorTest, PixelsSideBySideLieInLinesOf16) {
  Tensor tensor = Int8({1, 3, 2, 5}, {1, 1, 2, 5, 3}, 96);
  tensor.kind = TensorClass::kInput;

  const std::vector<std::byte> bytes = Packed(tensor);

  EXPECT_EQ(bytes[1], std::byte{11}) << "channel 1 of the first pixel";
  EXPECT_EQ(bytes[3], std::byte{2});
  EXPECT_EQ(bytes[15], std::byte{0});
  EXPECT_EQ(bytes[48], std::byte{6}) << "the second line";
}

TEST(NativeTensorTest, HalvesHaveEightChannelsABlock) {
  Tensor tensor = Int8({1, 9, 1, 1}, {1, 2, 1, 1, 8}, 32);
  tensor.type = ElementType::kFloat16;

  const std::vector<std::byte> bytes = Packed(tensor);

  EXPECT_EQ(bytes[16], std::byte{17});
}

TEST(NativeTensorTest, PlainTensorsAreDense) {
  Tensor tensor = Int8({2, 3}, {2, 3}, 6);
  tensor.layout = Layout::kPlain;

  EXPECT_EQ(Packed(tensor)[5], std::byte{6});
}

TEST(NativeTensorTest, WhatDoesNotFitIsRefused) {
  const Tensor wrong[] = {
      Int8({1, 18, 1, 3}, {1, 2, 1, 3, 16}, 127),
      Int8({1, 18, 1, 3}, {1, 1, 1, 3, 16}, 128),  // a block is missing
      Int8({1, 18, 1, 3}, {1, 2, 1, 3, 8}, 128),
      Int8({18, 1, 3}, {1, 2, 1, 3, 16}, 128),
      Int8({1, 0, 1, 3}, {1, 2, 1, 3, 16}, 128),
      Int8({1, 0xffffffff, 0xffffffff, 0xffffffff}, {1, 2, 1, 3, 16}, 128),
      Int8({0xffffffff, 1, 1, 1}, {1, 0xffffffff, 1, 1, 16}, 0xffffffff)};
  for (const Tensor& tensor : wrong) {
    EXPECT_FALSE(NativeTensor::Make(tensor).ok());
  }
}

}  // namespace
}  // namespace rknnd::rknpu
