// LpPool, GlobalLpPool and LpNormalization: sums of powers by poolings and
// reductions that there are.

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "driver/soft/kernels/checks.h"
#include "driver/soft/kernels/expansion.h"
#include "driver/soft/kernels/families.h"

namespace rknnd::soft {
namespace {

// |x|^p, and the root of it.
ValueId ToPower(Expansion& to, ValueId x, int64_t p) {
  if (p == 2) return to.Add("Mul", {x, x});
  const ValueId magnitude = to.Add("Abs", {x});
  if (p == 1) return magnitude;
  return to.Add("Pow", {magnitude, to.Float(static_cast<float>(p))});
}
ValueId RootOf(Expansion& to, ValueId x, int64_t p) {
  if (p == 1) return x;
  if (p == 2) return to.Add("Sqrt", {x});
  return to.Add("Pow", {x, to.Float(1.0F / static_cast<float>(p))});
}

absl::StatusOr<int64_t> PowerOf(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {1, 1}));
  RKNND_RETURN_IF_ERROR(CheckFloat(node, 0));
  // Version 1 has a float.
  const float number = node.Float("p", 2.0F);
  if (!(number >= 1.0F && number <= 1000.0F) || number != std::floor(number)) {
    return node.Error(absl::StrCat("p is ", number));
  }
  const int64_t p = node.Int("p", static_cast<int64_t>(number));
  if (p < 1 || p > 1000) return node.Error(absl::StrCat("p is ", p));
  return p;
}

absl::Status ExpandLpPool(const NodeView& node, Expansion& to) {
  RKNND_ASSIGN_OR_RETURN(const int64_t p, PowerOf(node));
  const std::vector<int64_t> kernel = node.Ints("kernel_shape");
  double window = 1.0;
  for (const int64_t side : kernel) window *= static_cast<double>(side);
  if (kernel.empty() || !(window >= 1.0 && window <= 1e9)) {
    return node.Error("its kernel_shape is missing or out of range");
  }
  const std::vector<int64_t> dilations = node.Ints("dilations");
  if (node.Int("ceil_mode", 0) != 0 ||
      std::any_of(dilations.begin(), dilations.end(),
                  [](int64_t dilation) { return dilation != 1; })) {
    return node.Error("ceil_mode and dilations are not supported");
  }
  // The mean over all of the window, its padding too, times its size.
  Expansion::Attributes attributes = node.node().attributes;
  attributes.erase("p");
  attributes.erase("ceil_mode");
  attributes.erase("dilations");
  attributes["count_include_pad"] = int64_t{1};
  const ValueId mean = to.Add(
      "AveragePool", {ToPower(to, node.node().inputs[0], p)}, attributes);
  const ValueId sum =
      to.Add("Mul", {mean, to.Float(static_cast<float>(window))});
  to.Finish(0, RootOf(to, sum, p));
  return absl::OkStatus();
}

absl::Status ExpandGlobalLpPool(const NodeView& node, Expansion& to) {
  RKNND_ASSIGN_OR_RETURN(const int64_t p, PowerOf(node));
  std::vector<int64_t> axes;
  for (size_t d = 2; d < node.shape(0).size(); ++d) {
    axes.push_back(static_cast<int64_t>(d));
  }
  if (axes.empty()) {
    return node.Error(absl::StrCat("its input is ", ShapeText(node.shape(0))));
  }
  const ValueId sum = to.Add(
      "ReduceSum", {ToPower(to, node.node().inputs[0], p), to.Ints(axes)});
  to.Finish(0, RootOf(to, sum, p));
  return absl::OkStatus();
}

absl::Status ExpandLpNormalization(const NodeView& node, Expansion& to) {
  RKNND_ASSIGN_OR_RETURN(const int64_t p, PowerOf(node));
  if (p > 2) return node.Error(absl::StrCat("p is ", p, ", not 1 or 2"));
  RKNND_ASSIGN_OR_RETURN(
      const size_t axis,
      CheckAxis(node, node.Int("axis", -1), node.shape(0).size()));
  const ValueId x = node.node().inputs[0];
  const ValueId norm =
      to.Add(p == 1 ? "ReduceL1" : "ReduceL2", {x},
             {{"axes", std::vector{static_cast<int64_t>(axis)}}});
  to.Finish(0, to.Add("Div", {x, norm}));
  return absl::OkStatus();
}

}  // namespace

void RegisterLpNorms(OperatorTable& table) {
  table.Add({.type = "LpPool", .expand = ExpandLpPool});
  table.Add({.type = "GlobalLpPool", .expand = ExpandGlobalLpPool});
  table.Add({.type = "LpNormalization", .expand = ExpandLpNormalization});
}

}  // namespace rknnd::soft
