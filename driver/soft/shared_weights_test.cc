// Models of several resolutions with the same weights, with and without their
// own copy in the file: one copy in memory, and the answers of a model that
// shares with nobody, to the bit. Prints what a second resolution costs.

#include <cstring>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "driver/soft/soft_device.h"
#include "driver/soft/testing/onnx_builder.h"
#include "driver/soft/testing/run_model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rknnd::soft {
namespace {

using driver::TensorType;
using ::testing::AllOf;
using testing::BoundModel;
using ::testing::HasSubstr;
using testing::OnnxBuilder;
using Bytes = std::vector<std::byte>;

// Constants too small to be shared, and the rest of a page.
constexpr uint64_t kFewKib = uint64_t{8} << 10;

std::vector<float> Numbers(size_t count, size_t step) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) {
    values[i] = static_cast<float>((i * step + i / 7) % 19) / 8.0F - 1.0F;
  }
  return values;
}

// Convolutions of each kind, and a matrix product at the end.
OnnxBuilder FloatNet(int64_t side) {
  OnnxBuilder builder;
  builder.Input("image", {1, 3, side, side})
      .Floats("w1", {32, 3, 3, 3}, Numbers(32 * 27, 5))
      .Floats("b1", {32}, Numbers(32, 3))
      .Node("Conv", {"image", "w1", "b1"}, {"a"}, "first")
      .Ints("pads", {1, 1, 1, 1})
      .Ints("strides", {2, 2})
      .Node("Relu", {"a"}, {"b"})
      .Floats("w2", {32, 1, 5, 5}, Numbers(32 * 25, 11))
      .Node("Conv", {"b", "w2"}, {"c"}, "depthwise")
      .Int("group", 32)
      .Ints("pads", {2, 2, 2, 2})
      .Floats("w3", {64, 32, 1, 1}, Numbers(64 * 32, 7))
      .Node("Conv", {"c", "w3"}, {"d"}, "pointwise")
      .Node("Sigmoid", {"d"}, {"e"})
      .Floats("w4", {32, 64, 3, 3}, Numbers(32 * 64 * 9, 13))
      .Node("Conv", {"e", "w4"}, {"f"}, "second")
      .Ints("pads", {1, 1, 1, 1})
      .Node("GlobalAveragePool", {"f"}, {"g"})
      .Node("Flatten", {"g"}, {"h"})
      .Floats("w5", {32, 100}, Numbers(3200, 17))
      .Node("Gemm", {"h", "w5"}, {"y"}, "head")
      .Output("y", {1, 100});
  return builder;
}

// The same in 8 bits: weights and activations by QuantizeLinear.
OnnxBuilder IntegerNet(int64_t side) {
  OnnxBuilder builder;
  const auto weights = [&](const std::string& name, const testing::Dims& dims) {
    auto* tensor = builder.proto().mutable_graph()->add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(onnx::TensorProto::INT8);
    size_t count = 1;
    for (const int64_t dim : dims) {
      tensor->add_dims(dim);
      count *= static_cast<size_t>(dim);
    }
    std::string raw(count, '\0');
    for (size_t i = 0; i < count; ++i) {
      raw[i] = static_cast<char>(static_cast<int>(i * 11 % 251) - 125);
    }
    tensor->set_raw_data(raw);
    builder.Node("DequantizeLinear", {name, "scale", "zero"}, {name + ".d"});
  };
  const auto activations = [&](const std::string& name) {
    builder.Node("QuantizeLinear", {name, "scale", "zero"}, {name + ".q"});
    builder.Node("DequantizeLinear", {name + ".q", "scale", "zero"},
                 {name + ".d"});
  };
  builder.Input("image", {1, 8, side, side}).Floats("scale", {}, {0.03125F});
  auto* zero = builder.proto().mutable_graph()->add_initializer();
  zero->set_name("zero");
  zero->set_data_type(onnx::TensorProto::INT8);
  zero->set_raw_data(std::string(1, '\0'));
  activations("image");
  weights("w1", {64, 8, 3, 3});
  builder.Node("Conv", {"image.d", "w1.d"}, {"a"}, "first")
      .Ints("pads", {1, 1, 1, 1});
  builder.Node("Relu", {"a"}, {"b"});
  activations("b");
  weights("w2", {32, 64, 3, 3});
  builder.Node("Conv", {"b.d", "w2.d"}, {"c"}, "second")
      .Ints("pads", {1, 1, 1, 1})
      .Ints("strides", {2, 2});
  activations("c");
  builder.Node("Identity", {"c.d"}, {"y"})
      .Output("y", {1, 32, (side + 1) / 2, (side + 1) / 2});
  return builder;
}

// Without the data of its weights.
Bytes WithoutWeights(OnnxBuilder builder) {
  for (auto& tensor : *builder.proto().mutable_graph()->mutable_initializer()) {
    if (tensor.dims_size() == 0) continue;
    tensor.clear_raw_data();
  }
  return builder.Bytes();
}

class SharedWeightsTest : public ::testing::Test {
 protected:
  SharedWeightsTest() { device_->EnterWorker(); }

  static std::unique_ptr<driver::Device> Open() {
    return *OpenSoftDevice({.kind = "soft", .soc = "rk3588"});
  }
  std::unique_ptr<driver::Model> Load(const Bytes& bytes,
                                      const Bytes& weights_of = {},
                                      bool share = true) {
    auto model = device_->Load({.bytes = bytes,
                                .options = "",
                                .name = "m.onnx",
                                .weights_of = weights_of,
                                .share_weights = share});
    EXPECT_TRUE(model.ok()) << model.status();
    return model.ok() ? *std::move(model) : nullptr;
  }

  static Bytes Run(driver::Device& device, const driver::Model& model) {
    const driver::ProgramInfo& program = model.info().programs[0];
    auto bound = BoundModel::Make(
        device, model,
        {testing::PlainFormat(program.inputs[0], TensorType::kFloat32)},
        {testing::PlainFormat(program.outputs[0], TensorType::kFloat32)});
    EXPECT_TRUE(bound.ok()) << bound.status();
    if (!bound.ok()) return {};
    const auto input = Numbers(program.inputs[0].elements, 29);
    std::memcpy((*bound)->input(0).data(), input.data(),
                input.size() * sizeof(float));
    EXPECT_TRUE((*bound)->Run().status.ok());
    const std::byte* data = (*bound)->output(0).data();
    return {data, data + program.outputs[0].elements * sizeof(float)};
  }
  Bytes Run(const driver::Model& model) { return Run(*device_, model); }
  // On a device of its own.
  static Bytes RunAlone(const Bytes& bytes) {
    const auto device = Open();
    auto model = device->Load({.bytes = bytes, .options = "", .name = "alone"});
    EXPECT_TRUE(model.ok()) << model.status();
    return model.ok() ? Run(*device, **model) : Bytes();
  }

  void ExpectAnswersOfModelsAlone(OnnxBuilder (*net)(int64_t)) {
    for (const int64_t side : {32, 33, 40, 65}) {
      const Bytes whole = net(side).Bytes();
      const Bytes wanted = RunAlone(whole);
      // After another resolution, before it, and with its weights.
      {
        const auto owner = Load(net(48).Bytes());
        const auto follower = Load(WithoutWeights(net(side)), net(48).Bytes());
        ASSERT_TRUE(owner != nullptr && follower != nullptr);
        EXPECT_EQ(Run(*follower), wanted) << side;
      }
      const auto first = Load(whole);
      const auto second = Load(net(48).Bytes());
      ASSERT_TRUE(first != nullptr && second != nullptr);
      EXPECT_EQ(Run(*first), wanted) << side;
      EXPECT_EQ(Run(*second), RunAlone(net(48).Bytes()));
    }
  }

  const std::unique_ptr<driver::Device> device_ = Open();
};

TEST_F(SharedWeightsTest, FloatModelsAnswerAsAlone) {
  ExpectAnswersOfModelsAlone(FloatNet);
}

TEST_F(SharedWeightsTest, IntegerModelsAnswerAsAlone) {
  ExpectAnswersOfModelsAlone(IntegerNet);
}

TEST_F(SharedWeightsTest, SecondResolutionCostsAFewKib) {
  for (const auto net : {FloatNet, IntegerNet}) {
    const auto owner = Load(net(64).Bytes());
    const uint64_t alone = owner->held_weights();
    const auto follower = Load(WithoutWeights(net(40)), net(64).Bytes());
    ASSERT_NE(follower, nullptr);

    EXPECT_EQ(alone, owner->info().weight_size);
    EXPECT_EQ(follower->info().weight_size, owner->info().weight_size);
    EXPECT_EQ(owner->held_weights(), alone);
    EXPECT_LE(follower->held_weights(), kFewKib);
  }
}

TEST_F(SharedWeightsTest, FollowerRunsOnWhenItsOwnerIsGone) {
  auto owner = Load(FloatNet(64).Bytes());
  const auto follower =
      Load(WithoutWeights(FloatNet(40)), FloatNet(64).Bytes());
  ASSERT_NE(follower, nullptr);
  const uint64_t both = owner->held_weights() + follower->held_weights();
  const Bytes before = Run(*follower);

  owner = nullptr;

  EXPECT_EQ(Run(*follower), before);
  EXPECT_LE(follower->held_weights(), both);
  EXPECT_GE(follower->held_weights(), follower->info().weight_size);
}

TEST_F(SharedWeightsTest, WhatDiffersIsTheFollowersOwn) {
  const auto owner = Load(FloatNet(64).Bytes());
  OnnxBuilder changed = FloatNet(40);
  // The last one, of 12.5 KiB.
  auto* tensor = changed.proto().mutable_graph()->mutable_initializer(5);
  ASSERT_EQ(tensor->name(), "w5");
  const auto other = Numbers(3200, 23);
  tensor->set_raw_data(other.data(), other.size() * sizeof(float));
  const Bytes whole = changed.Bytes();
  const auto follower = Load(whole, FloatNet(64).Bytes());
  ASSERT_NE(follower, nullptr);

  EXPECT_EQ(Run(*follower), RunAlone(whole));
  EXPECT_GE(follower->held_weights(), 3200 * sizeof(float));
  EXPECT_LE(follower->held_weights(), 3200 * sizeof(float) + 2 * kFewKib);
}

TEST_F(SharedWeightsTest, ModelThatIsNotToShareHasACopy) {
  const auto owner = Load(FloatNet(64).Bytes());
  const auto copy = Load(FloatNet(64).Bytes(), {}, /*share=*/false);
  EXPECT_EQ(copy->held_weights(), owner->held_weights());
}

TEST_F(SharedWeightsTest, FollowerAloneIsRefusedByItsFirstWeight) {
  const Bytes follower = WithoutWeights(FloatNet(40));
  const auto model =
      device_->Load({.bytes = follower, .options = "", .name = "small.onnx"});
  EXPECT_THAT(std::string(model.status().message()),
              AllOf(HasSubstr("'small.onnx'"), HasSubstr("'w1'"),
                    HasSubstr("RKNN_FLAG_SHARE_WEIGHT_MEM")));
}

TEST_F(SharedWeightsTest, LoadsAndEndsLeaveNothingBehind) {
  const auto owner = Load(FloatNet(64).Bytes());
  const uint64_t alone = owner->held_weights();
  for (int i = 0; i < 20; ++i) {
    const auto follower =
        Load(WithoutWeights(FloatNet(32 + i)), FloatNet(64).Bytes());
    ASSERT_NE(follower, nullptr);
  }
  EXPECT_EQ(owner->held_weights(), alone);
}

// Networks of ../shared/models at the resolution they have and at another.
TEST_F(SharedWeightsTest, SecondResolutionOfADetectorCostsAFewKib) {
  const std::string shared = testing::SharedFolder();
  if (shared.empty()) GTEST_SKIP() << "no ../shared (set RKNND_SHARED)";
  struct Case {
    const char* name;
    int side;
  };
  for (const Case& c :
       {Case{"yolox_nano", 320}, Case{"retinaface_int8_qdq", 256}}) {
    const Bytes file =
        testing::ReadFile(shared + "/models/" + c.name + "/model.onnx");
    const auto owner = Load(file);
    ASSERT_NE(owner, nullptr);
    onnx::ModelProto proto;
    ASSERT_TRUE(
        proto.ParseFromArray(file.data(), static_cast<int>(file.size())));
    for (auto& tensor : *proto.mutable_graph()->mutable_initializer()) {
      // Weights of convolutions, as converters remove them.
      if (tensor.dims_size() == 4) tensor.clear_raw_data();
    }
    const std::string small = proto.SerializeAsString();
    const std::string side = std::to_string(c.side);
    auto follower = device_->Load(
        {.bytes = std::as_bytes(std::span(small)),
         .options = "dynamic_input: [[[1,3," + side + "," + side + "]]]",
         .name = c.name,
         .weights_of = file});
    ASSERT_TRUE(follower.ok()) << follower.status();

    std::cout << c.name << ": " << owner->held_weights()
              << " bytes of weights; at " << side << " x " << side << ", of a "
              << "file of " << small.size() << " bytes instead of "
              << file.size() << ": " << (*follower)->held_weights()
              << " more\n";
    EXPECT_LE((*follower)->held_weights(), kFewKib) << c.name;
  }
}

}  // namespace
}  // namespace rknnd::soft
