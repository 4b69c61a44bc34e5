#include "driver/soft/plan/npu_view.h"

#include "gtest/gtest.h"

namespace rknnd::soft {
namespace {

// The example of the vendor's guide, 5.1: an RK3568.
TEST(NpuViewTest, NativeShapeIsInTheSocsBlocks) {
  PlanOptions soc;
  soc.half_block = 4;
  soc.int8_block = 8;
  soc.int16_block = 4;

  EXPECT_EQ(NativeShape({1, 13, 4, 4}, DataType::kUint8, soc),
            (Shape{1, 2, 4, 4, 8}));
  EXPECT_EQ(NativeShape({1, 13, 4, 4}, DataType::kFloat32, soc),
            (Shape{1, 4, 4, 4, 4}));
  EXPECT_EQ(NativeShape({1, 13, 4, 4}, DataType::kInt64, soc),
            (Shape{1, 13, 4, 4}));
  EXPECT_EQ(NativeShape({1, 13}, DataType::kInt8, soc), (Shape{1, 13}));
}

TEST(NpuViewTest, CpuKeepsWhatTheNpuHasNoArithmeticFor) {
  Node node;
  node.type = "Conv";
  EXPECT_FALSE(RunsOnCpu(node, DataType::kInt8));
  node.type = "Reshape";
  EXPECT_FALSE(RunsOnCpu(node, DataType::kFloat32));
  EXPECT_TRUE(RunsOnCpu(node, DataType::kInt64));
  node.type = "ArgMax";
  EXPECT_TRUE(RunsOnCpu(node, DataType::kInt8));
}

TEST(NpuViewTest, TypesHaveTheVendorsNames) {
  EXPECT_STREQ(NpuTypeName(DataType::kFloat32), "FLOAT16");
  EXPECT_STREQ(NpuTypeName(DataType::kUint8), "INT8");
  EXPECT_EQ(CommaShape({1, 32, 112}), "1,32,112");
}

}  // namespace
}  // namespace rknnd::soft
