// Dead nodes: what shape arithmetic leaves behind, and training's leftovers.

#include <vector>

#include "driver/soft/graph/passes.h"
#include "driver/soft/graph/uses.h"

namespace rknnd::soft {

void RemoveDeadNodes(Graph& graph) {
  std::vector<bool> read(graph.values.size(), false);
  auto mark = [&read](ValueId value) {
    if (value != kNoValue) read[static_cast<size_t>(value)] = true;
  };
  for (const GraphPort& port : graph.outputs) mark(port.value);
  std::vector<bool> removed(graph.nodes.size(), true);
  // Nodes are sorted: backwards, every reader comes before what it reads.
  for (size_t n = graph.nodes.size(); n-- > 0;) {
    const Node& node = graph.nodes[n];
    for (ValueId output : node.outputs) {
      if (output != kNoValue && read[static_cast<size_t>(output)]) {
        removed[n] = false;
      }
    }
    if (removed[n]) continue;
    for (ValueId input : node.inputs) mark(input);
    mark(node.epilogue.add);
  }
  RemoveNodes(graph, removed);
  // Constants that nobody reads any more are memory.
  for (size_t v = 0; v < graph.values.size(); ++v) {
    if (!read[v]) graph.values[v].constant = nullptr;
  }
}

}  // namespace rknnd::soft
