// Operators of two inputs that treat each pair of elements alike: arithmetic,
// comparisons, logic, bits. Integers wrap; division by zero gives zero.

#include <cmath>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "driver/soft/kernels/checks.h"
#include "driver/soft/kernels/elementwise/broadcast.h"
#include "driver/soft/kernels/epilogue.h"
#include "driver/soft/kernels/families.h"
#include "driver/soft/kernels/loops.h"

namespace rknnd::soft {
namespace {

struct Add {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) {
      return a + b;
    } else {
      return static_cast<T>(static_cast<uint64_t>(a) +
                            static_cast<uint64_t>(b));
    }
  }
};

struct Sub {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) {
      return a - b;
    } else {
      return static_cast<T>(static_cast<uint64_t>(a) -
                            static_cast<uint64_t>(b));
    }
  }
};

struct Mul {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) {
      return a * b;
    } else {
      return static_cast<T>(static_cast<uint64_t>(a) *
                            static_cast<uint64_t>(b));
    }
  }
};

struct Div {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) {
      return a / b;
    } else {
      const T divisor = Once(b);
      if (divisor == 0) return T{};
      if constexpr (std::is_signed_v<T>) {
        // The one quotient that overflows.
        if (divisor == -1) return Sub()(T{}, a);
      }
      return static_cast<T>(a / divisor);
    }
  }
};

// Sign of the divisor (Python's %); with fmod=1 that of the dividend (C's).
template <bool kLikeC>
struct Mod {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) {
      const T rest = std::fmod(a, b);
      return kLikeC || rest == 0 || (rest < 0) == (b < 0) ? rest : rest + b;
    } else {
      const T divisor = Once(b);
      if (divisor == 0) return T{};
      if constexpr (std::is_signed_v<T>) {
        if (divisor == -1) return T{};
      }
      const T rest = static_cast<T>(a % divisor);
      if (kLikeC || rest == 0 || (rest < 0) == (divisor < 0)) return rest;
      return static_cast<T>(rest + divisor);
    }
  }
};

// A whole power of an integer wraps as multiplication does.
struct Pow {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) {
      return std::pow(a, b);
    } else {
      if (b < 0) return a == 1 ? T{1} : T{};
      uint64_t result = 1;
      auto base = static_cast<uint64_t>(a);
      for (auto rest = static_cast<uint64_t>(b); rest > 0; rest >>= 1) {
        if ((rest & 1) != 0) result *= base;
        base *= base;
      }
      return static_cast<T>(result);
    }
  }
};

Inference InferArithmetic(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {2, 2}));
  RKNND_RETURN_IF_ERROR(CheckSameTypes(node));
  if (node.type(0) == DataType::kBool) return CheckFloat(node, 0);
  RKNND_ASSIGN_OR_RETURN(const OperandShapes shapes, BroadcastOperands(node));
  return InferOne(node, node.type(0), shapes.output);
}

// The epilogue belongs to floats; fusion puts nothing behind integers.
absl::Status CheckEpilogue(const KernelRequest& request) {
  RKNND_RETURN_IF_ERROR(EpilogueStep::Check(request));
  if (request.outputs[0].type != DataType::kFloat32 &&
      request.node.node().epilogue.activation != Activation::kNone) {
    return request.node.Error("has an activation behind integers");
  }
  return absl::OkStatus();
}

// A function of one type over some elements. One kernel runs all of them:
// compilers take seconds for a kernel of each.
using BinaryLoop = void (*)(const StridedLoop<3>& loop, Range elements,
                            Inputs inputs, Outputs outputs);

template <class T, class R, class F>
void RunTyped(const StridedLoop<3>& loop, Range elements, Inputs inputs,
              Outputs outputs) {
  RunBinary(loop, elements, As<T>(inputs[0]), As<T>(inputs[1]),
            As<R>(outputs[0]), F());
}

MadeKernel MakeBinary(const KernelRequest& request, BinaryLoop run) {
  RKNND_ASSIGN_OR_RETURN(StridedLoop<3> loop, LoopOver(request));
  return MakeSharedKernel(request, [loop = std::move(loop), run](
                                       Inputs inputs, Outputs outputs,
                                       Part part) {
    run(loop, ShareOf(part, loop.elements(), kElementUnit), inputs, outputs);
  });
}

template <class F>
void RunGateOf(const ChannelGate& gate, Range range, Inputs inputs,
               float* out) {
  constexpr int64_t kNarrow = 8, kWide = 16;
  const auto* gates = As<float>(inputs[gate.input]);
  const auto* x = As<float>(inputs[1 - gate.input]);
  const bool wide = gate.block == kWide;
  const auto run = [&](auto function) {
    if (wide) return RunGate<kWide>(gate, range, x, gates, out, function);
    RunGate<kNarrow>(gate, range, x, gates, out, function);
  };
  if (gate.input == 1) return run(F());
  run([](float a, float b) { return F()(b, a); });
}

template <class F>
MadeKernel MakeArithmetic(const KernelRequest& request) {
  RKNND_RETURN_IF_ERROR(CheckEpilogue(request));
  const TensorSpec& spec = request.outputs[0];
  if (spec.type == DataType::kFloat32) {
    EpilogueStep step(request);
    if (const auto gate = FindChannelGate(request)) {
      const int64_t count = PhysicalElements(spec);
      return MakeSharedKernel(
          request, [gate = *gate, count, step, spec](
                       Inputs inputs, Outputs outputs, Part part) {
            const Range range = ShareOf(part, count, kElementUnit);
            auto* out = As<float>(outputs[0]);
            RunGateOf<F>(gate, range, inputs, out);
            step.Activate(out, range);
            ClearPadding(spec, out, range);
          });
    }
    RKNND_ASSIGN_OR_RETURN(StridedLoop<3> loop, LoopOver(request));
    return MakeSharedKernel(
        request, [loop = std::move(loop), step, spec](
                     Inputs inputs, Outputs outputs, Part part) {
          const Range range = ShareOf(part, loop.elements(), kElementUnit);
          auto* out = As<float>(outputs[0]);
          RunBinary(loop, range, As<float>(inputs[0]), As<float>(inputs[1]),
                    out, F());
          step.Activate(out, range);
          ClearPadding(spec, out, range);
        });
  }
  return MakeBinary(
      request,
      VisitType(spec.type, []<class T>(std::type_identity<T>) -> BinaryLoop {
        return RunTyped<T, T, F>;
      }));
}

MadeKernel MakeMod(const KernelRequest& request) {
  if (request.node.Int("fmod", 0) != 0) {
    return MakeArithmetic<Mod<true>>(request);
  }
  return MakeArithmetic<Mod<false>>(request);
}

// Exponents may be of another type than their bases.
Inference InferPow(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {2, 2}));
  for (size_t i = 0; i < 2; ++i) {
    if (node.type(i) == DataType::kBool) return CheckFloat(node, i);
  }
  RKNND_ASSIGN_OR_RETURN(const OperandShapes shapes, BroadcastOperands(node));
  return InferOne(node, node.type(0), shapes.output);
}

MadeKernel MakePow(const KernelRequest& request) {
  const DataType base = request.inputs[0].type;
  const DataType exponent = request.inputs[1].type;
  // Squares and roots are what networks use.
  const float* known = ConstantFloats(request.node, 1);
  if (base == DataType::kFloat32 && known != nullptr &&
      request.inputs[1].elements() == 1 &&
      request.node.node().epilogue.activation == Activation::kNone &&
      (*known == 2.0F || *known == 0.5F)) {
    const TensorSpec& spec = request.outputs[0];
    const int64_t count = PhysicalElements(spec);
    const bool square = *known == 2.0F;
    return MakeSharedKernel(
        request, [=](Inputs inputs, Outputs outputs, Part part) {
          const Range range = ShareOf(part, count, kElementUnit);
          const auto* in = As<float>(inputs[0]);
          auto* out = As<float>(outputs[0]);
          for (int64_t i = range.begin; i < range.end; ++i) {
            out[i] = square ? in[i] * in[i] : std::sqrt(in[i]);
          }
        });
  }
  if (base == exponent) return MakeArithmetic<Pow>(request);
  RKNND_ASSIGN_OR_RETURN(StridedLoop<3> loop, LoopOver(request));
  const NumberReader read = ReaderOf(exponent);
  return VisitType(base, [&]<class T>(std::type_identity<T>) -> MadeKernel {
    return MakeSharedKernel(
        request, [loop, read](Inputs inputs, Outputs outputs, Part part) {
          const T* a = As<T>(inputs[0]);
          T* out = As<T>(outputs[0]);
          const auto& step = loop.inner_strides();
          const Range range = ShareOf(part, loop.elements(), kElementUnit);
          loop.Run(range, [&](const auto& at, int64_t n) {
            for (int64_t i = 0; i < n; ++i) {
              const double power =
                  std::pow(static_cast<double>(a[at[0] + i * step[0]]),
                           read(inputs[1], at[1] + i * step[1]));
              T& to = out[at[2] + i * step[2]];
              if constexpr (std::is_floating_point_v<T>) {
                to = static_cast<T>(power);
              } else {
                // Halved: the upper bound of a 64-bit type is no double.
                constexpr auto kHigh =
                    static_cast<double>(std::numeric_limits<T>::max() / 2 + 1);
                const bool fits = power > -2.0 * kHigh && power < 2.0 * kHigh &&
                                  (std::is_signed_v<T> || power >= 0.0);
                to = fits ? static_cast<T>(power) : T{};
              }
            }
          });
        });
  });
}

struct Equal {
  template <class T>
  uint8_t operator()(T a, T b) const {
    return a == b ? 1 : 0;
  }
};
struct Less {
  template <class T>
  uint8_t operator()(T a, T b) const {
    return a < b ? 1 : 0;
  }
};
struct LessOrEqual {
  template <class T>
  uint8_t operator()(T a, T b) const {
    return a <= b ? 1 : 0;
  }
};
struct Greater {
  template <class T>
  uint8_t operator()(T a, T b) const {
    return a > b ? 1 : 0;
  }
};
struct GreaterOrEqual {
  template <class T>
  uint8_t operator()(T a, T b) const {
    return a >= b ? 1 : 0;
  }
};
// Booleans: any byte but 0 is true.
struct EqualBool {
  uint8_t operator()(uint8_t a, uint8_t b) const {
    return (a != 0) == (b != 0) ? 1 : 0;
  }
};
struct And {
  uint8_t operator()(uint8_t a, uint8_t b) const {
    return a != 0 && b != 0 ? 1 : 0;
  }
};
struct Or {
  uint8_t operator()(uint8_t a, uint8_t b) const {
    return a != 0 || b != 0 ? 1 : 0;
  }
};
struct Xor {
  uint8_t operator()(uint8_t a, uint8_t b) const {
    return (a != 0) != (b != 0) ? 1 : 0;
  }
};

Inference InferComparison(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {2, 2}));
  RKNND_RETURN_IF_ERROR(CheckSameTypes(node));
  RKNND_ASSIGN_OR_RETURN(const OperandShapes shapes, BroadcastOperands(node));
  return InferOne(node, DataType::kBool, shapes.output);
}

template <class F>
MadeKernel MakeComparison(const KernelRequest& request) {
  return MakeBinary(request,
                    VisitType(request.inputs[0].type,
                              []<class T>(std::type_identity<T>) -> BinaryLoop {
                                return RunTyped<T, uint8_t, F>;
                              }));
}

template <class F>
MadeKernel MakeLogic(const KernelRequest& request) {
  return MakeBinary(request, RunTyped<uint8_t, uint8_t, F>);
}

MadeKernel MakeEqual(const KernelRequest& request) {
  if (request.inputs[0].type == DataType::kBool) {
    return MakeLogic<EqualBool>(request);
  }
  return MakeComparison<Equal>(request);
}

Inference InferLogic(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {2, 2}));
  RKNND_RETURN_IF_ERROR(CheckType(node, 0, {DataType::kBool}));
  return InferComparison(node);
}

// Of integers only, bit by bit. Bits that leave a number are gone.
struct BitwiseAnd {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(a & b);
  }
};
struct BitwiseOr {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(a | b);
  }
};
struct BitwiseXor {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(a ^ b);
  }
};
template <bool kLeft>
struct Shift {
  template <class T>
  T operator()(T a, T b) const {
    const auto by = static_cast<uint64_t>(Once(b));
    if (by >= 8 * sizeof(T)) return T{};
    const auto bits = static_cast<uint64_t>(a);
    return static_cast<T>(kLeft ? bits << by : bits >> by);
  }
};

Inference InferBits(const NodeView& node) {
  const DataType type = node.has_input(0) ? node.type(0) : DataType::kBool;
  const bool shifts = node.node().type == "BitShift";
  const std::string direction = node.String("direction", "");
  if (shifts && direction != "LEFT" && direction != "RIGHT") {
    return node.Error("direction is '" + direction + "'");
  }
  const bool is_unsigned =
      type == DataType::kUint8 || type == DataType::kUint16 ||
      type == DataType::kUint32 || type == DataType::kUint64;
  if (IsFloat(type) || (shifts && !is_unsigned)) {
    return node.Error(
        absl::StrCat("input 0 cannot be of type ", DataTypeName(type)));
  }
  return InferArithmetic(node);
}

template <class F>
MadeKernel MakeBits(const KernelRequest& request) {
  RKNND_ASSIGN_OR_RETURN(StridedLoop<3> loop, LoopOver(request));
  return VisitType(
      request.outputs[0].type,
      [&]<class T>(std::type_identity<T>) -> MadeKernel {
        if constexpr (std::is_integral_v<T>) {
          return MakeSharedKernel(
              request, [loop = std::move(loop)](Inputs inputs, Outputs outputs,
                                                Part part) {
                RunBinary(loop, ShareOf(part, loop.elements(), kElementUnit),
                          As<T>(inputs[0]), As<T>(inputs[1]), As<T>(outputs[0]),
                          F());
              });
        } else {
          return request.node.Error("has bits of floats");
        }
      });
}

MadeKernel MakeShift(const KernelRequest& request) {
  return request.node.String("direction", "") == "LEFT"
             ? MakeBits<Shift<true>>(request)
             : MakeBits<Shift<false>>(request);
}

struct Row {
  const char* type;
  absl::StatusOr<std::unique_ptr<Kernel>> (*make)(const KernelRequest&);
};

}  // namespace

void RegisterBinary(OperatorTable& table) {
  const Row arithmetic[] = {{"Add", MakeArithmetic<Add>},
                            {"Sub", MakeArithmetic<Sub>},
                            {"Mul", MakeArithmetic<Mul>},
                            {"Div", MakeArithmetic<Div>}};
  for (const Row& row : arithmetic) {
    table.Add({.type = row.type,
               .placement = PlacementRule::kElementwise,
               .infer = InferArithmetic,
               .make = row.make,
               .may_block = MayBlockBroadcast,
               .takes_activation = true,
               .overwrites = Overwrite::kAny});
  }
  table.Add({.type = "Mod",
             .infer = InferArithmetic,
             .make = MakeMod,
             .overwrites = Overwrite::kAny});
  table.Add({.type = "Pow",
             .placement = PlacementRule::kElementwise,
             .infer = InferPow,
             .make = MakePow,
             .may_block = MayBlockBroadcast,
             .overwrites = Overwrite::kFirst});
  const Row comparisons[] = {
      {"Equal", MakeEqual},
      {"Less", MakeComparison<Less>},
      {"LessOrEqual", MakeComparison<LessOrEqual>},
      {"Greater", MakeComparison<Greater>},
      {"GreaterOrEqual", MakeComparison<GreaterOrEqual>},
  };
  for (const Row& row : comparisons) {
    table.Add({.type = row.type, .infer = InferComparison, .make = row.make});
  }
  const Row bits[] = {{"BitShift", MakeShift},
                      {"BitwiseAnd", MakeBits<BitwiseAnd>},
                      {"BitwiseOr", MakeBits<BitwiseOr>},
                      {"BitwiseXor", MakeBits<BitwiseXor>}};
  for (const Row& row : bits) {
    table.Add({.type = row.type, .infer = InferBits, .make = row.make});
  }
  const Row logic[] = {
      {"And", MakeLogic<And>}, {"Or", MakeLogic<Or>}, {"Xor", MakeLogic<Xor>}};
  for (const Row& row : logic) {
    table.Add({.type = row.type, .infer = InferLogic, .make = row.make});
  }
}

}  // namespace rknnd::soft
