// What a program costs on the SoC: fills in the layers' figures for the reports
// and gives the times that jobs of it are paced by. Called once a program, when
// its model is loaded.
//
// Thread: the loading thread.

#ifndef DRIVER_SOFT_TIMING_PROGRAM_COSTS_H_
#define DRIVER_SOFT_TIMING_PROGRAM_COSTS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "driver/device.h"
#include "driver/soft/graph/graph.h"
#include "driver/soft/soc.h"
#include "driver/soft/timing/layer_cost.h"

namespace rknnd::soft {

// A node and the layer that it is, or is part of.
struct LayerNode {
  uint32_t layer = 0;  // index in ProgramInfo::layers
  const Node* node = nullptr;
};

// `nodes` in the order of layers. A layer without one is an input or output as
// the application sees it. The answer has a place for each layer.
std::vector<LayerTime> CostProgram(const Graph& graph,
                                   std::span<const LayerNode> nodes,
                                   const SocProfile& soc,
                                   driver::ProgramInfo& info);

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_TIMING_PROGRAM_COSTS_H_
