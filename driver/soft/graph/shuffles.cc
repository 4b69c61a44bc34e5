// Reshape (N, g, c, H, W), Transpose of g and c, Reshape back: ShuffleChannels.
// As one operator it leaves 8-bit pixels with their channels together.

#include <utility>
#include <vector>

#include "driver/soft/graph/passes.h"
#include "driver/soft/graph/quantized.h"
#include "driver/soft/graph/uses.h"

namespace rknnd::soft {

void FindShuffles(Graph& graph) {
  const Uses uses(graph);
  const auto maker = [&](ValueId value, const char* type) -> const Node* {
    if (value == kNoValue || uses.count(value) != 1 || uses.is_output(value)) {
      return nullptr;
    }
    const size_t n = uses.producer(value);
    if (n == Uses::kNoNode || !IsStandard(graph.nodes[n], type)) return nullptr;
    return &graph.nodes[n];
  };
  for (Node& last : graph.nodes) {
    if (!IsStandard(last, "Reshape") ||
        !IsEightBit(graph.value(last.outputs[0]).type)) {
      continue;
    }
    const Node* turn = maker(InputOf(last, 0), "Transpose");
    if (turn == nullptr) continue;
    const Node* first = maker(InputOf(*turn, 0), "Reshape");
    if (first == nullptr || first->inputs.empty() ||
        NodeView(graph, *turn).Ints("perm") !=
            std::vector<int64_t>{0, 2, 1, 3, 4}) {
      continue;
    }
    // Behind a foreign operator nothing has been inferred or checked.
    if (!HaveShapes(graph, first->inputs) ||
        !HaveShapes(graph, first->outputs)) {
      continue;
    }
    const Shape& before = *graph.value(first->inputs[0]).shape;
    const Shape& cut = *graph.value(first->outputs[0]).shape;
    if (before.size() != 4 || graph.value(last.outputs[0]).shape != before ||
        cut.size() != 5 || cut[0] != before[0] ||
        cut[1] * cut[2] != before[1] || cut[3] != before[2]) {
      continue;
    }
    Node shuffle;
    shuffle.name = turn->name;
    shuffle.type = shuffle.layer_type = "ShuffleChannels";
    shuffle.domain = "rknnd";
    shuffle.opset = 1;
    shuffle.inputs = {first->inputs[0]};
    shuffle.outputs = last.outputs;
    shuffle.attributes["groups"] = cut[1];
    last = std::move(shuffle);
  }
  RemoveDeadNodes(graph);
}

}  // namespace rknnd::soft
