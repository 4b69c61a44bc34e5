#include "driver/soft/plan/parts.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "driver/soft/kernels/loops.h"

namespace rknnd::soft {
namespace {

bool IsPlain(const NodeView& node, std::string_view type) {
  return node.node().domain.empty() && node.node().type == type &&
         node.node().epilogue.activation == Activation::kNone &&
         node.node().epilogue.add == kNoValue;
}

// One behind the other along `axis`, when no axis before it has two indices.
std::vector<PartPlace> InOrder(std::span<const TensorSpec> parts,
                               int64_t axis) {
  if (parts.empty()) return {};
  const auto rank = static_cast<int64_t>(parts[0].shape.size());
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) return {};
  std::vector<PartPlace> places;
  uint64_t offset = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    // With the channels last, they are the last axis.
    if (axis == 1 && parts[i].channels_last()) return {};
    if (axis > 1 && parts[i].placement.block > 1) return {};
    const Shape shape = PhysicalShape(parts[i]);
    for (int64_t d = 0; d < axis; ++d) {
      if (shape[static_cast<size_t>(d)] != 1) return {};
    }
    places.push_back({i, offset});
    offset += parts[i].bytes();
  }
  return places;
}

// Where a Slice starts that takes all of the later axes, one index of the
// earlier ones and a run of one between them.
std::optional<uint64_t> SliceOffset(const NodeView& node,
                                    const TensorSpec& from,
                                    const TensorSpec& to) {
  if (from.placement.block > 1 || to.placement.block > 1) return std::nullopt;
  std::vector<int64_t> starts = node.Ints("starts");
  std::vector<int64_t> axes = node.Ints("axes");
  std::vector<int64_t> steps;
  if (node.has_input(1)) {
    const auto given = node.ConstantInts(1);
    if (!given.ok()) return std::nullopt;
    starts = *given;
  }
  if (node.has_input(3)) {
    const auto given = node.ConstantInts(3);
    if (!given.ok()) return std::nullopt;
    axes = *given;
  }
  if (node.has_input(4)) {
    const auto given = node.ConstantInts(4);
    if (!given.ok()) return std::nullopt;
    steps = *given;
  }
  const auto rank = static_cast<int64_t>(from.shape.size());
  const Shape strides = DenseStrides(from.shape);
  int64_t offset = 0;
  for (size_t i = 0; i < starts.size(); ++i) {
    int64_t axis = i < axes.size() ? axes[i] : static_cast<int64_t>(i);
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) return std::nullopt;
    const int64_t size = from.shape[static_cast<size_t>(axis)];
    if (i < steps.size() && steps[i] != 1) return std::nullopt;
    int64_t start = starts[i] < 0 ? starts[i] + size : starts[i];
    start = std::clamp<int64_t>(start, 0, size);
    offset += start * strides[static_cast<size_t>(axis)];
  }
  bool whole = true;  // of the axes behind this one
  for (int64_t d = rank - 1; d >= 0; --d) {
    const auto at = static_cast<size_t>(d);
    if (!whole && to.shape[at] != 1) return std::nullopt;
    whole = whole && to.shape[at] == from.shape[at];
  }
  return static_cast<uint64_t>(offset) * SizeOf(from.type);
}

}  // namespace

std::vector<PartPlace> PartsOfOutput(const NodeView& node,
                                     std::span<const TensorSpec> inputs) {
  if (!IsPlain(node, "Concat")) return {};
  return InOrder(inputs, node.Int("axis", 1));
}

std::vector<PartPlace> PartsOfInput(const NodeView& node,
                                    std::span<const TensorSpec> inputs,
                                    std::span<const TensorSpec> outputs) {
  if (IsPlain(node, "Split")) return InOrder(outputs, node.Int("axis", 0));
  if (!IsPlain(node, "Slice") || outputs.size() != 1) return {};
  const std::optional<uint64_t> offset =
      SliceOffset(node, inputs[0], outputs[0]);
  if (!offset.has_value()) return {};
  return {{0, *offset}};
}

}  // namespace rknnd::soft
