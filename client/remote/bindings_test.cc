// Which bytes travel.

#include "client/remote/bindings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "rknn_api.h"

namespace rknnd::client {
namespace {

constexpr uint32_t kBoundContext = 5;

wire::TensorAttr Attr(std::vector<uint32_t> dims, uint32_t layout) {
  wire::TensorAttr attr{};
  attr.elements = 1;
  attr.dims_count = static_cast<pb_size_t>(dims.size());
  for (size_t i = 0; i < dims.size(); ++i) {
    attr.dims[i] = dims[i];
    attr.elements *= dims[i];
  }
  attr.layout = layout;
  attr.size = attr.size_with_stride = attr.elements;
  return attr;
}

wire::Bind Bound(uint32_t type, uint32_t layout) {
  wire::Bind bind{};
  bind.type = type;
  bind.layout = layout;
  bind.size = UINT64_MAX;
  return bind;
}

TEST(TensorExtentTest, IsWhatTheLayoutTakes) {
  const auto tensor = Attr({1, 10, 6, 3}, RKNN_TENSOR_NHWC);
  const auto native = Attr({1, 1, 10, 6, 16}, RKNN_TENSOR_NC1HWC2);
  auto packed = Bound(RKNN_TENSOR_UINT8, RKNN_TENSOR_NHWC);
  EXPECT_EQ(TensorExtent(tensor, native, packed), 180U);
  packed.type = RKNN_TENSOR_FLOAT32;
  EXPECT_EQ(TensorExtent(tensor, native, packed), 720U);
  packed.layout = RKNN_TENSOR_NCHW;
  EXPECT_EQ(TensorExtent(tensor, native, packed), 720U);

  auto strided = Bound(RKNN_TENSOR_UINT8, RKNN_TENSOR_NHWC);
  strided.w_stride = 8;
  // Nothing need follow the last row.
  EXPECT_EQ(TensorExtent(tensor, native, strided), 10U * 8 * 3 - 2 * 3);

  auto blocks = Bound(RKNN_TENSOR_INT8, RKNN_TENSOR_NC1HWC2);
  blocks.output = true;
  EXPECT_EQ(TensorExtent(tensor, native, blocks), 10U * 6 * 16);
  // An input in the NPU's layout that is not passed through is pixels.
  blocks.output = false;
  EXPECT_EQ(TensorExtent(tensor, native, blocks), 180U);
}

TEST(TensorExtentTest, OtherRanksArePacked) {
  const auto tensor = Attr({1, 1000}, RKNN_TENSOR_UNDEFINED);
  EXPECT_EQ(TensorExtent(tensor, tensor,
                         Bound(RKNN_TENSOR_FLOAT16, RKNN_TENSOR_UNDEFINED)),
            2000U);
}

class BindingsTest : public testing::Test {
 protected:
  BindingsTest() {
    for (const uint32_t number : {1U, 2U, 3U}) {
      buffers_[number] = *LocalBuffer::Make(4096);
    }
    wire::ContextInfo info;
    info.inputs = info.native_inputs = {Attr({1, 100}, RKNN_TENSOR_UNDEFINED)};
    info.outputs = info.native_outputs = info.inputs;
    bindings_.Created(kBoundContext, info);
  }

  void Bind(uint32_t set, bool output, uint32_t buffer) {
    wire::Bind bind = Bound(RKNN_TENSOR_UINT8, RKNN_TENSOR_UNDEFINED);
    bind.context = kBoundContext;
    bind.set = set;
    bind.output = output;
    bind.buffer = buffer;
    bindings_.Bound(bind, buffers_);
  }

  Bindings::Ranges Ranges(uint32_t set) {
    return bindings_.RangesOf(kBoundContext, bindings_.Of(kBoundContext, set));
  }

  LocalBuffers buffers_;
  Bindings bindings_;
};

TEST_F(BindingsTest, WhatASetDoesNotBindIsAsInSetZero) {
  Bind(0, false, 1);
  Bind(0, true, 2);
  Bind(4, false, 3);
  EXPECT_EQ(Ranges(4).inputs.at(0).buffer, 3U);
  EXPECT_EQ(Ranges(4).outputs.at(0).buffer, 2U);
  Bind(4, false, 0);
  EXPECT_EQ(Ranges(4).inputs.at(0).buffer, 1U);
  Bind(0, false, 0);
  EXPECT_TRUE(Ranges(0).inputs.empty());
}

TEST_F(BindingsTest, NoByteBesideATensorTravels) {
  Bind(0, false, 1);
  EXPECT_EQ(Ranges(0).inputs.at(0).size, 100U);
}

TEST_F(BindingsTest, AFramesPlanesTravelAsFarAsTheirRowsGo) {
  wire::BindFrame frame{};
  frame.context = kBoundContext;
  frame.width = 30;
  frame.height = 20;
  frame.planes_count = 2;
  frame.planes[0] = {1, 16, 4000, 32};
  frame.planes[1] = {2, 0, 4000, 32};
  bindings_.BoundFrame(frame, buffers_);
  const auto ranges = Ranges(0).inputs;
  ASSERT_EQ(ranges.size(), 2U);
  EXPECT_EQ(ranges[0].offset, 16U);
  EXPECT_EQ(ranges[0].size, 640U);
  EXPECT_EQ(ranges[1].size, 320U);
}

TEST_F(BindingsTest, AShapeThatIsChosenCountsFromThenOn) {
  Bind(0, false, 1);
  wire::ContextInfo info;
  info.inputs = {Attr({1, 40}, RKNN_TENSOR_UNDEFINED)};
  bindings_.ChoseShapes(kBoundContext, info);
  EXPECT_EQ(Ranges(0).inputs.at(0).size, 40U);
  EXPECT_EQ(bindings_.shapes(kBoundContext), 1U);
}

}  // namespace
}  // namespace rknnd::client
