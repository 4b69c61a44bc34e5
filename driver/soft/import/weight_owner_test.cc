// A file whose weights were removed takes them from another one, by name, and
// only what is the same there.

#include "driver/soft/import/weight_owner.h"

#include <string>
#include <vector>

#include "driver/soft/import/onnx_import.h"
#include "driver/soft/testing/onnx_builder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rknnd::soft {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::OnnxBuilder;

// y = x * w + b on so many rows of two numbers.
OnnxBuilder RowsNetwork(int64_t rows) {
  OnnxBuilder builder;
  builder.Input("x", {rows, 2})
      .Floats("w", {2}, {3, 5})
      .Floats("b", {1}, {7})
      .Node("Mul", {"x", "w"}, {"p"}, "scale")
      .Node("Add", {"p", "b"}, {"y"}, "shift")
      .Output("y", {rows, 2});
  return builder;
}

onnx::TensorProto* Weight(OnnxBuilder& builder, int i) {
  return builder.proto().mutable_graph()->mutable_initializer(i);
}

OnnxBuilder Follower() {
  OnnxBuilder builder = RowsNetwork(8);
  Weight(builder, 0)->clear_raw_data();
  Weight(builder, 0)->clear_float_data();
  return builder;
}

std::span<const std::byte> ModelBytes(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

class WeightOwnerTest : public ::testing::Test {
 protected:
  absl::StatusOr<Graph> Import(const OnnxBuilder& follower) const {
    return ImportOpen(follower.Bytes(), "small.onnx", owner_);
  }
  std::string ErrorOf(const OnnxBuilder& follower) const {
    const auto graph = Import(follower);
    EXPECT_EQ(graph.status().code(), absl::StatusCode::kInvalidArgument)
        << graph.status();
    return std::string(graph.status().message());
  }
  // The weight that the first node multiplies by.
  void ExpectWeight(const absl::StatusOr<Graph>& graph) {
    ASSERT_TRUE(graph.ok()) << graph.status();
    EXPECT_EQ(graph->inputs.size(), 1U);
    const auto& w = graph->value(graph->nodes[0].inputs[1]).constant;
    ASSERT_NE(w, nullptr);
    EXPECT_EQ(w->as<float>()[0], 3.0F);
    EXPECT_EQ(w->as<float>()[1], 5.0F);
  }

  std::vector<std::byte> owner_ = RowsNetwork(1).Bytes();
};

TEST_F(WeightOwnerTest, WeightWithoutDataIsTheOwners) {
  ExpectWeight(Import(Follower()));
}

TEST_F(WeightOwnerTest, WeightThatIsGoneAltogetherIsTheOwners) {
  OnnxBuilder follower = RowsNetwork(8);
  follower.proto().mutable_graph()->mutable_initializer()->DeleteSubrange(0, 1);
  ExpectWeight(Import(follower));
}

TEST_F(WeightOwnerTest, WeightThatIsLeftAsAnInputIsTheOwners) {
  OnnxBuilder follower = RowsNetwork(8);
  follower.proto().mutable_graph()->mutable_initializer()->DeleteSubrange(0, 1);
  follower.Input("w", {2});
  ExpectWeight(Import(follower));
}

TEST_F(WeightOwnerTest, WeightInAnotherFileIsTheOwners) {
  OnnxBuilder follower = Follower();
  Weight(follower, 0)->set_data_location(onnx::TensorProto::EXTERNAL);
  ExpectWeight(Import(follower));
}

TEST_F(WeightOwnerTest, ConstantNodesOfTheOwnerAreWeightsToo) {
  OnnxBuilder owner = RowsNetwork(1);
  const onnx::TensorProto w = *Weight(owner, 0);
  owner.proto().mutable_graph()->mutable_initializer()->DeleteSubrange(0, 1);
  owner.Node("Constant", {}, {"w"});
  auto* value = owner.proto().mutable_graph()->mutable_node(2)->add_attribute();
  value->set_name("value");
  value->set_type(onnx::AttributeProto::TENSOR);
  *value->mutable_t() = w;
  owner_ = owner.Bytes();

  ExpectWeight(Import(Follower()));
}

TEST_F(WeightOwnerTest, WhatTheFollowerHasIsItsOwn) {
  OnnxBuilder owner = RowsNetwork(1);
  Weight(owner, 1)->clear_raw_data();
  Weight(owner, 1)->clear_float_data();
  Weight(owner, 1)->add_float_data(99);
  owner_ = owner.Bytes();

  const auto graph = Import(Follower());

  ExpectWeight(graph);
  const auto& b = graph->value(graph->nodes[1].inputs[1]).constant;
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(b->as<float>()[0], 7.0F);
}

TEST_F(WeightOwnerTest, FollowerAloneIsAnErrorThatNamesItsFirstWeight) {
  owner_ = {};
  EXPECT_THAT(ErrorOf(Follower()),
              AllOf(HasSubstr("model 'small.onnx': initializer 'w' has no "
                              "data"),
                    HasSubstr("RKNN_FLAG_SHARE_WEIGHT_MEM")));
}

TEST_F(WeightOwnerTest, OwnerWithoutThatWeightIsAnErrorThatNamesIt) {
  OnnxBuilder other;
  other.Input("x", {1}).Node("Relu", {"x"}, {"y"}).Output("y", {1});
  owner_ = other.Bytes();
  EXPECT_THAT(ErrorOf(Follower()),
              AllOf(HasSubstr("initializer 'w'"),
                    HasSubstr("has no weight of that name")));
}

TEST_F(WeightOwnerTest, WeightOfOtherDimsIsAnErrorWithBoth) {
  OnnxBuilder follower = Follower();
  Weight(follower, 0)->set_dims(0, 3);
  EXPECT_THAT(ErrorOf(follower), AllOf(HasSubstr("initializer 'w' is FLOAT 3"),
                                       HasSubstr("FLOAT 2 in the model")));
}

TEST_F(WeightOwnerTest, WeightOfAnotherTypeIsAnErrorWithBoth) {
  OnnxBuilder follower = Follower();
  Weight(follower, 0)->set_data_type(onnx::TensorProto::FLOAT16);
  EXPECT_THAT(ErrorOf(follower),
              AllOf(HasSubstr("initializer 'w' is FLOAT16 2"),
                    HasSubstr("FLOAT 2 in the model")));
}

TEST_F(WeightOwnerTest, OwnerThatLacksItTooIsAnError) {
  owner_ = Follower().Bytes();
  EXPECT_THAT(ErrorOf(Follower()), HasSubstr("nor has it"));
}

TEST_F(WeightOwnerTest, DimsThatOverflowAreAnError) {
  OnnxBuilder follower = Follower();
  Weight(follower, 0)->set_dims(0, int64_t{1} << 40);
  Weight(follower, 0)->add_dims(int64_t{1} << 40);
  const auto graph = Import(follower);
  EXPECT_EQ(graph.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(graph.status().message()),
              HasSubstr("initializer 'w'"));
}

TEST_F(WeightOwnerTest, GarbageForAnOwnerIsAnErrorThatSaysSo) {
  const std::string garbage = "\x01\x02\x03 no model at all";
  const auto graph =
      ImportOpen(Follower().Bytes(), "small.onnx", ModelBytes(garbage));
  EXPECT_EQ(graph.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(graph.status().message()),
              AllOf(HasSubstr("model 'small.onnx'"),
                    HasSubstr("the model whose weights are shared")));
}

TEST_F(WeightOwnerTest, OwnersOwnDamageIsAnErrorThatNamesTheWeight) {
  OnnxBuilder owner = RowsNetwork(1);
  Weight(owner, 0)->clear_float_data();
  Weight(owner, 0)->set_raw_data("123");
  owner_ = owner.Bytes();
  EXPECT_THAT(ErrorOf(Follower()), HasSubstr("'w' in the model whose"));
}

TEST_F(WeightOwnerTest, InputsOfTheFollowerStayInputs) {
  const auto graph = Import(RowsNetwork(8));
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_EQ(graph->inputs.size(), 1U);
  EXPECT_EQ(graph->inputs[0].name, "x");
}

}  // namespace
}  // namespace rknnd::soft
