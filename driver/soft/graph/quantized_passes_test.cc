// Networks written as Dequantize -> operator -> Quantize: which layers they
// become, and that the answers stay those of the network as written.

#include <cmath>
#include <cstring>

#include "driver/soft/graph/passes.h"
#include "driver/soft/import/onnx_import.h"
#include "driver/soft/soft_device.h"
#include "driver/soft/testing/onnx_builder.h"
#include "driver/soft/testing/run_model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rknnd::soft {
namespace {

using ::testing::ElementsAre;
using testing::OnnxBuilder;

// Writes a network step by step; every value is "name", its 8-bit form "name.q"
// and that as numbers "name.d".
class QuantizedNetwork {
 public:
  QuantizedNetwork() {
    builder_.Floats("s8", {}, {0.125F}).Floats("s4", {}, {0.25F});
    Bytes("z", {}, {3});
    Bytes("z0", {}, {0});
    builder_.Input("x", {1, 4, 6, 6});
  }

  OnnxBuilder& builder() { return builder_; }

  QuantizedNetwork& Bytes(const std::string& name, const testing::Dims& dims,
                          const std::vector<int>& values) {
    auto* tensor = builder_.proto().mutable_graph()->add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(onnx::TensorProto::INT8);
    for (int64_t dim : dims) tensor->add_dims(dim);
    std::string raw;
    for (int value : values) raw += static_cast<char>(value);
    tensor->set_raw_data(raw);
    return *this;
  }
  // name -> name.q -> name.d
  QuantizedNetwork& Pair(const std::string& name,
                         const std::string& scale = "s8",
                         const std::string& zero = "z") {
    builder_.Node("QuantizeLinear", {name, scale, zero}, {name + ".q"});
    builder_.Node("DequantizeLinear", {name + ".q", scale, zero},
                  {name + ".d"});
    return *this;
  }
  // 1x1 weights of 4 channels, "w.d"; a bias, "b.d".
  QuantizedNetwork& Weights() {
    std::vector<int> values;
    for (int i = 0; i < 16; ++i) values.push_back(i * 11 % 37 - 18);
    Bytes("w", {4, 4, 1, 1}, values);
    builder_.Node("DequantizeLinear", {"w", "s8", "z0"}, {"w.d"});
    builder_.Floats("b", {4}, {0.3F, -0.1F, 2, -3});
    builder_.Floats("sb", {}, {0.0625F});
    builder_.Node("QuantizeLinear", {"b", "sb", "z0"}, {"b.q"});
    builder_.Node("DequantizeLinear", {"b.q", "sb", "z0"}, {"b.d"});
    return *this;
  }
  QuantizedNetwork& Ends(const std::string& name, const testing::Dims& dims) {
    builder_.Node("Identity", {name}, {"y"}).Output("y", dims);
    return *this;
  }

 private:
  OnnxBuilder builder_;
};

Graph ImportedGraph(const OnnxBuilder& builder) {
  auto graph = ImportOnnx(builder.Bytes(), "m.onnx");
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

Graph AfterQuantizedPasses(const OnnxBuilder& builder) {
  Graph graph = ImportedGraph(builder);
  const absl::Status status = RunPasses(graph, OperatorTable::Get());
  EXPECT_TRUE(status.ok()) << status;
  return graph;
}

std::vector<std::string> TypesOfLayers(const Graph& graph) {
  std::vector<std::string> types;
  for (const Node& node : graph.nodes) {
    if (!node.joins_layer) types.push_back(node.layer_type);
  }
  return types;
}

std::vector<float> ImageValues() {
  std::vector<float> values;
  for (int i = 0; i < 4 * 36; ++i) {
    values.push_back(static_cast<float>(i * 53 % 97 - 48) * 0.11F);
  }
  return values;
}

// The network as written: folded, operator by operator.
std::vector<float> AsWritten(const OnnxBuilder& builder) {
  Graph graph = ImportedGraph(builder);
  auto constant = std::make_shared<Constant>();
  const std::vector<float> image = ImageValues();
  constant->shape = {1, 4, 6, 6};
  constant->data.resize(image.size() * sizeof(float));
  std::memcpy(constant->data.data(), image.data(), constant->data.size());
  graph.value(graph.inputs[0].value).constant = constant;
  Folder folder;
  const absl::Status status = InferAndFold(graph, OperatorTable::Get(), folder);
  EXPECT_TRUE(status.ok()) << status;
  const auto answer = graph.value(graph.outputs[0].value).constant;
  if (answer == nullptr) return {};
  return {answer->as<float>(), answer->as<float>() + answer->elements()};
}

std::vector<float> OnTheDevice(const OnnxBuilder& builder) {
  auto device = *OpenSoftDevice({.kind = "soft", .soc = "rk3588"});
  auto model = device->Load({builder.Bytes(), "", "m.onnx"});
  EXPECT_TRUE(model.ok()) << model.status();
  if (!model.ok()) return {};
  const driver::ProgramInfo& info = (*model)->info().programs[0];
  const auto type = driver::TensorType::kFloat32;
  const std::vector<float> image = ImageValues();
  std::vector<std::byte> bytes(image.size() * sizeof(float));
  std::memcpy(bytes.data(), image.data(), bytes.size());
  std::vector<testing::TestTensor> outputs = {
      {testing::PlainFormat(info.outputs[0], type), {}}};
  const absl::Status status = testing::RunOnce(
      *device, **model, {{testing::PlainFormat(info.inputs[0], type), bytes}},
      outputs);
  EXPECT_TRUE(status.ok()) << status;
  std::vector<float> values(outputs[0].bytes.size() / sizeof(float));
  std::memcpy(values.data(), outputs[0].bytes.data(), outputs[0].bytes.size());
  return values;
}

void ExpectSameAnswers(const OnnxBuilder& builder) {
  const std::vector<float> want = AsWritten(builder);
  ASSERT_FALSE(want.empty());
  EXPECT_EQ(OnTheDevice(builder), want);
}

TEST(QuantizedPassesTest, ConvolutionWithReluIsOneLayerOnIntegers) {
  QuantizedNetwork net;
  net.Pair("x").Weights();
  net.builder()
      .Node("Conv", {"x.d", "w.d", "b.d"}, {"c"})
      .Node("Relu", {"c"}, {"r"});
  net.Pair("r").Ends("r.d", {1, 4, 6, 6});

  EXPECT_THAT(TypesOfLayers(AfterQuantizedPasses(net.builder())),
              ElementsAre("ConvRelu"));
  ExpectSameAnswers(net.builder());
}

TEST(QuantizedPassesTest, ConvolutionMeetsAQuantizeBehindMovedNumbers) {
  QuantizedNetwork net;
  net.Pair("x").Weights();
  net.builder()
      .Node("Conv", {"x.d", "w.d", "b.d"}, {"c"})
      .Node("LeakyRelu", {"c"}, {"l"})
      .Float("alpha", 0.125F)
      .Node("Transpose", {"l"}, {"t"})
      .Ints("perm", {0, 2, 3, 1})
      .Node("Concat", {"t", "t"}, {"k"})
      .Int("axis", 3);
  net.Pair("k", "s4").Ends("k.d", {1, 6, 6, 8});

  // Read twice by the Concat: it stays a float convolution.
  EXPECT_THAT(TypesOfLayers(AfterQuantizedPasses(net.builder())),
              ::testing::Contains("ConvLeakyRelu"));
  ExpectSameAnswers(net.builder());
}

TEST(QuantizedPassesTest, PiecesOfOneConcatAreQuantisedBeforeIt) {
  QuantizedNetwork net;
  net.Pair("x").Weights();
  net.builder()
      .Node("Conv", {"x.d", "w.d", "b.d"}, {"c"})
      .Node("Concat", {"c", "x.d"}, {"k"})
      .Int("axis", 1)
      .Node("Transpose", {"k"}, {"p"})
      .Ints("perm", {0, 2, 3, 1});
  net.Pair("p", "s4").Ends("p.d", {1, 6, 6, 8});

  const Graph graph = AfterQuantizedPasses(net.builder());

  EXPECT_THAT(TypesOfLayers(graph),
              ::testing::UnorderedElementsAre("Conv", "Requantize", "Concat",
                                              "Transpose"));
  ExpectSameAnswers(net.builder());
}

TEST(QuantizedPassesTest, AFunctionOfOneNumberIsATable) {
  QuantizedNetwork net;
  net.Pair("x");
  net.builder()
      .Floats("half", {}, {0.5F})
      .Node("Sigmoid", {"x.d"}, {"s"})
      .Node("Mul", {"s", "half"}, {"m"});
  net.Pair("m", "s8", "z0").Ends("m.d", {1, 4, 6, 6});

  const Graph graph = AfterQuantizedPasses(net.builder());

  ASSERT_EQ(graph.nodes.size(), 1U);
  EXPECT_EQ(graph.nodes[0].type, "Lookup");
  ExpectSameAnswers(net.builder());
}

TEST(QuantizedPassesTest, SumsAreIntegerLayers) {
  QuantizedNetwork net;
  net.Pair("x").Weights();
  net.builder().Node("Conv", {"x.d", "w.d", "b.d"}, {"c"});
  net.Pair("c");
  net.builder().Node("Add", {"c.d", "x.d"}, {"a"}).Node("Relu", {"a"}, {"r"});
  net.Pair("r", "s4").Ends("r.d", {1, 4, 6, 6});

  EXPECT_THAT(TypesOfLayers(AfterQuantizedPasses(net.builder())),
              ElementsAre("ConvAddRelu"));
  ExpectSameAnswers(net.builder());
}

TEST(QuantizedPassesTest, ActivationsOnAConvolutionsWayOutAreItsLayer) {
  for (const std::string type : {"Sigmoid", "Tanh", "Elu", "HardSwish"}) {
    QuantizedNetwork net;
    net.Pair("x").Weights();
    net.builder().Node("Conv", {"x.d", "w.d", "b.d"}, {"c"});
    net.Pair("c");
    net.builder().Node(type, {"c.d"}, {"a"});
    net.Pair("a", "s4").Ends("a.d", {1, 4, 6, 6});

    EXPECT_THAT(TypesOfLayers(AfterQuantizedPasses(net.builder())),
                ElementsAre("Conv" + type));
    ExpectSameAnswers(net.builder());
  }
}

TEST(QuantizedPassesTest, SwishIsOneTableBehindTheConvolution) {
  QuantizedNetwork net;
  net.Pair("x").Weights();
  net.builder().Node("Conv", {"x.d", "w.d", "b.d"}, {"c"});
  net.Pair("c");
  net.builder().Node("Sigmoid", {"c.d"}, {"s"});
  net.Pair("s", "s8", "z0");
  net.builder().Node("Mul", {"c.d", "s.d"}, {"m"});
  net.Pair("m").Ends("m.d", {1, 4, 6, 6});

  const Graph graph = AfterQuantizedPasses(net.builder());

  EXPECT_THAT(TypesOfLayers(graph), ElementsAre("ConvExSwish"));
  EXPECT_EQ(graph.nodes.size(), 2U);
  ExpectSameAnswers(net.builder());
}

TEST(QuantizedPassesTest, ActivationAndThenASumAreTheConvolutionsLayer) {
  QuantizedNetwork net;
  net.Pair("x").Weights();
  net.builder()
      .Node("Conv", {"x.d", "w.d", "b.d"}, {"c"})
      .Node("Relu", {"c"}, {"r"});
  net.Pair("r");
  net.builder().Node("Add", {"r.d", "x.d"}, {"a"});
  net.Pair("a", "s4").Ends("a.d", {1, 4, 6, 6});

  EXPECT_THAT(TypesOfLayers(AfterQuantizedPasses(net.builder())),
              ElementsAre("ConvReluAdd"));
  ExpectSameAnswers(net.builder());
}

TEST(QuantizedPassesTest, MeansAreIntegerLayers) {
  QuantizedNetwork net;
  net.Pair("x");
  net.builder().Node("GlobalAveragePool", {"x.d"}, {"g"});
  net.Pair("g").Ends("g.d", {1, 4, 1, 1});

  EXPECT_THAT(TypesOfLayers(AfterQuantizedPasses(net.builder())),
              ElementsAre("GlobalAveragePool"));
}

TEST(QuantizedPassesTest, WhatHasNoIntegerFormStaysAsWritten) {
  QuantizedNetwork net;
  net.Pair("x");
  net.builder().Node("Softmax", {"x.d"}, {"s"}).Int("axis", 1);
  net.Pair("s", "s8", "z0").Ends("s.d", {1, 4, 6, 6});

  EXPECT_THAT(TypesOfLayers(AfterQuantizedPasses(net.builder())),
              ElementsAre("DequantizeLinear", "Softmax", "QuantizeLinear"));
  ExpectSameAnswers(net.builder());
}

TEST(QuantizedPassesTest, QuantizeOfWhatWasDequantisedAlikeVanishes) {
  QuantizedNetwork net;
  net.Pair("x").Pair("x.d").Pair("x.d.d").Ends("x.d.d.d", {1, 4, 6, 6});

  EXPECT_TRUE(AfterQuantizedPasses(net.builder()).nodes.empty());
  ExpectSameAnswers(net.builder());
}

TEST(QuantizedPassesTest, PortsAreEightBitToTheApplication) {
  QuantizedNetwork net;
  net.Pair("x").Ends("x.d", {1, 4, 6, 6});

  const Graph graph = AfterQuantizedPasses(net.builder());

  ASSERT_TRUE(graph.inputs[0].quantization.has_value());
  EXPECT_EQ(graph.inputs[0].quantization->scale, 0.125F);
  EXPECT_EQ(graph.inputs[0].quantization->zero, 3);
  EXPECT_TRUE(graph.outputs[0].quantization.has_value());
}

// x -> x.d -> Conv with these scales of its four output channels -> y.
void ConvolveWithScales(QuantizedNetwork& net,
                        const std::vector<float>& scales) {
  net.Pair("x");
  std::vector<int> values;
  for (int i = 0; i < 16; ++i) values.push_back(i * 11 % 37 - 18);
  net.Bytes("w", {4, 4, 1, 1}, values);
  net.builder()
      .Floats("sw", {4}, scales)
      .Floats("b", {4}, {0.5F, 0.5F, 0.5F, 0.5F})
      .Node("DequantizeLinear", {"w", "sw"}, {"w.d"})
      .Int("axis", 0)
      .Node("Conv", {"x.d", "w.d", "b"}, {"c"});
  net.Pair("c").Ends("c.d", {1, 4, 6, 6});
}

TEST(QuantizedPassesTest, ScalesThatMakeNoSumsStayFloats) {
  const float tiny = 1.2e-38F;
  for (const float first : {0.0F, -0.125F, tiny}) {
    QuantizedNetwork net;
    ConvolveWithScales(net, {first, 0.125F, 0.125F, 0.125F});

    EXPECT_THAT(TypesOfLayers(AfterQuantizedPasses(net.builder())),
                ElementsAre("DequantizeLinear", "Conv", "QuantizeLinear"))
        << first;
    ExpectSameAnswers(net.builder());
  }
  QuantizedNetwork net;
  ConvolveWithScales(net, {0.125F, 0.125F, 0.125F, 0.125F});
  EXPECT_THAT(TypesOfLayers(AfterQuantizedPasses(net.builder())),
              ElementsAre("Conv"));
}

TEST(QuantizedPassesTest, ATinyScaleOfAGemmStaysFloats) {
  QuantizedNetwork net;
  net.Pair("x").Bytes("w", {2, 2}, {1, 2, 3, 4});
  net.builder()
      .Int64s("flat", {2}, {72, 2})
      .Floats("sw", {}, {1.2e-38F})
      .Floats("b", {2}, {0.5F, 1})
      .Node("DequantizeLinear", {"w", "sw"}, {"w.d"})
      .Node("Reshape", {"x.d", "flat"}, {"f"})
      .Node("Gemm", {"f", "w.d", "b"}, {"g"});
  net.Pair("g").Ends("g.d", {72, 2});

  EXPECT_THAT(TypesOfLayers(AfterQuantizedPasses(net.builder())),
              ::testing::Contains("Gemm"));
  EXPECT_THAT(TypesOfLayers(AfterQuantizedPasses(net.builder())),
              ::testing::Contains("QuantizeLinear"));
  ExpectSameAnswers(net.builder());
}

TEST(QuantizedPassesTest, AClipWhoseBoundIsComputedIsNoActivation) {
  QuantizedNetwork net;
  net.builder().proto().mutable_graph()->clear_input();
  net.builder().Input("x", {1, 1, 1, 1});
  net.Pair("x").Bytes("w", {1, 1, 1, 1}, {8});
  net.builder()
      .Floats("five", {1, 1, 1, 1}, {5})
      .Node("DequantizeLinear", {"w", "s8", "z0"}, {"w.d"})
      .Node("Conv", {"x.d", "w.d"}, {"c"})
      .Node("Clip", {"five", "c"}, {"k"});
  net.Pair("k").Ends("k.d", {1, 1, 1, 1});

  EXPECT_THAT(
      TypesOfLayers(AfterQuantizedPasses(net.builder())),
      ElementsAre("DequantizeLinear", "Conv", "Clip", "QuantizeLinear"));
}

TEST(QuantizedPassesTest, ANumberOfManyAxesIsOneNumber) {
  QuantizedNetwork net;
  net.Pair("x");
  net.builder()
      .Floats("slope", {1, 1, 1}, {0.25F})
      .Node("PRelu", {"x.d", "slope"}, {"p"});
  net.Pair("p").Ends("p.d", {1, 4, 6, 6});

  const Graph graph = AfterQuantizedPasses(net.builder());

  ASSERT_EQ(graph.nodes.size(), 1U);
  EXPECT_EQ(graph.nodes[0].type, "Lookup");
  ExpectSameAnswers(net.builder());
}

TEST(QuantizedPassesTest, ATableThatCannotBeComputedIsNotAnError) {
  QuantizedNetwork net;
  net.builder().proto().mutable_graph()->clear_input();
  net.builder().Input("x", {1});
  net.Pair("x");
  // The slope is what varies: not with 256 of them for one number.
  net.builder().Floats("one", {1}, {-1}).Node("PRelu", {"one", "x.d"}, {"p"});
  net.Pair("p").Ends("p.d", {1});

  EXPECT_THAT(TypesOfLayers(AfterQuantizedPasses(net.builder())),
              ElementsAre("DequantizeLinear", "PRelu", "QuantizeLinear"));
}

TEST(QuantizedPassesTest, ScalesOfAResizeAreNumbers) {
  QuantizedNetwork net;
  net.Pair("x").Bytes("scales", {4}, {8, 8, 16, 16});
  net.builder()
      .Node("DequantizeLinear", {"scales", "s8", "z0"}, {"scales.d"})
      .Node("Resize", {"x.d", "", "scales.d"}, {"r"});
  net.Pair("r").Ends("r.d", {1, 4, 12, 12});

  EXPECT_THAT(TypesOfLayers(AfterQuantizedPasses(net.builder())),
              ElementsAre("Resize"));
  ExpectSameAnswers(net.builder());
}

// Behind an operator of a foreign domain, "f", nothing is inferred.
class Unknown : public QuantizedNetwork {
 public:
  Unknown() {
    builder().Opset(1, "foreign").Node("Foo", {"x"}, {"f"}, "foo", "foreign");
    IsBytes("f");
    builder().Node("DequantizeLinear", {"f", "s8", "z"}, {"f.d"});
  }

  // As the file declares it, without a shape.
  void IsBytes(const std::string& name) {
    auto* value = builder().proto().mutable_graph()->add_value_info();
    value->set_name(name);
    value->mutable_type()->mutable_tensor_type()->set_elem_type(
        onnx::TensorProto::INT8);
  }
};

TEST(ForeignTest, LayersBehindItAreLeftAlone) {
  const std::vector<std::vector<std::string>> inputs = {
      {"f.d"}, {"f.d", "w0.d"}, {"f.d", "w4.d"}};
  for (const char* type : {"Conv", "MatMul", "Add", "AveragePool"}) {
    for (const auto& names : inputs) {
      Unknown net;
      net.IsBytes("c.q");
      net.Bytes("w0", {}, {5}).Bytes("w4", {1, 1, 1, 1}, {5});
      net.builder()
          .Node("DequantizeLinear", {"w0", "s8", "z0"}, {"w0.d"})
          .Node("DequantizeLinear", {"w4", "s8", "z0"}, {"w4.d"})
          .Node(type, names, {"c"})
          .Node("QuantizeLinear", {"c", "s8", "z"}, {"c.q"})
          .Node("DequantizeLinear", {"c.q", "s8", "z"}, {"c.d"})
          .Output("c.d", {1, 4, 6, 6});

      std::vector<std::string> types;
      for (const Node& node : AfterQuantizedPasses(net.builder()).nodes) {
        types.push_back(node.type);
      }
      EXPECT_THAT(types, ::testing::Contains(type));
    }
  }
}

TEST(ForeignTest, ShufflesBehindItAreLeftAlone) {
  QuantizedNetwork net;
  net.Pair("x");
  net.builder()
      .Opset(1, "foreign")
      .Int64s("cut", {5}, {1, 2, 2, 6, 6})
      .Int64s("back", {4}, {1, 4, 6, 6})
      .Node("Foo", {"x.q"}, {"f"}, "foo", "foreign")
      .Node("Reshape", {"f", "cut"}, {"a"})
      .Node("Transpose", {"a"}, {"t"})
      .Ints("perm", {0, 2, 1, 3, 4})
      .Node("Reshape", {"t", "back"}, {"s"})
      .Output("s", {1, 4, 6, 6}, onnx::TensorProto::INT8);

  EXPECT_THAT(TypesOfLayers(AfterQuantizedPasses(net.builder())),
              ::testing::Contains("Transpose"));
}

TEST(ForeignTest, AnOutputBehindItKeepsTheShapeItDeclares) {
  Unknown net;
  net.builder().Output("f.d", {1, 4, 6, 6});

  const Graph graph = AfterQuantizedPasses(net.builder());

  const Value& value = graph.value(graph.outputs[0].value);
  EXPECT_TRUE(value.shape.has_value());
  EXPECT_FALSE(graph.outputs[0].quantization.has_value());
}

TEST(QuantizedPassesTest, AConvolutionOfBytesThatTakesLongIsNotFolded) {
  QuantizedNetwork net;
  // 2^32 products, in 64 KiB each.
  const std::vector<int> ones(256 * 256, 1);
  net.Bytes("a", {1, 1, 256, 256}, ones).Bytes("w", {1, 1, 256, 256}, ones);
  net.builder()
      .Node("QLinearConv", {"a", "s8", "z0", "w", "s8", "z0", "s8", "z0"},
            {"c"})
      .Ints("pads", {128, 128, 127, 127})
      .Output("c", {1, 1, 256, 256}, onnx::TensorProto::INT8);

  EXPECT_THAT(TypesOfLayers(AfterQuantizedPasses(net.builder())),
              ElementsAre("Conv"));
}

TEST(QuantizedPassesTest, ChannelsDealtOutAreAShuffle) {
  QuantizedNetwork net;
  net.Pair("x");
  net.builder()
      .Int64s("cut", {5}, {1, 2, 2, 6, 6})
      .Int64s("back", {4}, {1, 4, 6, 6})
      .Node("Reshape", {"x.d", "cut"}, {"a"})
      .Node("Transpose", {"a"}, {"t"})
      .Ints("perm", {0, 2, 1, 3, 4})
      .Node("Reshape", {"t", "back"}, {"s"});
  net.Pair("s").Ends("s.d", {1, 4, 6, 6});

  EXPECT_THAT(TypesOfLayers(AfterQuantizedPasses(net.builder())),
              ElementsAre("ShuffleChannels"));
  ExpectSameAnswers(net.builder());
}

}  // namespace
}  // namespace rknnd::soft
