// Nodes of the CPU, with answers worked out by hand.

#include "driver/rknpu/device/cpu_node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>

namespace rknnd::rknpu {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

// A graph of plain tensors around one node.
class Graph {
 public:
  Graph() { file_.nodes.emplace_back(); }

  Graph& Op(const std::string& type) {
    file_.nodes[0].type = type;
    file_.nodes[0].name = "n";
    return *this;
  }
  Graph& In(std::vector<uint32_t> shape, const std::vector<int>& values,
            float scale = 1, int32_t zero = 0) {
    file_.nodes[0].inputs.push_back(Add(std::move(shape), scale, zero));
    std::vector<std::byte>& bytes = memory_.back();
    for (size_t i = 0; i < values.size(); ++i) {
      bytes[i] = static_cast<std::byte>(static_cast<int8_t>(values[i]));
    }
    return *this;
  }
  Graph& Out(std::vector<uint32_t> shape, float scale = 1, int32_t zero = 0) {
    file_.nodes[0].outputs.push_back(Add(std::move(shape), scale, zero));
    return *this;
  }
  Node& node() { return file_.nodes[0]; }
  Tensor& tensor(size_t i) { return file_.tensors[i]; }

  absl::StatusOr<CpuNode> Make() { return CpuNode::Make(file_, 0); }
  std::vector<int> Run() {
    const auto made = Make();
    if (!made.ok()) {
      ADD_FAILURE() << made.status();
      return {};
    }
    made->Run([this](uint32_t tensor) { return memory_[tensor].data(); });
    std::vector<int> values;
    const Tensor& output = file_.tensors.back();
    for (size_t i = 0; i < output.bytes; ++i) {
      values.push_back(static_cast<int8_t>(memory_.back()[i]));
    }
    return values;
  }

 private:
  uint32_t Add(std::vector<uint32_t> shape, float scale, int32_t zero) {
    Tensor tensor;
    tensor.name = "t" + std::to_string(file_.tensors.size());
    tensor.type = ElementType::kInt8;
    tensor.kind = TensorClass::kInternal;
    tensor.bytes = 1;
    for (const uint32_t dim : shape) tensor.bytes *= dim;
    tensor.shape = tensor.native_shape = std::move(shape);
    tensor.scales = {scale};
    tensor.zero_points = {zero};
    memory_.emplace_back(tensor.bytes);
    file_.tensors.push_back(std::move(tensor));
    return static_cast<uint32_t>(file_.tensors.size() - 1);
  }

  ProgramFile file_;
  std::vector<std::vector<std::byte>> memory_;
};

TEST(CpuNodeTest, ReshapeKeepsTheOrderOfElements) {
  Graph graph;
  graph.Op("Reshape").In({2, 3}, {1, 2, 3, 4, 5, 6}).Out({3, 2});

  EXPECT_THAT(graph.Run(), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(CpuNodeTest, ReshapeToAnotherScaleRounds) {
  Graph graph;
  graph.Op("Reshape").In({4}, {-3, 1, 3, 127}, 0.5F, 1).Out({4}, 0.25F, -2);

  // (q - 1) * 0.5 / 0.25 - 2
  EXPECT_THAT(graph.Run(), ElementsAre(-10, -2, 2, 127));
}

TEST(CpuNodeTest, ReshapeBetweenLayouts) {
  Graph graph;
  graph.Op("Reshape").In({1, 2, 1, 2}, {}).Out({4});
  graph.tensor(0).layout = Layout::kFeature;
  graph.tensor(0).native_shape = {1, 1, 1, 2, 16};
  graph.tensor(0).bytes = 64;

  ASSERT_TRUE(graph.Make().ok());
}

TEST(CpuNodeTest, TransposeTurnsAxes) {
  Graph graph;
  graph.Op("Transpose").In({2, 3}, {1, 2, 3, 4, 5, 6}).Out({3, 2});
  graph.node().attributes.permutation = {1, 0};

  EXPECT_THAT(graph.Run(), ElementsAre(1, 4, 2, 5, 3, 6));
}

TEST(CpuNodeTest, TransposeOfThreeAxes) {
  Graph graph;
  graph.Op("Transpose").In({2, 1, 3}, {1, 2, 3, 4, 5, 6}).Out({3, 2, 1});
  graph.node().attributes.permutation = {2, 0, 1};

  EXPECT_THAT(graph.Run(), ElementsAre(1, 4, 2, 5, 3, 6));
}

TEST(CpuNodeTest, DivTakesASmallerDivisorAgainAndAgain) {
  Graph graph;
  graph.Op("Div")
      .In({2, 3}, {8, 10, 12, 20, 30, 50})
      .In({1, 3}, {4, 5, 4})
      .Out({2, 3}, 0.5F, 0);

  EXPECT_THAT(graph.Run(), ElementsAre(4, 4, 6, 10, 12, 25));
}

TEST(CpuNodeTest, DivisionByZeroEndsAtTheTypesBorder) {
  Graph graph;
  graph.Op("Div").In({3}, {1, -1, 0}).In({3}, {0, 0, 0}).Out({3});

  EXPECT_THAT(graph.Run(), ElementsAre(127, -128, -128));
}

TEST(CpuNodeTest, ArgMaxIsTheFirstOfTheLargest) {
  Graph graph;
  graph.Op("ArgMax").In({2, 3}, {1, 9, 9, 7, 2, 3}).Out({2});
  graph.node().attributes.axis = -1;

  EXPECT_THAT(graph.Run(), ElementsAre(1, 0));
}

TEST(CpuNodeTest, ArgMaxAlongTheFirstAxis) {
  Graph graph;
  graph.Op("ArgMax").In({3, 2}, {1, 9, 5, 2, 3, 10}).Out({1, 2});
  graph.node().attributes.axis = 0;

  EXPECT_THAT(graph.Run(), ElementsAre(1, 2));
}

TEST(CpuNodeTest, SoftmaxIsOneInAll) {
  Graph graph;
  graph.Op("exSoftmax13").In({1, 2}, {0, 0}).Out({1, 2}, 1.0F / 256, -128);
  graph.node().attributes.axis = 1;

  EXPECT_THAT(graph.Run(), ElementsAre(0, 0));
}

TEST(CpuNodeTest, WhatCannotBeRunIsNamed) {
  Graph custom;
  custom.Op("cstDualResidual").In({1}, {1}).Out({1});
  EXPECT_THAT(std::string(custom.Make().status().message()),
              HasSubstr("node 'n' (cstDualResidual)"));

  Graph reshape;
  reshape.Op("Reshape").In({4}, {}).Out({3});
  EXPECT_THAT(std::string(reshape.Make().status().message()),
              HasSubstr("4 elements become 3"));

  Graph turned;
  turned.Op("Transpose").In({2, 3}, {}).Out({3, 2});
  turned.node().attributes.permutation = {0, 0};
  EXPECT_FALSE(turned.Make().ok());
  turned.node().attributes.permutation = {-1, 0};
  EXPECT_FALSE(turned.Make().ok());

  Graph divided;
  divided.Op("Div").In({4}, {}).In({3}, {}).Out({4});
  EXPECT_FALSE(divided.Make().ok());

  Graph axis;
  axis.Op("ArgMax").In({4}, {}).Out({1});
  axis.node().attributes.axis = 1;
  EXPECT_FALSE(axis.Make().ok());

  Graph constant;
  constant.Op("Reshape").In({4}, {}).Out({4});
  constant.tensor(1).kind = TensorClass::kConstant;
  EXPECT_FALSE(constant.Make().ok());

  // The bytes of a table's name are no tensor.
  Graph table;
  table.Op("Reshape").In({4}, {}).Out({4});
  table.tensor(0).kind = TensorClass::kTable;
  EXPECT_FALSE(table.Make().ok());
}

}  // namespace
}  // namespace rknnd::rknpu
