// Glu (of domain rknnd): the first half of an axis, gated by the sigmoid of the
// second. The pass over subgraphs makes it of Split, Sigmoid and Mul.

#include "absl/strings/str_cat.h"
#include "driver/soft/kernels/checks.h"
#include "driver/soft/kernels/elementwise/activation.h"
#include "driver/soft/kernels/families.h"
#include "driver/soft/kernels/loops.h"

namespace rknnd::soft {
namespace {

absl::StatusOr<size_t> GluAxis(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {1, 1}));
  RKNND_RETURN_IF_ERROR(CheckFloat(node, 0));
  const Shape& shape = node.shape(0);
  RKNND_ASSIGN_OR_RETURN(const size_t axis,
                         CheckAxis(node, node.Int("axis", -1), shape.size()));
  if (shape[axis] % 2 != 0) {
    return node.Error(
        absl::StrCat("halves axis ", axis, " of ", ShapeText(shape)));
  }
  return axis;
}

Inference InferGlu(const NodeView& node) {
  RKNND_ASSIGN_OR_RETURN(const size_t axis, GluAxis(node));
  Shape shape = node.shape(0);
  shape[axis] /= 2;
  return InferOne(node, DataType::kFloat32, shape);
}

MadeKernel MakeGlu(const KernelRequest& request) {
  RKNND_ASSIGN_OR_RETURN(const size_t axis, GluAxis(request.node));
  const Shape& shape = request.inputs[0].shape;
  const int64_t rows = ProductOf(shape, 0, axis);
  const int64_t half = ProductOf(shape, axis, shape.size()) / 2;
  const FloatLoop sigmoid = LoopOf(Activation::kSigmoid);
  // Whole rows where there are several.
  const StridedLoop<2> loop({rows, half}, {Shape{2 * half, 1}, Shape{half, 1}});
  return MakeSharedKernel(
      request,
      [=](Inputs inputs, Outputs outputs, Part part) {
        const Range range =
            ShareOf(part, rows * half, rows > 1 ? half : kElementUnit);
        loop.Run(range, [&](const auto& at, int64_t n) {
          const float* in = As<float>(inputs[0]) + at[0];
          float* out = As<float>(outputs[0]) + at[1];
          sigmoid(in + half, out, n, 0.0F, 0.0F);
          for (int64_t i = 0; i < n; ++i) out[i] *= in[i];
        });
      },
      kFunction);
}

}  // namespace

void RegisterGlu(OperatorTable& table) {
  table.Add(
      {.domain = "rknnd", .type = "Glu", .infer = InferGlu, .make = MakeGlu});
}

}  // namespace rknnd::soft
