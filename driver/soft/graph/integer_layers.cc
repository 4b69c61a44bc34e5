// Dequantize -> operator -> Quantize becomes one operator on integers; a
// function of one number between the two becomes a table of 256 answers,
// computed by the operators themselves.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "driver/soft/graph/passes.h"
#include "driver/soft/graph/quantized.h"
#include "driver/soft/graph/uses.h"

namespace rknnd::soft {
namespace {

// Longer chains of functions of one number are no network's.
constexpr size_t kMaxChain = 16;

Constant Bytes(DataType type, Shape shape, const void* data, size_t size) {
  Constant constant;
  constant.type = type;
  constant.shape = std::move(shape);
  const auto* from = static_cast<const std::byte*>(data);
  constant.data.assign(from, from + size);
  return constant;
}

// The output of `node` depends on one element of input 0 and nothing else:
// its other inputs are single known numbers. Which input it is, or nothing.
std::optional<size_t> ArgumentOf(const Graph& graph, const Node& node) {
  if (!node.domain.empty() || node.inputs.empty() || node.outputs.size() != 1 ||
      node.epilogue.add != kNoValue ||
      node.epilogue.activation != Activation::kNone) {
    return std::nullopt;
  }
  static constexpr std::array<std::string_view, 33> kFunctions = {
      "Relu",     "LeakyRelu", "Clip",  "Sigmoid",    "Tanh",
      "Elu",      "HardSwish", "Selu",  "Celu",       "HardSigmoid",
      "Softplus", "Softsign",  "Abs",   "Neg",        "Exp",
      "Log",      "Sqrt",      "Floor", "Reciprocal", "Ceil",
      "Round",    "Erf",       "Sin",   "Cos",        "ThresholdedRelu",
      "Add",      "Sub",       "Mul",   "Div",        "Pow",
      "Min",      "Max",       "PRelu"};
  if (std::find(kFunctions.begin(), kFunctions.end(), node.type) ==
      kFunctions.end()) {
    return std::nullopt;
  }
  std::optional<size_t> argument;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == kNoValue) continue;
    const Constant* constant = ConstantOf(graph, node, i);
    if (constant != nullptr && constant->elements() == 1) continue;
    if (argument.has_value() || constant != nullptr) return std::nullopt;
    argument = i;
  }
  if (!argument.has_value()) return std::nullopt;
  // A bound that is computed is another function.
  if (node.type == "Clip" && *argument != 0) return std::nullopt;
  // A number of more axes would change the shape.
  if (graph.value(node.outputs[0]).shape !=
          graph.value(node.inputs[*argument]).shape ||
      graph.value(node.outputs[0]).type != DataType::kFloat32) {
    return std::nullopt;
  }
  return argument;
}

class IntegerLayers {
 public:
  IntegerLayers(Graph& graph, const OperatorTable& operators)
      : graph_(graph), operators_(operators), uses_(graph) {}

  void Run() {
    const size_t count = graph_.nodes.size();
    for (size_t n = 0; n < count; ++n) {
      if (!IsQuantize(graph_.nodes[n]) ||
          !WholeTensor(graph_, graph_.nodes[n]).has_value()) {
        continue;
      }
      std::optional<Node> made = Make(n);
      // What led to it is dead now, or has other readers.
      if (made.has_value()) graph_.nodes[n] = *std::move(made);
    }
  }

 private:
  // What stands in for the Quantize node `n`.
  std::optional<Node> Make(size_t n) {
    const Node& quantize = graph_.nodes[n];
    // Upwards through functions of one number, last first.
    std::vector<size_t> chain;
    ValueId top = quantize.inputs[0];
    // Whether nobody else reads anything on the way.
    bool alone = Alone(top);
    for (;;) {
      const size_t p = uses_.producer(top);
      if (p == Uses::kNoNode) return std::nullopt;
      const Node& node = graph_.nodes[p];
      if (IsDequantize(node)) return Lookup(n, p, chain);
      const std::optional<size_t> argument = ArgumentOf(graph_, node);
      if (!argument.has_value()) break;
      if (chain.size() == kMaxChain) return std::nullopt;
      chain.push_back(p);
      top = node.inputs[*argument];
      alone = alone && Alone(top);
    }
    if (!alone) return std::nullopt;
    Epilogue epilogue;
    if (chain.size() > 1) return std::nullopt;
    if (chain.size() == 1 && !ActivationOf(graph_.nodes[chain[0]], epilogue)) {
      return std::nullopt;
    }
    const Node& heavy = graph_.nodes[uses_.producer(top)];
    // Behind a foreign operator nothing has been inferred or checked.
    if (!HaveShapes(graph_, heavy.inputs) ||
        !HaveShapes(graph_, heavy.outputs)) {
      return std::nullopt;
    }
    std::optional<Node> made;
    if (IsStandard(heavy, "Conv")) {
      made = Convolution(heavy, quantize, 0);
    } else if (IsStandard(heavy, "Gemm")) {
      made = Gemm(heavy, quantize);
    } else if (IsStandard(heavy, "MatMul")) {
      made = MatMul(heavy, quantize);
    } else if (IsStandard(heavy, "Add") || IsStandard(heavy, "Mul")) {
      if (epilogue.activation == Activation::kLeakyRelu) return std::nullopt;
      made = Binary(heavy, quantize);
    } else if (IsStandard(heavy, "GlobalAveragePool") ||
               IsStandard(heavy, "AveragePool")) {
      if (epilogue.activation != Activation::kNone) return std::nullopt;
      made = Pool(heavy, quantize);
    }
    if (!made.has_value() || !Fits(*made)) return std::nullopt;
    made->epilogue = epilogue;
    if (!chain.empty()) made->layer_type += graph_.nodes[chain[0]].type;
    return made;
  }

  // Whether `made` makes the value it is to make, and its scales make sums: a
  // tiny one would make a bias of them that no float holds.
  [[nodiscard]] bool Fits(const Node& made) const {
    const Operator* op = operators_.Find(made.domain, made.type);
    if (op == nullptr || !HaveShapes(graph_, made.inputs)) return false;
    const auto inferred = op->infer(NodeView(graph_, made));
    const Value& output = graph_.value(made.outputs[0]);
    if (!inferred.ok() || (*inferred)[0].type != output.type ||
        (*inferred)[0].shape != output.shape) {
      return false;
    }
    const bool is_gemm = made.type == "QGemm";
    const bool is_convolution = made.type == "QLinearConv";
    if (!is_gemm && !is_convolution && made.type != "QLinearMatMul") {
      return true;
    }
    const float x = *ConstantOf(graph_, made, 1)->as<float>();
    const float y = *ConstantOf(graph_, made, is_gemm ? 7 : 6)->as<float>();
    const Constant& w = *ConstantOf(graph_, made, 4);
    const Constant* bias = is_gemm          ? ConstantOf(graph_, made, 6)
                           : is_convolution ? ConstantOf(graph_, made, 8)
                                            : nullptr;
    const int64_t channels = bias == nullptr ? 1 : bias->elements();
    for (int64_t c = 0; c < std::max(w.elements(), channels); ++c) {
      const float unit = x * w.as<float>()[w.elements() == 1 ? 0 : c];
      if (!std::isnormal(unit) || !std::isnormal(unit / y)) return false;
      if (bias != nullptr && !std::isfinite(bias->as<float>()[c] / unit)) {
        return false;
      }
    }
    return true;
  }

  [[nodiscard]] bool Alone(ValueId value) const {
    return uses_.count(value) == 1 && !uses_.is_output(value);
  }

  [[nodiscard]] bool ActivationOf(const Node& node, Epilogue& epilogue) const {
    const NodeView view(graph_, node);
    if (node.type == "Relu") {
      epilogue.activation = Activation::kRelu;
      return true;
    }
    if (node.type == "LeakyRelu") {
      epilogue.activation = Activation::kLeakyRelu;
      epilogue.alpha = view.Float("alpha", 0.01F);
      return true;
    }
    if (node.type != "Clip") return false;
    epilogue.activation = Activation::kClip;
    epilogue.alpha = view.Float("min", std::numeric_limits<float>::lowest());
    epilogue.beta = view.Float("max", std::numeric_limits<float>::max());
    for (size_t i = 1; i <= 2; ++i) {
      const Constant* bound = ConstantOf(graph_, node, i);
      if (bound == nullptr) continue;
      if (bound->type != DataType::kFloat32) return false;
      (i == 1 ? epilogue.alpha : epilogue.beta) = *bound->as<float>();
    }
    return epilogue.alpha <= epilogue.beta;
  }

  // The Dequantize node of an 8-bit tensor with one scale that makes `value`.
  [[nodiscard]] const Node* Source(ValueId value) const {
    const Node* node = AnySource(value);
    return node != nullptr && WholeTensor(graph_, *node).has_value() ? node
                                                                     : nullptr;
  }
  [[nodiscard]] const Node* AnySource(ValueId value) const {
    if (value == kNoValue) return nullptr;
    const size_t p = uses_.producer(value);
    if (p == Uses::kNoNode || !IsDequantize(graph_.nodes[p])) return nullptr;
    return &graph_.nodes[p];
  }
  // Likewise of weights known now, with one scale or one for each index of
  // `axis`.
  [[nodiscard]] const Node* Weights(ValueId value, int64_t axis) const {
    const Node* node = AnySource(value);
    if (node == nullptr) return nullptr;
    const Constant* weights = ConstantOf(graph_, *node, 0);
    const Constant* scale = ConstantOf(graph_, *node, 1);
    const bool has_zero = InputOf(*node, 2) != kNoValue;
    const Constant* zero = ConstantOf(graph_, *node, 2);
    if (weights == nullptr || !IsEightBit(weights->type) || scale == nullptr ||
        scale->type != DataType::kFloat32 || (has_zero && zero == nullptr)) {
      return nullptr;
    }
    const auto* scales = scale->as<float>();
    if (!std::all_of(scales, scales + scale->elements(), [](float number) {
          return number > 0.0F && std::isfinite(number);
        })) {
      return nullptr;
    }
    if (scale->elements() == 1) return node;
    auto given = NodeView(graph_, *node).Int("axis", 1);
    if (given < 0) given += static_cast<int64_t>(weights->shape.size());
    return given == axis ? node : nullptr;
  }

  // A zero point that is not written down is 0.
  ValueId Zero(const Node& node, DataType type) {
    const ValueId given = InputOf(node, 2);
    if (given != kNoValue) return given;
    const Constant* scale = ConstantOf(graph_, node, 1);
    const std::vector<std::byte> zeros(static_cast<size_t>(scale->elements()));
    return AddConstant(graph_, absl::StrCat(node.name, ".zero"),
                       Bytes(type, scale->shape, zeros.data(), zeros.size()));
  }
  void AppendScale(const Node& from, std::vector<ValueId>& inputs) {
    const ValueId bytes = IsQuantize(from) ? from.outputs[0] : from.inputs[0];
    const DataType type = graph_.value(bytes).type;
    inputs.push_back(from.inputs[1]);
    inputs.push_back(Zero(from, type));
  }
  void AppendSource(const Node& from, std::vector<ValueId>& inputs) {
    inputs.push_back(from.inputs[0]);
    AppendScale(from, inputs);
  }

  // The numbers of a bias of one number for each of `channels`: as they are, or
  // dequantised here. kNoValue: not known.
  ValueId Bias(ValueId value, int64_t channels) {
    const Value& bias = graph_.value(value);
    if (bias.constant != nullptr) {
      return bias.constant->type == DataType::kFloat32 &&
                     bias.constant->shape == Shape{channels}
                 ? value
                 : kNoValue;
    }
    const Node* node = AnySource(value);
    if (node == nullptr) return kNoValue;
    const Constant* numbers = ConstantOf(graph_, *node, 0);
    const Constant* scale = ConstantOf(graph_, *node, 1);
    const Constant* zero = ConstantOf(graph_, *node, 2);
    if (numbers == nullptr || numbers->shape != Shape{channels} ||
        scale == nullptr || scale->type != DataType::kFloat32 ||
        (scale->elements() != 1 && scale->elements() != channels) ||
        (InputOf(*node, 2) != kNoValue &&
         (zero == nullptr || zero->elements() != scale->elements()))) {
      return kNoValue;
    }
    const auto number = [](const Constant& from, int64_t i) -> int64_t {
      switch (from.type) {
        case DataType::kInt8:
          return from.as<int8_t>()[i];
        case DataType::kUint8:
          return from.as<uint8_t>()[i];
        default:
          return from.as<int32_t>()[i];
      }
    };
    std::vector<float> real(static_cast<size_t>(channels));
    for (int64_t c = 0; c < channels; ++c) {
      const int64_t at = scale->elements() == 1 ? 0 : c;
      const int64_t offset = zero == nullptr ? 0 : number(*zero, at);
      real[static_cast<size_t>(c)] =
          static_cast<float>(number(*numbers, c) - offset) *
          scale->as<float>()[at];
    }
    return AddConstant(graph_, absl::StrCat(bias.name, ".real"),
                       Bytes(DataType::kFloat32, {channels}, real.data(),
                             real.size() * sizeof(float)));
  }

  // `heavy` on integers, its output that of `quantize`.
  static Node Like(const Node& heavy, const Node& quantize, const char* type,
                   const char* domain) {
    Node node;
    node.name = heavy.name;
    node.type = type;
    node.domain = domain;
    node.opset = heavy.opset;
    node.attributes = heavy.attributes;
    node.outputs = quantize.outputs;
    node.layer_type = heavy.layer_type;
    return node;
  }

  std::optional<Node> Convolution(const Node& heavy, const Node& quantize,
                                  int64_t axis) {
    const Node* x = Source(heavy.inputs[0]);
    const Node* w = Weights(InputOf(heavy, 1), axis);
    if (x == nullptr || w == nullptr) return std::nullopt;
    const int64_t channels = graph_.value(w->inputs[0]).constant->shape[0];
    const ValueId given = InputOf(heavy, 2);
    const ValueId bias = given == kNoValue ? kNoValue : Bias(given, channels);
    if (given != kNoValue && bias == kNoValue) return std::nullopt;
    Node made = Like(heavy, quantize, "QLinearConv", "");
    AppendSource(*x, made.inputs);
    AppendSource(*w, made.inputs);
    AppendScale(quantize, made.inputs);
    if (bias != kNoValue) made.inputs.push_back(bias);
    return made;
  }

  std::optional<Node> Gemm(const Node& heavy, const Node& quantize) {
    const NodeView view(graph_, heavy);
    const bool transposed = view.Int("transB", 0) != 0;
    const Node* x = Source(heavy.inputs[0]);
    const Node* w = Weights(InputOf(heavy, 1), transposed ? 0 : 1);
    if (x == nullptr || w == nullptr || view.Int("transA", 0) != 0 ||
        view.Float("alpha", 1.0F) != 1.0F || view.Float("beta", 1.0F) != 1.0F) {
      return std::nullopt;
    }
    const Shape& shape = graph_.value(w->inputs[0]).constant->shape;
    if (shape.size() != 2) return std::nullopt;
    ValueId bias = InputOf(heavy, 2);
    if (bias != kNoValue) {
      bias = Bias(bias, shape[transposed ? 0 : 1]);
      if (bias == kNoValue) return std::nullopt;
    }
    Node made = Like(heavy, quantize, "QGemm", "com.microsoft");
    AppendSource(*x, made.inputs);
    AppendSource(*w, made.inputs);
    made.inputs.push_back(bias);
    AppendScale(quantize, made.inputs);
    return made;
  }

  std::optional<Node> MatMul(const Node& heavy, const Node& quantize) {
    const Node* a = Source(heavy.inputs[0]);
    const Node* b = Source(heavy.inputs[1]);
    if (b == nullptr) {
      b = Weights(heavy.inputs[1], 1);
      if (b != nullptr && ConstantOf(graph_, *b, 0)->shape.size() != 2) {
        return std::nullopt;
      }
    }
    if (a == nullptr || b == nullptr) return std::nullopt;
    Node made = Like(heavy, quantize, "QLinearMatMul", "");
    AppendSource(*a, made.inputs);
    AppendSource(*b, made.inputs);
    AppendScale(quantize, made.inputs);
    return made;
  }

  std::optional<Node> Binary(const Node& heavy, const Node& quantize) {
    const Node* a = Source(heavy.inputs[0]);
    const Node* b = Source(heavy.inputs[1]);
    if (a == nullptr || b == nullptr) return std::nullopt;
    const DataType type = graph_.value(quantize.outputs[0]).type;
    if (graph_.value(a->inputs[0]).type != type ||
        graph_.value(b->inputs[0]).type != type) {
      return std::nullopt;
    }
    Node made =
        Like(heavy, quantize, heavy.type == "Add" ? "QLinearAdd" : "QLinearMul",
             "com.microsoft");
    AppendSource(*a, made.inputs);
    AppendSource(*b, made.inputs);
    AppendScale(quantize, made.inputs);
    return made;
  }

  std::optional<Node> Pool(const Node& heavy, const Node& quantize) {
    const Node* x = Source(heavy.inputs[0]);
    if (x == nullptr || graph_.value(x->inputs[0]).type !=
                            graph_.value(quantize.outputs[0]).type) {
      return std::nullopt;
    }
    Node made = Like(heavy, quantize,
                     heavy.type == "AveragePool" ? "QLinearAveragePool"
                                                 : "QLinearGlobalAveragePool",
                     "com.microsoft");
    AppendSource(*x, made.inputs);
    AppendScale(quantize, made.inputs);
    return made;
  }

  // Dequantize `from`, functions, Quantize `n`: run over all bytes there are.
  std::optional<Node> Lookup(size_t n, size_t from,
                             const std::vector<size_t>& chain) {
    const Node& quantize = graph_.nodes[n];
    const Node& dequantize = graph_.nodes[from];
    if (!WholeTensor(graph_, dequantize).has_value()) return std::nullopt;
    Graph small;
    const auto copy = [&](ValueId id) {
      if (id == kNoValue) return kNoValue;
      small.values.push_back(graph_.value(id));
      // One number is one for all, whatever axes it is written with.
      Value& value = small.values.back();
      if (value.constant != nullptr && value.constant->elements() == 1 &&
          value.constant->shape.size() > 1) {
        Constant number = *value.constant;
        number.shape = {1};
        value.shape = number.shape;
        value.constant = std::make_shared<const Constant>(std::move(number));
      }
      return static_cast<ValueId>(small.values.size() - 1);
    };
    const auto fresh = [&small](const Shape& shape) {
      small.values.emplace_back();
      small.values.back().shape = shape;
      return static_cast<ValueId>(small.values.size() - 1);
    };
    const Shape shape = {256};
    std::array<uint8_t, 256> all{};
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint8_t>(i);
    ValueId current = AddConstant(small, "all",
                                  Bytes(graph_.value(dequantize.inputs[0]).type,
                                        shape, all.data(), all.size()));
    const auto add = [&](const Node& node, size_t argument) {
      Node step = node;
      for (size_t i = 0; i < step.inputs.size(); ++i) {
        step.inputs[i] = i == argument ? current : copy(step.inputs[i]);
      }
      current = fresh(shape);
      step.outputs[0] = current;
      small.nodes.push_back(std::move(step));
    };
    add(dequantize, 0);
    for (size_t i = chain.size(); i > 0; --i) {
      const Node& function = graph_.nodes[chain[i - 1]];
      add(function, *ArgumentOf(graph_, function));
    }
    add(quantize, 0);
    // What cannot be a table is left to the operators, as written.
    Folder folder;
    if (!InferAndFold(small, operators_, folder).ok()) return std::nullopt;
    const std::shared_ptr<const Constant>& table =
        small.value(current).constant;
    if (table == nullptr || table->elements() != 256 ||
        !IsEightBit(table->type)) {
      return std::nullopt;
    }
    Constant entries = *table;
    entries.shape = shape;
    Node made;
    made.name = quantize.name;
    made.type = "Lookup";
    made.domain = "rknnd";
    made.opset = 1;
    made.inputs = {dequantize.inputs[0]};
    made.outputs = quantize.outputs;
    made.layer_type =
        chain.empty() ? "Requantize" : graph_.nodes[chain.front()].layer_type;
    made.attributes["table"] =
        std::make_shared<const Constant>(std::move(entries));
    return made;
  }

  Graph& graph_;
  const OperatorTable& operators_;
  // Of the graph as it was; what a node becomes makes the same value.
  Uses uses_;
};

}  // namespace

void MakeIntegerLayers(Graph& graph, const OperatorTable& operators) {
  IntegerLayers(graph, operators).Run();
}

}  // namespace rknnd::soft
