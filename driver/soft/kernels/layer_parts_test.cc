// Layers that are no convolutions computed in the parts of a gang: the same
// bits as in one piece; and the rule that says into how many.

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "driver/soft/kernels/testing/one_node.h"
#include "driver/soft/kernels/testing/same_in_parts.h"
#include "driver/soft/kernels/work.h"

namespace rknnd::soft {
namespace {

using testing::Count;
using testing::ExpectSameInParts;
using testing::Noise;
using testing::OneNode;
using IntList = std::vector<int64_t>;

// Any layer that is worth sharing, of one kind or another.
struct Layer {
  const char* name;
  const char* type;
  std::vector<Shape> inputs;
  int block = 1;
  std::vector<std::pair<const char*, Attribute>> attributes = {};
  Activation activation = Activation::kNone;
  std::vector<int64_t> numbers = {};  // of a last input, which is known
  uint32_t parts = 3;                 // of three cores
  int opset = 13;
};
void PrintTo(const Layer& c, std::ostream* out) { *out << c.name; }

class LayerPartsTest : public ::testing::TestWithParam<Layer> {
 protected:
  static OneNode Make() {
    const Layer& layer = GetParam();
    OneNode node(layer.type, layer.opset);
    uint32_t seed = 1;
    for (const Shape& shape : layer.inputs) {
      std::vector<float> values = Noise(Count(shape), seed++);
      // Variances and the like.
      if (seed > 2) {
        for (float& value : values) value = value * 0.4F + 0.6F;
      }
      node.Values(shape, std::move(values));
    }
    if (!layer.numbers.empty()) {
      node.Ints({static_cast<int64_t>(layer.numbers.size())}, layer.numbers);
    }
    for (const auto& [name, value] : layer.attributes) node.With(name, value);
    if (layer.activation != Activation::kNone) {
      node.Then(layer.activation, 0.1F, 1.0F);
    }
    return node;
  }
};

TEST_P(LayerPartsTest, PartsAreTheWhole) {
  OneNode node = Make();
  ExpectSameInParts(node, GetParam().parts, GetParam().block);
}

const Shape kPicture = {1, 7, 61, 147};
const Shape kBlocked = {2, 23, 41, 47};

INSTANTIATE_TEST_SUITE_P(
    Elementwise, LayerPartsTest,
    ::testing::Values(
        Layer{"relu", "Relu", {kPicture}}, Layer{"clip", "Clip", {kPicture}},
        Layer{"leaky", "LeakyRelu", {kPicture}},
        Layer{"sigmoid", "Sigmoid", {kPicture}},
        Layer{"sigmoid_blocked", "Sigmoid", {kBlocked}, 16},
        Layer{"tanh", "Tanh", {kPicture}}, Layer{"exp", "Exp", {kPicture}},
        Layer{"erf", "Erf", {kPicture}}, Layer{"abs", "Abs", {kPicture}},
        Layer{"softplus", "Softplus", {kPicture}},
        Layer{"thresholded", "ThresholdedRelu", {kPicture}},
        Layer{"blocked", "ThresholdedRelu", {kBlocked}, 16},
        Layer{"prelu", "PRelu", {kPicture, {7, 1, 1}}},
        Layer{"add", "Add", {kPicture, kPicture}},
        Layer{.name = "add_blocked",
              .type = "Add",
              .inputs = {kBlocked, kBlocked},
              .block = 16,
              .activation = Activation::kSigmoid},
        Layer{"add_channel", "Add", {kBlocked, {1, 23, 1, 1}}, 16},
        Layer{"add_broadcast", "Add", {{3, 1, 61, 147}, {1, 5, 1, 147}}},
        Layer{"add_number", "Add", {kPicture, {1}}},
        Layer{"sub", "Sub", {kPicture, kPicture}},
        Layer{"mul_channel", "Mul", {kBlocked, {1, 23, 1, 1}}, 16},
        Layer{"div_rows", "Div", {{1, 197, 391}, {1, 197, 1}}},
        Layer{"pow", "Pow", {{197, 391}, {197, 391}}},
        Layer{"max", "Max", {kPicture, {1, 7, 1, 147}, kPicture}},
        Layer{"mean", "Mean", {kPicture, kPicture, kPicture}},
        Layer{
            "normalized", "BatchNormalization", {kPicture, {7}, {7}, {7}, {7}}},
        Layer{.name = "normalized_blocked",
              .type = "BatchNormalization",
              .inputs = {kBlocked, {23}, {23}, {23}, {23}},
              .block = 16,
              .activation = Activation::kSigmoid}),
    [](const auto& test) { return std::string(test.param.name); });

INSTANTIATE_TEST_SUITE_P(
    Moved, LayerPartsTest,
    ::testing::Values(
        Layer{"concat",
              "Concat",
              {{2, 7, 41, 67}, {2, 13, 41, 67}},
              1,
              {{"axis", int64_t{1}}}},
        Layer{"concat_one_image",
              "Concat",
              {{1, 7, 41, 67}, {1, 13, 41, 67}, {1, 1, 41, 67}},
              1,
              {{"axis", int64_t{1}}}},
        Layer{"concat_blocked",
              "Concat",
              {{1, 32, 41, 27}, {1, 16, 41, 27}, {1, 5, 41, 27}},
              16,
              {{"axis", int64_t{1}}}},
        Layer{"concat_rows",
              "Concat",
              {{8192, 3}, {8192, 5}},
              1,
              {{"axis", int64_t{1}}}},
        Layer{"transpose",
              "Transpose",
              {{3, 197, 113}},
              1,
              {{"perm", IntList{2, 0, 1}}}},
        Layer{"transpose_heads",
              "Transpose",
              {{1, 197, 12, 64}},
              1,
              {{"perm", IntList{0, 2, 1, 3}}}},
        Layer{.name = "expand",
              .type = "Expand",
              .inputs = {{1, 197, 1}},
              .numbers = {3, 197, 129}},
        Layer{.name = "tile",
              .type = "Tile",
              .inputs = {{3, 97, 41}},
              .numbers = {2, 3, 5}},
        Layer{"depth_to_space",
              "DepthToSpace",
              {{1, 36, 41, 67}},
              1,
              {{"blocksize", int64_t{2}}}},
        Layer{"space_to_depth",
              "SpaceToDepth",
              {{1, 9, 82, 134}},
              1,
              {{"blocksize", int64_t{2}}}},
        Layer{.name = "upsample",
              .type = "Upsample",
              .inputs = {{1, 9, 41, 37}},
              .attributes = {{"scales",
                              std::vector<float>{1.0F, 1.0F, 2.0F, 2.0F}}},
              .opset = 7},
        Layer{.name = "upsample_blocked",
              .type = "Upsample",
              .inputs = {{1, 41, 21, 19}},
              .block = 16,
              .attributes = {{"mode", std::string("linear")},
                             {"scales",
                              std::vector<float>{1.0F, 1.0F, 3.0F, 3.0F}}},
              .opset = 7}),
    [](const auto& test) { return std::string(test.param.name); });

INSTANTIATE_TEST_SUITE_P(
    Rows, LayerPartsTest,
    ::testing::Values(
        Layer{"softmax", "Softmax", {{1, 3, 197, 197}}},
        Layer{"softmax_short", "Softmax", {{1, 5, 4001, 7}}},
        Layer{"softmax_columns",
              "Softmax",
              {{1, 21, 61, 67}},
              1,
              {{"axis", int64_t{1}}}},
        Layer{"softmax_slabs",
              "Softmax",
              {{7, 21, 1001}},
              1,
              {{"axis", int64_t{1}}}},
        Layer{"log_softmax", "LogSoftmax", {{3, 197, 197}}},
        Layer{"layer", "LayerNormalization", {{1, 197, 391}, {391}, {391}}},
        Layer{"instance", "InstanceNormalization", {kPicture, {7}, {7}}},
        Layer{"mean_variance", "MeanVarianceNormalization", {kPicture}},
        Layer{"lrn", "LRN", {kPicture}, 1, {{"size", int64_t{5}}}},
        Layer{"reduce_mean",
              "ReduceMean",
              {{1, 197, 391}},
              1,
              {{"axes", IntList{-1}}}},
        Layer{"reduce_max",
              "ReduceMax",
              {{3, 197, 91}},
              1,
              {{"axes", IntList{1}}}},
        Layer{"log_sum_exp",
              "ReduceLogSumExp",
              {{197, 391}},
              1,
              {{"axes", IntList{0}}}},
        Layer{"max_pool",
              "MaxPool",
              {kPicture},
              1,
              {{"kernel_shape", IntList{3, 3}}, {"pads", IntList{1, 1, 1, 1}}}},
        Layer{"max_pool_blocked",
              "MaxPool",
              {{1, 93, 41, 47}},
              16,
              {{"kernel_shape", IntList{3, 3}}, {"strides", IntList{2, 2}}}},
        Layer{"dilated_pool",
              "MaxPool",
              {kPicture},
              1,
              {{"kernel_shape", IntList{2, 2}}, {"dilations", IntList{2, 3}}}},
        Layer{"average_pool",
              "AveragePool",
              {{1, 93, 41, 47}},
              16,
              {{"kernel_shape", IntList{3, 3}},
               {"pads", IntList{1, 1, 1, 1}},
               {"count_include_pad", int64_t{1}}}},
        Layer{"global_pool", "GlobalAveragePool", {kPicture}},
        Layer{"global_pool_blocked", "GlobalMaxPool", {{2, 39, 41, 47}}, 16}),
    [](const auto& test) { return std::string(test.param.name); });

struct ProductCase {
  const char* name;
  const char* type;
  Shape a, b;
  bool known = true;  // b
  bool has_c = false, turned = false, adds = false;
};
void PrintTo(const ProductCase& c, std::ostream* out) { *out << c.name; }

class ProductPartsTest : public ::testing::TestWithParam<ProductCase> {};

TEST_P(ProductPartsTest, PartsAreTheWhole) {
  const ProductCase& c = GetParam();
  OneNode node(c.type);
  node.Values(c.a, Noise(Count(c.a), 1));
  if (c.known) {
    node.Floats(c.b, Noise(Count(c.b), 2));
  } else {
    node.Values(c.b, Noise(Count(c.b), 2));
  }
  if (c.has_c) node.Floats({c.b.back()}, Noise(c.b.back(), 3));
  if (c.turned) node.With("transB", int64_t{1});
  if (c.adds) {
    Shape shape = c.a;
    shape.back() = c.turned ? c.b[0] : c.b.back();
    node.Plus(shape, Noise(Count(shape), 4)).Then(Activation::kSwish);
  }
  // How many there are is a matter of the library's kernels for the CPU.
  ExpectSameInParts(node, 0, 1);
#if defined(__x86_64__)
  EXPECT_GT(node.parts(), 1U);
#endif
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, ProductPartsTest,
    ::testing::Values(
        ProductCase{"columns", "MatMul", {49, 96}, {96, 1024}},
        ProductCase{"uneven_columns", "MatMul", {7, 301}, {301, 1001}},
        ProductCase{"rows", "MatMul", {1, 784, 96}, {96, 72}},
        ProductCase{"uneven_rows", "MatMul", {1, 397, 96}, {96, 24}},
        ProductCase{"one_row", "Gemm", {1, 1280}, {1280, 1000}, true, true},
        ProductCase{.name = "two_pieces",
                    .type = "MatMul",
                    .a = {30, 256},
                    .b = {256, 128}},
        ProductCase{"many_terms", "MatMul", {49, 3072}, {3072, 768}},
        ProductCase{.name = "gemm",
                    .type = "Gemm",
                    .a = {64, 256},
                    .b = {256, 512},
                    .has_c = true,
                    .adds = true},
        ProductCase{.name = "turned",
                    .type = "Gemm",
                    .a = {64, 256},
                    .b = {512, 256},
                    .turned = true},
        ProductCase{.name = "activated_columns",
                    .type = "MatMul",
                    .a = {1, 50, 96},
                    .b = {96, 1000},
                    .adds = true},
        ProductCase{"heads", "MatMul", {1, 12, 97, 64}, {1, 12, 64, 97}, false},
        ProductCase{"odd_heads", "MatMul", {7, 97, 64}, {7, 64, 97}, false},
        ProductCase{"few_heads", "MatMul", {3, 197, 64}, {3, 64, 197}, false},
        ProductCase{"one_for_all", "MatMul", {6, 97, 64}, {1, 64, 97}, false},
        ProductCase{
            "one_head", "MatMul", {1, 1, 320, 48}, {1, 1, 48, 320}, false},
        ProductCase{"known_heads", "MatMul", {6, 97, 64}, {6, 64, 97}}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(SharingTest, WeightsAreThoseOfOneCore) {
  OneNode node("MatMul");
  node.Values({1, 397, 96}, Noise(int64_t{397} * 96))
      .Floats({96, 128}, Noise(int64_t{96} * 128));
  ASSERT_TRUE(node.Run().ok());
  const size_t alone = node.weights();
  ASSERT_TRUE(node.RunInParts(3).ok());
  EXPECT_EQ(node.weights(), 2 * alone);  // the store of this test adds up
}

TEST(SharingTest, SmallLayersStayWhole) {
  for (const char* type : {"Relu", "Sigmoid", "Softmax", "GlobalAveragePool"}) {
    OneNode node(type);
    node.Values({1, 4, 8, 8}, Noise(256));
    ASSERT_TRUE(node.RunInParts(3).ok());
    EXPECT_EQ(node.parts(), 1U) << type;
  }
  OneNode product("MatMul");
  product.Values({16, 32}, Noise(512)).Values({32, 64}, Noise(2048));
  ASSERT_TRUE(product.RunInParts(3).ok());
  EXPECT_EQ(product.parts(), 1U);
}

TEST(SharingTest, PartTakesLongerThanHandingItOver) {
  EXPECT_EQ(PartsOf({}, 100, 3), 1U);
  EXPECT_EQ(PartsOf({.operations = int64_t{1} << 30}, 100, 3), 3U);
  EXPECT_EQ(PartsOf({.bytes = int64_t{1} << 30}, 100, 8), 8U);
  EXPECT_EQ(PartsOf({.bytes = int64_t{1} << 30}, 2, 8), 2U);
  EXPECT_EQ(PartsOf({.bytes = int64_t{1} << 30}, 0, 8), 1U);
  // Twice as much work is shared by twice as many cores.
  Work work;
  while (PartsOf(work, 100, 8) < 2) work.operations += 1000;
  EXPECT_EQ(PartsOf({.operations = 2 * work.operations}, 100, 8), 4U);
}

TEST(ShareOfTest, SharesMeetAndAreCutBetweenUnits) {
  for (const int64_t count : {0, 1, 63, 64, 65, 1000}) {
    for (const uint32_t parts : {1U, 2U, 3U, 7U}) {
      int64_t at = 0;
      for (uint32_t i = 0; i < parts; ++i) {
        const Range share = ShareOf({i, parts}, count, 64);
        EXPECT_EQ(share.begin, at);
        EXPECT_TRUE(share.end % 64 == 0 || share.end == count);
        at = share.end;
      }
      EXPECT_EQ(at, count);
    }
  }
}

}  // namespace
}  // namespace rknnd::soft
