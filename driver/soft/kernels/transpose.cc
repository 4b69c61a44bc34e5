// Transpose.

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "driver/soft/kernels/checks.h"
#include "driver/soft/kernels/families.h"
#include "driver/soft/kernels/loops.h"

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

MadeKernel MakeTranspose(const KernelRequest& request) {
  RKNND_ASSIGN_OR_RETURN(const std::vector<size_t> perm,
                         Permutation(request.node));
  const Shape from = DenseStrides(request.inputs[0].shape);
  Shape strides;
  for (const size_t axis : perm) strides.push_back(from[axis]);
  const Shape& to = request.outputs[0].shape;
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
