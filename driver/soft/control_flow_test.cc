// If, Loop, Scan and a model's own functions on the device: what is known when
// the model is loaded is written out, everything else is refused by name.

#include <string>
#include <vector>

#include "driver/soft/soft_device.h"
#include "driver/soft/testing/onnx_builder.h"
#include "driver/soft/testing/run_model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rknnd::soft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::OnnxBuilder;

// A body in the words of OnnxBuilder: its graph is taken from it.
onnx::GraphProto* AddBody(OnnxBuilder& builder, const std::string& name,
                          const OnnxBuilder& body) {
  auto& nodes = *builder.proto().mutable_graph()->mutable_node();
  auto* attribute = nodes.Mutable(nodes.size() - 1)->add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::GRAPH);
  OnnxBuilder copy = body;
  *attribute->mutable_g() = copy.proto().graph();
  return attribute->mutable_g();
}

void AddBool(OnnxBuilder& builder, const std::string& name, bool value) {
  auto* tensor = builder.proto().mutable_graph()->add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(onnx::TensorProto::BOOL);
  tensor->add_int32_data(value ? 1 : 0);
}

class ControlFlowTest : public ::testing::Test {
 protected:
  void SetUp() override {
    device_ = *OpenSoftDevice({.kind = "soft", .soc = "rk3588"});
    device_->EnterWorker();
  }
  // The first output for the input 1, 2, 3, 4.
  std::vector<float> Run(const OnnxBuilder& builder) {
    const auto model = device_->Load({builder.Bytes(), "", "m.onnx"});
    EXPECT_TRUE(model.ok()) << model.status();
    if (!model.ok()) return {};
    const auto values = testing::RunFloats(*device_, **model, {1, 2, 3, 4});
    EXPECT_TRUE(values.ok()) << values.status();
    return values.value_or(std::vector<float>());
  }
  std::string Refusal(const OnnxBuilder& builder) {
    const auto model = device_->Load({builder.Bytes(), "", "m.onnx"});
    EXPECT_FALSE(model.ok());
    return std::string(model.status().message());
  }

  std::unique_ptr<driver::Device> device_;
};

OnnxBuilder WithIf(bool condition) {
  OnnxBuilder builder;
  builder.Input("x", {1, 4}).Output("y", {1, 4});
  builder.Node("Neg", {"x"}, {"negative"});
  AddBool(builder, "condition", condition);
  builder.Node("If", {"condition"}, {"y"}, "choice");
  OnnxBuilder then, otherwise;
  then.Node("Add", {"x", "negative"}, {"sum"}).Output("sum", {1, 4});
  otherwise.Node("Mul", {"x", "negative"}, {"product"});
  otherwise.Output("product", {1, 4});
  AddBody(builder, "then_branch", then);
  AddBody(builder, "else_branch", otherwise);
  return builder;
}

TEST_F(ControlFlowTest, TheBranchThatIsTakenIsLeft) {
  EXPECT_THAT(Run(WithIf(true)), ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(Run(WithIf(false)), ElementsAre(-1, -4, -9, -16));
}

TEST_F(ControlFlowTest, AConditionOfTheDataIsRefused) {
  OnnxBuilder builder = WithIf(true);
  builder.Input("other", {1}, onnx::TensorProto::BOOL);
  builder.proto().mutable_graph()->mutable_node(1)->set_input(0, "other");
  EXPECT_THAT(Refusal(builder),
              HasSubstr("If 'choice': input 0 must be known"));
}

// y = x + step, for each step; also all states so far, one row each.
OnnxBuilder WithLoop(int64_t steps, bool has_condition = true) {
  OnnxBuilder builder;
  builder.Input("x", {4}).Output("rows", {steps, 4}).Output("y", {4});
  builder.Int64s("steps", {}, {steps});
  AddBool(builder, "go", true);
  builder.Floats("two", {}, {2});
  builder.Node("Loop", {"steps", has_condition ? "go" : "", "x"}, {"y", "rows"},
               "again");
  OnnxBuilder body;
  body.Input("i", {}, onnx::TensorProto::INT64);
  body.Input("on", {}, onnx::TensorProto::BOOL);
  body.Input("state", {4});
  body.Node("Cast", {"i"}, {"number"}).Int("to", onnx::TensorProto::FLOAT);
  body.Node("Mul", {"number", "two"}, {"doubled"});
  body.Node("Add", {"state", "doubled"}, {"next"});
  body.Node("Identity", {"on"}, {"still"});
  body.Output("still", {}, onnx::TensorProto::BOOL);
  body.Output("next", {4}).Output("next", {4});
  AddBody(builder, "body", body);
  return builder;
}

TEST_F(ControlFlowTest, StepsAreWrittenOut) {
  for (const bool has_condition : {true, false}) {
    EXPECT_THAT(Run(WithLoop(3, has_condition)),
                ElementsAre(1, 2, 3, 4, 3, 4, 5, 6, 7, 8, 9, 10));
  }
}

TEST_F(ControlFlowTest, ALoopMayEndByWhatItsStepsSay) {
  OnnxBuilder builder = WithLoop(INT64_MAX);
  auto* graph = builder.proto().mutable_graph();
  graph->mutable_output(0)
      ->mutable_type()
      ->mutable_tensor_type()
      ->clear_shape();
  auto* body = graph->mutable_node(0)->mutable_attribute(0)->mutable_g();
  auto* still = body->mutable_node(3);
  still->set_op_type("Less");
  still->set_input(0, "number");
  still->add_input("two");
  // Steps 0, 1 and 2, which is the one that says no.
  EXPECT_THAT(Run(builder), ElementsAre(1, 2, 3, 4, 3, 4, 5, 6, 7, 8, 9, 10));
}

TEST_F(ControlFlowTest, HugeCountsAreRefusedBeforeTheyAreWrittenOut) {
  EXPECT_THAT(Refusal(WithLoop(1 << 20)),
              HasSubstr("Loop 'again': 1048576 steps of 5 nodes cannot be "
                        "written out"));
  EXPECT_THAT(Refusal(WithLoop(INT64_MAX)), HasSubstr("Loop 'again': "));
  // Nothing ends it.
  OnnxBuilder builder = WithLoop(1);
  builder.proto().mutable_graph()->mutable_node(0)->set_input(0, "");
  EXPECT_THAT(Refusal(builder),
              HasSubstr("operator 'Loop' of node 'again' makes "));
}

TEST_F(ControlFlowTest, WhatIsWrittenOutCannotBeWrittenByAFile) {
  OnnxBuilder builder;
  builder.Input("x", {1, 1, 4}).Output("y", {1, 1, 1, 1}).Opset(1, "rknnd");
  builder.Floats("r", {1, 4, 1}, {1, 1, 1, 1});
  builder.Node("LSTM", {"x", "r"}, {"y"}, "own", "rknnd");
  EXPECT_THAT(Refusal(builder),
              HasSubstr("node 'own' (LSTM) is of domain 'rknnd'"));
}

TEST_F(ControlFlowTest, LoopsWithinLoopsHaveOneLimit) {
  OnnxBuilder inner = WithLoop(4000);
  OnnxBuilder builder;
  builder.Input("x", {4}).Output("y", {4});
  builder.Int64s("steps", {}, {4000});
  builder.Node("Loop", {"steps", "", "x"}, {"y"}, "outer");
  inner.proto().mutable_graph()->clear_input();
  inner.proto().mutable_graph()->clear_output();
  inner.Input("i", {}, onnx::TensorProto::INT64);
  inner.Input("on", {}, onnx::TensorProto::BOOL);
  inner.Input("x", {4});
  inner.Output("on", {}, onnx::TensorProto::BOOL).Output("y", {4});
  AddBody(builder, "body", inner);
  EXPECT_THAT(Refusal(builder), HasSubstr("cannot be written out"));
}

TEST_F(ControlFlowTest, ANumberOfStepsThatIsAnInputIsRefused) {
  OnnxBuilder builder = WithLoop(3);
  builder.Input("count", {}, onnx::TensorProto::INT64);
  builder.proto().mutable_graph()->mutable_node(0)->set_input(0, "count");
  EXPECT_THAT(Refusal(builder), HasSubstr("it is the model's input 'count'"));
}

// Sums of rows, forwards or from the last one on.
OnnxBuilder WithScan(bool reversed) {
  OnnxBuilder builder;
  builder.Input("x", {4, 1}).Output("sums", {4, 1}).Output("all", {1});
  builder.Floats("zero", {1}, {0});
  builder.Node("Scan", {"zero", "x"}, {"all", "sums"}, "scan");
  builder.Int("num_scan_inputs", 1);
  builder.Ints("scan_input_directions", {reversed ? 1 : 0});
  OnnxBuilder body;
  body.Input("sum", {1}).Input("row", {1});
  body.Node("Add", {"sum", "row"}, {"next"});
  body.Output("next", {1}).Output("next", {1});
  AddBody(builder, "body", body);
  return builder;
}

TEST_F(ControlFlowTest, AScanTakesRowAfterRow) {
  EXPECT_THAT(Run(WithScan(false)), ElementsAre(1, 3, 6, 10));
  EXPECT_THAT(Run(WithScan(true)), ElementsAre(4, 7, 9, 10));
}

// --- functions ---

onnx::FunctionProto* AddFunction(OnnxBuilder& builder, const std::string& name,
                                 const OnnxBuilder& body) {
  OnnxBuilder copy = body;
  const auto& graph = copy.proto().graph();
  auto* function = builder.proto().add_functions();
  function->set_name(name);
  function->set_domain("own");
  for (const auto& input : graph.input()) function->add_input(input.name());
  for (const auto& output : graph.output()) function->add_output(output.name());
  *function->mutable_node() = graph.node();
  *function->add_opset_import() = builder.proto().opset_import(0);
  auto* own = function->add_opset_import();
  own->set_domain("own");
  own->set_version(1);
  return function;
}

// Twice(x) = x + x; Scaled(x) = alpha * Twice(x), alpha given or 3.
OnnxBuilder WithFunctions() {
  OnnxBuilder builder;
  builder.Opset(1, "own").Input("x", {4}).Output("y", {4});
  builder.Node("Scaled", {"x"}, {"inner"}, "first", "own").Float("alpha", 2);
  builder.Node("Scaled", {"inner"}, {"y"}, "second", "own");
  OnnxBuilder twice, scaled;
  twice.Input("a", {4}).Node("Add", {"a", "a"}, {"b"}).Output("b", {4});
  scaled.Input("x", {4}).Output("y", {4});
  scaled.Node("Twice", {"x"}, {"inner"}, "", "own");
  scaled.Node("Constant", {}, {"factor"}).Float("value_float", 0);
  scaled.Node("Mul", {"inner", "factor"}, {"y"});
  AddFunction(builder, "Twice", twice);
  auto* function = AddFunction(builder, "Scaled", scaled);
  auto* factor = function->mutable_node(1)->mutable_attribute(0);
  factor->clear_f();
  factor->set_ref_attr_name("alpha");
  // What this onnx.proto does not have: an attribute with a value.
  onnx::AttributeProto alpha;
  alpha.set_name("alpha");
  alpha.set_type(onnx::AttributeProto::FLOAT);
  alpha.set_f(3);
  function->mutable_unknown_fields()->AddLengthDelimited(
      11, alpha.SerializeAsString());
  return builder;
}

TEST_F(ControlFlowTest, FunctionsAreWrittenOut) {
  EXPECT_THAT(Run(WithFunctions()), ElementsAre(24, 48, 72, 96));
}

TEST_F(ControlFlowTest, RecursionIsFound) {
  OnnxBuilder builder = WithFunctions();
  auto* node = builder.proto().mutable_functions(0)->mutable_node(0);
  node->set_op_type("Scaled");
  node->set_domain("own");
  node->mutable_input()->RemoveLast();
  EXPECT_THAT(Refusal(builder), HasSubstr("calls function 'Scaled', which "
                                          "calls itself"));
}

TEST_F(ControlFlowTest, CallsThatDoNotFitAreRefused) {
  OnnxBuilder builder = WithFunctions();
  builder.proto().mutable_graph()->mutable_node(1)->add_input("x");
  EXPECT_THAT(Refusal(builder),
              HasSubstr("node 'second' calls function 'Scaled' with 2 inputs"));
  builder = WithFunctions();
  *builder.proto().add_functions() = builder.proto().functions(0);
  EXPECT_THAT(Refusal(builder), HasSubstr("has function 'own::Twice' twice"));
}

TEST_F(ControlFlowTest, FunctionsThatGrowWithoutEndAreRefused) {
  OnnxBuilder builder;
  builder.Opset(1, "own").Input("x", {4}).Output("y", {4});
  builder.Node("F0", {"x"}, {"y"}, "first", "own");
  for (int i = 0; i < 40; ++i) {
    OnnxBuilder body;
    const std::string next = "F" + std::to_string(i + 1);
    body.Input("a", {4}).Output("c", {4});
    body.Node(next, {"a"}, {"b"}, "", "own");
    body.Node(next, {"b"}, {"c"}, "", "own");
    AddFunction(builder, "F" + std::to_string(i), body);
  }
  OnnxBuilder last;
  last.Input("a", {4}).Node("Neg", {"a"}, {"b"}).Output("b", {4});
  AddFunction(builder, "F40", last);
  EXPECT_THAT(Refusal(builder), HasSubstr("is one of more than 32768"));
}

// --- versions ---

TEST_F(ControlFlowTest, VersionsThatNobodyKnowsAreRefusedWithBothNumbers) {
  OnnxBuilder builder = WithIf(true);
  builder.Opset(99);
  EXPECT_THAT(Refusal(builder), HasSubstr("imports opset 99 of the standard "
                                          "operators, at most 24 is known"));
  builder = WithIf(true);
  builder.proto().set_ir_version(99);
  EXPECT_THAT(Refusal(builder),
              HasSubstr("is of ir_version 99, at most 12 is known"));
}

}  // namespace
}  // namespace rknnd::soft
