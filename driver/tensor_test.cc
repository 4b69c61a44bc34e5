#include "driver/tensor.h"

#include <gtest/gtest.h>

#include <string>

namespace rknnd::driver {
namespace {

// Numbers and names are those of the vendor's C API: applications print them.
TEST(TensorTypeTest, NamesAndSizesAreTheVendors) {
  struct {
    TensorType type;
    uint32_t number;
    const char* name;
    size_t size;
  } constexpr kTypes[] = {
      {TensorType::kFloat32, 0, "FP32", 4},
      {TensorType::kFloat16, 1, "FP16", 2},
      {TensorType::kInt8, 2, "INT8", 1},
      {TensorType::kUint8, 3, "UINT8", 1},
      {TensorType::kInt16, 4, "INT16", 2},
      {TensorType::kUint16, 5, "UINT16", 2},
      {TensorType::kInt32, 6, "INT32", 4},
      {TensorType::kUint32, 7, "UINT32", 4},
      {TensorType::kInt64, 8, "INT64", 8},
      {TensorType::kBool, 9, "BOOL", 1},
      {TensorType::kInt4, 10, "INT4", 0},
      {TensorType::kBfloat16, 11, "BF16", 2},
  };
  EXPECT_EQ(std::size(kTypes), kTensorTypeCount);
  for (const auto& expected : kTypes) {
    EXPECT_EQ(static_cast<uint32_t>(expected.type), expected.number);
    EXPECT_STREQ(TensorTypeName(expected.type), expected.name);
    EXPECT_EQ(ElementSize(expected.type), expected.size) << expected.name;
  }
}

TEST(TensorTypeTest, ANumberThatIsNoTypeHasNoSize) {
  const auto type = static_cast<TensorType>(kTensorTypeCount);
  EXPECT_EQ(ElementSize(type), 0U);
  EXPECT_STREQ(TensorTypeName(type), "UNKNOW");
}

TEST(TensorLayoutTest, NamesAreTheVendors) {
  EXPECT_STREQ(TensorLayoutName(TensorLayout::kNchw), "NCHW");
  EXPECT_STREQ(TensorLayoutName(TensorLayout::kNhwc), "NHWC");
  EXPECT_STREQ(TensorLayoutName(TensorLayout::kNc1hwc2), "NC1HWC2");
  EXPECT_STREQ(TensorLayoutName(TensorLayout::kUndefined), "UNDEFINED");
  EXPECT_STREQ(TensorLayoutName(static_cast<TensorLayout>(kTensorLayoutCount)),
               "UNKNOW");
}

}  // namespace
}  // namespace rknnd::driver
