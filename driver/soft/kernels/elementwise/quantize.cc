// QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear: the borders
// between real numbers and 8-bit ones. Scales may come at run time.

#include <algorithm>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "driver/soft/kernels/checks.h"
#include "driver/soft/kernels/families.h"
#include "driver/soft/kernels/loops.h"
#include "driver/soft/kernels/quantization.h"

namespace rknnd::soft {
namespace {

int64_t Count(const NodeView& node, size_t i) {
  return ProductOf(node.shape(i), 0, node.shape(i).size());
}

// The tensor as runs of `inner` elements with one scale each.
struct Runs {
  int64_t outer = 1, scales = 1, inner = 1;
};

absl::StatusOr<Runs> ParseRuns(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckFloat(node, 1));
  if (node.Int("block_size", 0) != 0) {
    return node.Error("scales of blocks (block_size) are not supported");
  }
  Runs runs;
  const Shape& shape = node.shape(0);
  const int64_t scales = Count(node, 1);
  if (node.has_input(2) && Count(node, 2) != scales) {
    return node.Error(
        absl::StrCat(scales, " scales and ", Count(node, 2), " zero points"));
  }
  if (scales == 1) {
    runs.inner = ProductOf(shape, 0, shape.size());
    return runs;
  }
  RKNND_ASSIGN_OR_RETURN(const size_t axis,
                         CheckAxis(node, node.Int("axis", 1), shape.size()));
  if (node.shape(1) != Shape{shape[axis]}) {
    return node.Error(absl::StrCat("scales ", ShapeText(node.shape(1)),
                                   " along an axis of ", shape[axis]));
  }
  runs.outer = ProductOf(shape, 0, axis);
  runs.scales = scales;
  runs.inner = ProductOf(shape, axis + 1, shape.size());
  return runs;
}

// As the zero point or, since opset 21, an attribute says.
absl::StatusOr<DataType> QuantizedType(const NodeView& node) {
  const DataType type = TypeOfZero(node, 2);
  const int64_t asked = node.Int("output_dtype", 0);
  if (asked == 0) return type;
  RKNND_ASSIGN_OR_RETURN(const DataType given, TypeFromOnnx(node, asked));
  if (given != DataType::kInt8 && given != DataType::kUint8) {
    return node.Error(absl::StrCat("output_dtype ", asked, ", ",
                                   DataTypeName(given),
                                   ": INT8 and UINT8 are supported"));
  }
  if (node.has_input(2) && given != type) {
    return node.Error(absl::StrCat("output_dtype ", DataTypeName(given),
                                   ", zero point of ", DataTypeName(type)));
  }
  return given;
}

Inference InferQuantize(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {2, 3}));
  RKNND_RETURN_IF_ERROR(
      CheckType(node, 0, {DataType::kFloat32, DataType::kInt32}));
  RKNND_RETURN_IF_ERROR(CheckQuantized(node, 2));
  RKNND_RETURN_IF_ERROR(ParseRuns(node).status());
  RKNND_ASSIGN_OR_RETURN(const DataType type, QuantizedType(node));
  return InferOne(node, type, node.shape(0));
}

Inference InferDequantize(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {2, 3}));
  RKNND_RETURN_IF_ERROR(CheckType(
      node, 0, {DataType::kInt8, DataType::kUint8, DataType::kInt32}));
  if (node.has_input(2) && node.type(2) != node.type(0)) {
    return node.Error(absl::StrCat("values of ", DataTypeName(node.type(0)),
                                   ", zero point of ",
                                   DataTypeName(node.type(2))));
  }
  RKNND_RETURN_IF_ERROR(ParseRuns(node).status());
  return InferOne(node, DataType::kFloat32, node.shape(0));
}

// One scale: the placement does not matter.
bool MayBlock(const NodeView& node, size_t i, int) {
  const bool is_tensor = i == 0 || i >= node.input_count();
  const Shape& shape = node.shape(0);
  return is_tensor && Count(node, 1) == 1 && shape.size() >= 3 &&
         shape.size() <= 5 && node.type(0) == DataType::kFloat32;
}
bool MayLieLast(const NodeView& node, size_t i) {
  const bool is_tensor = i == 0 || i >= node.input_count();
  return is_tensor && Count(node, 1) == 1 && SizeOf(node.type(0)) == 1;
}

// f(first, scale, elements) for each run of a part with one scale.
template <class F>
void ForEachRun(const Runs& runs, Part part, F f) {
  const Range range =
      ShareOf(part, runs.outer * runs.scales * runs.inner, kElementUnit);
  for (int64_t at = range.begin; at < range.end;) {
    const int64_t run = at / runs.inner;
    const int64_t end = std::min((run + 1) * runs.inner, range.end);
    f(at, run % runs.scales, end - at);
    at = end;
  }
}

absl::StatusOr<Runs> RunsOf(const KernelRequest& request) {
  RKNND_ASSIGN_OR_RETURN(Runs runs, ParseRuns(request.node));
  if (request.inputs[0].placement != request.outputs[0].placement) {
    return request.node.Error("its output is placed unlike its input");
  }
  if (runs.scales == 1) {
    runs.outer = 1;
    runs.inner = PhysicalElements(request.inputs[0]);
  }
  return runs;
}

template <class From, class To>
MadeKernel MakeQuantizeOf(const KernelRequest& request, const Runs& runs) {
  return MakeSharedKernel(request, [runs](Inputs inputs, Outputs outputs,
                                          Part part) {
    const auto* scales = As<float>(inputs[1]);
    const To* zeros =
        inputs.size() > 2 && inputs[2] != nullptr ? As<To>(inputs[2]) : nullptr;
    ForEachRun(runs, part, [&](int64_t at, int64_t s, int64_t n) {
      const float scale = scales[s];
      const int32_t zero = zeros == nullptr ? 0 : int32_t{zeros[s]};
      const From* from = As<From>(inputs[0]) + at;
      To* to = As<To>(outputs[0]) + at;
      for (int64_t i = 0; i < n; ++i) {
        to[i] = Quantize<To>(static_cast<float>(from[i]) / scale, zero);
      }
    });
  });
}

MadeKernel MakeQuantize(const KernelRequest& request) {
  RKNND_ASSIGN_OR_RETURN(const Runs runs, RunsOf(request));
  const bool from_float = request.inputs[0].type == DataType::kFloat32;
  if (request.outputs[0].type == DataType::kInt8) {
    return from_float ? MakeQuantizeOf<float, int8_t>(request, runs)
                      : MakeQuantizeOf<int32_t, int8_t>(request, runs);
  }
  return from_float ? MakeQuantizeOf<float, uint8_t>(request, runs)
                    : MakeQuantizeOf<int32_t, uint8_t>(request, runs);
}

template <class From>
MadeKernel MakeDequantizeOf(const KernelRequest& request, const Runs& runs) {
  return MakeSharedKernel(request, [runs](Inputs inputs, Outputs outputs,
                                          Part part) {
    const auto* scales = As<float>(inputs[1]);
    const From* zeros = inputs.size() > 2 && inputs[2] != nullptr
                            ? As<From>(inputs[2])
                            : nullptr;
    ForEachRun(runs, part, [&](int64_t at, int64_t s, int64_t n) {
      const float scale = scales[s];
      // Modulo 2^32: the zero point of an int32 tensor is whatever a file says.
      const auto zero = zeros == nullptr ? 0U : static_cast<uint32_t>(zeros[s]);
      const From* from = As<From>(inputs[0]) + at;
      auto* to = As<float>(outputs[0]) + at;
      for (int64_t i = 0; i < n; ++i) {
        to[i] = static_cast<float>(static_cast<int32_t>(
                    static_cast<uint32_t>(from[i]) - zero)) *
                scale;
      }
    });
  });
}

MadeKernel MakeDequantize(const KernelRequest& request) {
  RKNND_ASSIGN_OR_RETURN(const Runs runs, RunsOf(request));
  switch (request.inputs[0].type) {
    case DataType::kInt8:
      return MakeDequantizeOf<int8_t>(request, runs);
    case DataType::kUint8:
      return MakeDequantizeOf<uint8_t>(request, runs);
    default:
      return MakeDequantizeOf<int32_t>(request, runs);
  }
}

Inference InferDynamic(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {1, 1, 3}));
  RKNND_RETURN_IF_ERROR(CheckFloat(node, 0));
  return Infer(node, {{DataType::kUint8, node.shape(0)},
                      {DataType::kFloat32, {}},
                      {DataType::kUint8, {}}});
}

MadeKernel MakeDynamic(const KernelRequest& request) {
  const int64_t count = request.inputs[0].elements();
  return MakeKernel([count](Inputs inputs, Outputs outputs, std::byte*) {
    const auto* x = As<float>(inputs[0]);
    float low = 0.0F;
    float high = 0.0F;
    for (int64_t i = 0; i < count; ++i) {
      low = x[i] < low ? x[i] : low;
      high = x[i] > high ? x[i] : high;
    }
    float scale = (high - low) / 255.0F;
    if (!(scale > 0.0F)) scale = 1.0F;
    const auto zero = Quantize<uint8_t>(-low / scale, 0);
    auto* y = As<uint8_t>(outputs[0]);
    for (int64_t i = 0; i < count; ++i) {
      y[i] = Quantize<uint8_t>(x[i] / scale, zero);
    }
    if (outputs.size() > 1 && outputs[1] != nullptr) {
      *As<float>(outputs[1]) = scale;
    }
    if (outputs.size() > 2 && outputs[2] != nullptr) {
      *As<uint8_t>(outputs[2]) = zero;
    }
  });
}

}  // namespace

void RegisterQuantize(OperatorTable& table) {
  for (const char* domain : {"", "com.microsoft"}) {
    table.Add({.domain = domain,
               .type = "QuantizeLinear",
               .placement = PlacementRule::kElementwise,
               .infer = InferQuantize,
               .make = MakeQuantize,
               .may_block = MayBlock});
    table.Add({.domain = domain,
               .type = "DequantizeLinear",
               .placement = PlacementRule::kElementwise,
               .infer = InferDequantize,
               .make = MakeDequantize,
               .may_channels_last = MayLieLast});
  }
  table.Add({.type = "DynamicQuantizeLinear",
             .infer = InferDynamic,
             .make = MakeDynamic});
}

}  // namespace rknnd::soft
