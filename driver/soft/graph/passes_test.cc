#include "driver/soft/graph/passes.h"

#include <cmath>

#include "driver/soft/graph/uses.h"
#include "driver/soft/import/onnx_import.h"
#include "driver/soft/testing/onnx_builder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rknnd::soft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::OnnxBuilder;

Graph Imported(const OnnxBuilder& builder) {
  auto graph = ImportOnnx(builder.Bytes(), "m.onnx");
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

Graph AfterPasses(const OnnxBuilder& builder) {
  Graph graph = Imported(builder);
  absl::Status status = RunPasses(graph, OperatorTable::Get());
  EXPECT_TRUE(status.ok()) << status;
  return graph;
}

std::vector<std::string> LayerTypes(const Graph& graph) {
  std::vector<std::string> types;
  for (const Node& node : graph.nodes) types.push_back(node.layer_type);
  return types;
}

// A 1x1 convolution of two channels, "x" -> "c".
OnnxBuilder Conv() {
  OnnxBuilder builder;
  builder.Input("x", {1, 2, 4, 4})
      .Floats("w", {2, 2, 1, 1}, {1, 2, 3, 4})
      .Node("Conv", {"x", "w"}, {"c"}, "conv");
  return builder;
}

TEST(PassesTest, IdentityAndDropoutVanish) {
  OnnxBuilder builder;
  builder.Input("x", {2})
      .Node("Identity", {"x"}, {"a"})
      .Node("Relu", {"a"}, {"b"})
      .Node("Dropout", {"b"}, {"c", "mask"})
      .Node("Identity", {"c"}, {"y"})
      .Output("y", {2});

  Graph graph = AfterPasses(builder);

  EXPECT_THAT(LayerTypes(graph), ElementsAre("Relu"));
  EXPECT_EQ(graph.outputs[0].name, "y");
}

TEST(PassesTest, DeadNodesVanishEvenIfNobodyKnowsThem) {
  OnnxBuilder builder;
  builder.Input("x", {2})
      .Node("Relu", {"x"}, {"y"})
      .Node("NoSuchOperator", {"x"}, {"z"})
      .Output("y", {2});

  EXPECT_THAT(LayerTypes(AfterPasses(builder)), ElementsAre("Relu"));
}

TEST(PassesTest, StandardOperatorWeLackIsAnErrorThatNamesItAndItsNode) {
  OnnxBuilder builder;
  builder.Input("x", {2})
      .Node("NoSuchOperator", {"x"}, {"y"}, "culprit")
      .Output("y", {2});
  Graph graph = Imported(builder);

  absl::Status status = RunPasses(graph, OperatorTable::Get());

  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("operator 'NoSuchOperator' of node 'culprit'"));
}

TEST(PassesTest, ShapeArithmeticFoldsIntoTheReshape) {
  OnnxBuilder builder;
  builder.Input("x", {2, 3, 4})
      .Int64s("zero", {}, {0})
      .Int64s("axes", {1}, {0})
      .Int64s("rest", {1}, {-1})
      .Node("Shape", {"x"}, {"s"})
      .Node("Gather", {"s", "zero"}, {"n"})
      .Node("Unsqueeze", {"n", "axes"}, {"n1"})
      .Node("Concat", {"n1", "rest"}, {"target"})
      .Int("axis", 0)
      .Node("Reshape", {"x", "target"}, {"y"})
      .Output("y", {2, 12});

  Graph graph = AfterPasses(builder);

  EXPECT_THAT(LayerTypes(graph), ElementsAre("Reshape"));
  EXPECT_EQ(graph.value(graph.outputs[0].value).shape, (Shape{2, 12}));
}

TEST(PassesTest, NodeOfConstantsBecomesAConstant) {
  OnnxBuilder builder;
  builder.Input("x", {2})
      .Floats("a", {2}, {1, 2})
      .Floats("b", {2}, {10, 20})
      .Node("Add", {"a", "b"}, {"c"})
      .Node("Mul", {"x", "c"}, {"y"})
      .Output("y", {2});

  Graph graph = AfterPasses(builder);

  ASSERT_THAT(LayerTypes(graph), ElementsAre("Mul"));
  const Constant* sum = graph.value(graph.nodes[0].inputs[1]).constant.get();
  ASSERT_NE(sum, nullptr);
  EXPECT_EQ(sum->as<float>()[1], 22.0F);
}

TEST(PassesTest, HugeConstantsAreNotFolded) {
  OnnxBuilder builder;
  builder.Input("x", {1})
      .Int64s("shape", {2}, {10000, 20000})
      .Node("ConstantOfShape", {"shape"}, {"c"})
      .Node("Add", {"x", "c"}, {"y"})
      .Output("y", {10000, 20000});

  EXPECT_THAT(LayerTypes(AfterPasses(builder)),
              ElementsAre("ConstantOfShape", "Add"));
}

// Each answer is small, the work for all of them is not.
TEST(PassesTest, FoldingEndsBeforeItKeepsTheLoaderBusy) {
  constexpr int kSums = 200;  // of 64 MiB each
  OnnxBuilder builder;
  builder.Input("x", {1})
      .Int64s("shape", {1}, {int64_t{1} << 24})
      .Node("ConstantOfShape", {"shape"}, {"c"});
  std::vector<std::string> sums = {"x"};
  for (int i = 0; i < kSums; ++i) {
    sums.push_back("s" + std::to_string(i));
    builder.Node("ReduceSum", {"c"}, {sums.back()});
  }
  builder.Node("Sum", sums, {"y"}).Output("y", {1});

  const std::vector<std::string> left = LayerTypes(AfterPasses(builder));

  EXPECT_THAT(left, ::testing::Contains("ReduceSum"));
}

TEST(PassesTest, BatchNormalizationFoldsIntoTheConvolution) {
  OnnxBuilder builder = Conv();
  builder.Floats("scale", {2}, {2, 1})
      .Floats("shift", {2}, {0.5F, -1})
      .Floats("mean", {2}, {1, 0})
      .Floats("variance", {2}, {4, 1})
      .Node("BatchNormalization", {"c", "scale", "shift", "mean", "variance"},
            {"y"})
      .Float("epsilon", 0)
      .Output("y", {1, 2, 4, 4});

  Graph graph = AfterPasses(builder);

  ASSERT_THAT(LayerTypes(graph), ElementsAre("Conv"));
  const Constant& w = *graph.value(graph.nodes[0].inputs[1]).constant;
  const Constant& b = *graph.value(graph.nodes[0].inputs[2]).constant;
  EXPECT_FLOAT_EQ(w.as<float>()[1], 2.0F);   // 2 * 2 / sqrt(4)
  EXPECT_FLOAT_EQ(w.as<float>()[3], 4.0F);   // 4 * 1 / sqrt(1)
  EXPECT_FLOAT_EQ(b.as<float>()[0], -0.5F);  // (0 - 1) * 1 + 0.5
  EXPECT_FLOAT_EQ(b.as<float>()[1], -1.0F);
}

TEST(PassesTest, BatchNormalizationStaysWhereTheConvolutionIsReadElsewhere) {
  OnnxBuilder builder = Conv();
  builder.Floats("p", {2}, {1, 1})
      .Node("BatchNormalization", {"c", "p", "p", "p", "p"}, {"y"})
      .Output("y", {1, 2, 4, 4})
      .Output("c", {1, 2, 4, 4});

  EXPECT_EQ(LayerTypes(AfterPasses(builder)).size(), 2U);
}

TEST(PassesTest, ActivationFusesUnderTheVendorsName) {
  OnnxBuilder builder = Conv();
  builder.Node("Relu", {"c"}, {"y"}).Output("y", {1, 2, 4, 4});

  Graph graph = AfterPasses(builder);

  ASSERT_THAT(LayerTypes(graph), ElementsAre("ConvRelu"));
  EXPECT_EQ(graph.nodes[0].epilogue.activation, Activation::kRelu);
}

TEST(PassesTest, ActivationStaysWhereItsInputIsAnOutput) {
  OnnxBuilder builder = Conv();
  builder.Node("Relu", {"c"}, {"y"})
      .Output("y", {1, 2, 4, 4})
      .Output("c", {1, 2, 4, 4});

  EXPECT_THAT(LayerTypes(AfterPasses(builder)), ElementsAre("Conv", "Relu"));
}

TEST(PassesTest, ClipTakesItsBoundsFromInputs) {
  OnnxBuilder builder = Conv();
  builder.Floats("low", {}, {0})
      .Floats("high", {}, {6})
      .Node("Clip", {"c", "low", "high"}, {"y"})
      .Output("y", {1, 2, 4, 4});

  Graph graph = AfterPasses(builder);

  ASSERT_THAT(LayerTypes(graph), ElementsAre("ConvClip"));
  EXPECT_EQ(graph.nodes[0].epilogue.beta, 6.0F);
}

TEST(PassesTest, SwishIsFoundInBothOrders) {
  OnnxBuilder builder = Conv();
  builder.Floats("w2", {2, 2, 1, 1}, {1, 2, 3, 4})
      .Node("Sigmoid", {"c"}, {"s"})
      .Node("Mul", {"c", "s"}, {"m"})
      .Node("Conv", {"m", "w2"}, {"d"}, "second")
      .Node("Sigmoid", {"d"}, {"s2"})
      .Node("Mul", {"s2", "d"}, {"y"})
      .Output("y", {1, 2, 4, 4});

  Graph graph = AfterPasses(builder);

  ASSERT_THAT(LayerTypes(graph), ElementsAre("ConvExSwish", "ConvExSwish"));
  EXPECT_EQ(graph.nodes[1].epilogue.activation, Activation::kSwish);
}

TEST(PassesTest, ResidualSumFusesIntoTheLaterConvolution) {
  OnnxBuilder builder = Conv();
  builder.Floats("w2", {2, 2, 1, 1}, {1, 2, 3, 4})
      .Node("Conv", {"c", "w2"}, {"d"}, "second")
      .Node("Add", {"c", "d"}, {"sum"})
      .Node("Relu", {"sum"}, {"y"})
      .Output("y", {1, 2, 4, 4});

  Graph graph = AfterPasses(builder);

  ASSERT_THAT(LayerTypes(graph), ElementsAre("Conv", "ConvAddRelu"));
  EXPECT_EQ(graph.nodes[1].epilogue.add, graph.nodes[0].outputs[0]);
}

TEST(PassesTest, BroadcastSumsDoNotFuse) {
  OnnxBuilder builder = Conv();
  builder.Input("z", {1, 2, 1, 1})
      .Node("Add", {"c", "z"}, {"y"})
      .Output("y", {1, 2, 4, 4});

  EXPECT_THAT(LayerTypes(AfterPasses(builder)), ElementsAre("Conv", "Add"));
}

TEST(PassesTest, CastsBetweenFloatsVanish) {
  OnnxBuilder builder;
  builder.Input("x", {2}, onnx::TensorProto::FLOAT16)
      .Node("Cast", {"x"}, {"a"})
      .Int("to", onnx::TensorProto::FLOAT)
      .Node("Relu", {"a"}, {"y"})
      .Output("y", {2});

  EXPECT_THAT(LayerTypes(AfterPasses(builder)), ElementsAre("Relu"));
}

TEST(PassesTest, ForeignOperatorKeepsTheShapesTheFileDeclares) {
  OnnxBuilder builder;
  builder.Opset(1, "my.domain")
      .Input("x", {2})
      .Node("Relu", {"x"}, {"a"})
      .Node("Foo", {"a"}, {"b"}, "foo", "my.domain")
      .Node("Relu", {"b"}, {"y"})
      .Output("y", {7, 7});

  Graph graph = AfterPasses(builder);

  EXPECT_THAT(LayerTypes(graph), ElementsAre("Relu", "Foo", "Relu"));
  EXPECT_EQ(graph.value(graph.outputs[0].value).shape, (Shape{7, 7}));
}

}  // namespace
}  // namespace rknnd::soft
