// Nodes that make a number of rows that only the data tells.

#include "absl/strings/str_cat.h"
#include "driver/soft/graph/passes.h"
#include "driver/soft/graph/quantized.h"
#include "driver/soft/graph/uses.h"

namespace rknnd::soft {

absl::Status CheckOpenEnds(const Graph& graph) {
  const Uses uses(graph);
  for (const Node& node : graph.nodes) {
    for (const ValueId input : node.inputs) {
      if (input == kNoValue || uses.producer(input) == Uses::kNoNode) continue;
      const Node& maker = graph.nodes[uses.producer(input)];
      // A conversion of all rows is no harm.
      if (!IsStandard(maker, "NonMaxSuppression") || IsStandard(node, "Cast")) {
        continue;
      }
      return absl::UnimplementedError(absl::StrCat(
          "operator 'NonMaxSuppression' of node '", maker.name,
          "': how many boxes it finds depends on the data, and node '",
          node.name, "' (", node.type,
          ") reads them; end the model with it, or before it"));
    }
  }
  return absl::OkStatus();
}

}  // namespace rknnd::soft
