#include "driver/soft/timing/program_costs.h"

#include <gtest/gtest.h>

#include <utility>

namespace rknnd::soft {
namespace {

// x -> Relu -> y, 8-bit, with the layers of its input and output.
class ProgramCostsTest : public ::testing::Test {
 protected:
  ProgramCostsTest() {
    for (const char* name : {"x", "y"}) {
      Value value;
      value.name = name;
      value.type = DataType::kInt8;
      value.shape = Shape{1, 16, 100, 100};
      graph_.values.push_back(std::move(value));
    }
    Node node;
    node.name = node.type = "Relu";
    node.inputs = {0};
    node.outputs = {1};
    graph_.nodes.push_back(std::move(node));
    info_.layers.resize(3);
    nodes_ = {{1, &graph_.nodes[0]}};
  }

  Graph graph_;
  driver::ProgramInfo info_;
  std::vector<LayerNode> nodes_;
};

TEST_F(ProgramCostsTest, LayersGetTheirFigures) {
  const std::vector<LayerTime> times =
      CostProgram(graph_, nodes_, *FindSoc("rk3588"), info_);
  ASSERT_EQ(times.size(), 3U);
  const driver::LayerInfo& layer = info_.layers[1];
  EXPECT_EQ(layer.ddr_bytes, 320000U);
  EXPECT_EQ(layer.ddr_read, 160000U);
  EXPECT_EQ(layer.ddr_cycles, 13528U);  // at 23.654 a cycle
  EXPECT_EQ(layer.modelled, 32000 + 8000);
}

TEST_F(ProgramCostsTest, InputsAndOutputsTakeNoTimeOfTheNpu) {
  CostProgram(graph_, nodes_, *FindSoc("rk3588"), info_);
  EXPECT_EQ(info_.layers[0].modelled, 0);
  EXPECT_EQ(info_.layers[2].modelled, 0);
}

TEST_F(ProgramCostsTest, TheCpusLayersHaveNoCycles) {
  info_.layers[1].on_cpu = true;
  CostProgram(graph_, nodes_, *FindSoc("rk3588"), info_);
  EXPECT_EQ(info_.layers[1].ddr_cycles, 0U);
  EXPECT_GT(info_.layers[1].modelled, 0);
}

TEST_F(ProgramCostsTest, TheProgramTakesWhatItsLayersTake) {
  CostProgram(graph_, nodes_, *FindSoc("rk3588"), info_);
  EXPECT_EQ(info_.modelled, info_.layers[1].modelled);
}

TEST_F(ProgramCostsTest, AWeakerSocTakesLonger) {
  CostProgram(graph_, nodes_, *FindSoc("rk3588"), info_);
  const base::Nanoseconds rk3588 = info_.modelled;
  CostProgram(graph_, nodes_, *FindSoc("rv1103"), info_);
  EXPECT_GT(info_.modelled, rk3588);
}

}  // namespace
}  // namespace rknnd::soft
