// Networks that compute in double: rightly, or refused by name; never in float
// without a word. The API has no type for double, so inputs and outputs that
// are double in the file are float outside.

#include <string>
#include <vector>

#include "driver/soft/soft_device.h"
#include "driver/soft/testing/onnx_builder.h"
#include "driver/soft/testing/run_model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rknnd::soft {
namespace {

using onnx::TensorProto;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::OnnxBuilder;

// In float 1e9 + x - 1e9 is zero for small x: its steps there are of 64.
constexpr double kLarge = 1e9;

void AddDouble(OnnxBuilder& builder, const std::string& name, double number,
               bool raw = false) {
  auto* tensor = builder.proto().mutable_graph()->add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(TensorProto::DOUBLE);
  if (raw) {
    tensor->set_raw_data(&number, sizeof number);
  } else {
    tensor->add_double_data(number);
  }
}

OnnxBuilder& Cast(OnnxBuilder& builder, const std::string& from,
                  const std::string& to, int64_t type) {
  return builder.Node("Cast", {from}, {to}).Int("to", type);
}

class DoubleTest : public ::testing::Test {
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

  std::unique_ptr<driver::Device> device_;
};

TEST_F(DoubleTest, IsComputedInDoubleBetweenCasts) {
  OnnxBuilder builder;
  builder.Input("x", {1, 4}).Output("y", {1, 4});
  AddDouble(builder, "large", kLarge);
  AddDouble(builder, "same", kLarge, true);
  Cast(builder, "x", "wide", TensorProto::DOUBLE);
  builder.Node("Add", {"wide", "large"}, {"sum"});
  builder.Node("Sub", {"sum", "same"}, {"rest"});
  Cast(builder, "rest", "y", TensorProto::FLOAT);
  EXPECT_THAT(Run(builder), ElementsAre(1, 2, 3, 4));
}

TEST_F(DoubleTest, InputsAndOutputsAreFloatOutside) {
  OnnxBuilder builder;
  builder.Input("x", {1, 4}, TensorProto::DOUBLE);
  builder.Output("y", {1, 4}, TensorProto::DOUBLE);
  AddDouble(builder, "large", kLarge);
  builder.Node("Add", {"x", "large"}, {"sum"});
  builder.Node("Sub", {"sum", "large"}, {"y"});
  EXPECT_THAT(Run(builder), ElementsAre(1, 2, 3, 4));
}

TEST_F(DoubleTest, ConstantsAreFoldedInDouble) {
  OnnxBuilder builder;
  builder.Input("x", {1, 4}).Output("y", {1, 4});
  AddDouble(builder, "large", kLarge);
  AddDouble(builder, "more", kLarge + 1);
  builder.Node("Sub", {"more", "large"}, {"one"});
  Cast(builder, "one", "factor", TensorProto::FLOAT);
  builder.Node("Mul", {"x", "factor"}, {"y"});
  EXPECT_THAT(Run(builder), ElementsAre(1, 2, 3, 4));
}

TEST_F(DoubleTest, IsMovedReducedAndComparedAsItIs) {
  OnnxBuilder builder;
  builder.Input("x", {1, 4}).Output("y", {1, 1});
  AddDouble(builder, "large", kLarge);
  Cast(builder, "x", "wide", TensorProto::DOUBLE);
  builder.Node("Add", {"wide", "large"}, {"sum"});
  builder.Node("Transpose", {"sum"}, {"turned"}).Ints("perm", {1, 0});
  builder.Node("Sub", {"turned", "large"}, {"rest"});
  builder.Node("ReduceSum", {"rest"}, {"total"});
  builder.Node("Flatten", {"total"}, {"flat"});
  Cast(builder, "flat", "y", TensorProto::FLOAT);
  EXPECT_THAT(Run(builder), ElementsAre(10));
}

TEST_F(DoubleTest, MatricesAreMultipliedInDouble) {
  OnnxBuilder builder;
  builder.Input("x", {1, 4}).Output("y", {1, 1});
  builder.Floats("ones", {4, 1}, {1, 1, 1, 1});
  AddDouble(builder, "large", kLarge);
  Cast(builder, "ones", "wide_ones", TensorProto::DOUBLE);
  Cast(builder, "x", "wide", TensorProto::DOUBLE);
  builder.Node("Add", {"wide", "large"}, {"sum"});
  builder.Node("MatMul", {"sum", "wide_ones"}, {"product"});
  AddDouble(builder, "all", 4 * kLarge);
  builder.Node("Sub", {"product", "all"}, {"rest"});
  Cast(builder, "rest", "y", TensorProto::FLOAT);
  EXPECT_THAT(Run(builder), ElementsAre(10));
}

TEST_F(DoubleTest, BoundsOfOlderClipsAreAttributes) {
  OnnxBuilder builder;
  builder.Opset(6);
  builder.Input("x", {1, 4}).Output("y", {1, 4});
  Cast(builder, "x", "wide", TensorProto::DOUBLE);
  builder.Node("Clip", {"wide"}, {"cut"}).Float("min", 2).Float("max", 3);
  Cast(builder, "cut", "y", TensorProto::FLOAT);
  EXPECT_THAT(Run(builder), ElementsAre(2, 2, 3, 3));
}

TEST_F(DoubleTest, WhatHasNoDoubleKernelIsRefusedWithTheCure) {
  OnnxBuilder builder;
  builder.Input("x", {1, 4}).Output("y", {1, 4});
  Cast(builder, "x", "wide", TensorProto::DOUBLE);
  builder.Node("Softmax", {"wide"}, {"soft"}, "shares");
  Cast(builder, "soft", "y", TensorProto::FLOAT);
  const auto model = device_->Load({builder.Bytes(), "", "m.onnx"});
  ASSERT_FALSE(model.ok());
  const std::string message(model.status().message());
  EXPECT_THAT(message, HasSubstr("'shares'"));
  EXPECT_THAT(message, HasSubstr("float64"));
  EXPECT_THAT(message, HasSubstr("export the model with float32"));
}

}  // namespace
}  // namespace rknnd::soft
