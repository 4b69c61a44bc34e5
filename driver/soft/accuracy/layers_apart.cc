#include "driver/soft/accuracy/layers_apart.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/status/status.h"
#include "driver/soft/accuracy/float_network.h"
#include "driver/soft/graph/passes.h"
#include "driver/soft/graph/quantized.h"
#include "driver/soft/graph/tensor_scales.h"
#include "driver/soft/graph/uses.h"
#include "driver/soft/import/onnx_import.h"

namespace rknnd::soft {
namespace {

// ONNX's TensorProto.DataType.
int64_t OnnxNumber(DataType type) {
  switch (type) {
    case DataType::kFloat32:
      return 1;
    case DataType::kUint8:
      return 2;
    case DataType::kInt8:
      return 3;
    case DataType::kUint16:
      return 4;
    case DataType::kInt16:
      return 5;
    case DataType::kFloat64:
      return 11;
    case DataType::kInt32:
      return 6;
    case DataType::kInt64:
      return 7;
    case DataType::kBool:
      return 9;
    case DataType::kUint32:
      return 12;
    case DataType::kUint64:
      return 13;
  }
  return 1;
}

// What the first passes do, which need not know of quantisation.
absl::Status Prepare(Graph& graph, const OperatorTable& operators,
                     FoldPool* pool) {
  Folder folder(pool);
  RemoveDeadNodes(graph);
  RemoveIdentities(graph);
  TurnImages(graph);
  RKNND_RETURN_IF_ERROR(InferAndFold(graph, operators, folder, true));
  RemoveIdentities(graph);
  return absl::OkStatus();
}

// A layer: a node and those that join it, [first, end) of the nodes.
struct Layer {
  size_t first = 0, end = 0;
};

std::vector<Layer> LayersOf(const Graph& graph) {
  std::vector<Layer> layers;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (graph.nodes[n].joins_layer && !layers.empty()) {
      layers.back().end = n + 1;
    } else {
      layers.push_back({n, n + 1});
    }
  }
  return layers;
}

std::vector<ValueId> InputsOf(const Node& node) {
  std::vector<ValueId> inputs = node.inputs;
  inputs.push_back(node.epilogue.add);
  return inputs;
}

class Apart {
 public:
  // `layers`: all passes have seen it. `golden`: none has.
  Apart(Accuracy which, const Graph& layers, FloatNetwork golden)
      : which_(which),
        layers_(layers),
        graph_(std::move(golden.graph)),
        reals_(std::move(golden.reals)),
        scales_(TensorScales(layers)),
        golden_(layers.values.size(), kNoValue),
        copies_(layers.values.size(), kNoValue),
        quantized_(layers.values.size(), kNoValue),
        constants_(layers.values.size(), kNoValue) {}

  absl::StatusOr<Graph> Run(const OperatorTable& operators, FoldPool* pool) {
    RKNND_RETURN_IF_ERROR(MakeGolden(operators, pool));
    for (GraphPort& port : graph_.inputs) port.shown = false;
    for (GraphPort& port : graph_.outputs) port.shown = false;
    IndexGolden();
    for (size_t i = 0; i < layers_.inputs.size(); ++i) {
      ShowPort(layers_.inputs[i], graph_.inputs[i].value, "InputOperator");
    }
    for (const Layer& layer : LayersOf(layers_)) {
      if (which_ == Accuracy::kGolden) {
        ShowGolden(layer);
      } else {
        Copy(layer);
      }
    }
    for (size_t i = 0; i < layers_.outputs.size(); ++i) {
      ShowPort(layers_.outputs[i], graph_.outputs[i].value, "OutputOperator");
    }
    Merge();
    RemoveUnread();
    return std::move(graph_);
  }

 private:
  // The value of the file that `value` of layers_ stands for: passes put 8-bit
  // forms beside floats and name them after these (MoveQuantization).
  ValueId Origin(ValueId value) {
    if (static_cast<size_t>(value) < reals_.size()) return value;
    if (names_.empty()) {
      for (size_t v = 0; v < reals_.size(); ++v) {
        names_.emplace(layers_.values[v].name, static_cast<ValueId>(v));
      }
    }
    absl::string_view name = layers_.value(value).name;
    while (absl::ConsumeSuffix(&name, ".quantized")) {
      const auto found = names_.find(std::string(name));
      if (found != names_.end()) return found->second;
    }
    return kNoValue;
  }

  // All passes over the float network. What layers of the model read and write
  // is kept for them, as outputs for the time being.
  absl::Status MakeGolden(const OperatorTable& operators, FoldPool* pool) {
    std::vector<ValueId> wanted;
    const auto want = [&](ValueId value) {
      if (value == kNoValue || layers_.value(value).constant != nullptr) return;
      const ValueId origin = Origin(value);
      if (origin == kNoValue || golden_[static_cast<size_t>(value)] == origin) {
        return;
      }
      golden_[static_cast<size_t>(value)] = origin;
      wanted.push_back(value);
    };
    for (const GraphPort& port : layers_.inputs) want(port.value);
    for (const GraphPort& port : layers_.outputs) want(port.value);
    for (const Layer& layer : LayersOf(layers_)) {
      std::vector<ValueId> inner;
      for (size_t n = layer.first; n < layer.end; ++n) {
        for (const ValueId input : InputsOf(layers_.nodes[n])) {
          if (std::find(inner.begin(), inner.end(), input) == inner.end()) {
            want(input);
          }
        }
        const std::vector<ValueId>& outputs = layers_.nodes[n].outputs;
        inner.insert(inner.end(), outputs.begin(), outputs.end());
      }
      for (const ValueId output : layers_.nodes[layer.end - 1].outputs) {
        want(output);
      }
    }
    const size_t own = graph_.outputs.size();
    for (const ValueId value : wanted) {
      const ValueId origin = golden_[static_cast<size_t>(value)];
      graph_.outputs.push_back(
          {layers_.value(value).name, reals_[static_cast<size_t>(origin)], 0});
    }
    RKNND_RETURN_IF_ERROR(RunPasses(graph_, operators, pool));
    for (size_t i = 0; i < wanted.size(); ++i) {
      const ValueId made = graph_.outputs[own + i].value;
      const Value& real = graph_.value(made);
      const bool fits = real.constant == nullptr && real.shape.has_value() &&
                        real.shape == layers_.value(wanted[i]).shape;
      golden_[static_cast<size_t>(wanted[i])] = fits ? made : kNoValue;
    }
    graph_.outputs.resize(own);
    for (Node& node : graph_.nodes) node.shown = false;
    return absl::OkStatus();
  }

  // ---- where nodes go: behind the layer of golden that makes their inputs
  // ----

  void IndexGolden() {
    slot_.assign(graph_.values.size(), 0);
    for (const Layer& layer : LayersOf(graph_)) {
      ends_.push_back(layer.end);
      for (size_t n = layer.first; n < layer.end; ++n) {
        for (const ValueId output : graph_.nodes[n].outputs) {
          if (output != kNoValue) {
            slot_[static_cast<size_t>(output)] = ends_.size();
          }
        }
      }
    }
    slots_.resize(ends_.size() + 1);
  }

  void Put(std::vector<Node> nodes) {
    size_t slot = 0;
    for (const Node& node : nodes) {
      for (const ValueId input : InputsOf(node)) {
        if (input != kNoValue) {
          slot = std::max(slot, slot_[static_cast<size_t>(input)]);
        }
      }
    }
    for (Node& node : nodes) {
      for (const ValueId output : node.outputs) {
        if (output != kNoValue) slot_[static_cast<size_t>(output)] = slot;
      }
      slots_[slot].push_back(std::move(node));
    }
  }

  void Merge() {
    std::vector<Node> nodes = std::move(slots_[0]);
    size_t n = 0;
    for (size_t i = 0; i < ends_.size(); ++i) {
      for (; n < ends_[i]; ++n) nodes.push_back(std::move(graph_.nodes[n]));
      std::move(slots_[i + 1].begin(), slots_[i + 1].end(),
                std::back_inserter(nodes));
    }
    graph_.nodes = std::move(nodes);
  }

  // What is shown is nobody's input, and still wanted.
  void RemoveUnread() {
    const std::vector<GraphPort> outputs = graph_.outputs;
    for (const Node& node : graph_.nodes) {
      if (!node.shown) continue;
      for (const ValueId output : node.outputs) {
        if (output != kNoValue) graph_.outputs.push_back({"", output, 0});
      }
    }
    for (const ValueId value : scale_readers_) {
      graph_.outputs.push_back({"", value, 0});
    }
    RemoveDeadNodes(graph_);
    graph_.outputs = outputs;
  }

  // ---- nodes ----------------------------------------------------------------

  ValueId NewValue(Value value) {
    graph_.values.push_back(std::move(value));
    slot_.push_back(0);
    return static_cast<ValueId>(graph_.values.size() - 1);
  }

  ValueId ConstantOf(ValueId value) {
    ValueId& copy = constants_[static_cast<size_t>(value)];
    if (copy == kNoValue) copy = NewValue(layers_.value(value));
    return copy;
  }

  // Quantize or Dequantize with one scale for all.
  Node Convert(const char* type, ValueId from, const Quantization& by,
               DataType bytes) {
    Node node;
    node.name = graph_.value(from).name;
    node.type = node.layer_type = type;
    node.opset = 13;
    Constant scale{DataType::kFloat32, {}, {}};
    const auto* raw = reinterpret_cast<const std::byte*>(&by.scale);
    scale.data.assign(raw, raw + sizeof(by.scale));
    Constant zero{bytes, {}, {static_cast<std::byte>(by.zero)}};
    node.inputs = {from, AddConstant(graph_, "scale", std::move(scale)),
                   AddConstant(graph_, "zero", std::move(zero))};
    slot_.resize(graph_.values.size());
    return node;
  }

  // `node`, which makes one tensor like `from`, is shown by this name.
  void PutShown(Node node, ValueId from, DataType type,
                const std::string& layer, const std::string& layer_type,
                const std::string& name) {
    node.name = layer;
    node.layer_type = layer_type;
    Value value;
    value.name = name;
    value.type = type;
    value.shape = graph_.value(from).shape;
    node.outputs = {NewValue(std::move(value))};
    Put({std::move(node)});
  }

  // The numbers of `from`, a value of golden, under this name; `like` is their
  // value in the model.
  void PutReal(ValueId from, ValueId like, const std::string& layer,
               const std::string& layer_type, const std::string& name) {
    const DataType type = graph_.value(from).type;
    const std::optional<Quantization>& scale =
        scales_[static_cast<size_t>(like)];
    if (IsEightBit(type) && scale.has_value()) {
      return PutShown(Convert("DequantizeLinear", from, *scale, type), from,
                      DataType::kFloat32, layer, layer_type, name);
    }
    Node node;
    node.type = "Cast";
    node.opset = 13;
    node.inputs = {from};
    node.attributes["to"] = OnnxNumber(type);
    PutShown(std::move(node), from, type, layer, layer_type, name);
  }

  // The layer that a port is. `real`: its numbers in golden.
  void ShowPort(const GraphPort& port, ValueId real, const char* layer_type) {
    if (graph_.value(real).constant != nullptr ||
        graph_.value(real).shape != layers_.value(port.value).shape) {
      return;
    }
    const DataType type = layers_.value(port.value).type;
    const std::optional<Quantization>& scale =
        scales_[static_cast<size_t>(port.value)];
    if (which_ == Accuracy::kSingle && IsEightBit(type) && scale.has_value() &&
        graph_.value(real).type == DataType::kFloat32) {
      return PutShown(Convert("QuantizeLinear", real, *scale, type), real, type,
                      port.name, layer_type, port.name);
    }
    PutReal(real, port.value, port.name, layer_type, port.name);
  }

  void ShowGolden(const Layer& layer) {
    const Node& first = layers_.nodes[layer.first];
    for (const ValueId output : layers_.nodes[layer.end - 1].outputs) {
      if (output == kNoValue) continue;
      const ValueId real = golden_[static_cast<size_t>(output)];
      if (real == kNoValue) continue;
      PutReal(real, output, first.name, first.layer_type,
              layers_.value(output).name);
    }
  }

  // What a copied layer reads in place of `value`; kNoValue: there is nothing.
  ValueId Feed(ValueId value) {
    const auto at = static_cast<size_t>(value);
    const Value& like = layers_.value(value);
    if (like.constant != nullptr) return ConstantOf(value);
    const ValueId real = golden_[at];
    if (real == kNoValue) return copies_[at];
    if (graph_.value(real).type == like.type) return real;
    // Without one scale for all of it, what its own layer makes has to do.
    if (!IsEightBit(like.type) || !scales_[at].has_value() ||
        graph_.value(real).type != DataType::kFloat32) {
      return copies_[at];
    }
    if (quantized_[at] == kNoValue) {
      Node node = Convert("QuantizeLinear", real, *scales_[at], like.type);
      node.shown = false;
      Value bytes = like;
      quantized_[at] = NewValue(std::move(bytes));
      node.outputs = {quantized_[at]};
      Put({std::move(node)});
    }
    return quantized_[at];
  }

  void Copy(const Layer& layer) {
    std::vector<Node> nodes;
    std::map<ValueId, ValueId> inner;
    for (size_t n = layer.first; n < layer.end; ++n) {
      Node node = layers_.nodes[n];
      const auto feed = [&](ValueId& input) {
        if (input == kNoValue) return true;
        const auto made = inner.find(input);
        input = made != inner.end() ? made->second : Feed(input);
        return input != kNoValue;
      };
      bool fed = feed(node.epilogue.add);
      for (ValueId& input : node.inputs) fed = feed(input) && fed;
      if (!fed || !HaveShapes(layers_, layers_.nodes[n].outputs)) return;
      for (ValueId& output : node.outputs) {
        if (output == kNoValue) continue;
        const ValueId copy = NewValue(layers_.value(output));
        inner[output] = copy;
        output = copy;
      }
      nodes.push_back(std::move(node));
    }
    for (const auto& [value, copy] : inner) {
      copies_[static_cast<size_t>(value)] = copy;
    }
    Put(std::move(nodes));
    for (const ValueId output : layers_.nodes[layer.end - 1].outputs) {
      if (output != kNoValue) SayScale(layers_.nodes[layer.end - 1], output);
    }
  }

  // In the model some reader may say what the 8-bit numbers of `value` stand
  // for. Its copy has no readers: a Dequantize node says so.
  void SayScale(const Node& maker, ValueId value) {
    const std::optional<Quantization>& scale =
        scales_[static_cast<size_t>(value)];
    const DataType type = layers_.value(value).type;
    const bool says = absl::StartsWith(maker.type, "Q");
    if (says || !scale.has_value() || !IsEightBit(type)) return;
    const ValueId copy = copies_[static_cast<size_t>(value)];
    Node node = Convert("DequantizeLinear", copy, *scale, type);
    node.shown = false;
    Value real;
    real.name = graph_.value(copy).name;
    real.shape = graph_.value(copy).shape;
    node.outputs = {NewValue(std::move(real))};
    scale_readers_.push_back(node.outputs[0]);
    Put({std::move(node)});
  }

  const Accuracy which_;
  const Graph& layers_;
  Graph graph_;  // golden, then both
  // Of the values of the file: the one of graph_, before its passes, that
  // stands for them.
  const std::vector<ValueId> reals_;
  std::unordered_map<std::string, ValueId> names_;
  const std::vector<std::optional<Quantization>> scales_;

  // Of the values of layers_, in graph_:
  std::vector<ValueId> golden_;     // their real numbers
  std::vector<ValueId> copies_;     // what a copied layer makes of them
  std::vector<ValueId> quantized_;  // golden_ in 8 bits
  std::vector<ValueId> constants_;
  std::vector<ValueId> scale_readers_;  // what they make, which nobody reads

  // Layers of golden end before these nodes; slot i + 1 lies behind layer i.
  std::vector<size_t> ends_;
  std::vector<size_t> slot_;  // that a value of graph_ is known in
  std::vector<std::vector<Node>> slots_;
};

}  // namespace

absl::Status SetLayersApart(Accuracy which, Graph& graph,
                            const OperatorTable& operators, FoldPool* pool) {
  // Passes run over several graphs here.
  FoldPool own;
  if (pool == nullptr) pool = &own;
  RKNND_RETURN_IF_ERROR(Prepare(graph, operators, pool));
  Graph layers = graph;
  RKNND_RETURN_IF_ERROR(RunPasses(layers, operators, pool));
  Apart apart(which, layers, MakeFloat(graph));
  RKNND_ASSIGN_OR_RETURN(graph, apart.Run(operators, pool));
  if (graph.nodes.size() > size_t{kMaxNodes}) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "has ", graph.nodes.size(), " nodes with option 'accuracy', at most ",
        kMaxNodes, " are taken"));
  }
  return absl::OkStatus();
}

}  // namespace rknnd::soft
