// See quantization.h.

#include "driver/soft/kernels/quantization.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "driver/soft/kernels/checks.h"
#include "driver/soft/kernels/loops.h"

namespace rknnd::soft {

absl::Status CheckQuantized(const NodeView& node, size_t i) {
  return CheckType(node, i, {DataType::kInt8, DataType::kUint8});
}

absl::Status CheckFinite(const NodeView& node,
                         const std::vector<float>& numbers) {
  if (std::all_of(numbers.begin(), numbers.end(),
                  [](float number) { return std::isfinite(number); })) {
    return absl::OkStatus();
  }
  return node.Error("its scales and bias make numbers that are too large");
}

DataType TypeOfZero(const NodeView& node, size_t i) {
  return node.has_input(i) ? node.type(i) : DataType::kUint8;
}

absl::StatusOr<Quantized> ReadQuantized(const NodeView& node, size_t scale,
                                        DataType type) {
  if (!node.has_input(scale)) {
    return node.Error(absl::StrCat("input ", scale, ", a scale, is missing"));
  }
  RKNND_RETURN_IF_ERROR(CheckFloat(node, scale));
  if (type != DataType::kInt8 && type != DataType::kUint8) {
    return node.Error(absl::StrCat("input ", scale, " is the scale of a ",
                                   DataTypeName(type),
                                   " tensor, which must be 8-bit"));
  }
  const size_t zero = scale + 1;
  const Constant* scales = node.constant(scale);
  const Constant* zeros = node.constant(zero);
  if (scales == nullptr || (node.has_input(zero) && zeros == nullptr)) {
    return absl::FailedPreconditionError(
        absl::StrCat(node.node().type, " '", node.node().name,
                     "': scale and zero point (", "inputs ", scale, " and ",
                     zero, ") must be known when the model is loaded"));
  }
  Quantized result;
  result.type = type;
  result.scale.assign(scales->as<float>(),
                      scales->as<float>() + scales->elements());
  for (const float value : result.scale) {
    if (!(value > 0.0F) || !std::isfinite(value)) {
      return node.Error(
          absl::StrCat("input ", scale, ": a scale cannot be ", value));
    }
  }
  if (result.scale.empty()) {
    return node.Error(absl::StrCat("input ", scale, " has no scale"));
  }
  result.zero.assign(result.scale.size(), 0);
  if (zeros == nullptr) return result;
  if (zeros->type != type ||
      zeros->elements() != static_cast<int64_t>(result.scale.size())) {
    return node.Error(absl::StrCat(
        "input ", zero, ": zero points ", ShapeText(zeros->shape), " of ",
        DataTypeName(zeros->type), " for ", result.scale.size(),
        " scales and values of ", DataTypeName(type)));
  }
  const NumberReader read = ReaderOf(zeros->type);
  for (size_t i = 0; i < result.zero.size(); ++i) {
    result.zero[i] =
        static_cast<int32_t>(read(zeros->data.data(), static_cast<int64_t>(i)));
  }
  return result;
}

absl::StatusOr<Quantized> ReadQuantizedTensor(const NodeView& node,
                                              size_t scale, DataType type) {
  RKNND_ASSIGN_OR_RETURN(Quantized result, ReadQuantized(node, scale, type));
  if (result.per_tensor()) return result;
  return node.Error(absl::StrCat("input ", scale, " has ", result.scale.size(),
                                 " scales, here one is allowed"));
}

MadeKernel MakeLookup(const KernelRequest& request,
                      const std::vector<uint8_t>& table) {
  if (request.inputs[0].placement != request.outputs[0].placement) {
    return request.node.Error("its output is placed unlike its input");
  }
  RKNND_ASSIGN_OR_RETURN(
      const std::byte* const kept,
      request.weights.StoreCopy(std::as_bytes(std::span(table))));
  const auto* entries = reinterpret_cast<const uint8_t*>(kept);
  const int64_t count = PhysicalElements(request.outputs[0]);
  // One byte after the other: no vectors.
  constexpr int64_t kByte = 16;
  return MakeSharedKernel(
      request,
      [entries, count](Inputs inputs, Outputs outputs, Part part) {
        const Range range = ShareOf(part, count, kElementUnit);
        const auto* in = As<uint8_t>(inputs[0]);
        auto* out = As<uint8_t>(outputs[0]);
        for (int64_t i = range.begin; i < range.end; ++i) {
          out[i] = entries[in[i]];
        }
      },
      kByte);
}

}  // namespace rknnd::soft
