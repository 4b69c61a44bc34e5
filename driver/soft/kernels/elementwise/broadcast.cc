// See broadcast.h.

#include "driver/soft/kernels/elementwise/broadcast.h"

#include "absl/strings/str_cat.h"

namespace rknnd::soft {

absl::StatusOr<OperandShapes> BroadcastOperands(const NodeView& node) {
  OperandShapes shapes{node.shape(0), node.shape(1), {}};
  if (node.node().opset < 7 && node.Int("broadcast", 0) != 0 &&
      node.Has("axis")) {
    const size_t rank = shapes.a.size();
    RKNND_ASSIGN_OR_RETURN(const size_t axis,
                           CheckAxis(node, node.Int("axis", 0), rank));
    if (axis + shapes.b.size() > rank) {
      return node.Error(absl::StrCat("shapes ", ShapeText(shapes.a), " and ",
                                     ShapeText(shapes.b),
                                     " do not broadcast from axis ", axis));
    }
    shapes.b.resize(rank - axis, 1);
  }
  RKNND_ASSIGN_OR_RETURN(shapes.output,
                         BroadcastShape(node, shapes.a, shapes.b));
  return shapes;
}

bool MayBlockBroadcast(const NodeView& node, size_t, int) {
  size_t rank = 0;
  int64_t channels = 0;
  for (size_t i = 0; i < node.input_count(); ++i) {
    if (!node.has_input(i) || node.type(i) != DataType::kFloat32) return false;
    const Shape& shape = node.shape(i);
    if (ProductOf(shape, 0, shape.size()) == 1) continue;
    if (shape.size() < 3 || shape.size() > 5) return false;
    if (rank != 0 && (shape.size() != rank || shape[1] != channels)) {
      return false;
    }
    rank = shape.size();
    channels = shape[1];
  }
  return rank != 0;
}

absl::StatusOr<StridedLoop<3>> LoopOver(const KernelRequest& request) {
  RKNND_ASSIGN_OR_RETURN(OperandShapes shapes, BroadcastOperands(request.node));
  const TensorSpec& output = request.outputs[0];
  const auto physical = [](const TensorSpec& like, const Shape& shape) {
    return PhysicalShape({like.type, shape, like.placement});
  };
  const Shape to = physical(output, shapes.output);
  const Shape a = physical(request.inputs[0], shapes.a);
  const Shape b = physical(request.inputs[1], shapes.b);
  if (a.size() > to.size() || b.size() > to.size()) {
    return request.node.Error("its inputs are placed unlike its output");
  }
  return StridedLoop<3>(
      to, {BroadcastStrides(a, to), BroadcastStrides(b, to), DenseStrides(to)});
}

std::optional<ChannelGate> FindChannelGate(const KernelRequest& request) {
  constexpr size_t kFirstSide = 2;
  const TensorSpec& output = request.outputs[0];
  const Shape& shape = output.shape;
  const int64_t block = output.placement.block;
  if ((block != 8 && block != 16) || shape.size() <= kFirstSide) {
    return std::nullopt;
  }
  const auto blocked = [&](const TensorSpec& input) {
    return input.placement.block == block &&
           input.shape.size() == shape.size() && input.shape[1] == shape[1];
  };
  for (const size_t i : {size_t{1}, size_t{0}}) {
    const TensorSpec& gate = request.inputs[i];
    const TensorSpec& other = request.inputs[1 - i];
    if (!blocked(gate) || !blocked(other) || other.shape != shape ||
        (gate.shape[0] != 1 && gate.shape[0] != shape[0]) ||
        ProductOf(gate.shape, kFirstSide, shape.size()) != 1) {
      continue;
    }
    const int64_t blocks = (shape[1] + block - 1) / block;
    return ChannelGate{i, block, gate.shape[0] * blocks,
                       ProductOf(shape, kFirstSide, shape.size())};
  }
  return std::nullopt;
}

}  // namespace rknnd::soft
