// Operators of one input that treat each element alike: the activations,
// mathematics, Not, Clip, questions.

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "driver/soft/kernels/checks.h"
#include "driver/soft/kernels/elementwise/activation.h"
#include "driver/soft/kernels/families.h"
#include "driver/soft/kernels/loops.h"

namespace rknnd::soft {
namespace {

Inference InferFloat(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {1, 1}));
  RKNND_RETURN_IF_ERROR(CheckFloat(node, 0));
  return InferOne(node, node.type(0), node.shape(0));
}

Inference InferNumber(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {1, 1}));
  if (node.type(0) == DataType::kBool) return CheckFloat(node, 0);
  return InferOne(node, node.type(0), node.shape(0));
}

Inference InferNot(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {1, 1}));
  RKNND_RETURN_IF_ERROR(CheckType(node, 0, {DataType::kBool}));
  return InferOne(node, node.type(0), node.shape(0));
}

bool AnyBlock(const NodeView& node, size_t i, int) {
  return (i == 0 || i >= node.input_count()) && IsBlockable(node, 0);
}

// An element after the other: f(inputs, outputs, elements).
template <class F>
MadeKernel MakeEach(const KernelRequest& request, F f, int64_t operations = 1) {
  const int64_t count = PhysicalElements(request.outputs[0]);
  return MakeSharedKernel(
      request,
      [=](Inputs inputs, Outputs outputs, Part part) {
        f(inputs, outputs, ShareOf(part, count, kElementUnit));
      },
      operations);
}

// A loop of activation.h.
MadeKernel MakeLoop(const KernelRequest& request, FloatLoop loop, float alpha,
                    float beta, bool keeps_zero) {
  const TensorSpec& spec = request.outputs[0];
  return MakeEach(
      request,
      [=](Inputs inputs, Outputs outputs, Range range) {
        auto* out = As<float>(outputs[0]);
        loop(As<float>(inputs[0]) + range.begin, out + range.begin,
             range.size(), alpha, beta);
        if (!keeps_zero) ClearPadding(spec, out, range);
      },
      kFunction);
}

MadeKernel MakeActivation(const KernelRequest& request, Activation activation,
                          float alpha = 0.0F, float beta = 0.0F) {
  return MakeLoop(request, LoopOf(activation), alpha, beta,
                  KeepsZero(activation, alpha, beta));
}

// Any function of a float.
template <class F>
MadeKernel MakeFloat(const KernelRequest& request, F function) {
  const TensorSpec& spec = request.outputs[0];
  return MakeEach(
      request,
      [=](Inputs inputs, Outputs outputs, Range range) {
        const auto* in = As<float>(inputs[0]);
        auto* out = As<float>(outputs[0]);
        for (int64_t i = range.begin; i < range.end; ++i) {
          out[i] = function(in[i]);
        }
        ClearPadding(spec, out, range);
      },
      kFunction);
}

// The same for every numeric type; `function` keeps zero.
template <class F>
MadeKernel MakeNumber(const KernelRequest& request, F function) {
  return VisitType(request.outputs[0].type,
                   [&]<class T>(std::type_identity<T>) -> MadeKernel {
                     return MakeEach(
                         request,
                         [=](Inputs inputs, Outputs outputs, Range range) {
                           const T* in = As<T>(inputs[0]);
                           T* out = As<T>(outputs[0]);
                           for (int64_t i = range.begin; i < range.end; ++i) {
                             out[i] = function(in[i]);
                           }
                         });
                   });
}

MadeKernel MakeRelu(const KernelRequest& request) {
  if (request.outputs[0].type == DataType::kFloat32) {
    return MakeActivation(request, Activation::kRelu);
  }
  return VisitType(request.outputs[0].type,
                   [&]<class T>(std::type_identity<T>) -> MadeKernel {
                     return MakeEach(request, [](Inputs inputs, Outputs outputs,
                                                 Range range) {
                       const T* in = As<T>(inputs[0]);
                       T* out = As<T>(outputs[0]);
                       for (int64_t i = range.begin; i < range.end; ++i) {
                         out[i] = std::max(in[i], T{});
                       }
                     });
                   });
}

MadeKernel MakeAbs(const KernelRequest& request) {
  return MakeNumber(request, [](auto x) {
    using T = decltype(x);
    if constexpr (std::is_floating_point_v<T>) {
      return std::fabs(x);
    } else if constexpr (std::is_signed_v<T>) {
      using U = std::make_unsigned_t<T>;
      return x < 0 ? static_cast<T>(U{0} - static_cast<U>(x)) : x;
    } else {
      return x;
    }
  });
}

MadeKernel MakeNeg(const KernelRequest& request) {
  return MakeNumber(request, [](auto x) {
    using T = decltype(x);
    if constexpr (std::is_floating_point_v<T>) {
      return -x;
    } else {
      using U = std::make_unsigned_t<T>;
      return static_cast<T>(U{0} - static_cast<U>(x));
    }
  });
}

MadeKernel MakeSign(const KernelRequest& request) {
  return MakeNumber(request, [](auto x) {
    using T = decltype(x);
    return static_cast<T>((x > T{}) - (x < T{}));
  });
}

MadeKernel MakeBitwiseNot(const KernelRequest& request) {
  return MakeNumber(request, [](auto x) {
    using T = decltype(x);
    if constexpr (std::is_floating_point_v<T>) {
      return x;  // of which inference knows none
    } else {
      return static_cast<T>(~x);
    }
  });
}

Inference InferBitwiseNot(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {1, 1}));
  if (node.type(0) == DataType::kBool || IsFloat(node.type(0))) {
    return node.Error(
        absl::StrCat("input 0 cannot be of type ", DataTypeName(node.type(0))));
  }
  return InferOne(node, node.type(0), node.shape(0));
}

MadeKernel MakeShrink(const KernelRequest& request) {
  const double lambda = request.node.Float("lambd", 0.5F);
  const double bias = request.node.Float("bias", 0.0F);
  return MakeNumber(request, [=](auto x) {
    using T = decltype(x);
    const auto number = static_cast<double>(x);
    if (number < -lambda) return static_cast<T>(number + bias);
    return number > lambda ? static_cast<T>(number - bias) : T{};
  });
}

// Questions: a boolean for each number.
Inference InferQuestion(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {1, 1}));
  RKNND_RETURN_IF_ERROR(CheckFloat(node, 0));
  return InferOne(node, DataType::kBool, node.shape(0));
}

template <class F>
MadeKernel MakeQuestion(const KernelRequest& request, F question) {
  return MakeEach(request, [=](Inputs inputs, Outputs outputs, Range range) {
    const auto* in = As<float>(inputs[0]);
    auto* out = As<uint8_t>(outputs[0]);
    for (int64_t i = range.begin; i < range.end; ++i) {
      out[i] = question(in[i]) ? 1 : 0;
    }
  });
}

MadeKernel MakeIsNan(const KernelRequest& request) {
  return MakeQuestion(request, [](float x) { return x != x; });
}

MadeKernel MakeIsInf(const KernelRequest& request) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const bool high = request.node.Int("detect_positive", 1) != 0;
  const bool low = request.node.Int("detect_negative", 1) != 0;
  return MakeQuestion(request, [=](float x) {
    return (high && x == kInfinity) || (low && x == -kInfinity);
  });
}

MadeKernel MakeNot(const KernelRequest& request) {
  return MakeNumber(request, [](auto x) {
    using T = decltype(x);
    return static_cast<T>(x == T{} ? 1 : 0);
  });
}

// Bounds: attributes up to opset 10, optional inputs from then on, which may
// be known only when a job runs.
Inference InferClip(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {1, 3}));
  RKNND_RETURN_IF_ERROR(CheckSameTypes(node));
  if (node.type(0) == DataType::kBool) return CheckFloat(node, 0);
  for (size_t i = 1; i < node.input_count(); ++i) {
    if (node.has_input(i) &&
        ProductOf(node.shape(i), 0, node.shape(i).size()) != 1) {
      return node.Error("a bound must be a single number");
    }
  }
  return InferOne(node, node.type(0), node.shape(0));
}

bool MayBlockClip(const NodeView& node, size_t i, int block) {
  // The padding must stay zero, which is only certain with known bounds.
  for (size_t k = 1; k < node.input_count(); ++k) {
    if (node.has_input(k) && node.constant(k) == nullptr) return false;
  }
  return AnyBlock(node, i, block);
}

MadeKernel MakeClip(const KernelRequest& request) {
  const NodeView& node = request.node;
  const bool known = (!node.has_input(1) || node.constant(1) != nullptr) &&
                     (!node.has_input(2) || node.constant(2) != nullptr);
  if (request.outputs[0].type == DataType::kFloat32 && known) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    const float* low = ConstantFloats(node, 1);
    const float* high = ConstantFloats(node, 2);
    return MakeActivation(
        request, Activation::kClip,
        low == nullptr ? node.Float("min", -kInfinity) : *low,
        high == nullptr ? node.Float("max", kInfinity) : *high);
  }
  const bool has_low = node.has_input(1), has_high = node.has_input(2);
  return VisitType(
      request.outputs[0].type,
      [&]<class T>(std::type_identity<T>) -> MadeKernel {
        T least = std::numeric_limits<T>::lowest();
        T most = std::numeric_limits<T>::max();
        if constexpr (std::is_floating_point_v<T>) {
          // Attributes before opset 11.
          constexpr float kInfinity = std::numeric_limits<float>::infinity();
          least = node.Float("min", -kInfinity);
          most = node.Float("max", kInfinity);
        }
        return MakeEach(request,
                        [=](Inputs inputs, Outputs outputs, Range range) {
                          const T low = has_low ? *As<T>(inputs[1]) : least;
                          const T high = has_high ? *As<T>(inputs[2]) : most;
                          const T* in = As<T>(inputs[0]);
                          T* out = As<T>(outputs[0]);
                          for (int64_t i = range.begin; i < range.end; ++i) {
                            out[i] = std::min(std::max(in[i], low), high);
                          }
                        });
      });
}

MadeKernel MakeElu(const KernelRequest& request) {
  const float alpha = request.node.Float("alpha", 1.0F);
  return MakeFloat(request, [alpha](float x) {
    return x < 0.0F ? alpha * std::expm1(x) : x;
  });
}

MadeKernel MakeCelu(const KernelRequest& request) {
  const float alpha = request.node.Float("alpha", 1.0F);
  return MakeFloat(request, [alpha](float x) {
    return x < 0.0F ? alpha * std::expm1(x / alpha) : x;
  });
}

MadeKernel MakeSelu(const KernelRequest& request) {
  const float alpha = request.node.Float("alpha", 1.67326324F);
  const float gamma = request.node.Float("gamma", 1.05070099F);
  return MakeFloat(request, [=](float x) {
    return gamma * (x < 0.0F ? alpha * std::expm1(x) : x);
  });
}

MadeKernel MakeThresholdedRelu(const KernelRequest& request) {
  const float alpha = request.node.Float("alpha", 1.0F);
  const TensorSpec& spec = request.outputs[0];
  return MakeEach(request, [=](Inputs inputs, Outputs outputs, Range range) {
    const auto* in = As<float>(inputs[0]);
    auto* out = As<float>(outputs[0]);
    for (int64_t i = range.begin; i < range.end; ++i) {
      out[i] = in[i] > alpha ? in[i] : 0.0F;
    }
    ClearPadding(spec, out, range);
  });
}

MadeKernel MakeSoftplus(const KernelRequest& request) {
  return MakeFloat(request, [](float x) {
    return std::max(x, 0.0F) + std::log1p(std::exp(-std::fabs(x)));
  });
}

MadeKernel MakeMish(const KernelRequest& request) {
  return MakeFloat(request, [](float x) {
    const float softplus =
        std::max(x, 0.0F) + std::log1p(std::exp(-std::fabs(x)));
    return x * std::tanh(softplus);
  });
}

template <float (*kFunction)(float)>
MadeKernel MakeMath(const KernelRequest& request) {
  return MakeFloat(request, [](float x) { return kFunction(x); });
}

float Softsign(float x) { return x / (1.0F + std::fabs(x)); }
float Reciprocal(float x) { return 1.0F / x; }

struct Row {
  const char* type;
  absl::StatusOr<std::unique_ptr<Kernel>> (*make)(const KernelRequest&);
};

}  // namespace

void RegisterUnary(OperatorTable& table) {
  const Row floats[] = {
      {"Sigmoid",
       [](const KernelRequest& r) {
         return MakeActivation(r, Activation::kSigmoid);
       }},
      {"Tanh",
       [](const KernelRequest& r) {
         return MakeActivation(r, Activation::kTanh);
       }},
      {"LeakyRelu",
       [](const KernelRequest& r) {
         return MakeActivation(r, Activation::kLeakyRelu,
                               r.node.Float("alpha", 0.01F));
       }},
      {"HardSigmoid",
       [](const KernelRequest& r) {
         return MakeActivation(r, Activation::kHardSigmoid,
                               r.node.Float("alpha", 0.2F),
                               r.node.Float("beta", 0.5F));
       }},
      {"HardSwish",
       [](const KernelRequest& r) {
         return MakeActivation(r, Activation::kHardSwish);
       }},
      {"Gelu",
       [](const KernelRequest& r) -> MadeKernel {
         const std::string form = r.node.String("approximate", "none");
         if (form != "none" && form != "tanh") {
           return r.node.Error("approximate is '" + form +
                               "', known are none and tanh");
         }
         return MakeActivation(
             r, form == "tanh" ? Activation::kGeluTanh : Activation::kGelu);
       }},
      {"Swish",
       [](const KernelRequest& r) -> MadeKernel {
         if (r.node.Float("alpha", 1.0F) != 1.0F) {
           return r.node.Error("an alpha other than 1 is not supported");
         }
         return MakeActivation(r, Activation::kSwish);
       }},
      {"Exp",
       [](const KernelRequest& r) {
         return MakeLoop(r, ExpLoop(), 0.0F, 0.0F, /*keeps_zero=*/false);
       }},
      {"Elu", MakeElu},
      {"Celu", MakeCelu},
      {"Selu", MakeSelu},
      {"ThresholdedRelu", MakeThresholdedRelu},
      {"Softplus", MakeSoftplus},
      {"Mish", MakeMish},
      {"Softsign", MakeMath<Softsign>},
      {"Reciprocal", MakeMath<Reciprocal>},
      {"Log", MakeMath<std::log>},
      {"Sqrt", MakeMath<std::sqrt>},
      {"Erf",
       [](const KernelRequest& r) {
         return MakeLoop(r, ErfLoop(), 0.0F, 0.0F, /*keeps_zero=*/true);
       }},
      {"Floor", MakeMath<std::floor>},
      {"Ceil", MakeMath<std::ceil>},
      {"Round", MakeMath<std::nearbyint>},
      {"Sin", MakeMath<std::sin>},
      {"Cos", MakeMath<std::cos>},
      {"Tan", MakeMath<std::tan>},
      {"Asin", MakeMath<std::asin>},
      {"Acos", MakeMath<std::acos>},
      {"Atan", MakeMath<std::atan>},
      {"Sinh", MakeMath<std::sinh>},
      {"Cosh", MakeMath<std::cosh>},
      {"Asinh", MakeMath<std::asinh>},
      {"Acosh", MakeMath<std::acosh>},
      {"Atanh", MakeMath<std::atanh>},
  };
  for (const Row& row : floats) {
    table.Add({.type = row.type,
               .placement = PlacementRule::kElementwise,
               .infer = InferFloat,
               .make = row.make,
               .may_block = AnyBlock,
               .overwrites = Overwrite::kFirst});
  }
  const Row numbers[] = {{"Relu", MakeRelu},
                         {"Abs", MakeAbs},
                         {"Neg", MakeNeg},
                         {"Shrink", MakeShrink},
                         {"Sign", MakeSign}};
  for (const Row& row : numbers) {
    table.Add({.type = row.type,
               .placement = PlacementRule::kElementwise,
               .infer = InferNumber,
               .make = row.make,
               .may_block = AnyBlock,
               .overwrites = Overwrite::kFirst});
  }
  table.Add({.type = "Clip",
             .placement = PlacementRule::kElementwise,
             .infer = InferClip,
             .make = MakeClip,
             .may_block = MayBlockClip,
             .overwrites = Overwrite::kFirst});
  table.Add({.type = "Not", .infer = InferNot, .make = MakeNot});
  table.Add(
      {.type = "BitwiseNot", .infer = InferBitwiseNot, .make = MakeBitwiseNot});
  table.Add({.type = "IsNaN", .infer = InferQuestion, .make = MakeIsNan});
  table.Add({.type = "IsInf", .infer = InferQuestion, .make = MakeIsInf});
}

}  // namespace rknnd::soft
