// Nodes that hand on what they are given.

#include <algorithm>
#include <vector>

#include "driver/soft/graph/passes.h"
#include "driver/soft/graph/uses.h"

namespace rknnd::soft {
namespace {

// Whether input 2 of Dropout asks for training, or might.
bool MayTrain(const Graph& graph, const Node& node) {
  if (node.inputs.size() < 3 || node.inputs[2] == kNoValue) return false;
  const Constant* training = graph.value(node.inputs[2]).constant.get();
  return training == nullptr || training->data.empty() ||
         training->data[0] != std::byte{0};
}

bool HandsOn(const Graph& graph, const Uses& uses, const Node& node) {
  if (!node.domain.empty() || node.inputs.empty() || node.outputs.empty() ||
      node.inputs[0] == kNoValue || node.outputs[0] == kNoValue) {
    return false;
  }
  if (node.type == "Identity") return true;
  if (node.type == "Dropout") {
    bool mask_read = node.outputs.size() > 1 && node.outputs[1] != kNoValue &&
                     uses.count(node.outputs[1]) > 0;
    return !mask_read && !MayTrain(graph, node);
  }
  if (node.type == "Cast") {
    // float16 is float32 in here: such casts are none. An output that nothing
    // has inferred yet has no shape.
    const Value& in = graph.value(node.inputs[0]);
    const Value& out = graph.value(node.outputs[0]);
    return in.shape.has_value() && out.shape.has_value() && in.type == out.type;
  }
  if (node.type == "Slice") {
    // All of it, and not from its end.
    const Value& in = graph.value(node.inputs[0]);
    const Value& out = graph.value(node.outputs[0]);
    if (!in.shape.has_value() || in.shape != out.shape) return false;
    const NodeView view(graph, node);
    if (!view.has_input(4)) return true;
    const auto steps = view.ConstantInts(4);
    return steps.ok() && std::all_of(steps->begin(), steps->end(),
                                     [](int64_t step) { return step > 0; });
  }
  return false;
}

}  // namespace

void RemoveIdentities(Graph& graph) {
  Uses uses(graph);
  // Where each value is to be read from: chains end at their start, because
  // nodes are sorted.
  std::vector<ValueId> source(graph.values.size());
  for (size_t v = 0; v < source.size(); ++v) {
    source[v] = static_cast<ValueId>(v);
  }
  auto redirect = [&source](ValueId& value) {
    if (value != kNoValue) value = source[static_cast<size_t>(value)];
  };
  std::vector<bool> removed(graph.nodes.size(), false);
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    Node& node = graph.nodes[n];
    for (ValueId& input : node.inputs) redirect(input);
    redirect(node.epilogue.add);
    if (HandsOn(graph, uses, node)) {
      source[static_cast<size_t>(node.outputs[0])] = node.inputs[0];
      removed[n] = true;
    }
  }
  for (GraphPort& port : graph.outputs) redirect(port.value);
  RemoveNodes(graph, removed);
}

}  // namespace rknnd::soft
