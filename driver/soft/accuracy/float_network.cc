#include "driver/soft/accuracy/float_network.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "driver/soft/graph/quantized.h"
#include "driver/soft/graph/uses.h"
#include "driver/soft/kernels/operator.h"

namespace rknnd::soft {
namespace {

// Of the nodes made here; the first with an axis for scales.
constexpr int kOpset = 13;
// ONNX's TensorProto.FLOAT.
constexpr int32_t kOnnxFloat = 1;

class Floats {
 public:
  explicit Floats(const Graph& from)
      : from_(from),
        graph_(from),
        reals_(from.values.size(), kNoValue),
        scales_(from.values.size()) {
    graph_.nodes.clear();
  }

  FloatNetwork Run() {
    for (const Node& node : from_.nodes) Add(node);
    for (size_t v = 0; v < reals_.size(); ++v) {
      if (reals_[v] == kNoValue) reals_[v] = static_cast<ValueId>(v);
    }
    for (GraphPort& port : graph_.outputs) {
      const ValueId real = reals_[static_cast<size_t>(port.value)];
      if (real == port.value) continue;
      if (IsEightBit(graph_.value(port.value).type)) {
        port.onnx_type = kOnnxFloat;
      }
      port.value = real;
    }
    return {std::move(graph_), std::move(reals_)};
  }

 private:
  // What the file says of an 8-bit tensor that has real numbers here.
  struct Scale {
    ValueId scale = kNoValue, zero = kNoValue;
  };

  void Add(const Node& node) {
    // Behind a foreign operator nothing has been inferred or checked.
    if (!HaveShapes(from_, node.inputs)) return Keep(node);
    if (IsQuantize(node) && node.inputs[1] != kNoValue &&
        from_.value(node.inputs[0]).type == DataType::kFloat32) {
      const Scale scale = {node.inputs[1], InputOf(node, 2)};
      return Stand(node.outputs[0],
                   Clipped(node.outputs[0], Real(node.inputs[0]), scale),
                   scale);
    }
    if (IsDequantize(node) && HasReal(node.inputs[0])) {
      reals_[static_cast<size_t>(node.outputs[0])] = Real(node.inputs[0]);
      return;
    }
    if (absl::StartsWith(node.type, "Q") && Lower(node)) return;
    if (!Move(node)) Keep(node);
  }

  void Keep(const Node& node) {
    Node same = node;
    for (ValueId& input : same.inputs) {
      // Of 8-bit tensors those who read them want the bytes.
      if (input != kNoValue && !IsEightBit(from_.value(input).type)) {
        input = Real(input);
      }
    }
    Push(std::move(same));
  }

  [[nodiscard]] bool HasReal(ValueId value) const {
    return value != kNoValue && reals_[static_cast<size_t>(value)] != kNoValue;
  }
  [[nodiscard]] ValueId Real(ValueId value) const {
    return HasReal(value) ? reals_[static_cast<size_t>(value)] : value;
  }

  void Push(Node node) {
    for (const ValueId output : node.outputs) {
      if (output != kNoValue) makers_[output] = node.type;
    }
    graph_.nodes.push_back(std::move(node));
  }

  // Quantisers leave a Relu out whose output begins at the lowest byte: less
  // than zero cannot be said. Then it is part of the operator before, which
  // `real` comes from.
  ValueId Clipped(ValueId bytes, ValueId real, const Scale& scale) {
    const auto maker = makers_.find(real);
    if (maker == makers_.end() || maker->second == "Relu") return real;
    const DataType type = from_.value(bytes).type;
    int zero = 0;
    if (scale.zero != kNoValue) {
      const Constant* given = from_.value(scale.zero).constant.get();
      if (given == nullptr || given->elements() != 1) return real;
      zero = type == DataType::kInt8 ? int{*given->as<int8_t>()}
                                     : int{*given->as<uint8_t>()};
    }
    if (zero != (type == DataType::kInt8 ? -128 : 0)) return real;
    Node relu = Made("Relu", graph_.value(bytes).name);
    relu.inputs = {real};
    relu.outputs = {NewFloat(bytes)};
    const ValueId clipped = relu.outputs[0];
    Push(std::move(relu));
    return clipped;
  }

  // `real` stands for the numbers of `bytes`; who wants the bytes themselves
  // gets them by a Quantize node, which is dead if there is nobody.
  void Stand(ValueId bytes, ValueId real, const Scale& scale) {
    reals_[static_cast<size_t>(bytes)] = real;
    scales_[static_cast<size_t>(bytes)] = scale;
    Node quantize = Made("QuantizeLinear", graph_.value(bytes).name);
    quantize.inputs = {real, scale.scale,
                       ZeroOf(scale.zero, scale.scale, from_.value(bytes))};
    quantize.outputs = {bytes};
    Push(std::move(quantize));
  }

  // A zero point that is not written down is 0, and a uint8.
  ValueId ZeroOf(ValueId zero, ValueId scale, const Value& bytes) {
    const std::optional<Shape>& shape = graph_.value(scale).shape;
    if (zero != kNoValue || bytes.type != DataType::kInt8 || !shape) {
      return zero;
    }
    const absl::StatusOr<int64_t> elements = ElementCount(*shape);
    if (!elements.ok()) return zero;
    Constant zeros{bytes.type, *shape, {}};
    zeros.data.resize(static_cast<size_t>(*elements));
    return AddConstant(graph_, absl::StrCat(bytes.name, ".zero"),
                       std::move(zeros));
  }

  static Node Made(const char* type, const std::string& name) {
    Node node;
    node.name = absl::StrCat(name, ".float");
    node.type = type;
    node.layer_type = type;
    node.opset = kOpset;
    return node;
  }

  ValueId NewFloat(ValueId like) {
    Value value;
    value.name = absl::StrCat(graph_.value(like).name, ".float");
    value.shape = from_.value(like).shape;
    graph_.values.push_back(std::move(value));
    return static_cast<ValueId>(graph_.values.size() - 1);
  }

  // The real numbers of `x`: there already, or dequantised, with a scale for
  // each index of `axis` or one for all.
  ValueId RealOf(ValueId x, ValueId scale, ValueId zero, int64_t axis = 0) {
    if (HasReal(x)) return Real(x);
    Node dequantize = Made("DequantizeLinear", graph_.value(x).name);
    dequantize.inputs = {x, scale, zero};
    const std::optional<Shape>& shape = graph_.value(scale).shape;
    if (shape && !shape->empty() && (*shape)[0] != 1) {
      dequantize.attributes["axis"] = axis;
    }
    dequantize.outputs = {NewFloat(x)};
    Push(dequantize);
    return dequantize.outputs[0];
  }

  // Rearranges numbers: those of 8-bit tensors with a scale as floats.
  bool Move(const Node& node) {
    const bool splits = node.domain.empty() && node.type == "Split";
    const bool pads = node.domain.empty() && node.type == "Pad";
    const size_t moved = splits || pads ? size_t{1} : MovedInputs(from_, node);
    const auto is_real = [this](ValueId id) {
      return HasReal(id) && IsEightBit(from_.value(id).type);
    };
    const auto end = node.inputs.begin() + static_cast<std::ptrdiff_t>(std::min(
                                               moved, node.inputs.size()));
    const auto known = std::find_if(node.inputs.begin(), end, is_real);
    if (known == end) return false;
    const Scale scale = scales_[static_cast<size_t>(*known)];
    Node floats = node;
    for (size_t i = 0; i < floats.inputs.size(); ++i) {
      ValueId& input = floats.inputs[i];
      if (input == kNoValue) continue;
      if (i < moved || (pads && i == 2)) {
        input = RealOf(input, scale.scale, scale.zero);
      }
    }
    for (ValueId& output : floats.outputs) {
      if (output != kNoValue) output = NewFloat(output);
    }
    Push(floats);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] != kNoValue) {
        Stand(node.outputs[i], floats.outputs[i], scale);
      }
    }
    return true;
  }

  // Operators on integers that say their scales. False: stays as it is.
  bool Lower(const Node& node) {
    if (node.outputs.size() != 1 || node.outputs[0] == kNoValue) return false;
    if (node.type == "QLinearConcat") return LowerConcat(node);
    if (node.type == "QLinearConv") return LowerProduct(node, "Conv", 0, 6);
    if (node.type == "QLinearMatMul") {
      return LowerProduct(node, "MatMul", LastAxis(node), 6);
    }
    if (node.type == "QGemm") {
      const bool turned = NodeView(from_, node).Int("transB", 0) != 0;
      return LowerProduct(node, "Gemm", turned ? 0 : 1, 7);
    }
    struct Same {
      std::string_view type;
      const char* as;
      size_t data;
    };
    static constexpr std::array<Same, 6> kSame = {
        {{"QLinearAdd", "Add", 2},
         {"QLinearMul", "Mul", 2},
         {"QLinearSigmoid", "Sigmoid", 1},
         {"QLinearLeakyRelu", "LeakyRelu", 1},
         {"QLinearAveragePool", "AveragePool", 1},
         {"QLinearGlobalAveragePool", "GlobalAveragePool", 1}}};
    const auto* same =
        std::find_if(kSame.begin(), kSame.end(),
                     [&](const Same& row) { return row.type == node.type; });
    // Channels last is a layout that the float operators do not have.
    if (same == kSame.end() || node.inputs.size() < 3 * same->data + 1 ||
        NodeView(from_, node).Int("channels_last", 0) != 0) {
      return false;
    }
    for (size_t i = 0; i < same->data; ++i) {
      if (!HasScale(node, 3 * i)) return false;
    }
    Node floats = Like(node, same->as);
    floats.attributes.erase("channels_last");
    for (size_t i = 0; i < same->data; ++i) {
      floats.inputs.push_back(RealOf(InputOf(node, 3 * i),
                                     InputOf(node, 3 * i + 1),
                                     InputOf(node, 3 * i + 2)));
    }
    Emit(node, std::move(floats), 3 * same->data);
    return true;
  }

  // Whether input `i` is there, and the scale behind it.
  static bool HasScale(const Node& node, size_t i) {
    return InputOf(node, i) != kNoValue && InputOf(node, i + 1) != kNoValue;
  }

  [[nodiscard]] int64_t LastAxis(const Node& node) const {
    const ValueId weights = InputOf(node, 3);
    if (weights == kNoValue) return 0;
    return static_cast<int64_t>(from_.value(weights).shape->size()) - 1;
  }

  static Node Like(const Node& node, const char* type) {
    Node floats = Made(type, node.name);
    floats.name = node.name;
    floats.attributes = node.attributes;
    return floats;
  }

  // `floats` in place of `node`, whose scale is its input `scale`.
  void Emit(const Node& node, Node floats, size_t scale) {
    if (InputOf(node, scale) == kNoValue) {  // floats already
      floats.outputs = {node.outputs[0]};
      Push(std::move(floats));
      return;
    }
    const ValueId real = NewFloat(node.outputs[0]);
    floats.outputs = {real};
    Push(std::move(floats));
    const Scale own = {node.inputs[scale], InputOf(node, scale + 1)};
    Stand(node.outputs[0], Clipped(node.outputs[0], real, own), own);
  }

  // Convolution and products: x, scale, zero, weights, scale, zero, then of
  // QGemm the bias, then the output's scale and zero; of QLinearConv the bias.
  bool LowerProduct(const Node& node, const char* type, int64_t axis,
                    size_t output) {
    if (!HasScale(node, 0) || !HasScale(node, 3)) return false;
    const ValueId given = node.type == "QGemm"         ? InputOf(node, 6)
                          : node.type == "QLinearConv" ? InputOf(node, 8)
                                                       : kNoValue;
    ValueId bias = kNoValue;
    if (given != kNoValue) {
      bias = RealBias(node, given);
      if (bias == kNoValue) return false;
    }
    Node floats = Like(node, type);
    floats.inputs = {
        RealOf(node.inputs[0], node.inputs[1], InputOf(node, 2)),
        RealOf(InputOf(node, 3), InputOf(node, 4), InputOf(node, 5), axis)};
    if (bias != kNoValue) floats.inputs.push_back(bias);
    Emit(node, std::move(floats), output);
    return true;
  }

  // Its unit is the product of the scales of input and weights.
  ValueId RealBias(const Node& node, ValueId value) {
    const Constant* bias = from_.value(value).constant.get();
    const Constant* x = ConstantOf(from_, node, 1);
    const Constant* w = ConstantOf(from_, node, 4);
    if (bias == nullptr || bias->type != DataType::kInt32 || x == nullptr ||
        w == nullptr || x->type != DataType::kFloat32 ||
        w->type != DataType::kFloat32 || x->elements() != 1 ||
        (w->elements() != 1 && w->elements() != bias->elements())) {
      return kNoValue;
    }
    const float alpha =
        node.type == "QGemm" ? NodeView(from_, node).Float("alpha", 1.0F) : 1;
    Constant real{DataType::kFloat32, bias->shape, {}};
    real.data.resize(bias->data.size());
    auto* to = reinterpret_cast<float*>(real.data.data());
    for (int64_t i = 0; i < bias->elements(); ++i) {
      const float scale = w->as<float>()[w->elements() == 1 ? 0 : i];
      to[i] = static_cast<float>(double{alpha} * *x->as<float>() * scale *
                                 bias->as<int32_t>()[i]);
    }
    return AddConstant(graph_, absl::StrCat(from_.value(value).name, ".float"),
                       std::move(real));
  }

  bool LowerConcat(const Node& node) {
    if (node.inputs.size() < 5 || node.inputs.size() % 3 != 2) return false;
    for (size_t i = 2; i < node.inputs.size(); i += 3) {
      if (!HasScale(node, i)) return false;
    }
    Node floats = Like(node, "Concat");
    for (size_t i = 2; i + 2 < node.inputs.size(); i += 3) {
      floats.inputs.push_back(
          RealOf(node.inputs[i], node.inputs[i + 1], node.inputs[i + 2]));
    }
    Emit(node, std::move(floats), 0);
    return true;
  }

  const Graph& from_;
  Graph graph_;
  std::vector<ValueId> reals_;  // of the values of from_; kNoValue: itself
  std::vector<Scale> scales_;   // likewise, of 8-bit ones that have a real
  // The types of the nodes that make values of graph_.
  std::unordered_map<ValueId, std::string> makers_;
};

}  // namespace

FloatNetwork MakeFloat(const Graph& quantized) {
  return Floats(quantized).Run();
}

}  // namespace rknnd::soft
