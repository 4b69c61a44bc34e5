#include "driver/soft/import/onnx_import.h"

#include <cstring>
#include <string>

#include "base/values/half.h"
#include "driver/soft/testing/onnx_builder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rknnd::soft {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::OnnxBuilder;

std::span<const std::byte> BytesOf(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

std::string ErrorOf(
    std::span<const std::byte> bytes,
    absl::StatusCode code = absl::StatusCode::kInvalidArgument) {
  absl::StatusOr<Graph> graph = ImportOnnx(bytes, "m.onnx");
  EXPECT_EQ(graph.status().code(), code) << graph.status();
  return std::string(graph.status().message());
}

OnnxBuilder Relu() {
  OnnxBuilder builder;
  builder.Input("x", {1, 4})
      .Node("Relu", {"x"}, {"y"}, "act")
      .Output("y", {1, 4});
  return builder;
}

TEST(OnnxImportTest, GraphHasItsValuesAndNodes) {
  auto graph = ImportOnnx(Relu().Bytes(), "m.onnx");

  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_EQ(graph->nodes.size(), 1U);
  EXPECT_EQ(graph->nodes[0].name, "act");
  EXPECT_EQ(graph->nodes[0].opset, 13);
  EXPECT_EQ(graph->inputs[0].name, "x");
  EXPECT_EQ(graph->value(graph->inputs[0].value).shape, (Shape{1, 4}));
}

TEST(OnnxImportTest, EmptyFileIsTruncated) {
  EXPECT_THAT(ErrorOf({}), AllOf(HasSubstr("'m.onnx' is empty"),
                                 HasSubstr("If you pass a path")));
}

TEST(OnnxImportTest, GitLfsPointerIsNamed) {
  EXPECT_THAT(
      ErrorOf(BytesOf("version https://git-lfs.github.com/spec/v1\noid x\n")),
      AllOf(HasSubstr("looks like a Git LFS pointer"),
            HasSubstr("first bytes 76 65 72")));
}

TEST(OnnxImportTest, HtmlIsNamed) {
  EXPECT_THAT(ErrorOf(BytesOf("\n<!DOCTYPE html><html></html>")),
              HasSubstr("looks like HTML"));
}

TEST(OnnxImportTest, PathGivenAsBytesIsNamed) {
  EXPECT_THAT(ErrorOf(BytesOf("/opt/models/yolo.onnx")),
              AllOf(HasSubstr("looks like a path"),
                    HasSubstr("If you pass a path, size must be 0")));
}

TEST(OnnxImportTest, RknnIsNamedWithItsSoc) {
  std::string file("RKNN\0\0\0\0", 8);
  file.append(R"({"target_platform":["rk3588"],"x":1})");
  EXPECT_THAT(
      ErrorOf(BytesOf(file)),
      HasSubstr("compiled for rk3588 and cannot run on the software NPU; give "
                "the ONNX model"));
}

TEST(OnnxImportTest, GarbageIsNotAModel) {
  EXPECT_THAT(ErrorOf(BytesOf("\xff\xfe this is no model")),
              HasSubstr("is not an ONNX model (first bytes ff fe 20"));
}

TEST(OnnxImportTest, EveryTruncationIsAnError) {
  std::vector<std::byte> whole =
      Relu().Floats("w", {8}, std::vector<float>(8, 1)).Bytes();
  for (size_t size = 0; size < whole.size(); ++size) {
    auto graph = ImportOnnx(std::span(whole).first(size), "m.onnx");
    // What is cut off behind the graph is not missed.
    if (graph.ok()) {
      EXPECT_EQ(graph->nodes.size(), 1U);
    } else {
      EXPECT_THAT(std::string(graph.status().message()), HasSubstr("m.onnx"));
    }
  }
}

TEST(OnnxImportTest, TruncationInTheGraphSaysHowLongItShouldBe) {
  std::vector<std::byte> whole = Relu().Bytes();

  EXPECT_THAT(ErrorOf(std::span(whole).first(20)),
              HasSubstr("of 20 bytes is truncated: header says "));
}

TEST(OnnxImportTest, EveryByteChangedIsAnErrorOrAGraph) {
  std::vector<std::byte> whole =
      Relu().Floats("w", {8}, std::vector<float>(8, 1)).Bytes();
  for (size_t i = 0; i < whole.size(); ++i) {
    for (uint8_t flip : {0x01, 0x80, 0xff}) {
      std::vector<std::byte> changed = whole;
      changed[i] ^= std::byte{flip};
      auto graph = ImportOnnx(changed, "m.onnx");
      EXPECT_TRUE(graph.ok() || !graph.status().message().empty());
    }
  }
}

TEST(OnnxImportTest, MillionsOfEmptyNodesAreRefusedBeforeTheyAreMade) {
  // ir_version, then a graph of two-byte nodes.
  const size_t nodes = 3'000'000;
  std::string graph;
  for (size_t i = 0; i < nodes; ++i) graph += std::string("\x0a\x00", 2);
  std::string bytes = "\x08\x08\x3a";
  for (size_t length = graph.size();;) {
    bytes += static_cast<char>((length & 0x7f) | (length > 0x7f ? 0x80 : 0));
    length >>= 7;
    if (length == 0) break;
  }

  EXPECT_THAT(
      ErrorOf(BytesOf(bytes + graph), absl::StatusCode::kResourceExhausted),
      HasSubstr("more than"));
}

TEST(OnnxImportTest, MoreInputsOrOutputsThanAMessageTakesAreRefused) {
  for (const bool inputs : {true, false}) {
    testing::OnnxBuilder builder;
    builder.Input("x", {1});
    for (int i = 0; i < 1024; ++i) {
      const std::string name = std::to_string(i);
      if (inputs) builder.Input("x" + name, {1});
      builder.Node("Relu", {"x"}, {"y" + name});
      if (!inputs || i == 0) builder.Output("y" + name, {1});
    }
    EXPECT_EQ(ImportOnnx(builder.Bytes(), "m").ok(), !inputs);
    if (inputs) continue;
    builder.Output("x", {1});

    EXPECT_THAT(
        std::string(ImportOnnx(builder.Bytes(), "m").status().message()),
        HasSubstr("more than 1024 inputs or outputs"));
  }
}

TEST(OnnxImportTest, NodeBeforeItsInputsIsSortedBehindThem) {
  OnnxBuilder builder;
  builder.Input("x", {2})
      .Node("Relu", {"b"}, {"c"}, "third")
      .Node("Relu", {"a"}, {"b"}, "second")
      .Node("Relu", {"x"}, {"a"}, "first")
      .Output("c", {2});

  auto graph = ImportOnnx(builder.Bytes(), "m.onnx");

  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->nodes[0].name, "first");
  EXPECT_EQ(graph->nodes[2].name, "third");
}

TEST(OnnxImportTest, CycleIsAnErrorThatNamesANode) {
  OnnxBuilder builder;
  builder.Input("x", {2})
      .Node("Add", {"x", "b"}, {"a"}, "one")
      .Node("Relu", {"a"}, {"b"}, "two")
      .Output("b", {2});

  EXPECT_THAT(ErrorOf(builder.Bytes()),
              HasSubstr("node 'one' (Add) depends on its own output"));
}

TEST(OnnxImportTest, ValueDefinedTwiceIsAnError) {
  OnnxBuilder builder = Relu();
  builder.Node("Relu", {"x"}, {"y"}, "again");

  EXPECT_THAT(ErrorOf(builder.Bytes()),
              HasSubstr("'y' is defined twice, the second time by node "
                        "'again'"));
}

TEST(OnnxImportTest, InputThatNothingMakesIsAnErrorThatNamesTheNode) {
  OnnxBuilder builder;
  builder.Input("x", {2})
      .Node("Add", {"x", "ghost"}, {"y"}, "sum")
      .Output("y", {2});

  EXPECT_THAT(ErrorOf(builder.Bytes()),
              HasSubstr("node 'sum' (Add) reads 'ghost', which nothing makes"));
}

TEST(OnnxImportTest, OutputThatNothingMakesIsAnError) {
  OnnxBuilder builder = Relu();
  builder.Output("ghost", {2});

  EXPECT_THAT(ErrorOf(builder.Bytes()),
              HasSubstr("output 'ghost' is made by no node"));
}

TEST(OnnxImportTest, DimsThatDoNotFitTheDataAreAnError) {
  OnnxBuilder builder = Relu();
  builder.Floats("w", {3, 3}, std::vector<float>(8));

  EXPECT_THAT(ErrorOf(builder.Bytes()),
              HasSubstr("initializer 'w' of shape 3x3 holds 32 bytes where 36 "
                        "belong"));
}

TEST(OnnxImportTest, DimsThatOverflowAreAnError) {
  OnnxBuilder builder = Relu();
  builder.Floats("w", {int64_t{1} << 40, int64_t{1} << 40}, {1});

  EXPECT_THAT(ErrorOf(builder.Bytes(), absl::StatusCode::kResourceExhausted),
              HasSubstr("initializer 'w'"));
}

TEST(OnnxImportTest, NegativeDimsAreAnError) {
  OnnxBuilder builder = Relu();
  builder.Floats("w", {-2, -2}, std::vector<float>(4));

  EXPECT_THAT(ErrorOf(builder.Bytes()), HasSubstr("negative dimension"));
}

TEST(OnnxImportTest, DataInAnotherFileIsRefusedByName) {
  OnnxBuilder builder = Relu();
  builder.Floats("w", {2}, {1, 2});
  auto* tensor = builder.proto().mutable_graph()->mutable_initializer(0);
  tensor->clear_raw_data();
  tensor->set_data_location(onnx::TensorProto::EXTERNAL);
  auto* entry = tensor->add_external_data();
  entry->set_key("location");
  entry->set_value("../../etc/passwd");

  EXPECT_THAT(ErrorOf(builder.Bytes(), absl::StatusCode::kUnimplemented),
              HasSubstr("initializer 'w' keeps its data in "
                        "'../../etc/passwd'"));
}

TEST(OnnxImportTest, OperatorsThatHoldGraphsAreRefusedByName) {
  OnnxBuilder builder = Relu();
  builder.Node("SequenceMap", {"x"}, {"z"}, "each");
  auto* node = builder.proto().mutable_graph()->mutable_node(1);
  auto* attribute = node->add_attribute();
  attribute->set_name("body");
  attribute->set_type(onnx::AttributeProto::GRAPH);
  attribute->mutable_g()->set_name("inner");

  EXPECT_THAT(ErrorOf(builder.Bytes(), absl::StatusCode::kUnimplemented),
              HasSubstr("operator 'SequenceMap' of node 'each' holds a graph"));
}

TEST(OnnxImportTest, GraphsNestedWithoutEndAreRefused) {
  OnnxBuilder builder = Relu();
  onnx::GraphProto* graph = builder.proto().mutable_graph();
  for (int i = 0; i < 90; ++i) {
    auto* attribute = graph->add_node()->add_attribute();
    attribute->set_type(onnx::AttributeProto::GRAPH);
    graph = attribute->mutable_g();
  }

  EXPECT_THAT(ErrorOf(builder.Bytes()), HasSubstr("nests graphs"));
}

TEST(OnnxImportTest, UnknownBatchIsOne) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 4}).Node("Relu", {"x"}, {"y"}).Output("y", {-1, 4});

  auto graph = ImportOnnx(builder.Bytes(), "m.onnx");

  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->value(graph->inputs[0].value).shape, (Shape{1, 4}));
}

TEST(OnnxImportTest, OtherUnknownDimsAreAnErrorThatNamesThem) {
  OnnxBuilder builder;
  builder.Input("x", {1, -1}).Node("Relu", {"x"}, {"y"}).Output("y", {1, -1});

  EXPECT_THAT(ErrorOf(builder.Bytes()),
              HasSubstr("input 'x': dimension 1 ('N') is not fixed"));
}

TEST(OnnxImportTest, InitializerListedAsInputIsAConstant) {
  OnnxBuilder builder;
  builder.Input("x", {2})
      .Input("w", {2})
      .Floats("w", {2}, {1, 2})
      .Node("Add", {"x", "w"}, {"y"})
      .Output("y", {2});

  auto graph = ImportOnnx(builder.Bytes(), "m.onnx");

  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->inputs.size(), 1U);
}

TEST(OnnxImportTest, HalvesBecomeFloatsInsideAndStayHalvesOutside) {
  OnnxBuilder builder;
  builder.Input("x", {2}, onnx::TensorProto::FLOAT16)
      .Node("Add", {"x", "w"}, {"y"})
      .Output("y", {2}, onnx::TensorProto::FLOAT16);
  auto* tensor = builder.proto().mutable_graph()->add_initializer();
  tensor->set_name("w");
  tensor->set_data_type(onnx::TensorProto::FLOAT16);
  tensor->add_dims(2);
  tensor->add_int32_data(base::FloatToHalf(1.5F));
  tensor->add_int32_data(base::FloatToHalf(-2.0F));

  auto graph = ImportOnnx(builder.Bytes(), "m.onnx");

  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->inputs[0].onnx_type, onnx::TensorProto::FLOAT16);
  const Constant& w = *graph->value(graph->nodes[0].inputs[1]).constant;
  EXPECT_EQ(w.type, DataType::kFloat32);
  EXPECT_EQ(w.as<float>()[0], 1.5F);
  EXPECT_EQ(w.as<float>()[1], -2.0F);
}

TEST(OnnxImportTest, StandardNodeWithoutAnOpsetIsAnError) {
  OnnxBuilder builder = Relu();
  builder.proto().clear_opset_import();

  EXPECT_THAT(ErrorOf(builder.Bytes()), HasSubstr("node 'act' (Relu)"));
}

TEST(OnnxImportTest, NamelessGraphHasTheNameOfItsFile) {
  OnnxBuilder builder;
  builder.Input("x", {2}).Node("Relu", {"x"}, {"y"}).Output("y", {2});
  builder.proto().mutable_graph()->clear_name();

  auto graph = ImportOnnx(builder.Bytes(), "m.onnx");

  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->name, "m.onnx");
}

TEST(OnnxImportTest, NamelessNodesGetNames) {
  OnnxBuilder builder;
  builder.Input("x", {2}).Node("Relu", {"x"}, {"y"}).Output("y", {2});

  auto graph = ImportOnnx(builder.Bytes(), "m.onnx");

  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_THAT(graph->nodes[0].name, Not(::testing::IsEmpty()));
}

}  // namespace
}  // namespace rknnd::soft
