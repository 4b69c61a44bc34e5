#include "driver/soft/graph/tensor_scales.h"

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "absl/strings/match.h"
#include "driver/soft/graph/quantized.h"

namespace rknnd::soft {
namespace {

class Scales {
 public:
  explicit Scales(const Graph& graph)
      : graph_(graph), scales_(graph.values.size()) {}

  std::vector<std::optional<Quantization>> Run() {
    for (const std::vector<GraphPort>* ports :
         {&graph_.inputs, &graph_.outputs}) {
      for (const GraphPort& port : *ports) Set(port.value, port.quantization);
    }
    for (const Node& node : graph_.nodes) Read(node);
    // What only moves numbers leaves their meaning as it is. A scale may come
    // to a tensor by way of its neighbours: forth, back, and forth.
    for (bool forward : {true, false, true}) {
      const size_t count = graph_.nodes.size();
      for (size_t i = 0; i < count; ++i) {
        Carry(graph_.nodes[forward ? i : count - 1 - i], forward);
      }
    }
    return std::move(scales_);
  }

 private:
  void Set(ValueId value, const std::optional<Quantization>& scale) {
    if (value == kNoValue || !scale.has_value() ||
        !IsEightBit(graph_.value(value).type)) {
      return;
    }
    if (!(scale->scale > 0.0F) || !std::isfinite(scale->scale)) return;
    std::optional<Quantization>& known = scales_[static_cast<size_t>(value)];
    if (!known.has_value()) known = scale;
  }

  // The pair of inputs at `at`: one scale, and its zero point or none.
  [[nodiscard]] std::optional<Quantization> At(const Node& node,
                                               size_t at) const {
    const Constant* scale = ConstantOf(graph_, node, at);
    if (scale == nullptr || scale->type != DataType::kFloat32 ||
        scale->elements() != 1) {
      return std::nullopt;
    }
    Quantization result;
    result.scale = *scale->as<float>();
    const Constant* zero = ConstantOf(graph_, node, at + 1);
    if (zero == nullptr) return result;
    if (!IsEightBit(zero->type) || zero->elements() != 1) return std::nullopt;
    result.zero = zero->type == DataType::kInt8 ? *zero->as<int8_t>()
                                                : *zero->as<uint8_t>();
    return result;
  }

  void Read(const Node& node) {
    if (node.outputs.empty()) return;
    if (IsQuantize(node))
      return Set(node.outputs[0], WholeTensor(graph_, node));
    if (IsDequantize(node)) {
      return Set(InputOf(node, 0), WholeTensor(graph_, node));
    }
    if (node.type == "QGemm") return ReadTriples(node, 2, 7);
    if (node.type == "QLinearConcat") {
      Set(node.outputs[0], At(node, 0));
      for (size_t i = 2; i + 1 < node.inputs.size(); i += 3) {
        Set(node.inputs[i], At(node, i + 1));
      }
      return;
    }
    if (node.type == "QLinearConv" || node.type == "QLinearMatMul" ||
        node.type == "QLinearAdd" || node.type == "QLinearMul") {
      return ReadTriples(node, 2, 6);
    }
    if (absl::StartsWith(node.type, "QLinear")) ReadTriples(node, 1, 3);
  }

  // `data` inputs with their scales first, the output's scale at `output`.
  void ReadTriples(const Node& node, size_t data, size_t output) {
    for (size_t i = 0; i < data; ++i) {
      Set(InputOf(node, 3 * i), At(node, 3 * i + 1));
    }
    Set(node.outputs[0], At(node, output));
  }

  void Carry(const Node& node, bool forward) {
    const bool rearranges =
        node.type == "ShuffleChannels" || node.type == "Split";
    const size_t moved = rearranges ? 1 : MovedInputs(graph_, node);
    for (size_t i = 0; i < moved && i < node.inputs.size(); ++i) {
      const ValueId input = node.inputs[i];
      if (input == kNoValue) continue;
      for (ValueId output : node.outputs) {
        if (output == kNoValue) continue;
        if (forward) {
          Set(output, scales_[static_cast<size_t>(input)]);
        } else {
          Set(input, scales_[static_cast<size_t>(output)]);
        }
      }
    }
  }

  const Graph& graph_;
  std::vector<std::optional<Quantization>> scales_;
};

}  // namespace

std::vector<std::optional<Quantization>> TensorScales(const Graph& graph) {
  return Scales(graph).Run();
}

}  // namespace rknnd::soft
