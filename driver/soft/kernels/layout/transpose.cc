// Transpose.

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "driver/soft/kernels/checks.h"
#include "driver/soft/kernels/families.h"
#include "driver/soft/kernels/loops.h"
#include "driver/soft/tiles/turn_floats.h"

namespace rknnd::soft {
namespace {

absl::StatusOr<std::vector<size_t>> Permutation(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {1, 1}));
  const size_t rank = node.shape(0).size();
  std::vector<int64_t> perm = node.Ints("perm");
  if (!node.Has("perm")) {
    for (size_t d = rank; d > 0; --d) {
      perm.push_back(static_cast<int64_t>(d) - 1);
    }
  }
  if (perm.size() != rank) {
    return node.Error(absl::StrCat("perm has ", perm.size(),
                                   " entries, the input ", rank, " axes"));
  }
  return CheckAxes(node, perm, rank);
}

Inference InferTranspose(const NodeView& node) {
  RKNND_ASSIGN_OR_RETURN(const std::vector<size_t> perm, Permutation(node));
  Shape shape;
  for (const size_t axis : perm) shape.push_back(node.shape(0)[axis]);
  return InferOne(node, node.type(0), shape);
}

// Matrices one behind the other, each turned.
struct Matrices {
  int64_t count = 1, rows = 1, columns = 1;  // as they come
};
std::optional<Matrices> AsMatrices(const Shape& to, const Shape& strides) {
  Shape sizes, steps;
  for (size_t d = 0; d < to.size(); ++d) {
    if (to[d] == 1) continue;
    if (!sizes.empty() && steps.back() == to[d] * strides[d]) {
      sizes.back() *= to[d];
      steps.back() = strides[d];
    } else {
      sizes.push_back(to[d]);
      steps.push_back(strides[d]);
    }
  }
  if (sizes.size() < 2 || sizes.size() > 3) return std::nullopt;
  const size_t last = sizes.size() - 1;
  const Matrices found = {last == 2 ? sizes[0] : 1, sizes[last],
                          sizes[last - 1]};
  const bool turns = steps[last - 1] == 1 && steps[last] == found.columns;
  const bool follow = last == 1 || steps[0] == found.rows * found.columns;
  if (!turns || !follow) return std::nullopt;
  return found;
}

// Columns that are cut and turned at a time: one cache line, and four.
constexpr int64_t kLine = 16, kStrip = 64;
int64_t LinesOf(const Matrices& all) {
  return (all.columns + kLine - 1) / kLine;
}

// Some lines of columns of all the matrices.
void Turn(const Matrices& all, Range lines, const float* from, float* to) {
  const int64_t in_each = LinesOf(all);
  for (int64_t line = lines.begin; line < lines.end;) {
    const int64_t matrix = line / in_each, first = line % in_each * kLine;
    const int64_t at = matrix * all.rows * all.columns;
    const int64_t end = std::min((matrix + 1) * in_each, lines.end);
    const int64_t columns =
        std::min({kStrip, (end - line) * kLine, all.columns - first});
    TurnFloats(from + at + first, all.columns, all.rows, columns,
               to + at + first * all.rows, all.rows);
    line += (columns + kLine - 1) / kLine;
  }
}

MadeKernel MakeTranspose(const KernelRequest& request) {
  RKNND_ASSIGN_OR_RETURN(const std::vector<size_t> perm,
                         Permutation(request.node));
  const Shape from = DenseStrides(request.inputs[0].shape);
  Shape strides;
  for (const size_t axis : perm) strides.push_back(from[axis]);
  const Shape& to = request.outputs[0].shape;
  const std::optional<Matrices> matrices = AsMatrices(to, strides);
  if (matrices.has_value() && request.outputs[0].type == DataType::kFloat32) {
    const int64_t lines = matrices->count * LinesOf(*matrices);
    return MakeSharedKernel(
        WorkOf(request), lines,
        [all = *matrices, lines](Inputs inputs, Outputs outputs, Part part) {
          Turn(all, ShareOf(part, lines), As<float>(inputs[0]),
               As<float>(outputs[0]));
        });
  }
  const StridedCopy copy(to, strides, DenseStrides(to),
                         SizeOf(request.outputs[0].type));
  return MakeSharedKernel(
      request, [copy](Inputs inputs, Outputs outputs, Part part) {
        copy.Run(inputs[0], outputs[0],
                 ShareOf(part, copy.elements(), kElementUnit));
      });
}

}  // namespace

void RegisterTranspose(OperatorTable& table) {
  table.Add(
      {.type = "Transpose", .infer = InferTranspose, .make = MakeTranspose});
}

}  // namespace rknnd::soft
