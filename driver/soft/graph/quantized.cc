#include "driver/soft/graph/quantized.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "driver/soft/kernels/operator.h"

namespace rknnd::soft {
namespace {

bool IsOneOf(const Node& node, const char* type) {
  return (node.domain.empty() || node.domain == "com.microsoft") &&
         node.type == type && node.inputs.size() >= 2 &&
         node.inputs[0] != kNoValue && node.outputs.size() == 1 &&
         node.outputs[0] != kNoValue;
}

}  // namespace

bool IsQuantize(const Node& node) { return IsOneOf(node, "QuantizeLinear"); }
bool IsDequantize(const Node& node) {
  return IsOneOf(node, "DequantizeLinear");
}
bool IsStandard(const Node& node, const char* type) {
  return node.domain.empty() && node.type == type &&
         node.epilogue.activation == Activation::kNone &&
         node.epilogue.add == kNoValue && node.outputs.size() == 1 &&
         node.outputs[0] != kNoValue;
}

bool IsEightBit(DataType type) {
  return type == DataType::kInt8 || type == DataType::kUint8;
}

bool HaveShapes(const Graph& graph, const std::vector<ValueId>& values) {
  return std::all_of(values.begin(), values.end(), [&graph](ValueId id) {
    return id == kNoValue || graph.value(id).shape.has_value();
  });
}

ValueId InputOf(const Node& node, size_t i) {
  return i < node.inputs.size() ? node.inputs[i] : kNoValue;
}

const Constant* ConstantOf(const Graph& graph, const Node& node, size_t i) {
  const ValueId id = InputOf(node, i);
  return id == kNoValue ? nullptr : graph.value(id).constant.get();
}

std::optional<Quantization> WholeTensor(const Graph& graph, const Node& node) {
  const bool quantizes = IsQuantize(node);
  const Value& real = graph.value(quantizes ? node.inputs[0] : node.outputs[0]);
  const Value& bytes =
      graph.value(quantizes ? node.outputs[0] : node.inputs[0]);
  if (real.type != DataType::kFloat32 || !IsEightBit(bytes.type)) {
    return std::nullopt;
  }
  const Constant* scale = ConstantOf(graph, node, 1);
  if (scale == nullptr || scale->type != DataType::kFloat32 ||
      scale->elements() != 1) {
    return std::nullopt;
  }
  Quantization result;
  result.scale = *scale->as<float>();
  if (!(result.scale > 0.0F) || !std::isfinite(result.scale)) {
    return std::nullopt;
  }
  if (InputOf(node, 2) == kNoValue) return result;
  const Constant* zero = ConstantOf(graph, node, 2);
  if (zero == nullptr || zero->type != bytes.type || zero->elements() != 1) {
    return std::nullopt;
  }
  result.zero = zero->type == DataType::kInt8 ? int32_t{*zero->as<int8_t>()}
                                              : int32_t{*zero->as<uint8_t>()};
  return result;
}

bool SameScale(const Graph& graph, const Node& a, const Node& b) {
  const std::optional<Quantization> x = WholeTensor(graph, a);
  const std::optional<Quantization> y = WholeTensor(graph, b);
  const auto bytes = [&graph](const Node& node) {
    return graph.value(IsQuantize(node) ? node.outputs[0] : node.inputs[0])
        .type;
  };
  return x.has_value() && y.has_value() && x->scale == y->scale &&
         x->zero == y->zero && bytes(a) == bytes(b);
}

size_t MovedInputs(const Graph& graph, const Node& node) {
  if (!node.domain.empty() || node.inputs.empty() || node.outputs.size() != 1 ||
      node.outputs[0] == kNoValue) {
    return 0;
  }
  if (node.type == "Concat") {
    const bool whole = std::find(node.inputs.begin(), node.inputs.end(),
                                 kNoValue) == node.inputs.end();
    return whole ? node.inputs.size() : 0;
  }
  if (node.inputs[0] == kNoValue) return 0;
  if (node.type == "Resize" || node.type == "Upsample") {
    const NodeView view(graph, node);
    const bool nearest = view.String("mode", "nearest") == "nearest";
    const bool extrapolates = view.String("coordinate_transformation_mode",
                                          "") == "tf_crop_and_resize";
    return nearest && !extrapolates ? 1 : 0;
  }
  static constexpr std::array<std::string_view, 12> kMovers = {
      "Reshape", "Flatten",      "Squeeze",      "Unsqueeze",
      "Slice",   "Gather",       "Transpose",    "MaxPool",
      "Expand",  "DepthToSpace", "SpaceToDepth", "Tile"};
  return std::find(kMovers.begin(), kMovers.end(), node.type) != kMovers.end()
             ? 1
             : 0;
}

}  // namespace rknnd::soft
