#include "client/rknnrt/tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "base/values/half.h"
#include "proto/wire/codec.h"

namespace rknnd::client {
namespace {

using ::testing::HasSubstr;

TensorAttr Attr(uint32_t type, std::vector<uint32_t> dims) {
  TensorAttr attr{};
  wire::SetText(attr.name, "data");
  attr.elements = 1;
  for (const uint32_t dim : dims) {
    attr.dims[attr.dims_count++] = dim;
    attr.elements *= dim;
  }
  attr.type = type;
  attr.size = attr.elements * ElementSize(type);
  attr.quantization = RKNN_TENSOR_QNT_AFFINE_ASYMMETRIC;
  attr.scale = 1.0F;
  return attr;
}

template <class To, class From>
std::vector<To> Convert(const TensorAttr& attr, bool want_float,
                        const std::vector<From>& from) {
  std::vector<To> to(from.size());
  ConvertOutput(attr, want_float, std::as_bytes(std::span(from)),
                std::as_writable_bytes(std::span(to)));
  return to;
}

TEST(TensorTest, QuantizedOutputIsDequantizedWhereFloatsAreWanted) {
  TensorAttr attr = Attr(RKNN_TENSOR_INT8, {3});
  attr.zero_point = -128;
  attr.scale = 0.5F;
  EXPECT_THAT((Convert<float, int8_t>(attr, true, {-128, 0, 127})),
              testing::ElementsAre(0.0F, 64.0F, 127.5F));
}

TEST(TensorTest, QuantizedOutputIsHandedOutAsItIsOtherwise) {
  TensorAttr attr = Attr(RKNN_TENSOR_INT8, {3});
  attr.zero_point = -128;
  EXPECT_THAT((Convert<int8_t, int8_t>(attr, false, {-128, 0, 127})),
              testing::ElementsAre(-128, 0, 127));
}

TEST(TensorTest, FloatModelWithoutWantFloatGivesHalves) {
  const TensorAttr attr = Attr(RKNN_TENSOR_FLOAT16, {600});
  std::vector<float> floats(600);
  for (size_t i = 0; i < floats.size(); ++i) {
    floats[i] = static_cast<float>(i) / 7;
  }
  const auto halves = Convert<base::Half, float>(attr, false, floats);
  for (size_t i = 0; i < floats.size(); ++i) {
    ASSERT_EQ(halves[i], base::FloatToHalf(floats[i])) << i;
  }
}

TEST(TensorTest, IntegersOfTheModelAreNotScaled) {
  TensorAttr attr = Attr(RKNN_TENSOR_INT64, {2});
  attr.zero_point = 5;
  attr.scale = 3.0F;
  EXPECT_THAT((Convert<float, int64_t>(attr, true, {-4, 1 << 20})),
              testing::ElementsAre(-4.0F, 1048576.0F));
}

TEST(TensorTest, OutputMayLieAtAnyAddress) {
  const TensorAttr attr = Attr(RKNN_TENSOR_FLOAT16, {2});
  const float from[] = {1.0F, -2.0F};
  std::vector<std::byte> room(9);
  ConvertOutput(attr, true, std::as_bytes(std::span(from)),
                std::span(room).subspan(1));
  float second = 0;
  std::memcpy(&second, room.data() + 5, sizeof second);
  EXPECT_EQ(second, -2.0F);
}

TEST(TensorTest, OutputSizeFollowsWhatIsWanted) {
  const TensorAttr attr = Attr(RKNN_TENSOR_INT8, {1, 10});
  EXPECT_EQ(*OutputSize(attr, true), 40U);
  EXPECT_EQ(*OutputSize(attr, false), 10U);
}

TEST(TensorTest, OutputOfHalfBytesIsRefused) {
  EXPECT_FALSE(OutputSize(Attr(RKNN_TENSOR_INT4, {10}), true).ok());
}

TEST(TensorTest, FloatsDeclaredForBytesAreRecognised) {
  const TensorAttr attr = Attr(RKNN_TENSOR_INT8, {1, 640, 640, 3});
  const auto fits = CheckInputSize(attr, RKNN_TENSOR_FLOAT32, 1228800, 4915200);
  ASSERT_FALSE(fits.ok());
  EXPECT_EQ(fits.error().message,
            "input 'data': 1228800 bytes given, 4915200 needed for "
            "1x640x640x3 FP32. 1228800 bytes fit UINT8: set "
            "type=RKNN_TENSOR_UINT8");
}

TEST(TensorTest, BytesDeclaredForFloatsAreRecognised) {
  const TensorAttr attr = Attr(RKNN_TENSOR_INT8, {1, 640, 640, 3});
  const auto fits = CheckInputSize(attr, RKNN_TENSOR_UINT8, 4915200, 1228800);
  ASSERT_FALSE(fits.ok());
  EXPECT_THAT(fits.error().message, HasSubstr("set type=RKNN_TENSOR_FLOAT32"));
}

TEST(TensorTest, TooFewBytesOfAnySortAreRefused) {
  const TensorAttr attr = Attr(RKNN_TENSOR_INT8, {10});
  EXPECT_FALSE(CheckInputSize(attr, RKNN_TENSOR_UINT8, 9, 10).ok());
  EXPECT_FALSE(CheckInputSize(attr, RKNN_TENSOR_UINT8, 0, 10).ok());
}

TEST(TensorTest, LargerBufferThatFitsNoOtherTypeIsTaken) {
  const TensorAttr attr = Attr(RKNN_TENSOR_INT8, {10});
  EXPECT_TRUE(CheckInputSize(attr, RKNN_TENSOR_UINT8, 4096, 10).ok());
}

TEST(TensorTest, FilledAttrHasNothingOfWhatWasThere) {
  rknn_tensor_attr attr;
  std::memset(&attr, 0xff, sizeof attr);
  FillAttr(Attr(RKNN_TENSOR_FLOAT16, {1, 2, 3}), 4, &attr);
  EXPECT_EQ(attr.index, 4U);
  EXPECT_EQ(attr.n_dims, 3U);
  EXPECT_EQ(attr.dims[3], 0U);
  EXPECT_STREQ(attr.name, "data");
  EXPECT_EQ(attr.name[RKNN_MAX_NAME_LEN - 1], '\0');
  EXPECT_EQ(attr.h_stride, 0U);
  EXPECT_EQ(attr.pass_through, 0U);
}

TEST(TensorTest, SizesThatDoNotFit32BitsAreTheLargestThatDo) {
  TensorAttr tensor = Attr(RKNN_TENSOR_INT8, {1});
  tensor.size = uint64_t{1} << 33;
  rknn_tensor_attr attr;
  FillAttr(tensor, 0, &attr);
  EXPECT_EQ(attr.size, 0xffffffffU);
}

}  // namespace
}  // namespace rknnd::client
