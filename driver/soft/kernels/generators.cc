// Tensors made from a few numbers: Range, OneHot, EyeLike, Trilu, CumSum.

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "driver/soft/kernels/checks.h"
#include "driver/soft/kernels/families.h"
#include "driver/soft/kernels/loops.h"

namespace rknnd::soft {
namespace {

// Start, limit and step must be known: they say how long the output is.
absl::StatusOr<int64_t> RangeLength(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {3, 3}));
  RKNND_RETURN_IF_ERROR(CheckSameTypes(node));
  for (size_t i = 0; i < 3; ++i) {
    if (ProductOf(node.shape(i), 0, node.shape(i).size()) != 1) {
      return node.Error(absl::StrCat("input ", i, " is no single number"));
    }
    if (node.constant(i) == nullptr) return node.ConstantInts(i).status();
  }
  return VisitType(
      node.type(0),
      [&]<class T>(std::type_identity<T>) -> absl::StatusOr<int64_t> {
        const auto start = static_cast<double>(*node.constant(0)->as<T>());
        const auto limit = static_cast<double>(*node.constant(1)->as<T>());
        const auto step = static_cast<double>(*node.constant(2)->as<T>());
        const double length = std::ceil((limit - start) / step);
        if (!(length <= static_cast<double>(kMaxTensorBytes))) {
          return node.Error(absl::StrCat("from ", start, " to ", limit,
                                         " in steps of ", step));
        }
        return length > 0.0 ? static_cast<int64_t>(length) : 0;
      });
}

Inference InferRange(const NodeView& node) {
  RKNND_ASSIGN_OR_RETURN(const int64_t length, RangeLength(node));
  return InferOne(node, node.type(0), {length});
}

MadeKernel MakeRange(const KernelRequest& request) {
  const int64_t length = request.outputs[0].shape[0];
  return VisitType(
      request.outputs[0].type,
      [&]<class T>(std::type_identity<T>) -> MadeKernel {
        return MakeKernel([length](Inputs inputs, Outputs outputs, std::byte*) {
          const T start = *As<T>(inputs[0]), step = *As<T>(inputs[2]);
          T* out = As<T>(outputs[0]);
          for (int64_t i = 0; i < length; ++i) {
            if constexpr (std::is_floating_point_v<T>) {
              out[i] = start + static_cast<T>(i) * step;
            } else {
              out[i] = static_cast<T>(static_cast<uint64_t>(start) +
                                      static_cast<uint64_t>(i) *
                                          static_cast<uint64_t>(step));
            }
          }
        });
      });
}

struct OneHotParams {
  int64_t depth = 0;
  size_t axis = 0;
};

absl::StatusOr<OneHotParams> ParseOneHot(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {3, 3}));
  if (ProductOf(node.shape(2), 0, node.shape(2).size()) != 2 ||
      ProductOf(node.shape(1), 0, node.shape(1).size()) != 1) {
    return node.Error("needs one depth and two values");
  }
  OneHotParams params;
  if (node.type(1) == DataType::kFloat32 && node.constant(1) != nullptr) {
    params.depth = static_cast<int64_t>(
        std::clamp(*node.constant(1)->as<float>(), 0.0F, 1e9F));
  } else {
    RKNND_ASSIGN_OR_RETURN(const std::vector<int64_t> depth,
                           node.ConstantInts(1));
    params.depth = depth[0];
  }
  RKNND_ASSIGN_OR_RETURN(params.axis, CheckAxis(node, node.Int("axis", -1),
                                                node.shape(0).size() + 1));
  return params;
}

Inference InferOneHot(const NodeView& node) {
  RKNND_ASSIGN_OR_RETURN(const OneHotParams params, ParseOneHot(node));
  Shape shape = node.shape(0);
  shape.insert(shape.begin() + static_cast<ptrdiff_t>(params.axis),
               params.depth);
  return InferOne(node, node.type(2), shape);
}

MadeKernel MakeOneHot(const KernelRequest& request) {
  RKNND_ASSIGN_OR_RETURN(const OneHotParams params, ParseOneHot(request.node));
  const Shape& indices = request.inputs[0].shape;
  const int64_t outer = ProductOf(indices, 0, params.axis);
  const int64_t inner = ProductOf(indices, params.axis, indices.size());
  const int64_t depth = params.depth;
  const NumberReader read = ReaderOf(request.inputs[0].type);
  return VisitType(
      request.outputs[0].type,
      [&]<class T>(std::type_identity<T>) -> MadeKernel {
        return MakeKernel([=](Inputs inputs, Outputs outputs, std::byte*) {
          const T off = As<T>(inputs[2])[0], on = As<T>(inputs[2])[1];
          T* out = As<T>(outputs[0]);
          std::fill_n(out, outer * depth * inner, off);
          const auto size = static_cast<double>(depth);
          for (int64_t o = 0; o < outer; ++o) {
            StopPoint();
            for (int64_t i = 0; i < inner; ++i) {
              // Any number may come; those out of range mark nothing.
              const double raw = read(inputs[0], o * inner + i);
              if (!(raw >= -size && raw < size)) continue;
              auto at = static_cast<int64_t>(raw);
              if (at < 0) at += depth;
              out[(o * depth + at) * inner + i] = on;
            }
          }
        });
      });
}

Inference InferEyeLike(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {1, 1}));
  if (node.shape(0).size() != 2) return node.Error("needs a matrix");
  DataType type = node.type(0);
  if (node.Has("dtype")) {
    RKNND_ASSIGN_OR_RETURN(type, TypeFromOnnx(node, node.Int("dtype", 0)));
  }
  return InferOne(node, type, node.shape(0));
}

MadeKernel MakeEyeLike(const KernelRequest& request) {
  const Shape& shape = request.outputs[0].shape;
  const int64_t rows = shape[0], columns = shape[1];
  const int64_t k = std::clamp(request.node.Int("k", 0), -rows, columns);
  return VisitType(
      request.outputs[0].type,
      [&]<class T>(std::type_identity<T>) -> MadeKernel {
        return MakeKernel([=](Inputs, Outputs outputs, std::byte*) {
          T* out = As<T>(outputs[0]);
          for (int64_t r = 0; r < rows; ++r) {
            StopPoint();
            for (int64_t c = 0; c < columns; ++c) {
              *out++ = c == r + k ? T{1} : T{0};
            }
          }
        });
      });
}

// k may come as an input, which must be known.
absl::StatusOr<int64_t> Diagonal(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {1, 2}));
  if (node.shape(0).size() < 2) return node.Error("needs matrices");
  int64_t k = 0;
  if (node.has_input(1)) {
    RKNND_ASSIGN_OR_RETURN(const std::vector<int64_t> given,
                           node.ConstantInts(1));
    if (given.size() != 1) return node.Error("needs one diagonal");
    k = given[0];
  }
  return std::clamp<int64_t>(k, -kMaxTensorBytes, kMaxTensorBytes);
}

Inference InferTrilu(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(Diagonal(node).status());
  return InferOne(node, node.type(0), node.shape(0));
}

MadeKernel MakeTrilu(const KernelRequest& request) {
  RKNND_ASSIGN_OR_RETURN(const int64_t k, Diagonal(request.node));
  const bool upper = request.node.Int("upper", 1) != 0;
  const Shape& shape = request.outputs[0].shape;
  const int64_t rows = shape[shape.size() - 2], columns = shape.back();
  const int64_t batch = ProductOf(shape, 0, shape.size() - 2);
  return VisitType(
      request.outputs[0].type,
      [&]<class T>(std::type_identity<T>) -> MadeKernel {
        return MakeKernel([=](Inputs inputs, Outputs outputs, std::byte*) {
          const T* in = As<T>(inputs[0]);
          T* out = As<T>(outputs[0]);
          for (int64_t b = 0; b < batch; ++b) {
            for (int64_t r = 0; r < rows; ++r) {
              StopPoint();
              for (int64_t c = 0; c < columns; ++c, ++in) {
                *out++ = (upper ? c - r >= k : c - r <= k) ? *in : T{};
              }
            }
          }
        });
      });
}

absl::StatusOr<size_t> CumSumAxis(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {2, 2}));
  RKNND_ASSIGN_OR_RETURN(const std::vector<int64_t> axis, node.ConstantInts(1));
  if (axis.size() != 1) return node.Error("needs one axis");
  return CheckAxis(node, axis[0], node.shape(0).size());
}

Inference InferCumSum(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CumSumAxis(node).status());
  return InferOne(node, node.type(0), node.shape(0));
}

MadeKernel MakeCumSum(const KernelRequest& request) {
  RKNND_ASSIGN_OR_RETURN(const size_t axis, CumSumAxis(request.node));
  const Shape& shape = request.outputs[0].shape;
  const int64_t outer = ProductOf(shape, 0, axis), size = shape[axis];
  const int64_t inner = ProductOf(shape, axis + 1, shape.size());
  const bool exclusive = request.node.Int("exclusive", 0) != 0;
  const bool reverse = request.node.Int("reverse", 0) != 0;
  return VisitType(
      request.outputs[0].type,
      [&]<class T>(std::type_identity<T>) -> MadeKernel {
        using Sum =
            std::conditional_t<std::is_floating_point_v<T>, double, uint64_t>;
        return MakeKernel([=](Inputs inputs, Outputs outputs, std::byte*) {
          const T* in = As<T>(inputs[0]);
          T* out = As<T>(outputs[0]);
          for (int64_t r = 0; r < outer * inner; ++r) {
            StopPoint();
            const int64_t first = r / inner * size * inner + r % inner;
            Sum sum{};
            for (int64_t i = 0; i < size; ++i) {
              const int64_t at = first + (reverse ? size - 1 - i : i) * inner;
              const Sum before = sum;
              sum += static_cast<Sum>(in[at]);
              out[at] = static_cast<T>(exclusive ? before : sum);
            }
          }
        });
      });
}

}  // namespace

void RegisterGenerators(OperatorTable& table) {
  table.Add({.type = "Range", .infer = InferRange, .make = MakeRange});
  table.Add({.type = "OneHot", .infer = InferOneHot, .make = MakeOneHot});
  table.Add({.type = "EyeLike", .infer = InferEyeLike, .make = MakeEyeLike});
  table.Add({.type = "Trilu", .infer = InferTrilu, .make = MakeTrilu});
  table.Add({.type = "CumSum", .infer = InferCumSum, .make = MakeCumSum});
}

}  // namespace rknnd::soft
