// GroupNormalization: InstanceNormalization with groups for channels, and scale
// and bias: of each group up to opset 20, of each channel from then on.

#include "absl/strings/str_cat.h"
#include "driver/soft/kernels/checks.h"
#include "driver/soft/kernels/expansion.h"
#include "driver/soft/kernels/families.h"

namespace rknnd::soft {
namespace {

absl::Status ExpandGroupNormalization(const NodeView& node, Expansion& to) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {3, 3}));
  for (size_t i = 0; i < 3; ++i) RKNND_RETURN_IF_ERROR(CheckFloat(node, i));
  const Shape shape = node.shape(0);
  const int64_t groups = node.Int("num_groups", 0);
  if (shape.size() < 2 || groups < 1 || shape[1] % groups != 0) {
    return node.Error(
        absl::StrCat(groups, " groups of a tensor ", ShapeText(shape)));
  }
  const bool by_group = node.node().opset < 21;
  for (const size_t i : {size_t{1}, size_t{2}}) {
    if (node.shape(i) != Shape{by_group ? groups : shape[1]}) {
      return node.Error(absl::StrCat("input ", i, " is ",
                                     ShapeText(node.shape(i)), ", it must be ",
                                     by_group ? groups : shape[1]));
    }
  }
  const std::vector<ValueId> inputs = node.node().inputs;
  const ValueId grouped = to.Add(
      "Reshape",
      {inputs[0],
       to.Ints({shape[0], groups, ProductOf(shape, 1, shape.size()) / groups})},
      {{"allowzero", int64_t{1}}});
  const Expansion::Attributes epsilon = {
      {"epsilon", node.Float("epsilon", 1e-5F)}};
  const auto count = static_cast<size_t>(groups);
  ValueId normal =
      by_group ? to.Add("InstanceNormalization",
                        {grouped, inputs[1], inputs[2]}, epsilon)
               : to.Add("InstanceNormalization",
                        {grouped, to.Floats({groups}, std::vector(count, 1.0F)),
                         to.Floats({groups}, std::vector(count, 0.0F))},
                        epsilon);
  normal = to.Add("Reshape", {normal, to.Ints({shape.begin(), shape.end()})},
                  {{"allowzero", int64_t{1}}});
  if (!by_group) {
    std::vector<int64_t> beside(shape.size() - 1, 1);
    beside[0] = shape[1];
    for (const auto& [type, i] : {std::pair("Mul", 1), std::pair("Add", 2)}) {
      const ValueId each =
          to.Add("Reshape", {inputs[static_cast<size_t>(i)], to.Ints(beside)});
      normal = to.Add(type, {normal, each});
    }
  }
  to.Finish(0, normal);
  return absl::OkStatus();
}

}  // namespace

void RegisterGroupNormalization(OperatorTable& table) {
  table.Add({.type = "GroupNormalization", .expand = ExpandGroupNormalization});
}

}  // namespace rknnd::soft
