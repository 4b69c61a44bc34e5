// Cast and CastLike. Float16 is float32 in here; integers wrap as two's
// complement, floats that fit no integer are clamped.

#include <cmath>
#include <limits>
#include <type_traits>

#include "driver/soft/kernels/checks.h"
#include "driver/soft/kernels/families.h"
#include "driver/soft/kernels/loops.h"

namespace rknnd::soft {
namespace {

template <class To, class From>
To Convert(From value) {
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    if (!(value == value)) return To{};
    // Both bounds are exact: powers of two, or one below, rounded up where the
    // type has no room for it.
    constexpr auto kLow = static_cast<From>(std::numeric_limits<To>::lowest());
    constexpr auto kHigh = static_cast<From>(std::numeric_limits<To>::max());
    if (value <= kLow) return std::numeric_limits<To>::lowest();
    if (value >= kHigh) return std::numeric_limits<To>::max();
    return static_cast<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

Inference InferCast(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {1, 1}));
  if (!node.Has("to")) return node.Error("the wanted type is missing");
  RKNND_ASSIGN_OR_RETURN(const DataType type,
                         TypeFromOnnx(node, node.Int("to", 0)));
  return InferOne(node, type, node.shape(0));
}

Inference InferCastLike(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {2, 2}));
  return InferOne(node, node.type(1), node.shape(0));
}

// The elements of a range: a function, and one kernel for all pairs of types.
using CastLoop = void (*)(Inputs inputs, Outputs outputs, Range range);

template <class From, class To>
void ConvertAll(Inputs inputs, Outputs outputs, Range range) {
  const From* in = As<From>(inputs[0]);
  To* out = As<To>(outputs[0]);
  for (int64_t i = range.begin; i < range.end; ++i) out[i] = Convert<To>(in[i]);
}

template <class From, class To>
void CompareAll(Inputs inputs, Outputs outputs, Range range) {
  const From* in = As<From>(inputs[0]);
  To* out = As<To>(outputs[0]);
  for (int64_t i = range.begin; i < range.end; ++i) {
    out[i] = in[i] != From{} ? To{1} : To{0};
  }
}

MadeKernel MakeCast(const KernelRequest& request) {
  const DataType from = request.inputs[0].type;
  const DataType to = request.outputs[0].type;
  const bool is_bool = to == DataType::kBool || from == DataType::kBool;
  const CastLoop loop =
      VisitType(from, [&]<class From>(std::type_identity<From>) {
        return VisitType(to, [&]<class To>(std::type_identity<To>) -> CastLoop {
          return is_bool ? CompareAll<From, To> : ConvertAll<From, To>;
        });
      });
  const int64_t count = request.outputs[0].elements();
  return MakeSharedKernel(
      request, [=](Inputs inputs, Outputs outputs, Part part) {
        loop(inputs, outputs, ShareOf(part, count, kElementUnit));
      });
}

}  // namespace

void RegisterCast(OperatorTable& table) {
  table.Add({.type = "Cast", .infer = InferCast, .make = MakeCast});
  table.Add({.type = "CastLike", .infer = InferCastLike, .make = MakeCast});
}

}  // namespace rknnd::soft
