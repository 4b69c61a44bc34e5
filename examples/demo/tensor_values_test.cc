#include "examples/demo/tensor_values.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

namespace rknnd::demo {
namespace {

Tensor Shaped(const std::vector<uint32_t>& shape, rknn_tensor_format format,
              rknn_tensor_type type) {
  rknn_tensor_attr attr = {};
  attr.n_dims = static_cast<uint32_t>(shape.size());
  attr.n_elems = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    attr.dims[i] = shape[i];
    attr.n_elems *= shape[i];
  }
  attr.fmt = format;
  attr.type = type;
  attr.scale = 0.5F;
  attr.zp = 1;
  return Tensor(attr);
}

TEST(TensorValuesTest, IntegersAreDequantised) {
  const Tensor tensor = Shaped({1, 4}, RKNN_TENSOR_UNDEFINED, RKNN_TENSOR_INT8);
  const std::array<int8_t, 4> bytes = {-1, 1, 3, 5};
  EXPECT_EQ(Values(tensor, tensor, bytes.data()),
            (std::vector<float>{-1, 0, 1, 2}));
}

TEST(TensorValuesTest, HalvesAreWidened) {
  const Tensor tensor = Shaped({2}, RKNN_TENSOR_UNDEFINED, RKNN_TENSOR_FLOAT16);
  const std::array<uint16_t, 2> halves = {0x3c00, 0xc000};
  EXPECT_EQ(Values(tensor, tensor, halves.data()), (std::vector<float>{1, -2}));
}

TEST(TensorValuesTest, BlocksOfChannelsAreTakenApart) {
  // Three channels of two pixels, in blocks of two: the last has a channel of
  // padding.
  const Tensor native =
      Shaped({1, 2, 1, 2, 2}, RKNN_TENSOR_NC1HWC2, RKNN_TENSOR_FLOAT32);
  const Tensor like =
      Shaped({1, 3, 1, 2}, RKNN_TENSOR_NCHW, RKNN_TENSOR_FLOAT32);
  const std::array<float, 8> blocks = {10, 20, 11, 21, 30, 0, 31, 0};
  EXPECT_EQ(Values(native, like, blocks.data()),
            (std::vector<float>{10, 11, 20, 21, 30, 31}));
}

TEST(TensorValuesTest, WhatIsNoNumberIsRefused) {
  const Tensor tensor = Shaped({1}, RKNN_TENSOR_UNDEFINED, RKNN_TENSOR_BOOL);
  const bool yes = true;
  EXPECT_THROW(Values(tensor, tensor, &yes), Error);
}

}  // namespace
}  // namespace rknnd::demo
