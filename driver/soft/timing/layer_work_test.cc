#include "driver/soft/timing/layer_work.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace rknnd::soft {
namespace {

// A graph of one node, by hand.
class OneNode {
 public:
  OneNode& Input(DataType type, Shape shape, bool constant = false) {
    node_.inputs.push_back(Add(type, std::move(shape), constant));
    return *this;
  }
  OneNode& Output(DataType type, Shape shape) {
    node_.outputs.push_back(Add(type, std::move(shape), false));
    return *this;
  }
  OneNode& Type(std::string type) {
    node_.type = std::move(type);
    return *this;
  }
  OneNode& LayerType(std::string type) {
    node_.layer_type = std::move(type);
    return *this;
  }
  OneNode& Group(int64_t groups) {
    node_.attributes["group"] = groups;
    return *this;
  }
  OneNode& Behind(Activation activation) {
    node_.epilogue.activation = activation;
    return *this;
  }
  OneNode& Added(DataType type, Shape shape) {
    node_.epilogue.add = Add(type, std::move(shape), false);
    return *this;
  }
  // A node of one layer with the one before, whose output it reads; and an
  // input of its own.
  OneNode& Joined(std::string type, DataType data, Shape shape) {
    const Node& before = joined_.empty() ? node_ : joined_.back();
    Node node;
    node.type = std::move(type);
    node.inputs = {before.outputs[0], Add(data, shape, false)};
    node.outputs = {Add(data, std::move(shape), false)};
    joined_.push_back(std::move(node));
    return *this;
  }
  // What the application gives.
  OneNode& FirstIsPort() {
    graph_.inputs.push_back({.name = "x", .value = node_.inputs[0]});
    return *this;
  }
  [[nodiscard]] LayerWork Work(const char* soc = "rk3588") const {
    std::vector<const Node*> nodes = {&node_};
    for (const Node& joined : joined_) nodes.push_back(&joined);
    return WorkOf(graph_, nodes, *FindSoc(soc));
  }

 private:
  ValueId Add(DataType type, Shape shape, bool constant) {
    Value value;
    value.type = type;
    value.shape = shape;
    if (constant) {
      auto contents = std::make_shared<Constant>();
      contents->type = type;
      contents->shape = std::move(shape);
      value.constant = std::move(contents);
    }
    graph_.values.push_back(std::move(value));
    return static_cast<ValueId>(graph_.values.size() - 1);
  }

  Graph graph_;
  Node node_;
  std::vector<Node> joined_;
};

constexpr DataType kInt8 = DataType::kInt8;
constexpr DataType kFloat = DataType::kFloat32;

OneNode Conv() {
  return std::move(OneNode()
                       .Type("Conv")
                       .Input(kFloat, {1, 40, 20, 30})
                       .Input(kFloat, {50, 40, 3, 5}, true)
                       .Output(kFloat, {1, 50, 10, 15}));
}

TEST(WorkOfTest, AConvolutionIsItsShapes) {
  const LayerWork work = Conv().Work();
  EXPECT_EQ(work.kind, LayerKind::kConv);
  EXPECT_EQ(work.pixels, 150U);
  EXPECT_EQ(work.in_channels, 40U);
  EXPECT_EQ(work.out_channels, 50U);
  EXPECT_EQ(work.taps, 15U);
  EXPECT_TRUE(work.splits);
  EXPECT_FALSE(work.lut);
}

TEST(WorkOfTest, FloatsAreHalvesOnTheNpuInWholeBlocks) {
  const LayerWork work = Conv().Work();
  EXPECT_EQ(work.element_bytes, 2U);
  EXPECT_EQ(work.read, 2U * 600 * 40);
  EXPECT_EQ(work.written, 2U * 150 * 56);
  EXPECT_EQ(work.weights, 2U * 50 * 40 * 15 + 8 * 64);
}

TEST(WorkOfTest, OneGroupAChannelIsDepthwise) {
  const LayerWork work = OneNode()
                             .Type("Conv")
                             .Input(kInt8, {1, 64, 20, 20})
                             .Input(kInt8, {64, 1, 3, 3}, true)
                             .Group(64)
                             .Output(kInt8, {1, 64, 20, 20})
                             .Work();
  EXPECT_EQ(work.kind, LayerKind::kDepthwise);
  EXPECT_EQ(work.groups, 64U);
  EXPECT_EQ(work.weights, 64U * 9 + 8 * 64);
}

TEST(WorkOfTest, IntegerConvolutionsFindTheirWeights) {
  OneNode node;
  node.Type("QLinearConv")
      .Input(kInt8, {1, 32, 20, 20})
      .Input(kFloat, {}, true)
      .Input(kInt8, {}, true)
      .Input(kInt8, {64, 32, 3, 3}, true)
      .Output(kInt8, {1, 64, 20, 20});
  const LayerWork work = node.Work();
  EXPECT_EQ(work.taps, 9U);
  EXPECT_EQ(work.in_channels, 32U);
  EXPECT_EQ(work.out_channels, 64U);
  EXPECT_EQ(work.element_bytes, 1U);
}

TEST(WorkOfTest, ATransposedOneMovesItsKernelOverTheInput) {
  const LayerWork work = OneNode()
                             .Type("ConvTranspose")
                             .Input(kInt8, {1, 32, 20, 20})
                             .Input(kInt8, {32, 64, 2, 2}, true)
                             .Output(kInt8, {1, 64, 40, 40})
                             .Work();
  EXPECT_EQ(work.pixels, 400U);
  EXPECT_EQ(work.outputs, 1600U);
}

TEST(WorkOfTest, SwishComesFromATableAndIsNotSplit) {
  const LayerWork work = Conv().Behind(Activation::kSwish).Work();
  EXPECT_TRUE(work.lut);
  EXPECT_FALSE(work.splits);
  EXPECT_FALSE(Conv().Behind(Activation::kRelu).Work().lut);
  EXPECT_TRUE(Conv().Behind(Activation::kClip).Work().splits);
}

TEST(WorkOfTest, AFusedAdditionIsReadToo) {
  EXPECT_EQ(Conv().Added(kFloat, {1, 50, 10, 15}).Work().read,
            Conv().Work().read + 2 * 150 * 56);
}

TEST(WorkOfTest, NodesOfOneLayerAreOneWork) {
  const LayerWork alone = Conv().Work();
  const LayerWork added = Conv().Joined("Add", kFloat, {1, 50, 10, 15}).Work();
  EXPECT_EQ(added.kind, LayerKind::kConv);
  EXPECT_EQ(added.read, alone.read + 2 * 150 * 56);
  EXPECT_EQ(added.written, alone.written);
  EXPECT_TRUE(added.splits);
  const LayerWork looked_up =
      Conv().Joined("Sigmoid", kFloat, {1, 50, 10, 15}).Work();
  EXPECT_TRUE(looked_up.lut);
  EXPECT_FALSE(looked_up.splits);
}

TEST(WorkOfTest, ATableIsWhatItStandsFor) {
  const auto table = [](const char* stands_for) {
    return OneNode()
        .Type("Lookup")
        .LayerType(stands_for)
        .Input(kInt8, {1, 16, 8, 8})
        .Output(kInt8, {1, 16, 8, 8})
        .Work();
  };
  EXPECT_TRUE(table("ExSwish").lut);
  EXPECT_TRUE(table("Sigmoid").lut);
  EXPECT_FALSE(table("LeakyRelu").lut);
  EXPECT_TRUE(table("LeakyRelu").splits);
  EXPECT_FALSE(table("Requantize").lut);
}

TEST(WorkOfTest, AnImageLiesSideBySide) {
  OneNode node;
  node.Type("Conv")
      .Input(kInt8, {1, 3, 20, 20})
      .Input(kInt8, {16, 3, 3, 3}, true)
      .Output(kInt8, {1, 16, 20, 20})
      .FirstIsPort();
  EXPECT_EQ(node.Work().read, 3U * 400);
}

TEST(WorkOfTest, BlocksAreTheSocs) {
  OneNode node;
  node.Type("Add")
      .Input(kInt8, {1, 24, 10, 10})
      .Input(kInt8, {1, 24, 10, 10})
      .Output(kInt8, {1, 24, 10, 10});
  EXPECT_EQ(node.Work("rk3588").read, 2U * 32 * 100);
  EXPECT_EQ(node.Work("rk3568").read, 2U * 24 * 100);
}

TEST(WorkOfTest, AProductOfMatricesIsAConvolutionOfRows) {
  const LayerWork work = OneNode()
                             .Type("MatMul")
                             .Input(kFloat, {4, 10, 64})
                             .Input(kFloat, {64, 96}, true)
                             .Output(kFloat, {4, 10, 96})
                             .Work();
  EXPECT_EQ(work.kind, LayerKind::kConv);
  EXPECT_EQ(work.pixels, 40U);
  EXPECT_EQ(work.in_channels, 64U);
  EXPECT_EQ(work.out_channels, 96U);
  EXPECT_EQ(work.weights, 2U * 64 * 96);
  EXPECT_EQ(work.read, 2U * 40 * 64);
  EXPECT_FALSE(work.splits);
}

TEST(WorkOfTest, ATransposedFactorIsMeasuredByItsElements) {
  const LayerWork work = OneNode()
                             .Type("Gemm")
                             .Input(kFloat, {64, 10})
                             .Input(kFloat, {64, 96}, true)
                             .Output(kFloat, {10, 96})
                             .Work();
  EXPECT_EQ(work.in_channels, 64U);
}

TEST(WorkOfTest, TheRestIsMovedPooledOrResized) {
  const auto kind = [](const char* type) {
    return OneNode()
        .Type(type)
        .Input(kInt8, {1, 16, 8, 8})
        .Output(kInt8, {1, 16, 8, 8})
        .Work()
        .kind;
  };
  EXPECT_EQ(kind("MaxPool"), LayerKind::kPool);
  EXPECT_EQ(kind("Resize"), LayerKind::kResize);
  EXPECT_EQ(kind("Concat"), LayerKind::kMover);
  EXPECT_EQ(kind("NoSuchOperator"), LayerKind::kMover);
}

TEST(WorkOfTest, ANodeWithoutShapesOrInputsCostsNothing) {
  OneNode node;
  node.Type("Conv");
  EXPECT_EQ(node.Work().read, 0U);
  EXPECT_EQ(node.Work().pixels, 0U);
}

}  // namespace
}  // namespace rknnd::soft
