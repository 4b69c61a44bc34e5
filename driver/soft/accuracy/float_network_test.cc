// What stays of a quantised network without its 8 bits: numbers are compared by
// folding both with a known input.

#include "driver/soft/accuracy/float_network.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "driver/soft/graph/fold.h"
#include "driver/soft/graph/passes.h"
#include "driver/soft/import/onnx_import.h"
#include "driver/soft/testing/onnx_builder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rknnd::soft {
namespace {

using testing::Dims;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::FloatNear;
using ::testing::Not;
using testing::OnnxBuilder;
using ::testing::Pointwise;

constexpr char kMicrosoft[] = "com.microsoft";

void AddBytes(OnnxBuilder& builder, const std::string& name, const Dims& dims,
              const std::vector<int>& values, int32_t type) {
  auto* tensor = builder.proto().mutable_graph()->add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(type);
  for (const int64_t dim : dims) tensor->add_dims(dim);
  for (const int value : values) tensor->add_int32_data(value);
}

// Input "x" of 2 channels of 2 x 2, in steps of 1/8 as the uint8 "q"; scales
// and zero points for more.
OnnxBuilder Start() {
  OnnxBuilder builder;
  builder.Opset(1, kMicrosoft);
  builder.Input("x", {1, 2, 2, 2});
  builder.Floats("s", {}, {0.125F}).Floats("big", {}, {0.5F});
  AddBytes(builder, "z", {}, {100}, onnx::TensorProto::UINT8);
  AddBytes(builder, "wz", {}, {0}, onnx::TensorProto::INT8);
  builder.Node("QuantizeLinear", {"x", "s", "z"}, {"q"}, "quantize");
  return builder;
}

const std::vector<float> kInput = {1.03F,  -2.21F, 0.77F, 3.49F,
                                   -0.59F, 2.02F,  1.31F, -1.18F};

Graph Prepared(const OnnxBuilder& builder) {
  auto graph = ImportOnnx(builder.Bytes(), "m.onnx");
  EXPECT_TRUE(graph.ok()) << graph.status();
  Folder folder;
  const absl::Status inferred =
      InferAndFold(*graph, OperatorTable::Get(), folder, true);
  EXPECT_TRUE(inferred.ok()) << inferred;
  return *std::move(graph);
}

// The first output for the input above.
std::shared_ptr<const Constant> Answer(Graph graph) {
  Constant input{DataType::kFloat32, {1, 2, 2, 2}, {}};
  input.data.resize(kInput.size() * sizeof(float));
  std::memcpy(input.data.data(), kInput.data(), input.data.size());
  graph.value(graph.inputs[0].value).constant =
      std::make_shared<const Constant>(std::move(input));
  Folder folder;
  const absl::Status folded = InferAndFold(graph, OperatorTable::Get(), folder);
  EXPECT_TRUE(folded.ok()) << folded;
  auto answer = graph.value(graph.outputs[0].value).constant;
  EXPECT_NE(answer, nullptr);
  return answer;
}

std::vector<float> NumbersOf(const std::shared_ptr<const Constant>& answer) {
  if (answer == nullptr) return {};
  EXPECT_EQ(answer->type, DataType::kFloat32);
  return {answer->as<float>(), answer->as<float>() + answer->elements()};
}

std::vector<std::string> TypesIn(Graph graph) {
  RemoveDeadNodes(graph);
  std::vector<std::string> types;
  for (const Node& node : graph.nodes) types.push_back(node.type);
  return types;
}

TEST(FloatNetworkTest, PairsGoAndOperatorsStay) {
  OnnxBuilder builder = Start();
  builder.Node("DequantizeLinear", {"q", "s", "z"}, {"d"});
  builder.Floats("half", {}, {0.5F}).Node("Mul", {"d", "half"}, {"h"});
  builder.Node("QuantizeLinear", {"h", "s", "z"}, {"hq"});
  builder.Node("DequantizeLinear", {"hq", "s", "z"}, {"hd"});
  builder.Node("Relu", {"hd"}, {"y"}).Output("y", {1, 2, 2, 2});
  const Graph from = Prepared(builder);

  const FloatNetwork floats = MakeFloat(from);

  EXPECT_THAT(TypesIn(floats.graph), ElementsAre("Mul", "Relu"));
  std::vector<float> expected;
  for (const float x : kInput) expected.push_back(std::max(0.5F * x, 0.0F));
  EXPECT_THAT(NumbersOf(Answer(floats.graph)), Pointwise(FloatEq(), expected));
  // Every name of the same numbers is known.
  const auto real = [&](const std::string& name) {
    for (size_t v = 0; v < floats.reals.size(); ++v) {
      if (from.values[v].name == name) {
        return floats.graph.value(floats.reals[v]).name;
      }
    }
    return std::string("none");
  };
  EXPECT_EQ(real("q"), "x");
  EXPECT_EQ(real("d"), "x");
  EXPECT_EQ(real("hq"), "h");
  EXPECT_EQ(real("y"), "y");
}

// Each with an 8-bit output "o" of scale `big`: near the integers' answer, and
// free of its rounding.
struct Case {
  const char* name;
  std::function<void(OnnxBuilder&)> add;
  const char* as;
};

void PrintTo(const Case& one, std::ostream* to) { *to << one.name; }

class FloatOperatorTest : public ::testing::TestWithParam<Case> {};

TEST_P(FloatOperatorTest, IsNearTheOneOnIntegers) {
  OnnxBuilder builder = Start();
  GetParam().add(builder);
  builder.Node("DequantizeLinear", {"o", "big", "z"}, {"y"});
  builder.Output("y", {});
  builder.proto().mutable_graph()->mutable_output(0)->clear_type();
  const Graph from = Prepared(builder);

  const FloatNetwork floats = MakeFloat(from);

  EXPECT_THAT(TypesIn(floats.graph), ::testing::Contains(GetParam().as));
  // Pooling is not done ahead of time.
  if (std::string(GetParam().as).find("Pool") != std::string::npos) return;
  const std::vector<float> bytes = NumbersOf(Answer(from));
  const std::vector<float> real = NumbersOf(Answer(floats.graph));
  ASSERT_FALSE(real.empty());
  EXPECT_THAT(real, Pointwise(FloatNear(0.5F), bytes));
  // Multiples of the scale are what 8 bits can say.
  std::vector<float> off;
  for (const float value : real) {
    off.push_back(std::fabs(value / 0.5F - std::round(value / 0.5F)));
  }
  EXPECT_THAT(off, Not(Each(::testing::Lt(1e-3F))));
}

void AddWeights(OnnxBuilder& builder, const Dims& dims) {
  AddBytes(builder, "w", dims, {3, -7, 12, 5}, onnx::TensorProto::INT8);
  builder.Floats("ws", {2}, {0.07F, 0.11F});
  AddBytes(builder, "wzs", {2}, {0, 0}, onnx::TensorProto::INT8);
  auto* bias = builder.proto().mutable_graph()->add_initializer();
  bias->set_name("b");
  bias->set_data_type(onnx::TensorProto::INT32);
  bias->add_dims(2);
  bias->add_int32_data(90);
  bias->add_int32_data(-40);
}

INSTANTIATE_TEST_SUITE_P(
    All, FloatOperatorTest,
    ::testing::Values(
        Case{"QLinearConv",
             [](OnnxBuilder& b) {
               AddWeights(b, {2, 2, 1, 1});
               b.Node("QLinearConv",
                      {"q", "s", "z", "w", "ws", "wzs", "big", "z", "b"},
                      {"o"});
             },
             "Conv"},
        Case{"QGemm",
             [](OnnxBuilder& b) {
               AddWeights(b, {2, 2});
               b.Int64s("rows", {2}, {4, 2})
                   .Node("Reshape", {"q", "rows"}, {"r"})
                   .Node("QGemm",
                         {"r", "s", "z", "w", "ws", "wzs", "b", "big", "z"},
                         {"o"}, "gemm", kMicrosoft)
                   .Int("transB", 1);
             },
             "Gemm"},
        Case{"QLinearMatMul",
             [](OnnxBuilder& b) {
               AddWeights(b, {2, 2});
               b.Node("QLinearMatMul",
                      {"q", "s", "z", "w", "ws", "wzs", "big", "z"}, {"o"});
             },
             "MatMul"},
        Case{"QLinearAdd",
             [](OnnxBuilder& b) {
               b.Node("QLinearAdd", {"q", "s", "z", "q", "s", "z", "big", "z"},
                      {"o"}, "add", kMicrosoft);
             },
             "Add"},
        Case{"QLinearMul",
             [](OnnxBuilder& b) {
               b.Node("QLinearMul", {"q", "s", "z", "q", "s", "z", "big", "z"},
                      {"o"}, "mul", kMicrosoft);
             },
             "Mul"},
        Case{"QLinearSigmoid",
             [](OnnxBuilder& b) {
               b.Node("QLinearSigmoid", {"q", "s", "z", "big", "z"}, {"o"},
                      "sigmoid", kMicrosoft);
             },
             "Sigmoid"},
        Case{"QLinearLeakyRelu",
             [](OnnxBuilder& b) {
               b.Node("QLinearLeakyRelu", {"q", "s", "z", "big", "z"}, {"o"},
                      "leaky", kMicrosoft)
                   .Float("alpha", 0.3F);
             },
             "LeakyRelu"},
        Case{"QLinearAveragePool",
             [](OnnxBuilder& b) {
               b.Node("QLinearAveragePool", {"q", "s", "z", "big", "z"}, {"o"},
                      "pool", kMicrosoft)
                   .Ints("kernel_shape", {2, 2});
             },
             "AveragePool"},
        Case{"QLinearGlobalAveragePool",
             [](OnnxBuilder& b) {
               b.Node("QLinearGlobalAveragePool", {"q", "s", "z", "big", "z"},
                      {"o"}, "pool", kMicrosoft);
             },
             "GlobalAveragePool"},
        Case{"QLinearConcat",
             [](OnnxBuilder& b) {
               b.Node("QLinearConcat",
                      {"big", "z", "q", "s", "z", "q", "s", "z"}, {"o"},
                      "concat", kMicrosoft)
                   .Int("axis", 1);
             },
             "Concat"}),
    [](const auto& row) { return std::string(row.param.name); });

TEST(FloatNetworkTest, PaddingIsZeroPointNoMore) {
  OnnxBuilder builder = Start();
  builder.Int64s("pads", {8}, {0, 0, 0, 1, 0, 0, 0, 0});
  builder.Node("Pad", {"q", "pads", "z"}, {"p"});
  builder.Node("DequantizeLinear", {"p", "s", "z"}, {"y"});
  builder.Output("y", {1, 2, 2, 3});

  const std::vector<float> real =
      NumbersOf(Answer(MakeFloat(Prepared(builder)).graph));

  ASSERT_EQ(real.size(), 12U);
  EXPECT_THAT(std::vector<float>(real.begin(), real.begin() + 6),
              ElementsAre(0, 1.03F, -2.21F, 0, 0.77F, 3.49F));
}

TEST(FloatNetworkTest, AReluThatIsOnlyTheLowestByteStays) {
  for (const bool lowest : {true, false}) {
    OnnxBuilder builder = Start();
    AddBytes(builder, "low", {}, {lowest ? 0 : 1}, onnx::TensorProto::UINT8);
    builder.Node("DequantizeLinear", {"q", "s", "z"}, {"d"});
    builder.Node("Neg", {"d"}, {"n"});
    builder.Node("QuantizeLinear", {"n", "s", "low"}, {"nq"});
    builder.Node("DequantizeLinear", {"nq", "s", "low"}, {"y"});
    builder.Output("y", {1, 2, 2, 2});

    const std::vector<float> real =
        NumbersOf(Answer(MakeFloat(Prepared(builder)).graph));

    ASSERT_EQ(real.size(), kInput.size());
    for (size_t i = 0; i < real.size(); ++i) {
      EXPECT_EQ(real[i], lowest ? std::max(-kInput[i], 0.0F) : -kInput[i]);
    }
  }
}

TEST(FloatNetworkTest, WhatIsSplitIsRealInAllParts) {
  OnnxBuilder builder = Start();
  builder.Node("Split", {"q"}, {"a", "b"}).Int("axis", 1);
  builder.Node("DequantizeLinear", {"b", "s", "z"}, {"y"});
  builder.Output("y", {1, 1, 2, 2});

  EXPECT_THAT(NumbersOf(Answer(MakeFloat(Prepared(builder)).graph)),
              ElementsAre(-0.59F, 2.02F, 1.31F, -1.18F));
}

TEST(FloatNetworkTest, WhoeverWantsIntegersGetsThem) {
  OnnxBuilder builder = Start();
  builder.Node("Cast", {"q"}, {"y"}).Int("to", onnx::TensorProto::FLOAT);
  builder.Output("y", {1, 2, 2, 2});

  const FloatNetwork floats = MakeFloat(Prepared(builder));

  EXPECT_THAT(TypesIn(floats.graph), ElementsAre("QuantizeLinear", "Cast"));
  EXPECT_EQ(NumbersOf(Answer(floats.graph))[0], 108);  // 100 + round(1.03 * 8)
}

TEST(FloatNetworkTest, An8BitOutputBecomesReal) {
  OnnxBuilder builder = Start();
  builder.Output("q", {1, 2, 2, 2}, onnx::TensorProto::UINT8);

  const FloatNetwork floats = MakeFloat(Prepared(builder));

  EXPECT_EQ(floats.graph.outputs[0].name, "q");
  EXPECT_EQ(floats.graph.outputs[0].onnx_type, onnx::TensorProto::FLOAT);
  EXPECT_THAT(NumbersOf(Answer(floats.graph)), Pointwise(FloatEq(), kInput));
}

TEST(FloatNetworkTest, WhatNobodyHasCheckedIsLeftAlone) {
  OnnxBuilder builder;
  builder.Opset(1, "com.example").Opset(1, kMicrosoft);
  builder.Input("x", {1, 4});
  builder.Node("Odd", {"x"}, {"o"}, "odd", "com.example");
  builder.Node("QuantizeLinear", {"o", ""}, {"q"}, "quantize");
  builder.Node("QLinearAdd", {"q", "", "", "q", "", "", ""}, {"a"}, "add",
               kMicrosoft);
  builder.Node("QLinearConv", {"a", "", "", "a", "", "", "", ""}, {"c"});
  builder.Node("Concat", {"c", "q"}, {"k"}).Int("axis", 0);
  builder.Node("DequantizeLinear", {"k", ""}, {"y"}, "dequantize");
  builder.Output("y", {1, 4});

  EXPECT_THAT(TypesIn(MakeFloat(Prepared(builder)).graph),
              ElementsAre("Odd", "QuantizeLinear", "QLinearAdd", "QLinearConv",
                          "Concat", "DequantizeLinear"));
}

TEST(FloatNetworkTest, AFloatNetworkStaysAsItIs) {
  OnnxBuilder builder;
  builder.Input("x", {1, 2, 2, 2})
      .Node("Relu", {"x"}, {"r"})
      .Node("Sigmoid", {"r"}, {"y"})
      .Output("y", {1, 2, 2, 2});
  const Graph from = Prepared(builder);

  const FloatNetwork floats = MakeFloat(from);

  EXPECT_EQ(floats.graph.values.size(), from.values.size());
  EXPECT_THAT(TypesIn(floats.graph), ElementsAre("Relu", "Sigmoid"));
}

}  // namespace
}  // namespace rknnd::soft
