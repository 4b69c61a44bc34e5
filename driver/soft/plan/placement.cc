#include "driver/soft/plan/placement.h"

#include <cstdint>
#include <optional>

namespace rknnd::soft {
namespace {

// A pixel has no more channels than this.
constexpr int64_t kMaxLast = 1 << 24;

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

// By axes alone: 8-bit tensors are placed, floats beside them follow.
bool MayLieLast(const Graph& graph, const Node& node, const Operator& op,
                size_t i) {
  ValueId id = i < node.inputs.size() ? node.inputs[i] : node.outputs[0];
  if (id == kNoValue) return false;
  const std::optional<Shape>& shape = graph.value(id).shape;
  return shape.has_value() && shape->size() >= 3 && shape->size() <= 5 &&
         (*shape)[1] >= 1 && (*shape)[1] <= kMaxLast &&
         op.may_channels_last(NodeView(graph, node), i);
}

bool LiesLast(const Graph& graph, ValueId id,
              const std::vector<Placement>& home) {
  const Shape& shape = *graph.value(id).shape;
  return TensorSpec{DataType::kUint8, shape, home[static_cast<size_t>(id)]}
      .channels_last();
}

bool FollowsLast(const Graph& graph, const Node& node, const Operator& op,
                 const std::vector<Placement>& home) {
  if (op.may_channels_last == nullptr ||
      !MayLieLast(graph, node, op, node.inputs.size())) {
    return false;
  }
  if (op.placement == PlacementRule::kChannelwise) return true;
  int64_t last = 0;
  int64_t other = 0;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    ValueId id = node.inputs[i];
    if (id == kNoValue || Elements(graph, id) <= 1) continue;
    const bool is_constant = graph.value(id).constant != nullptr;
    if (!MayLieLast(graph, node, op, i)) {
      if (is_constant) continue;
      return false;
    }
    if (is_constant) continue;
    (LiesLast(graph, id, home) ? last : other) += Elements(graph, id);
  }
  return last > other;
}

NodePlacement PlaceLast(const Graph& graph, const Node& node,
                        const Operator& op) {
  NodePlacement placement;
  placement.inputs.resize(node.inputs.size());
  const auto channels = [&graph](ValueId id) {
    return Placement{static_cast<int>((*graph.value(id).shape)[1])};
  };
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] != kNoValue && MayLieLast(graph, node, op, i)) {
      placement.inputs[i] = channels(node.inputs[i]);
    }
  }
  placement.output = channels(node.outputs[0]);
  return placement;
}

}  // namespace

NodePlacement PlaceNode(const Graph& graph, const Node& node,
                        const Operator& op, int block,
                        const std::vector<Placement>& home) {
  if (node.epilogue.add == kNoValue && FollowsLast(graph, node, op, home)) {
    return PlaceLast(graph, node, op);
  }
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
