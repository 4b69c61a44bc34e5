// A network whose input goes straight into Quantize, or whose output comes
// from Dequantize, is an 8-bit one to the application: the conversion is the
// port's own.

#include <optional>
#include <vector>

#include "driver/soft/graph/passes.h"
#include "driver/soft/graph/quantized.h"
#include "driver/soft/graph/uses.h"

namespace rknnd::soft {

void QuantizePorts(Graph& graph) {
  const Uses uses(graph);
  std::vector<bool> removed(graph.nodes.size(), false);
  std::vector<ValueId> same(graph.values.size(), kNoValue);
  for (GraphPort& port : graph.inputs) {
    if (uses.is_output(port.value)) continue;
    std::vector<size_t> readers;
    bool all = true;
    for (size_t n = 0; n < graph.nodes.size() && all; ++n) {
      const Node& node = graph.nodes[n];
      size_t reads = node.epilogue.add == port.value ? 2 : 0;
      for (ValueId input : node.inputs) reads += input == port.value ? 1 : 0;
      if (reads == 0) continue;
      all =
          reads == 1 && IsQuantize(node) && node.inputs[0] == port.value &&
          WholeTensor(graph, node).has_value() &&
          (readers.empty() || SameScale(graph, graph.nodes[readers[0]], node));
      readers.push_back(n);
    }
    if (!all || readers.empty()) continue;
    const Node& first = graph.nodes[readers[0]];
    port.quantization = WholeTensor(graph, first);
    port.value = first.outputs[0];
    for (size_t n : readers) {
      removed[n] = true;
      same[static_cast<size_t>(graph.nodes[n].outputs[0])] = port.value;
    }
  }
  const auto redirect = [&same](ValueId& value) {
    if (value == kNoValue) return;
    const ValueId to = same[static_cast<size_t>(value)];
    if (to != kNoValue) value = to;
  };
  for (Node& node : graph.nodes) {
    for (ValueId& input : node.inputs) redirect(input);
  }
  for (GraphPort& port : graph.outputs) {
    const size_t n = uses.producer(port.value);
    if (n == Uses::kNoNode || removed[n] || !IsDequantize(graph.nodes[n])) {
      redirect(port.value);
      continue;
    }
    const ValueId bytes = graph.nodes[n].inputs[0];
    // What a foreign operator makes may have no shape, this port has one.
    if (!graph.value(bytes).shape.has_value()) continue;
    port.quantization = WholeTensor(graph, graph.nodes[n]);
    if (port.quantization.has_value()) port.value = bytes;
  }
  RemoveNodes(graph, removed);
  RemoveDeadNodes(graph);
}

}  // namespace rknnd::soft
