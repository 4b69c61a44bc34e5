#include "driver/soft/timing/program_costs.h"

#include <algorithm>

#include "driver/soft/tiles/cpu_level.h"
#include "driver/soft/timing/layer_work.h"

namespace rknnd::soft {
namespace {

// What this CPU takes, more or less: most of it goes into products.
base::Nanoseconds ExpectedHere(std::span<const driver::LayerInfo> layers) {
  const auto macs_per_ns = static_cast<uint64_t>(OperationsPerNs());
  constexpr uint64_t kBytesPerNs = 4;
  constexpr uint64_t kMost = uint64_t{3600} * base::kSecond;
  uint64_t time = 0;
  for (const driver::LayerInfo& layer : layers) {
    time = Plus(time,
                Plus(layer.macs / macs_per_ns, layer.ddr_bytes / kBytesPerNs));
  }
  return static_cast<base::Nanoseconds>(std::min(time, kMost));
}

}  // namespace

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
  info.expected = std::max(info.modelled, ExpectedHere(info.layers));
  return times;
}

}  // namespace rknnd::soft
