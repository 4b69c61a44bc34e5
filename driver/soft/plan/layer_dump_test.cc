// Tensors out of their inner forms, and the scales that make them readable.

#include "driver/soft/plan/layer_dump.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "driver/soft/graph/tensor_scales.h"

namespace rknnd::soft {
namespace {

using ::testing::ElementsAre;

class KeepTensor final : public driver::LayerSink {
 public:
  absl::Status OnLayer(const driver::LayerTensor& tensor) override {
    layer = tensor.layer;
    type = tensor.type;
    shape.assign(tensor.shape.begin(), tensor.shape.end());
    values.resize(tensor.bytes.size() / sizeof(float));
    std::memcpy(values.data(), tensor.bytes.data(),
                values.size() * sizeof(float));
    return status;
  }
  absl::Status status;
  uint32_t layer = 0;
  driver::TensorType type = driver::TensorType::kInt8;
  std::vector<int64_t> shape;
  std::vector<float> values;
};

DumpedOperand Floats(const Shape& shape, int block) {
  DumpedOperand dumped;
  dumped.name = "t";
  dumped.spec = {DataType::kFloat32, shape, Placement{block}};
  return dumped;
}

TEST(LayerDumpTest, DenseTensorsComeAsTheyAre) {
  const std::vector<float> data = {1, 2, 3, 4};
  KeepTensor sink;
  ASSERT_TRUE(DumpTensor(Floats({1, 2, 1, 2}, 1), 7,
                         std::as_bytes(std::span(data)).data(), sink)
                  .ok());
  EXPECT_EQ(sink.layer, 7U);
  EXPECT_EQ(sink.type, driver::TensorType::kFloat32);
  EXPECT_THAT(sink.shape, ElementsAre(1, 2, 1, 2));
  EXPECT_THAT(sink.values, ElementsAre(1, 2, 3, 4));
}

TEST(LayerDumpTest, BlocksAreTakenApartAndTheirPaddingLeftOut) {
  // Three channels of two pixels in blocks of two channels.
  const std::vector<float> data = {1, 3, 2, 4, 5, 0, 6, 0};
  KeepTensor sink;
  ASSERT_TRUE(DumpTensor(Floats({1, 3, 1, 2}, 2), 0,
                         std::as_bytes(std::span(data)).data(), sink)
                  .ok());
  EXPECT_THAT(sink.values, ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(LayerDumpTest, EightBitNumbersBecomeWhatTheyStandFor) {
  const std::vector<int8_t> data = {-128, 0, 2, 127};
  DumpedOperand dumped;
  dumped.spec = {DataType::kInt8, {1, 4}, Placement{}};
  dumped.quantization = Quantization{0.5F, 2};
  KeepTensor sink;
  ASSERT_TRUE(
      DumpTensor(dumped, 0, std::as_bytes(std::span(data)).data(), sink).ok());
  EXPECT_EQ(sink.type, driver::TensorType::kFloat32);
  EXPECT_THAT(sink.values, ElementsAre(-65, -1, 0, 62.5));
}

TEST(LayerDumpTest, SinkThatRefusesEndsIt) {
  const std::vector<float> data = {1};
  KeepTensor sink;
  sink.status = absl::ResourceExhaustedError("full");
  EXPECT_EQ(
      DumpTensor(Floats({1}, 1), 0, std::as_bytes(std::span(data)).data(), sink)
          .code(),
      absl::StatusCode::kResourceExhausted);
}

class TensorScalesTest : public ::testing::Test {
 protected:
  ValueId Add(DataType type) {
    graph_.values.emplace_back();
    graph_.values.back().type = type;
    graph_.values.back().shape = Shape{1, 4, 2, 2};
    return static_cast<ValueId>(graph_.values.size() - 1);
  }
  ValueId AddConstant(DataType type, std::span<const std::byte> bytes) {
    auto constant = std::make_shared<Constant>();
    constant->type = type;
    constant->data.assign(bytes.begin(), bytes.end());
    const ValueId value = Add(type);
    graph_.value(value).shape = Shape{};
    graph_.value(value).constant = std::move(constant);
    return value;
  }
  ValueId Scale(float scale) {
    return AddConstant(DataType::kFloat32, std::as_bytes(std::span(&scale, 1)));
  }
  ValueId Zero(int8_t zero) {
    return AddConstant(DataType::kInt8, std::as_bytes(std::span(&zero, 1)));
  }
  void AddNode(const char* type, std::vector<ValueId> inputs, ValueId output) {
    Node node;
    node.name = node.type = type;
    node.inputs = std::move(inputs);
    node.outputs = {output};
    graph_.nodes.push_back(std::move(node));
  }

  Graph graph_;
};

TEST_F(TensorScalesTest, ComeFromTheLayersThatNameThem) {
  const ValueId x = Add(DataType::kInt8);
  const ValueId y = Add(DataType::kInt8);
  const ValueId pooled = Add(DataType::kInt8);
  AddNode("QLinearSigmoid", {x, Scale(0.5F), Zero(1), Scale(0.25F), Zero(-2)},
          y);
  AddNode("MaxPool", {y}, pooled);

  const auto scales = TensorScales(graph_);

  EXPECT_EQ(scales[static_cast<size_t>(x)]->scale, 0.5F);
  EXPECT_EQ(scales[static_cast<size_t>(x)]->zero, 1);
  EXPECT_EQ(scales[static_cast<size_t>(y)]->zero, -2);
  // What only moves numbers keeps their meaning.
  ASSERT_TRUE(scales[static_cast<size_t>(pooled)].has_value());
  EXPECT_EQ(scales[static_cast<size_t>(pooled)]->scale, 0.25F);
}

TEST_F(TensorScalesTest, FloatsHaveNone) {
  const ValueId x = Add(DataType::kFloat32);
  const ValueId y = Add(DataType::kFloat32);
  AddNode("Relu", {x}, y);
  for (const auto& scale : TensorScales(graph_)) {
    EXPECT_FALSE(scale.has_value());
  }
}

}  // namespace
}  // namespace rknnd::soft
