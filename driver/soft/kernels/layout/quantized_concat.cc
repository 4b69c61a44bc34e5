// com.microsoft.QLinearConcat: pieces of one 8-bit tensor, each brought to the
// scale of the whole.

#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "driver/soft/kernels/checks.h"
#include "driver/soft/kernels/families.h"
#include "driver/soft/kernels/loops.h"
#include "driver/soft/kernels/quantization.h"

namespace rknnd::soft {
namespace {

// The output's scale and zero point, then each piece with its own.
Inference InferConcat(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {5, kAnyNumber}));
  if ((node.input_count() - 2) % 3 != 0) {
    return node.Error(absl::StrCat("has ", node.input_count(), " inputs"));
  }
  RKNND_RETURN_IF_ERROR(CheckQuantized(node, 1));
  Shape shape = node.shape(2);
  RKNND_ASSIGN_OR_RETURN(const size_t axis,
                         CheckAxis(node, node.Int("axis", 1), shape.size()));
  int64_t total = 0;
  for (size_t i = 2; i < node.input_count(); i += 3) {
    RKNND_RETURN_IF_ERROR(CheckQuantized(node, i));
    Shape other = node.shape(i);
    if (other.size() != shape.size()) {
      return node.Error(
          absl::StrCat("inputs ", ShapeText(shape), " and ", ShapeText(other)));
    }
    if (__builtin_add_overflow(total, other[axis], &total)) {
      return node.Error("its output is too large");
    }
    other[axis] = shape[axis];
    if (other != shape) {
      return node.Error(absl::StrCat("inputs ", ShapeText(node.shape(2)),
                                     " and ", ShapeText(node.shape(i)),
                                     " differ in another axis than ", axis));
    }
  }
  shape[axis] = total;
  return InferOne(node, node.type(1), shape);
}

struct Piece {
  size_t input = 0, bytes = 0;
  const uint8_t* table = nullptr;
};

MadeKernel MakeConcat(const KernelRequest& request) {
  const NodeView& node = request.node;
  RKNND_ASSIGN_OR_RETURN(const Quantized y,
                         ReadQuantizedTensor(node, 0, request.outputs[0].type));
  RKNND_ASSIGN_OR_RETURN(const size_t axis, CheckAxis(node, node.Int("axis", 1),
                                                      node.shape(2).size()));
  std::vector<Piece> pieces;
  size_t total = 0;
  const int64_t rows = ProductOf(node.shape(2), 0, axis);
  for (size_t i = 2; i < node.input_count(); i += 3) {
    RKNND_ASSIGN_OR_RETURN(const Quantized x,
                           ReadQuantizedTensor(node, i + 1, node.type(i)));
    const std::vector<uint8_t> table =
        MakeTable(x, y, [](float v) { return v; });
    RKNND_ASSIGN_OR_RETURN(
        const std::byte* const kept,
        request.weights.StoreCopy(std::as_bytes(std::span(table))));
    const Shape& shape = node.shape(i);
    pieces.push_back({i,
                      static_cast<size_t>(ProductOf(shape, axis, shape.size())),
                      reinterpret_cast<const uint8_t*>(kept)});
    total += pieces.back().bytes;
  }
  return MakeSharedKernel(request, [pieces = std::move(pieces), rows, total](
                                       Inputs inputs, Outputs outputs,
                                       Part part) {
    // Rows where there are many, else a part of each run.
    const bool by_rows = rows >= int64_t{4} * part.count;
    const Range share = by_rows ? ShareOf(part, rows) : Range{0, rows};
    size_t at = 0;
    for (const Piece& piece : pieces) {
      const Range run =
          ShareOf(by_rows ? Part{} : part, static_cast<int64_t>(piece.bytes),
                  kElementUnit);
      for (int64_t row = share.begin; row < share.end; ++row) {
        const auto r = static_cast<size_t>(row);
        const auto* from = As<uint8_t>(inputs[piece.input]) + r * piece.bytes;
        auto* to = As<uint8_t>(outputs[0]) + at + r * total;
        for (int64_t i = run.begin; i < run.end; ++i) {
          to[i] = piece.table[from[i]];
        }
      }
      at += piece.bytes;
    }
  });
}

}  // namespace

void RegisterQuantizedConcat(OperatorTable& table) {
  table.Add({.domain = "com.microsoft",
             .type = "QLinearConcat",
             .infer = InferConcat,
             .make = MakeConcat});
}

}  // namespace rknnd::soft
