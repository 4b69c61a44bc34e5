// Slice: attributes up to opset 9, inputs from then on; steps of either sign.

#include <algorithm>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "driver/soft/kernels/checks.h"
#include "driver/soft/kernels/families.h"
#include "driver/soft/kernels/loops.h"

namespace rknnd::soft {
namespace {

struct Range {
  int64_t start = 0, step = 1, count = 0;
};

absl::StatusOr<std::vector<Range>> Parse(const NodeView& node) {
  const Shape& shape = node.shape(0);
  std::vector<int64_t> starts, ends, axes, steps;
  if (node.node().opset >= 10) {
    RKNND_RETURN_IF_ERROR(CheckArity(node, {3, 5}));
    RKNND_ASSIGN_OR_RETURN(starts, node.ConstantInts(1));
    RKNND_ASSIGN_OR_RETURN(ends, node.ConstantInts(2));
    if (node.has_input(3)) {
      RKNND_ASSIGN_OR_RETURN(axes, node.ConstantInts(3));
    }
    if (node.has_input(4)) {
      RKNND_ASSIGN_OR_RETURN(steps, node.ConstantInts(4));
    }
  } else {
    RKNND_RETURN_IF_ERROR(CheckArity(node, {1, 1}));
    starts = node.Ints("starts");
    ends = node.Ints("ends");
    axes = node.Ints("axes");
  }
  if (starts.size() > shape.size()) {
    return node.Error("cuts more axes than there are");
  }
  const bool all_axes = axes.empty();
  for (size_t i = 0; i < starts.size() && all_axes; ++i) {
    axes.push_back(static_cast<int64_t>(i));
  }
  if (steps.empty()) steps.assign(starts.size(), 1);
  if (ends.size() != starts.size() || axes.size() != starts.size() ||
      steps.size() != starts.size()) {
    return node.Error(absl::StrCat("has ", starts.size(), " starts, ",
                                   ends.size(), " ends, ", axes.size(),
                                   " axes and ", steps.size(), " steps"));
  }
  RKNND_ASSIGN_OR_RETURN(const std::vector<size_t> at,
                         CheckAxes(node, axes, shape.size()));
  std::vector<Range> ranges(shape.size());
  for (size_t d = 0; d < shape.size(); ++d) ranges[d].count = shape[d];
  for (size_t i = 0; i < at.size(); ++i) {
    const int64_t size = shape[at[i]];
    Range& range = ranges[at[i]];
    // INT64_MIN is a customary "to the very beginning", going backwards.
    const int64_t step =
        std::max(steps[i], -std::numeric_limits<int64_t>::max());
    if (step == 0) return node.Error("a step is 0");
    const auto bounded = [&](int64_t value, int64_t low, int64_t high) {
      if (value < 0) value += size;
      return std::clamp(value, low, high);
    };
    range.step = step;
    if (step > 0) {
      range.start = bounded(starts[i], 0, size);
      const int64_t end = bounded(ends[i], 0, size);
      range.count = end > range.start ? (end - range.start - 1) / step + 1 : 0;
    } else {
      range.start = bounded(starts[i], -1, size - 1);
      const int64_t end = bounded(ends[i], -1, size - 1);
      range.count = range.start > end ? (range.start - end - 1) / -step + 1 : 0;
    }
    // A single element needs no step, which may be huge.
    if (range.count <= 1) range.step = 1;
  }
  return ranges;
}

Inference InferSlice(const NodeView& node) {
  if (!node.has_input(0)) return node.Error("input 0 is missing");
  RKNND_ASSIGN_OR_RETURN(const std::vector<Range> ranges, Parse(node));
  Shape shape;
  for (const Range& range : ranges) shape.push_back(range.count);
  return InferOne(node, node.type(0), shape);
}

MadeKernel MakeSlice(const KernelRequest& request) {
  RKNND_ASSIGN_OR_RETURN(const std::vector<Range> ranges, Parse(request.node));
  if (request.outputs[0].elements() == 0) {
    return MakeKernel([](Inputs, Outputs, std::byte*) {});
  }
  const size_t size = SizeOf(request.outputs[0].type);
  const Shape dense = DenseStrides(request.inputs[0].shape);
  const Shape& to = request.outputs[0].shape;
  Shape from = dense;
  int64_t offset = 0;
  for (size_t d = 0; d < ranges.size(); ++d) {
    offset += ranges[d].start * dense[d];
    from[d] = ranges[d].step * dense[d];
  }
  const StridedCopy copy(to, from, DenseStrides(to), size);
  const int64_t skip = offset * static_cast<int64_t>(size);
  // A part of it is read only.
  const auto work = static_cast<int64_t>(2 * request.outputs[0].bytes());
  return MakeSharedKernel(
      {.bytes = work}, copy.elements(),
      [copy, skip](Inputs inputs, Outputs outputs, Part part) {
        if (outputs[0] == inputs[0] + skip) return;  // a run, left where it is
        copy.Run(inputs[0] + skip, outputs[0],
                 ShareOf(part, copy.elements(), kElementUnit));
      });
}

}  // namespace

void RegisterSlice(OperatorTable& table) {
  table.Add({.type = "Slice", .infer = InferSlice, .make = MakeSlice});
}

}  // namespace rknnd::soft
