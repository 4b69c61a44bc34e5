#include "driver/soft/timing/program_costs.h"

#include "driver/soft/timing/layer_work.h"

namespace rknnd::soft {

std::vector<LayerTime> CostProgram(const Graph& graph,
                                   std::span<const LayerNode> nodes,
                                   const SocProfile& soc,
                                   driver::ProgramInfo& info) {
  std::vector<LayerTime> times(info.layers.size());
  size_t next = 0;
  for (size_t i = 0; i < info.layers.size(); ++i) {
    driver::LayerInfo& layer = info.layers[i];
    std::vector<const Node*> parts;
    while (next < nodes.size() && nodes[next].layer == i) {
      parts.push_back(nodes[next++].node);
    }
    if (parts.empty()) continue;
    const LayerWork work = WorkOf(graph, parts, soc);
    const LayerEstimate estimate = EstimateLayer(work, soc);
    layer.ddr_bytes = estimate.ddr_bytes;
    layer.ddr_read = estimate.read_bytes;
    layer.macs = estimate.macs;
    if (!layer.on_cpu) {
      layer.npu_cycles = estimate.npu_cycles;
      layer.ddr_cycles = estimate.ddr_cycles;
    }
    // The CPU's part takes its time too: as much as moving the bytes.
    times[i] = SimulateLayer(work, soc);
    layer.modelled = SimulateProgram({&times[i], 1}, soc, {});
  }
  info.modelled = SimulateProgram(times, soc, {});
  return times;
}

}  // namespace rknnd::soft
