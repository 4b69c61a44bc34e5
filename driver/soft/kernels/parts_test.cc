// Convolutions computed in the parts of a gang: the same bits as in one piece.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "driver/soft/kernels/convolution/convolution_cut.h"
#include "driver/soft/kernels/testing/one_node.h"
#include "driver/soft/kernels/testing/same_in_parts.h"

namespace rknnd::soft {
namespace {

using testing::Count;
using testing::ExpectSameInParts;
using testing::Noise;
using testing::OneNode;
using IntList = std::vector<int64_t>;

struct ConvCase {
  const char* name;
  Shape input;
  int64_t outputs;
  int64_t kernel = 3, stride = 1, pad = 1, dilation = 1, groups = 1;
  uint32_t parts = 3;  // of three cores; 0: whatever the CPU's kernels allow
  Activation activation = Activation::kNone;
  bool adds = false;
};
void PrintTo(const ConvCase& c, std::ostream* out) { *out << c.name; }

class ConvPartsTest : public ::testing::TestWithParam<ConvCase> {
 protected:
  static OneNode Make() {
    const ConvCase& c = GetParam();
    const Shape weights = {c.outputs, c.input[1] / c.groups, c.kernel,
                           c.kernel};
    OneNode node("Conv");
    node.Values(c.input, Noise(Count(c.input), 1))
        .Floats(weights, Noise(Count(weights), 2))
        .Floats({c.outputs}, Noise(c.outputs, 3))
        .With("pads", IntList(4, c.pad))
        .With("strides", IntList(2, c.stride))
        .With("dilations", IntList(2, c.dilation))
        .With("group", c.groups);
    if (c.activation != Activation::kNone) node.Then(c.activation, 0.1F, 2.0F);
    if (c.adds) {
      const auto out = [&](int64_t size) {
        return (size + 2 * c.pad - ((c.kernel - 1) * c.dilation + 1)) /
                   c.stride +
               1;
      };
      const Shape shape = {c.input[0], c.outputs, out(c.input[2]),
                           out(c.input[3])};
      node.Plus(shape, Noise(Count(shape), 4));
    }
    return node;
  }
};

TEST_P(ConvPartsTest, PartsAreTheWholeBlocked) {
  OneNode node = Make();
  ExpectSameInParts(node, ChannelBlock() == 16 ? GetParam().parts : 0,
                    ChannelBlock());
}

TEST_P(ConvPartsTest, PartsAreTheWholeDense) {
  OneNode node = Make();
  ExpectSameInParts(node, 0, 1);
}

TEST_P(ConvPartsTest, PartsReadTheSameWeights) {
  OneNode node = Make();
  ASSERT_TRUE(node.Run(ChannelBlock()).ok());
  const size_t whole = node.weights();
  ASSERT_TRUE(node.RunInParts(3, ChannelBlock()).ok());
  EXPECT_EQ(node.weights(), 2 * whole);  // the store of this test adds up
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, ConvPartsTest,
    ::testing::Values(
        ConvCase{"one_block", {1, 16, 23, 19}, 16},
        ConvCase{"padded_block", {1, 12, 31, 17}, 13},
        ConvCase{"pointwise", {1, 64, 21, 20}, 80, 1, 1, 0},
        ConvCase{"channels", {1, 32, 17, 13}, 96},
        ConvCase{"odd_channels", {1, 40, 17, 13}, 85},
        ConvCase{.name = "two_blocks",
                 .input = {1, 64, 17, 13},
                 .outputs = 32,
                 .parts = 2},
        ConvCase{"strided", {1, 16, 45, 33}, 16, 3, 2},
        ConvCase{"strided_channels", {1, 48, 45, 33}, 48, 3, 2},
        ConvCase{"dilated", {1, 16, 29, 31}, 16, 3, 1, 2, 2},
        ConvCase{"wide_kernel", {1, 16, 29, 31}, 16, 7, 1, 3},
        ConvCase{"no_padding", {1, 16, 29, 31}, 16, 5, 1, 0},
        ConvCase{"depthwise", {1, 64, 40, 40}, 64, 3, 1, 1, 1, 64},
        ConvCase{"depthwise_one_block", {1, 16, 81, 41}, 16, 5, 2, 2, 1, 16},
        ConvCase{"depthwise_odd", {1, 56, 40, 41}, 56, 3, 1, 1, 1, 56},
        ConvCase{.name = "groups",
                 .input = {1, 64, 20, 20},
                 .outputs = 64,
                 .groups = 2,
                 .parts = 0},
        ConvCase{"batch", {5, 32, 15, 11}, 16},
        ConvCase{.name = "two_images",
                 .input = {2, 64, 9, 9},
                 .outputs = 64,
                 .parts = 2},
        ConvCase{.name = "swish",
                 .input = {1, 32, 27, 27},
                 .outputs = 48,
                 .activation = Activation::kSwish},
        ConvCase{.name = "sigmoid_padded",
                 .input = {1, 32, 27, 27},
                 .outputs = 52,
                 .activation = Activation::kSigmoid},
        ConvCase{.name = "relu",
                 .input = {1, 16, 27, 27},
                 .outputs = 16,
                 .activation = Activation::kRelu},
        ConvCase{.name = "add_and_clip",
                 .input = {1, 32, 27, 27},
                 .outputs = 64,
                 .activation = Activation::kClip,
                 .adds = true},
        ConvCase{.name = "few_rows",
                 .input = {1, 16, 2, 600},
                 .outputs = 16,
                 .parts = 2},
        ConvCase{"pixels", {1, 64, 24, 26}, 16, 1, 1, 0},
        ConvCase{.name = "pixels_swish",
                 .input = {1, 40, 30, 34},
                 .outputs = 13,
                 .kernel = 1,
                 .pad = 0,
                 .activation = Activation::kSwish,
                 .adds = true},
        ConvCase{.name = "even_pixels",
                 .input = {1, 64, 32, 32},
                 .outputs = 16,
                 .kernel = 1,
                 .pad = 0,
                 .parts = 2},
        ConvCase{"pixels_64_6", {1, 64, 30, 40}, 6, 1, 1, 0, 1, 1, 0},
        ConvCase{"pixels_64_12", {1, 64, 30, 40}, 12, 1, 1, 0, 1, 1, 0},
        ConvCase{"pixels_64_8", {1, 64, 30, 40}, 8, 1, 1, 0, 1, 1, 0},
        ConvCase{"pixels_128_4", {1, 128, 15, 20}, 4, 1, 1, 0, 1, 1, 0},
        ConvCase{"pixels_128_8", {1, 128, 15, 20}, 8, 1, 1, 0, 1, 1, 0},
        ConvCase{"pixels_256_4", {1, 256, 8, 10}, 4, 1, 1, 0, 1, 1, 0},
        ConvCase{"pixels_256_8", {1, 256, 8, 10}, 8, 1, 1, 0, 1, 1, 0},
        ConvCase{"pixels_48_16", {1, 48, 31, 46}, 16, 1, 1, 0, 1, 1, 0},
        ConvCase{"pixels_512_16", {1, 512, 26, 26}, 16, 1, 1, 0, 1, 1, 0},
        ConvCase{"gray_picture", {1, 1, 60, 60}, 16, 5, 1, 2}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(ConvPartsTest, SmallConvolutionsStayWhole) {
  OneNode node("Conv");
  node.Values({1, 16, 4, 4}, Noise(256)).Floats({16, 16, 1, 1}, Noise(256));
  ASSERT_TRUE(node.RunInParts(3, ChannelBlock()).ok());
  EXPECT_EQ(node.parts(), 1U);
}

// Five rows for six cores; and a kernel that reaches past both ends.
TEST(CutConvolutionTest, MoreCoresThanRowsIsNoCut) {
  const TensorSpec input{DataType::kInt8, {1, 8, 5, 9}, {8}};
  const TensorSpec output{DataType::kInt8, {1, 8, 5, 9}, {8}};
  const ConvolutionForm form{input,  output, {3, 3}, {1, 1},
                             {1, 1}, {1, 1}, {1, 1}};
  EXPECT_TRUE(CutConvolution(form, {4, 5}).has_value());
  EXPECT_FALSE(CutConvolution(form, {0, 6}).has_value());
}

TEST(CutConvolutionTest, PaddingIsThatOfTheEnds) {
  const TensorSpec input{DataType::kInt8, {1, 8, 10, 9}, {8}};
  const TensorSpec output{DataType::kInt8, {1, 8, 10, 9}, {8}};
  const ConvolutionForm form{input,  output, {5, 5}, {1, 1},
                             {1, 1}, {2, 2}, {2, 2}};
  const auto first = CutConvolution(form, {0, 2});
  const auto second = CutConvolution(form, {1, 2});
  ASSERT_TRUE(first.has_value() && second.has_value());
  EXPECT_EQ(first->pads_begin, (Shape{2, 2}));
  EXPECT_EQ(first->pads_end, (Shape{0, 2}));
  EXPECT_EQ(first->input.shape[2], 7);
  EXPECT_EQ(second->pads_begin, (Shape{0, 2}));
  EXPECT_EQ(second->pads_end, (Shape{2, 2}));
  EXPECT_EQ(second->input_at, size_t{3 * 9 * 8});
  EXPECT_EQ(second->output_at, size_t{5 * 9 * 8});
}

TEST(CutConvolutionTest, RowsOfNothingButPaddingAreNotCut) {
  const TensorSpec input{DataType::kInt8, {1, 8, 2, 9}, {8}};
  const TensorSpec output{DataType::kInt8, {1, 8, 12, 9}, {8}};
  const ConvolutionForm form{input,  output, {1, 1}, {1, 1},
                             {1, 1}, {5, 0}, {5, 0}};
  EXPECT_FALSE(CutConvolution(form, {0, 3}).has_value());
}

}  // namespace
}  // namespace rknnd::soft
