#include "client/rknnrt/context/match_tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <span>
#include <string>

#include "client/rknnrt/tensor.h"

namespace rknnd::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<rknn_output> Outputs(std::initializer_list<uint32_t> indices) {
  std::vector<rknn_output> outputs;
  for (const uint32_t index : indices) {
    outputs.emplace_back();
    outputs.back().index = index;
  }
  return outputs;
}

TEST(ResolveOutputsTest, IndicesInAnyOrderAreUsed) {
  const auto outputs = Outputs({2, 0, 1});
  EXPECT_THAT(*ResolveOutputs(outputs, 3), ElementsAre(2, 0, 1));
}

TEST(ResolveOutputsTest, AllZeroIsByPosition) {
  const auto outputs = Outputs({0, 0, 0});
  EXPECT_THAT(*ResolveOutputs(outputs, 3), ElementsAre(0, 1, 2));
}

TEST(ResolveOutputsTest, SingleOutputNamesItsIndex) {
  const auto outputs = Outputs({2});
  EXPECT_THAT(*ResolveOutputs(outputs, 3), ElementsAre(2));
}

TEST(ResolveOutputsTest, IndexPastTheEndIsAnError) {
  const auto outputs = Outputs({0, 3});
  EXPECT_FALSE(ResolveOutputs(outputs, 3).ok());
}

TEST(ResolveOutputsTest, OutputNamedTwiceIsAnError) {
  const auto outputs = Outputs({1, 1});
  EXPECT_FALSE(ResolveOutputs(outputs, 3).ok());
}

TEST(ResolveOutputsTest, MoreThanTheModelHasIsAnError) {
  const auto outputs = Outputs({0, 1});
  EXPECT_FALSE(ResolveOutputs(outputs, 1).ok());
}

TEST(ResolveOutputsTest, NoneIsAnError) {
  EXPECT_FALSE(ResolveOutputs({}, 1).ok());
}

TensorAttr Tensor(const char* name, std::vector<uint32_t> dims,
                  uint32_t layout) {
  TensorAttr attr{};
  wire::SetText(attr.name, name);
  for (const uint32_t dim : dims) attr.dims[attr.dims_count++] = dim;
  attr.layout = layout;
  return attr;
}

ModelDescription TwoByTwo() {
  ModelDescription model;
  model.inputs = {Tensor("a", {1, 4, 4, 3}, RKNN_TENSOR_NHWC),
                  Tensor("x", {1, 8}, RKNN_TENSOR_UNDEFINED)};
  model.outputs = {Tensor("x", {1, 10}, RKNN_TENSOR_UNDEFINED),
                   Tensor("b", {1, 3, 4, 4}, RKNN_TENSOR_NCHW)};
  model.native_outputs = {Tensor("x", {1, 10}, RKNN_TENSOR_UNDEFINED),
                          Tensor("b", {1, 1, 4, 4, 8}, RKNN_TENSOR_NC1HWC2)};
  return model;
}

rknn_tensor_attr Asked(const TensorAttr& tensor, uint32_t index) {
  rknn_tensor_attr attr;
  FillAttr(tensor, index, &attr);
  return attr;
}

TEST(MatchTensorTest, NameAloneDecidesWhereItIsUnique) {
  const ModelDescription model = TwoByTwo();
  rknn_tensor_attr attr = Asked(model.outputs[1], 1);
  attr.type = RKNN_TENSOR_FLOAT32;
  attr.dims[1] = 99;
  const auto match = MatchTensor(model, attr);
  ASSERT_TRUE(match.ok());
  EXPECT_EQ(match->direction, Direction::kOutput);
  EXPECT_EQ(match->index, 1U);
}

TEST(MatchTensorTest, SharedNameIsDecidedByTheShape) {
  const ModelDescription model = TwoByTwo();
  const auto input = MatchTensor(model, Asked(model.inputs[1], 1));
  ASSERT_TRUE(input.ok());
  EXPECT_EQ(input->direction, Direction::kInput);
  EXPECT_EQ(input->index, 1U);
  const auto output = MatchTensor(model, Asked(model.outputs[0], 0));
  ASSERT_TRUE(output.ok());
  EXPECT_EQ(output->direction, Direction::kOutput);
  EXPECT_EQ(output->index, 0U);
}

TEST(MatchTensorTest, IndexThatDoesNotGoWithTheNameIsRefused) {
  const ModelDescription model = TwoByTwo();
  const auto match = MatchTensor(model, Asked(model.outputs[1], 0));
  ASSERT_FALSE(match.ok());
  EXPECT_THAT(match.error().message,
              HasSubstr("index 0 does not go with 'b', which is output 1"));
  EXPECT_FALSE(MatchTensor(model, Asked(model.inputs[0], 7)).ok());
}

TEST(MatchTensorTest, UnknownNameIsAnErrorThatNamesTheOthers) {
  const ModelDescription model = TwoByTwo();
  rknn_tensor_attr attr = {};
  const auto match = MatchTensor(model, attr);
  ASSERT_FALSE(match.ok());
  EXPECT_THAT(match.error().message, HasSubstr("'a', 'x', 'x', 'b'"));
}

TEST(MatchTensorTest, NameWithoutAnEndIsReadNoFurtherThanItsField) {
  const ModelDescription model = TwoByTwo();
  rknn_tensor_attr attr = {};
  std::memset(attr.name, 'n', sizeof attr.name);
  EXPECT_FALSE(MatchTensor(model, attr).ok());
}

}  // namespace
}  // namespace rknnd::client
