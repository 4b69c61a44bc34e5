#include "driver/soft/plan/placement.h"

#include <cstdint>

namespace rknnd::soft {
namespace {

int64_t Elements(const Graph& graph, ValueId id) {
  int64_t count = 1;
  for (int64_t dim : *graph.value(id).shape) count *= dim;
  return count;
}

bool MayBlock(const Graph& graph, const Node& node, const Operator& op,
              size_t i, int block) {
  if (op.may_block == nullptr || block == 1) return false;
  ValueId id = i < node.inputs.size() ? node.inputs[i] : node.outputs[0];
  if (id == kNoValue) return false;
  const Value& value = graph.value(id);
  // A block needs an axis of channels.
  if (!value.shape.has_value() || value.shape->size() < 2) return false;
  return op.may_block(NodeView(graph, node), i, block);
}

// An elementwise node goes where most of what it reads lies already.
bool FollowsBlocked(const Graph& graph, const Node& node, const Operator& op,
                    int block, const std::vector<Placement>& home) {
  int64_t blocked = 0;
  int64_t dense = 0;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    ValueId id = node.inputs[i];
    if (id == kNoValue || graph.value(id).constant != nullptr ||
        !MayBlock(graph, node, op, i, block)) {
      continue;
    }
    bool is_blocked = home[static_cast<size_t>(id)].block > 1;
    (is_blocked ? blocked : dense) += Elements(graph, id);
  }
  return blocked > dense;
}

}  // namespace

NodePlacement PlaceNode(const Graph& graph, const Node& node,
                        const Operator& op, int block,
                        const std::vector<Placement>& home) {
  NodePlacement placement;
  placement.inputs.resize(node.inputs.size());
  bool output = MayBlock(graph, node, op, node.inputs.size(), block);
  bool wanted = true;
  switch (op.placement) {
    case PlacementRule::kDense:
      wanted = output = false;
      break;
    case PlacementRule::kElementwise:
      wanted = output = output && FollowsBlocked(graph, node, op, block, home);
      break;
    case PlacementRule::kChannelwise:
      break;
  }
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (wanted && node.inputs[i] != kNoValue &&
        Elements(graph, node.inputs[i]) > 1 &&
        MayBlock(graph, node, op, i, block)) {
      placement.inputs[i].block = block;
    }
  }
  if (output) placement.output.block = block;
  if (node.epilogue.add != kNoValue) {
    placement.inputs.push_back(placement.output);
  }
  return placement;
}

}  // namespace rknnd::soft
