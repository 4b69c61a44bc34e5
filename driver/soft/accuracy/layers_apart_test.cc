// Networks for comparison on the device: what their dumps show.

#include "driver/soft/accuracy/layers_apart.h"

#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "driver/soft/soft_device.h"
#include "driver/soft/testing/onnx_builder.h"
#include "driver/soft/testing/run_model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rknnd::soft {
namespace {

using ::testing::Contains;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Key;
using testing::OnnxBuilder;
using ::testing::Pointwise;
using ::testing::UnorderedElementsAre;

// By "Type name".
using Tensors = std::map<std::string, std::vector<float>>;

class Keep final : public driver::LayerSink {
 public:
  explicit Keep(const driver::ProgramInfo& program) : program_(program) {}

  absl::Status OnLayer(const driver::LayerTensor& tensor) override {
    EXPECT_EQ(tensor.type, driver::TensorType::kFloat32) << tensor.name;
    std::vector<float> values(tensor.bytes.size() / sizeof(float));
    std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
    const bool is_new = tensors
                            .emplace(program_.layers[tensor.layer].type + " " +
                                         std::string(tensor.name),
                                     std::move(values))
                            .second;
    EXPECT_TRUE(is_new) << tensor.name;
    return absl::OkStatus();
  }

  Tensors tensors;

 private:
  const driver::ProgramInfo& program_;
};

// x -> Conv + Relu "r" -> Conv "c" = "y", and r + x = "t", each quantised. The
// second convolution reads r with a scale that may be another than it has.
OnnxBuilder ScaledNetwork(float read_scale = 0.0625F) {
  OnnxBuilder builder;
  builder.Floats("s", {}, {0.0625F}).Floats("read", {}, {read_scale});
  auto* zero = builder.proto().mutable_graph()->add_initializer();
  zero->set_name("z");
  zero->set_data_type(onnx::TensorProto::INT8);
  zero->set_raw_data(std::string(1, '\x05'));
  auto* none = builder.proto().mutable_graph()->add_initializer();
  none->set_name("z0");
  none->set_data_type(onnx::TensorProto::INT8);
  none->set_raw_data(std::string(1, '\0'));
  auto* weights = builder.proto().mutable_graph()->add_initializer();
  weights->set_name("w");
  weights->set_data_type(onnx::TensorProto::INT8);
  for (const int64_t dim : {2, 2, 1, 1}) weights->add_dims(dim);
  weights->set_raw_data(std::string("\x07\xfb\x03\x09", 4));
  builder.Input("x", {1, 2, 3, 3});
  const auto pair = [&builder](const std::string& name,
                               const std::string& read) {
    builder.Node("QuantizeLinear", {name, "s", "z"}, {name + ".q"});
    builder.Node("DequantizeLinear", {name + ".q", read, "z"}, {name + ".d"});
  };
  pair("x", "s");
  builder.Node("DequantizeLinear", {"w", "s", "z0"}, {"w.d"});
  builder.Node("Conv", {"x.d", "w.d"}, {"a"}, "first");
  builder.Node("Relu", {"a"}, {"r"}, "relu");
  pair("r", "read");
  builder.Node("Conv", {"r.d", "w.d"}, {"c"}, "second");
  pair("c", "s");
  builder.Node("Identity", {"c.d"}, {"y"}).Output("y", {1, 2, 3, 3});
  builder.Node("DequantizeLinear", {"r.q", "s", "z"}, {"r.again"});
  builder.Node("Add", {"r.again", "x.d"}, {"sum"}, "sum");
  pair("sum", "s");
  builder.Node("Identity", {"sum.d"}, {"t"}).Output("t", {1, 2, 3, 3});
  return builder;
}

class LayersApartTest : public ::testing::Test {
 protected:
  LayersApartTest() {
    auto device = OpenSoftDevice({.kind = "soft", .soc = "rk3588"});
    EXPECT_TRUE(device.ok()) << device.status();
    device_ = *std::move(device);
    for (int i = 0; i < 18; ++i) {
      input_.push_back(static_cast<float>((i * 37 + 5) % 101) / 50.0F - 1);
    }
  }

  // `variant`: "", "golden" or "single".
  std::unique_ptr<driver::Model> Load(OnnxBuilder builder,
                                      const std::string& variant) {
    builder.Metadata("rknn.accuracy", variant);
    const std::vector<std::byte> bytes = builder.Bytes();
    driver::LoadRequest request;
    request.name = "m.onnx";
    request.bytes = bytes;
    auto model = device_->Load(request);
    EXPECT_TRUE(model.ok()) << model.status();
    return model.ok() ? *std::move(model) : nullptr;
  }

  Tensors Dump(const OnnxBuilder& builder, const std::string& variant) {
    const std::unique_ptr<driver::Model> model = Load(builder, variant);
    if (model == nullptr) return {};
    const driver::ProgramInfo& program = model->info().programs[0];
    const auto format = [](const driver::TensorAttr& attr) {
      return testing::PlainFormat(attr, driver::TensorType::kFloat32);
    };
    std::vector<driver::TensorFormat> outputs;
    for (const driver::TensorAttr& output : program.outputs) {
      outputs.push_back(format(output));
    }
    auto bound = testing::BoundModel::Make(
        *device_, *model, {format(program.inputs[0])}, outputs);
    EXPECT_TRUE(bound.ok()) << bound.status();
    std::memcpy((*bound)->input(0).data(), input_.data(),
                input_.size() * sizeof(float));
    Keep keep(program);
    const driver::JobResult result = (*bound)->RunDumped(keep);
    EXPECT_TRUE(result.status.ok()) << result.status;
    return keep.tensors;
  }

  // What a 1x1 convolution with the weights makes of it.
  static std::vector<float> Convolved(const std::vector<float>& x) {
    const float w[2][2] = {{7, -5}, {3, 9}};
    std::vector<float> y(x.size());
    for (size_t i = 0; i < 9; ++i) {
      for (size_t c = 0; c < 2; ++c) {
        y[c * 9 + i] = (w[c][0] * x[i] + w[c][1] * x[9 + i]) * 0.0625F;
      }
    }
    return y;
  }

  // To 8 bits with the scale 1/16, and back.
  static std::vector<float> Rounded(std::vector<float> values) {
    for (float& value : values) value = std::nearbyint(value * 16) / 16;
    return values;
  }

  std::unique_ptr<driver::Device> device_;
  std::vector<float> input_;
};

TEST_F(LayersApartTest, EachNetworkShowsTheLayersOfTheModel) {
  const Tensors model = Dump(ScaledNetwork(), "");
  const auto layers = UnorderedElementsAre(
      Key("InputOperator x"), Key("ConvRelu r.q"), Key("Conv c.q"),
      Key("Add sum.q"), Key("OutputOperator y"), Key("OutputOperator t"));

  EXPECT_THAT(model, layers);
  EXPECT_THAT(Dump(ScaledNetwork(), "golden"), layers);
  EXPECT_THAT(Dump(ScaledNetwork(), "single"), layers);
}

TEST_F(LayersApartTest, GoldenIsComputedWithoutRounding) {
  const Tensors golden = Dump(ScaledNetwork(), "golden");

  EXPECT_EQ(golden.at("InputOperator x"), input_);
  std::vector<float> r = Convolved(input_);
  for (float& value : r) value = std::max(value, 0.0F);
  EXPECT_THAT(golden.at("ConvRelu r.q"), Pointwise(FloatNear(1e-6F), r));
  const std::vector<float> c = Convolved(r);
  EXPECT_THAT(golden.at("Conv c.q"), Pointwise(FloatNear(1e-6F), c));
  std::vector<float> sum = r;
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += input_[i];
  EXPECT_THAT(golden.at("Add sum.q"), Pointwise(FloatNear(1e-6F), sum));
  EXPECT_EQ(golden.at("OutputOperator y"), golden.at("Conv c.q"));
  EXPECT_EQ(golden.at("OutputOperator t"), golden.at("Add sum.q"));
}

TEST_F(LayersApartTest, ALayerAloneRoundsItsOwnInputsAndOutput) {
  const Tensors golden = Dump(ScaledNetwork(), "golden");
  const Tensors single = Dump(ScaledNetwork(), "single");

  EXPECT_EQ(single.at("InputOperator x"), Rounded(input_));
  EXPECT_EQ(single.at("Conv c.q"),
            Rounded(Convolved(Rounded(golden.at("ConvRelu r.q")))));
  std::vector<float> sum = Rounded(golden.at("ConvRelu r.q"));
  const std::vector<float> x = Rounded(input_);
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += x[i];
  EXPECT_EQ(single.at("Add sum.q"), sum);
  EXPECT_EQ(single.at("OutputOperator y"), Rounded(golden.at("Conv c.q")));
  EXPECT_EQ(single.at("OutputOperator t"), Rounded(golden.at("Add sum.q")));
}

TEST_F(LayersApartTest, AWrongScaleShowsInTheLayerThatReadsByIt) {
  const Tensors golden = Dump(ScaledNetwork(0.25F), "golden");
  EXPECT_EQ(golden, Dump(ScaledNetwork(), "golden"));
  const Tensors model = Dump(ScaledNetwork(0.25F), "");
  const Tensors single = Dump(ScaledNetwork(0.25F), "single");

  const auto error = [&golden](const Tensors& of, const char* layer) {
    float most = 0;
    for (size_t i = 0; i < golden.at(layer).size(); ++i) {
      most = std::max(most, std::fabs(of.at(layer)[i] - golden.at(layer)[i]));
    }
    return most;
  };
  EXPECT_LT(error(model, "ConvRelu r.q"), 0.1F);
  EXPECT_GT(error(model, "Conv c.q"), 0.5F);
  EXPECT_GT(error(model, "OutputOperator y"), 0.5F);
  EXPECT_LT(error(model, "Add sum.q"), 0.2F);
  EXPECT_LT(error(single, "ConvRelu r.q"), 0.1F);
  EXPECT_GT(error(single, "Conv c.q"), 0.5F);
  EXPECT_LT(error(single, "Add sum.q"), 0.2F);
  EXPECT_LT(error(single, "OutputOperator y"), 0.1F);
}

TEST_F(LayersApartTest, NodesThatAreOneLayerStayTogether) {
  OnnxBuilder builder = ScaledNetwork();
  // c + r: what the NPU does on the way out of the convolution.
  auto* nodes = builder.proto().mutable_graph()->mutable_node();
  for (auto& node : *nodes) {
    if (node.name() == "sum") {
      node.set_input(1, "c.d");
    } else if (node.op_type() == "Identity" && node.input(0) == "c.d") {
      node.set_input(0, "sum.d");
    }
  }

  const Tensors golden = Dump(builder, "golden");
  const Tensors single = Dump(builder, "single");

  ASSERT_THAT(Dump(builder, ""), Contains(Key("ConvAdd sum.q")));
  std::vector<float> sum = Convolved(golden.at("ConvRelu r.q"));
  for (size_t i = 0; i < sum.size(); ++i)
    sum[i] += golden.at("ConvRelu r.q")[i];
  EXPECT_THAT(golden.at("ConvAdd sum.q"), Pointwise(FloatNear(1e-6F), sum));
  // Both of its inputs are golden's r, rounded; c is its own.
  const std::vector<float> r = Rounded(golden.at("ConvRelu r.q"));
  sum = Rounded(Convolved(r));
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += r[i];
  EXPECT_EQ(single.at("ConvAdd sum.q"), sum);
}

TEST_F(LayersApartTest, ScalesThatOnlyReadersKnowAreKept) {
  // Both are requantised for the Concat, by tables that know no scales.
  OnnxBuilder builder = ScaledNetwork();
  builder.Floats("coarse", {}, {0.125F});
  builder.Node("Concat", {"c.d", "r.again"}, {"both"}, "both").Int("axis", 1);
  builder.Node("QuantizeLinear", {"both", "coarse", "z"}, {"both.q"});
  builder.Node("DequantizeLinear", {"both.q", "coarse", "z"}, {"both.d"});
  builder.Node("Identity", {"both.d"}, {"u"}).Output("u", {1, 4, 3, 3});

  const Tensors golden = Dump(builder, "golden");
  const Tensors single = Dump(builder, "single");

  const Tensors model = Dump(builder, "");
  EXPECT_THAT(model, Contains(Key(HasSubstr("Requantize"))));
  for (const auto& [name, values] : model) {
    EXPECT_THAT(single.at(name), Pointwise(FloatNear(0.2F), values)) << name;
    EXPECT_THAT(golden.at(name), Pointwise(FloatNear(0.2F), values)) << name;
  }
}

TEST_F(LayersApartTest, OfAFloatNetworkAllThreeAreTheSame) {
  OnnxBuilder builder;
  builder.Input("x", {1, 2, 3, 3})
      .Floats("w", {2, 2, 1, 1}, {0.3F, -0.2F, 0.7F, 0.1F})
      .Node("Conv", {"x", "w"}, {"c"}, "conv")
      .Node("Sigmoid", {"c"}, {"g"}, "gate")
      .Node("Mul", {"c", "g"}, {"m"}, "swish")
      .Node("Add", {"m", "x"}, {"y"}, "sum")
      .Output("y", {1, 2, 3, 3});

  const Tensors model = Dump(builder, "");

  EXPECT_THAT(model, UnorderedElementsAre(Key("InputOperator x"),
                                          Key("ConvExSwishAdd y"),
                                          Key("OutputOperator y")));
  EXPECT_EQ(Dump(builder, "golden"), model);
  EXPECT_EQ(Dump(builder, "single"), model);
}

TEST_F(LayersApartTest, TheModelSaysWhichItIs) {
  EXPECT_EQ(Load(ScaledNetwork(), "golden")->info().custom_string,
            "accuracy: golden");
  EXPECT_EQ(Load(ScaledNetwork(), "single")->info().custom_string,
            "accuracy: single");
  EXPECT_EQ(Load(ScaledNetwork(), "")->info().custom_string, "");
}

TEST_F(LayersApartTest, OtherValuesOfTheOptionAreRefused) {
  OnnxBuilder builder = ScaledNetwork();
  builder.Metadata("rknn.accuracy", "silver");
  const std::vector<std::byte> bytes = builder.Bytes();
  driver::LoadRequest request;
  request.name = "m.onnx";
  request.bytes = bytes;

  const auto model = device_->Load(request);

  EXPECT_EQ(model.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(model.status().message(),
              HasSubstr("option 'accuracy' is 'silver'"));
}

TEST_F(LayersApartTest, MoreNodesThanAreTakenOfAFileAreRefused) {
  OnnxBuilder builder;
  builder.Input("x", {4}).Floats("one", {}, {1});
  std::string last = "x";
  for (int n = 0; n < 20'000; ++n) {
    std::string next = "v" + std::to_string(n);
    builder.Node("Add", {last, "one"}, {next});
    last = std::move(next);
  }
  builder.Output(last, {4}).Metadata("rknn.accuracy", "single");
  const std::vector<std::byte> bytes = builder.Bytes();
  driver::LoadRequest request;
  request.name = "m.onnx";
  request.bytes = bytes;

  const auto model = device_->Load(request);

  EXPECT_EQ(model.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(model.status().message(),
              HasSubstr("nodes with option 'accuracy'"));
}

TEST_F(LayersApartTest, ItIsNotKeptForLater) {
  const auto write = [](std::span<const std::byte>) {
    return absl::OkStatus();
  };
  EXPECT_TRUE(Load(ScaledNetwork(), "")->WriteCompiled(write).ok());
  EXPECT_EQ(Load(ScaledNetwork(), "golden")->WriteCompiled(write).code(),
            absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace rknnd::soft
