#include "driver/soft/graph/passes.h"

#include <algorithm>
#include <cmath>

#include "driver/soft/graph/fold.h"
#include "driver/soft/graph/onnx_operators.h"
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
  for (const Node& node : graph.nodes) {
    if (!node.joins_layer) types.push_back(node.layer_type);
  }
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

TEST(OnnxOperatorsTest, AreWholeNames) {
  for (const char* known : {"Abs", "LSTM", "Gelu", "Xor"}) {
    EXPECT_TRUE(IsOnnxOperator(known)) << known;
  }
  for (const char* other : {"", " ", "cstSoftmax", "Soft", "Abs Acos", "Ab"}) {
    EXPECT_FALSE(IsOnnxOperator(other)) << other;
  }
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
      .Node("Det", {"x"}, {"z"})
      .Output("y", {2});

  EXPECT_THAT(LayerTypes(AfterPasses(builder)), ElementsAre("Relu"));
}

TEST(PassesTest, StandardOperatorWeLackIsAnErrorThatNamesItAndItsNode) {
  OnnxBuilder builder;
  builder.Input("x", {2}).Node("Det", {"x"}, {"y"}, "culprit").Output("y", {2});
  Graph graph = Imported(builder);

  absl::Status status = RunPasses(graph, OperatorTable::Get());

  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("operator 'Det' of node 'culprit'"));
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

// A few kilobytes of these kept the loader for ten seconds and more.
TEST(PassesTest, FoldingCountsWhatElementsCost) {
  for (const std::string type : {"Mish", "TopK"}) {
    constexpr int kNodes = 40;
    OnnxBuilder builder;
    builder.Input("x", {1})
        .Int64s("shape", {1}, {int64_t{1} << 20})
        .Int64s("k", {1}, {int64_t{1} << 18})
        .Node("ConstantOfShape", {"shape"}, {"c"});
    std::vector<std::string> sums = {"x"};
    for (int i = 0; i < kNodes; ++i) {
      const std::string name = "n" + std::to_string(i);
      if (type == "TopK") {
        builder.Node(type, {"c", "k"}, {name, name + "i"});
      } else {
        builder.Node(type, {"c"}, {name});
      }
      sums.push_back(name + "s");
      builder.Node("ReduceSum", {name}, {sums.back()});
    }
    builder.Node("Sum", sums, {"y"}).Output("y", {1});

    const std::vector<std::string> left = LayerTypes(AfterPasses(builder));

    // Those that are done take one or two seconds.
    EXPECT_GE(std::count(left.begin(), left.end(), type), kNodes - 10) << type;
  }
}

TEST(PassesTest, WindowsAreNotFolded) {
  OnnxBuilder builder;
  builder.Input("x", {1, 4096, 1, 1})
      .Int64s("shape", {4}, {1, 4096, 1, 1})
      .Node("ConstantOfShape", {"shape"}, {"c"})
      .Node("LRN", {"c"}, {"n"})
      .Int("size", 4095)
      .Node("Add", {"x", "n"}, {"y"})
      .Output("y", {1, 4096, 1, 1});
  EXPECT_THAT(LayerTypes(AfterPasses(builder)), ElementsAre("LRN", "Add"));
}

// One shape after the other, as SoftModel compiles them.
TEST(PassesTest, ANetworkOfManyShapesFoldsNoMoreThanItsPool) {
  OnnxBuilder builder;
  builder.Input("x", {8192})
      .Floats("one", {1}, {1})
      .Int64s("shape", {1}, {8192})
      .Node("Expand", {"one", "shape"}, {"ones"}, "expand")
      .Node("Shape", {"x"}, {"s"})
      .Node("Reshape", {"ones", "s"}, {"r"}, "reshape")
      .Node("Add", {"x", "r"}, {"y"}, "add")
      .Output("y", {8192});
  FoldPool pool{.bytes = 80000, .work = 1 << 20};
  Graph first = Imported(builder);
  Graph second = Imported(builder);

  ASSERT_TRUE(RunPasses(first, OperatorTable::Get(), &pool).ok());
  ASSERT_TRUE(RunPasses(second, OperatorTable::Get(), &pool).ok());

  EXPECT_THAT(LayerTypes(first), ElementsAre("Add"));
  EXPECT_THAT(LayerTypes(second), ElementsAre("Expand", "Reshape", "Add"));
  EXPECT_EQ(second.value(second.outputs[0].value).shape, Shape{8192});
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

TEST(PassesTest, GeluIsFoundAsExportersWriteIt) {
  OnnxBuilder builder = Conv();
  builder.Floats("root", {}, {1.4142135F})
      .Floats("one", {}, {1})
      .Floats("half", {}, {0.5F})
      .Node("Div", {"c", "root"}, {"c/root"})
      .Node("Erf", {"c/root"}, {"erf"})
      .Node("Add", {"erf", "one"}, {"1+erf"})
      .Node("Mul", {"c", "1+erf"}, {"twice"})
      .Node("Mul", {"twice", "half"}, {"g"})
      .Floats("w2", {2, 2, 1, 1}, {1, 2, 3, 4})
      .Node("Conv", {"g", "w2"}, {"d"}, "second")
      .Floats("part", {}, {0.044715F})
      .Floats("scale", {1}, {0.7978846F})
      .Node("Mul", {"part", "d"}, {"pd"})
      .Node("Mul", {"d", "d"}, {"dd"})
      .Node("Mul", {"pd", "dd"}, {"pddd"})
      .Node("Add", {"d", "pddd"}, {"sum"})
      .Node("Mul", {"scale", "sum"}, {"scaled"})
      .Node("Tanh", {"scaled"}, {"tanh"})
      .Node("Add", {"one", "tanh"}, {"1+tanh"})
      .Node("Mul", {"half", "1+tanh"}, {"gate"})
      .Node("Mul", {"d", "gate"}, {"y"})
      .Output("y", {1, 2, 4, 4});

  Graph graph = AfterPasses(builder);

  ASSERT_THAT(LayerTypes(graph), ElementsAre("ConvGelu", "ConvGelu"));
  EXPECT_EQ(graph.nodes[0].epilogue.activation, Activation::kGelu);
  EXPECT_EQ(graph.nodes[1].epilogue.activation, Activation::kGeluTanh);
}

// Of so many products each is the last of some; a file of a MiB has them.
TEST(PassesTest, LookingForGeluEndsInLongChainsOfProducts) {
  constexpr int kNodes = 30000;
  OnnxBuilder builder;
  builder.Input("x", {1, 4}).Floats("half", {}, {0.5F});
  std::string last = "x";
  for (int i = 0; i < kNodes; ++i) {
    const std::string name = "n" + std::to_string(i);
    builder.Node("Mul", {last, "half"}, {name});
    last = name;
  }
  builder.Node("Identity", {last}, {"y"}).Output("y", {1, 4});
  EXPECT_EQ(LayerTypes(AfterPasses(builder)).size(), size_t{kNodes});
}

TEST(PassesTest, OtherNumbersMakeNoGelu) {
  for (const float half : {0.5F, 0.4F}) {
    OnnxBuilder builder = Conv();
    builder.Floats("root", {}, {half == 0.5F ? 1.5F : 1.4142135F})
        .Floats("one", {}, {1})
        .Floats("half", {}, {half})
        .Node("Div", {"c", "root"}, {"c/root"})
        .Node("Erf", {"c/root"}, {"erf"})
        .Node("Add", {"erf", "one"}, {"1+erf"})
        .Node("Mul", {"c", "1+erf"}, {"twice"})
        .Node("Mul", {"twice", "half"}, {"y"})
        .Output("y", {1, 2, 4, 4});

    EXPECT_EQ(LayerTypes(AfterPasses(builder)).front(), "Conv");
  }
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

TEST(PassesTest, ActivationsWithoutAnEpilogueJoinTheLayer) {
  OnnxBuilder builder = Conv();
  builder.Floats("slope", {2, 1, 1}, {0.5F, 0.25F})
      .Floats("w2", {2, 2, 1, 1}, {1, 2, 3, 4})
      .Node("PRelu", {"c", "slope"}, {"p"})
      .Node("Conv", {"p", "w2"}, {"d"}, "second")
      .Node("Elu", {"d"}, {"y"})
      .Output("y", {1, 2, 4, 4});

  const Graph graph = AfterPasses(builder);

  EXPECT_THAT(LayerTypes(graph), ElementsAre("ConvPRelu", "ConvElu"));
  EXPECT_EQ(graph.nodes.size(), 4U);
}

TEST(PassesTest, ActivationAndThenASumJoinTheLayer) {
  OnnxBuilder builder = Conv();
  builder.Node("Relu", {"c"}, {"r"})
      .Node("Add", {"x", "r"}, {"y"})
      .Output("y", {1, 2, 4, 4});

  EXPECT_THAT(LayerTypes(AfterPasses(builder)), ElementsAre("ConvReluAdd"));
}

// Nodes of a layer follow each other, where the last of them was.
TEST(PassesTest, LayerIsWhereAllThatItReadsIsThere) {
  OnnxBuilder builder = Conv();
  builder.Node("Relu", {"c"}, {"r"})
      .Node("Tanh", {"x"}, {"t"})
      .Node("Add", {"r", "t"}, {"y"})
      .Output("y", {1, 2, 4, 4});

  const Graph graph = AfterPasses(builder);

  ASSERT_THAT(LayerTypes(graph), ElementsAre("Tanh", "ConvReluAdd"));
  EXPECT_EQ(graph.nodes[1].type, "Conv");
  EXPECT_TRUE(graph.nodes[2].joins_layer);
}

TEST(PassesTest, ZerosAroundAConvolutionAreItsPads) {
  OnnxBuilder builder;
  builder.Input("x", {1, 2, 4, 4})
      .Floats("w", {2, 2, 3, 3}, std::vector<float>(36, 1))
      .Int64s("pads", {8}, {0, 0, 1, 1, 0, 0, 0, 1})
      .Node("Pad", {"x", "pads"}, {"p"})
      .Node("Conv", {"p", "w"}, {"y"})
      .Ints("pads", {0, 0, 1, 0})
      .Output("y", {1, 2, 4, 4});

  const Graph graph = AfterPasses(builder);

  ASSERT_THAT(LayerTypes(graph), ElementsAre("Conv"));
  EXPECT_EQ(NodeView(graph, graph.nodes[0]).Ints("pads"),
            (std::vector<int64_t>{1, 1, 1, 1}));
}

TEST(PassesTest, OtherBordersStayPads) {
  OnnxBuilder builder;
  builder.Input("x", {1, 2, 4, 4})
      .Floats("w", {2, 2, 3, 3}, std::vector<float>(36, 1))
      .Floats("one", {}, {1})
      .Int64s("pads", {8}, {0, 0, 1, 1, 0, 0, 1, 1})
      .Node("Pad", {"x", "pads", "one"}, {"p"})
      .Node("Conv", {"p", "w"}, {"y"})
      .Output("y", {1, 2, 4, 4});

  EXPECT_THAT(LayerTypes(AfterPasses(builder)), ElementsAre("Pad", "Conv"));
}

// As exporters write it, with and without scale and shift.
OnnxBuilder WrittenOutLayerNorm(bool affine) {
  OnnxBuilder builder;
  builder.Opset(13)
      .Input("x", {2, 3, 4})
      .Floats("two", {}, {2})
      .Floats("epsilon", {}, {1e-6F})
      .Floats("gamma", {4}, {1, 2, 3, 4})
      .Floats("beta", {4}, {4, 3, 2, 1})
      .Node("ReduceMean", {"x"}, {"mean"})
      .Ints("axes", {-1})
      .Node("Sub", {"x", "mean"}, {"d"})
      .Node("Pow", {"d", "two"}, {"square"})
      .Node("ReduceMean", {"square"}, {"variance"})
      .Ints("axes", {-1})
      .Node("Add", {"variance", "epsilon"}, {"sum"})
      .Node("Sqrt", {"sum"}, {"root"})
      .Node("Div", {"d", "root"}, {affine ? "n" : "y"});
  if (affine) {
    builder.Node("Mul", {"n", "gamma"}, {"s"})
        .Node("Add", {"s", "beta"}, {"y"});
  }
  builder.Output("y", {2, 3, 4});
  return builder;
}

TEST(PassesTest, LayerNormIsFoundInItsParts) {
  for (const bool affine : {false, true}) {
    const Graph graph = AfterPasses(WrittenOutLayerNorm(affine));

    ASSERT_THAT(LayerTypes(graph), ElementsAre("LayerNorm"));
    EXPECT_EQ(graph.nodes[0].type, "LayerNormalization");
    EXPECT_EQ(graph.nodes[0].inputs.size(), affine ? 3U : 2U);
  }
}

TEST(PassesTest, GatedHalvesAreAGlu) {
  OnnxBuilder builder;
  builder.Input("x", {1, 6, 4})
      .Node("Split", {"x"}, {"a", "b"})
      .Int("axis", 1)
      .Node("Sigmoid", {"b"}, {"s"})
      .Node("Mul", {"a", "s"}, {"y"})
      .Output("y", {1, 3, 4});

  EXPECT_THAT(LayerTypes(AfterPasses(builder)), ElementsAre("GLU"));
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
