// TopK: the k largest or smallest along an axis, and where they were. Among
// equals the first comes first.

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "driver/soft/kernels/checks.h"
#include "driver/soft/kernels/families.h"
#include "driver/soft/kernels/loops.h"

namespace rknnd::soft {
namespace {

struct Params {
  int64_t k = 0;
  size_t axis = 0;
};

absl::StatusOr<Params> Parse(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {1, 2, 2}));
  Params params;
  params.k = node.Int("k", 0);  // up to opset 9
  if (node.has_input(1)) {
    RKNND_ASSIGN_OR_RETURN(const std::vector<int64_t> k, node.ConstantInts(1));
    if (k.size() != 1) return node.Error("needs one k");
    params.k = k[0];
  }
  const Shape& shape = node.shape(0);
  RKNND_ASSIGN_OR_RETURN(params.axis,
                         CheckAxis(node, node.Int("axis", -1), shape.size()));
  if (params.k < 0 || params.k > shape[params.axis]) {
    return node.Error(absl::StrCat("k is ", params.k, ", axis ", params.axis,
                                   " of ", ShapeText(shape)));
  }
  return params;
}

Inference InferTopK(const NodeView& node) {
  RKNND_ASSIGN_OR_RETURN(const Params params, Parse(node));
  Shape shape = node.shape(0);
  shape[params.axis] = params.k;
  return Infer(node, {{node.type(0), shape}, {DataType::kInt64, shape}});
}

// NaN goes after everything, so that the order is one.
template <class T>
bool Before(T a, T b, bool largest) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) || std::isnan(b)) return !std::isnan(a);
  }
  return largest ? a > b : a < b;
}

MadeKernel MakeTopK(const KernelRequest& request) {
  RKNND_ASSIGN_OR_RETURN(const Params params, Parse(request.node));
  const Shape& shape = request.inputs[0].shape;
  const int64_t outer = ProductOf(shape, 0, params.axis);
  const int64_t inner = ProductOf(shape, params.axis + 1, shape.size());
  const int64_t size = shape[params.axis];
  const int64_t k = params.k;
  const bool largest = request.node.Int("largest", 1) != 0;
  // Of a row: its order, and its values, which must not change under the sort.
  const size_t scratch = static_cast<size_t>(size) *
                         (sizeof(int64_t) + SizeOf(request.inputs[0].type));
  return VisitType(
      request.inputs[0].type,
      [&]<class T>(std::type_identity<T>) -> MadeKernel {
        return MakeKernel(
            [=](Inputs inputs, Outputs outputs, std::byte* room) {
              auto* order = As<int64_t>(room);
              T* row = As<T>(room + static_cast<size_t>(size) * sizeof *order);
              T* values = As<T>(outputs[0]);
              auto* indices =
                  outputs.size() > 1 ? As<int64_t>(outputs[1]) : nullptr;
              for (int64_t r = 0; r < outer * inner; ++r) {
                StopPoint();
                const int64_t o = r / inner, i = r % inner;
                const T* in = As<T>(inputs[0]) + o * size * inner + i;
                for (int64_t n = 0; n < size; ++n) {
                  order[n] = n;
                  row[n] = in[n * inner];
                }
                std::partial_sort(order, order + k, order + size,
                                  [&](int64_t a, int64_t b) {
                                    const T x = row[a], y = row[b];
                                    if (Before(x, y, largest)) return true;
                                    if (Before(y, x, largest)) return false;
                                    return a < b;
                                  });
                for (int64_t n = 0; n < k; ++n) {
                  const int64_t to = (o * k + n) * inner + i;
                  values[to] = row[order[n]];
                  if (indices != nullptr) indices[to] = order[n];
                }
              }
            },
            scratch);
      });
}

}  // namespace

void RegisterTopK(OperatorTable& table) {
  table.Add({.type = "TopK", .infer = InferTopK, .make = MakeTopK});
}

}  // namespace rknnd::soft
