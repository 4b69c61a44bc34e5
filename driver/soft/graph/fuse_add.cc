// Conv + Add -> ConvAdd: the residual sum happens while the convolution's
// result is still in registers.

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "driver/soft/graph/passes.h"
#include "driver/soft/graph/uses.h"

namespace rknnd::soft {
namespace {

// The node that can take the addition of `other` to its output `value`, or
// kNoNode.
size_t Taker(const Graph& graph, const Uses& uses,
             const OperatorTable& operators, const std::vector<bool>& removed,
             ValueId value, ValueId other, ValueId sum) {
  size_t n = uses.producer(value);
  if (n == Uses::kNoNode || removed[n] || uses.count(value) != 1 ||
      uses.is_output(value)) {
    return Uses::kNoNode;
  }
  const Node& node = graph.nodes[n];
  const Operator* op = operators.Find(node.domain, node.type);
  if (op == nullptr || !op->takes_add || node.epilogue.add != kNoValue ||
      node.epilogue.activation != Activation::kNone ||
      node.outputs.size() != 1) {
    return Uses::kNoNode;
  }
  const Value& out = graph.value(value);
  const Value& added = graph.value(other);
  const Value& result = graph.value(sum);
  if (out.type != DataType::kFloat32 || added.constant != nullptr ||
      !out.shape.has_value() || added.type != out.type ||
      added.shape != out.shape || result.shape != out.shape) {
    return Uses::kNoNode;
  }
  return n;
}

}  // namespace

void FuseAdd(Graph& graph, const OperatorTable& operators) {
  Uses uses(graph);
  std::vector<bool> removed(graph.nodes.size(), false);
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    Node& add = graph.nodes[n];
    if (!add.domain.empty() || add.type != "Add" || add.inputs.size() != 2 ||
        add.inputs[0] == kNoValue || add.inputs[1] == kNoValue ||
        add.inputs[0] == add.inputs[1] || add.outputs.size() != 1 ||
        add.epilogue.add != kNoValue ||
        add.epilogue.activation != Activation::kNone) {
      continue;
    }
    size_t a = Taker(graph, uses, operators, removed, add.inputs[0],
                     add.inputs[1], add.outputs[0]);
    size_t b = Taker(graph, uses, operators, removed, add.inputs[1],
                     add.inputs[0], add.outputs[0]);
    if (a == Uses::kNoNode && b == Uses::kNoNode) continue;
    // The later of the two: the other's result is there by then.
    bool take_b = a == Uses::kNoNode || (b != Uses::kNoNode && b > a);
    size_t taker = take_b ? b : a;
    Node fused = std::move(graph.nodes[taker]);
    fused.epilogue.add = add.inputs[take_b ? 0 : 1];
    fused.outputs[0] = add.outputs[0];
    fused.layer_type += "Add";
    // At the place of the sum, where both operands exist. Nobody else reads the
    // convolution.
    add = std::move(fused);
    removed[taker] = true;
  }
  RemoveNodes(graph, removed);
}

}  // namespace rknnd::soft
