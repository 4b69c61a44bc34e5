// Elements repeated or moved without arithmetic: Expand, Tile, DepthToSpace,
// SpaceToDepth.

#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "driver/soft/kernels/checks.h"
#include "driver/soft/kernels/families.h"
#include "driver/soft/kernels/loops.h"

namespace rknnd::soft {
namespace {

Inference InferExpand(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {2, 2}));
  RKNND_ASSIGN_OR_RETURN(const std::vector<int64_t> wanted,
                         node.ConstantInts(1));
  RKNND_ASSIGN_OR_RETURN(
      const Shape shape,
      BroadcastShape(node, node.shape(0), Shape(wanted.begin(), wanted.end())));
  return InferOne(node, node.type(0), shape);
}

// A copy that reads the input through `strides`, over `dims`.
MadeKernel MakeCopy(const KernelRequest& request, const Shape& dims,
                    const Shape& strides) {
  const StridedCopy copy(dims, strides, DenseStrides(dims),
                         SizeOf(request.outputs[0].type));
  return MakeSharedKernel(
      request, [copy](Inputs inputs, Outputs outputs, Part part) {
        copy.Run(inputs[0], outputs[0],
                 ShareOf(part, copy.elements(), kElementUnit));
      });
}

MadeKernel MakeExpand(const KernelRequest& request) {
  const Shape& to = request.outputs[0].shape;
  return MakeCopy(request, to, BroadcastStrides(request.inputs[0].shape, to));
}

Inference InferTile(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {2, 2}));
  RKNND_ASSIGN_OR_RETURN(const std::vector<int64_t> repeats,
                         node.ConstantInts(1));
  Shape shape = node.shape(0);
  if (repeats.size() != shape.size()) {
    return node.Error(absl::StrCat(
        "has ", repeats.size(), " repeats for the axes of ", ShapeText(shape)));
  }
  for (size_t d = 0; d < shape.size(); ++d) {
    if (repeats[d] < 0 ||
        __builtin_mul_overflow(shape[d], repeats[d], &shape[d])) {
      return node.Error(
          absl::StrCat("repeats axis ", d, " ", repeats[d], " times"));
    }
  }
  return InferOne(node, node.type(0), shape);
}

// Each axis becomes two: the repetition, along which the input stands still,
// and the axis itself.
MadeKernel MakeTile(const KernelRequest& request) {
  const Shape& from = request.inputs[0].shape;
  const Shape& to = request.outputs[0].shape;
  const Shape dense = DenseStrides(from);
  Shape dims, strides;
  for (size_t d = 0; d < from.size(); ++d) {
    dims.push_back(from[d] == 0 ? 0 : to[d] / from[d]);
    dims.push_back(from[d]);
    strides.push_back(0);
    strides.push_back(dense[d]);
  }
  return MakeCopy(request, dims, strides);
}

absl::StatusOr<int64_t> BlockSize(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {1, 1}));
  const Shape& shape = node.shape(0);
  const int64_t size = node.Int("blocksize", 0);
  // Its square must not overflow either.
  if (shape.size() != 4 || size < 1 ||
      size > std::numeric_limits<int32_t>::max()) {
    return node.Error(
        absl::StrCat("blocksize ", size, " of a tensor ", ShapeText(shape)));
  }
  return size;
}

Inference InferDepthToSpace(const NodeView& node) {
  RKNND_ASSIGN_OR_RETURN(const int64_t size, BlockSize(node));
  const Shape& from = node.shape(0);
  const std::string mode = node.String("mode", "DCR");
  if (from[1] % (size * size) != 0 || (mode != "DCR" && mode != "CRD")) {
    return node.Error(absl::StrCat("blocksize ", size, " of a tensor ",
                                   ShapeText(from), ", mode '", mode, "'"));
  }
  Shape to = {from[0], from[1] / (size * size), 0, 0};
  if (__builtin_mul_overflow(from[2], size, &to[2]) ||
      __builtin_mul_overflow(from[3], size, &to[3])) {
    return node.Error("its output is too large");
  }
  return InferOne(node, node.type(0), to);
}

MadeKernel MakeDepthToSpace(const KernelRequest& request) {
  RKNND_ASSIGN_OR_RETURN(const int64_t size, BlockSize(request.node));
  const Shape& from = request.inputs[0].shape;
  const Shape& to = request.outputs[0].shape;
  const int64_t plane = from[2] * from[3];
  const bool depth_first = request.node.String("mode", "DCR") == "DCR";
  // Output axes: n, channel, row, row in block, column, column in block.
  const int64_t channel = depth_first ? plane : size * size * plane;
  const int64_t block = depth_first ? to[1] * plane : plane;
  return MakeCopy(request, {from[0], to[1], from[2], size, from[3], size},
                  {from[1] * plane, channel, from[3], size * block, 1, block});
}

Inference InferSpaceToDepth(const NodeView& node) {
  RKNND_ASSIGN_OR_RETURN(const int64_t size, BlockSize(node));
  const Shape& from = node.shape(0);
  if (from[2] % size != 0 || from[3] % size != 0) {
    return node.Error(
        absl::StrCat("blocksize ", size, " of a tensor ", ShapeText(from)));
  }
  Shape to = {from[0], 0, from[2] / size, from[3] / size};
  if (__builtin_mul_overflow(from[1], size * size, &to[1])) {
    return node.Error("its output is too large");
  }
  return InferOne(node, node.type(0), to);
}

MadeKernel MakeSpaceToDepth(const KernelRequest& request) {
  RKNND_ASSIGN_OR_RETURN(const int64_t size, BlockSize(request.node));
  const Shape& from = request.inputs[0].shape;
  const Shape& to = request.outputs[0].shape;
  const int64_t plane = from[2] * from[3];
  // Output axes: n, row in block, column in block, channel, row, column.
  return MakeCopy(request, {from[0], size, size, from[1], to[2], to[3]},
                  {from[1] * plane, from[3], 1, plane, size * from[3], size});
}

}  // namespace

void RegisterTile(OperatorTable& table) {
  table.Add({.type = "Expand", .infer = InferExpand, .make = MakeExpand});
  table.Add({.type = "Tile", .infer = InferTile, .make = MakeTile});
  table.Add({.type = "DepthToSpace",
             .infer = InferDepthToSpace,
             .make = MakeDepthToSpace});
  table.Add({.type = "SpaceToDepth",
             .infer = InferSpaceToDepth,
             .make = MakeSpaceToDepth});
}

}  // namespace rknnd::soft
