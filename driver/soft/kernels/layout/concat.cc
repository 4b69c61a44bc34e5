// Concat and Split: pieces of one tensor along one axis.

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "driver/soft/kernels/checks.h"
#include "driver/soft/kernels/families.h"
#include "driver/soft/kernels/loops.h"

namespace rknnd::soft {
namespace {

// How the pieces lie in the whole: `rows` runs, of each of which piece i has
// `bytes[i]`.
struct Pieces {
  int64_t rows = 0;
  std::vector<size_t> bytes;
  size_t total = 0;
};

Pieces Cut(std::span<const TensorSpec> parts, size_t axis) {
  Pieces pieces;
  for (const TensorSpec& part : parts) {
    const Shape shape = PhysicalShape(part);
    // With the channels last, they are the last axis. Floats in blocks are cut
    // between these, also where a piece is one block.
    if (axis == 1 && SizeOf(part.type) == 1 && part.channels_last()) {
      axis = part.shape.size();
    }
    pieces.rows = ProductOf(shape, 0, axis);
    pieces.bytes.push_back(
        static_cast<size_t>(ProductOf(shape, axis, shape.size())) *
        SizeOf(part.type));
    pieces.total += pieces.bytes.back();
  }
  return pieces;
}

// The runs of a part, as f(piece, bytes from the piece's first, from the
// whole's first, bytes): rows where there are many, else a part of each run.
template <class F>
void ForEachRun(const Pieces& pieces, Part part, F f) {
  const bool by_rows = pieces.rows >= int64_t{4} * part.count;
  const Range rows =
      by_rows ? ShareOf(part, pieces.rows) : Range{0, pieces.rows};
  size_t at = 0;
  for (size_t i = 0; i < pieces.bytes.size(); ++i) {
    const size_t size = pieces.bytes[i];
    const Range run = ShareOf(by_rows ? Part{} : part,
                              static_cast<int64_t>(size), kElementUnit);
    const auto from = static_cast<size_t>(run.begin);
    for (int64_t row = rows.begin; row < rows.end && run.size() > 0; ++row) {
      const auto r = static_cast<size_t>(row);
      f(i, r * size + from, at + r * pieces.total + from,
        static_cast<size_t>(run.size()));
    }
    at += size;
  }
}

// The plan may have put it where it lies already.
void Copy(const std::byte* from, std::byte* to, size_t bytes) {
  if (from != to) std::memcpy(to, from, bytes);
}

Inference InferConcat(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {1, kAnyNumber}));
  RKNND_RETURN_IF_ERROR(CheckSameTypes(node));
  if (!node.Has("axis") && node.node().opset >= 4) {
    return node.Error("axis is missing");
  }
  Shape shape = node.shape(0);
  RKNND_ASSIGN_OR_RETURN(const size_t axis,
                         CheckAxis(node, node.Int("axis", 1), shape.size()));
  for (size_t i = 1; i < node.input_count(); ++i) {
    Shape other = node.shape(i);
    if (other.size() != shape.size()) {
      return node.Error(
          absl::StrCat("inputs ", ShapeText(shape), " and ", ShapeText(other)));
    }
    const int64_t size = other[axis];
    other[axis] = shape[axis];
    if (other != shape) {
      return node.Error(absl::StrCat("inputs ", ShapeText(node.shape(0)),
                                     " and ", ShapeText(node.shape(i)),
                                     " differ in another axis than ", axis));
    }
    if (size > std::numeric_limits<int64_t>::max() - shape[axis]) {
      return node.Error("its output is too large");
    }
    shape[axis] += size;
  }
  return InferOne(node, node.type(0), shape);
}

// Blocked pieces lie side by side when whole blocks meet; the last one may
// have a padded end.
bool MayBlockConcat(const NodeView& node, size_t, int block) {
  for (size_t i = 0; i < node.input_count(); ++i) {
    if (!IsBlockable(node, i)) return false;
  }
  const auto axis = CheckAxis(node, node.Int("axis", 1), node.shape(0).size());
  if (!axis.ok()) return false;
  if (*axis != 1) return true;
  for (size_t i = 0; i + 1 < node.input_count(); ++i) {
    if (node.shape(i)[1] % block != 0) return false;
  }
  return true;
}

// 8-bit pieces in any axis. A piece of one channel looks the same either way.
bool MayLieLast(const NodeView& node, size_t) {
  for (size_t i = 0; i < node.input_count(); ++i) {
    if (SizeOf(node.type(i)) != 1 || node.shape(i).size() < 3) return false;
    if (node.shape(i)[1] < 2) return false;
  }
  return true;
}

MadeKernel MakeConcat(const KernelRequest& request) {
  const NodeView& node = request.node;
  RKNND_ASSIGN_OR_RETURN(const size_t axis, CheckAxis(node, node.Int("axis", 1),
                                                      node.shape(0).size()));
  Pieces pieces = Cut(request.inputs, axis);
  return MakeSharedKernel(
      request,
      [pieces = std::move(pieces)](Inputs inputs, Outputs outputs, Part part) {
        ForEachRun(pieces, part,
                   [&](size_t i, size_t in_piece, size_t in_whole, size_t n) {
                     Copy(inputs[i] + in_piece, outputs[0] + in_whole, n);
                   });
      });
}

Inference InferSplit(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {1, 2, kAnyNumber}));
  const Shape& shape = node.shape(0);
  RKNND_ASSIGN_OR_RETURN(const size_t axis,
                         CheckAxis(node, node.Int("axis", 0), shape.size()));
  std::vector<int64_t> sizes = node.Ints("split");  // up to opset 12
  if (node.has_input(1)) {
    RKNND_ASSIGN_OR_RETURN(sizes, node.ConstantInts(1));
  }
  const size_t count = node.output_count();
  if (sizes.empty()) {
    const int64_t each = (shape[axis] + static_cast<int64_t>(count) - 1) /
                         static_cast<int64_t>(count);
    int64_t rest = shape[axis];
    for (size_t i = 0; i < count; ++i) {
      sizes.push_back(std::min(each, rest));
      rest -= sizes.back();
    }
  }
  if (sizes.size() != count) {
    return node.Error(
        absl::StrCat("has ", count, " outputs and ", sizes.size(), " sizes"));
  }
  std::vector<InferredOutput> outputs;
  int64_t rest = shape[axis];
  for (const int64_t size : sizes) {
    if (size < 0 || size > rest) {
      return node.Error(
          absl::StrCat("its sizes do not add up to ", shape[axis]));
    }
    rest -= size;
    InferredOutput output{node.type(0), shape};
    output.shape[axis] = size;
    outputs.push_back(std::move(output));
  }
  if (rest != 0) {
    return node.Error(absl::StrCat("its sizes do not add up to ", shape[axis]));
  }
  return Infer(node, std::move(outputs));
}

// All pieces are placed alike: only equal ones can have their channels last.
bool MaySplitLast(const NodeView& node, size_t i) {
  if ((i != 0 && i < node.input_count()) || SizeOf(node.type(0)) != 1) {
    return false;
  }
  const Inference pieces = InferSplit(node);
  if (!pieces.ok()) return false;
  for (const InferredOutput& piece : *pieces) {
    if (piece.shape != pieces->front().shape || piece.shape.size() < 3 ||
        piece.shape[1] < 2) {
      return false;
    }
  }
  return true;
}

MadeKernel MakeSplit(const KernelRequest& request) {
  const NodeView& node = request.node;
  RKNND_ASSIGN_OR_RETURN(const size_t axis, CheckAxis(node, node.Int("axis", 0),
                                                      node.shape(0).size()));
  Pieces pieces = Cut(request.outputs, axis);
  return MakeSharedKernel(
      request,
      [pieces = std::move(pieces)](Inputs inputs, Outputs outputs, Part part) {
        ForEachRun(pieces, part,
                   [&](size_t i, size_t in_piece, size_t in_whole, size_t n) {
                     if (outputs[i] == nullptr) return;
                     Copy(inputs[0] + in_whole, outputs[i] + in_piece, n);
                   });
      });
}

}  // namespace

void RegisterConcat(OperatorTable& table) {
  table.Add({.type = "Concat",
             .placement = PlacementRule::kElementwise,
             .infer = InferConcat,
             .make = MakeConcat,
             .may_block = MayBlockConcat,
             .may_channels_last = MayLieLast});
  table.Add({.type = "Split",
             .placement = PlacementRule::kElementwise,
             .infer = InferSplit,
             .make = MakeSplit,
             .may_channels_last = MaySplitLast});
}

}  // namespace rknnd::soft
