// See graph_form.h.

#include "driver/soft/compiled/graph_form.h"

#include <cmath>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status/status.h"
#include "driver/soft/graph/quantized.h"
#include "driver/soft/import/onnx_import.h"

namespace rknnd::soft {
namespace {

// Smaller constants cost nothing, and more looks at them than their kernels.
constexpr size_t kSmall = 4096;
// As ONNX itself has no tensor of more dims than this field uses.
constexpr uint64_t kMaxRank = 64;
constexpr uint64_t kMaxValues = uint64_t{1} << 20;

absl::Status Damaged(absl::string_view what) {
  return absl::DataLossError(
      absl::StrCat("the compiled form is damaged: ", what));
}

// Whether the kernels of this node read input `i` nowhere but in what they
// store of it. Then a model that brings what they stored need not bring it.
bool OnlyPacks(const Node& node, size_t i) {
  if (!node.domain.empty() || i != 1) return false;
  return node.type == "Conv" || node.type == "MatMul" || node.type == "Gemm";
}

template <class Use>
void ForEachUse(const Graph& graph, Use use) {
  for (const Node& node : graph.nodes) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] != kNoValue) {
        use(graph.value(node.inputs[i]).constant, OnlyPacks(node, i));
      }
    }
    if (node.epilogue.add != kNoValue) {
      use(graph.value(node.epilogue.add).constant, false);
    }
    for (const auto& [name, attribute] : node.attributes) {
      if (const auto* tensor =
              std::get_if<std::shared_ptr<const Constant>>(&attribute)) {
        use(*tensor, false);
      }
    }
  }
  for (const GraphPort& port : graph.outputs) {
    use(graph.value(port.value).constant, false);
  }
}

void WriteShape(const Shape& shape, ByteWriter& to) {
  to.PutList(std::span<const int64_t>(shape.data(), shape.size()));
}

Shape ReadShape(ByteReader& from) {
  const std::vector<int64_t> dims = from.GetList<int64_t>(kMaxRank);
  return {dims.begin(), dims.end()};
}

DataType ReadType(ByteReader& from) {
  const auto type = from.Get<uint8_t>();
  if (type > static_cast<uint8_t>(DataType::kFloat64)) {
    from.Fail();
    return DataType::kFloat32;
  }
  return static_cast<DataType>(type);
}

// Bytes of a dense tensor, or nothing for shapes that no tensor has.
std::optional<uint64_t> DenseBytes(DataType type, const Shape& shape) {
  const absl::StatusOr<int64_t> elements = ElementCount(shape);
  if (!elements.ok()) return std::nullopt;
  const uint64_t bytes = static_cast<uint64_t>(*elements) * SizeOf(type);
  if (bytes > static_cast<uint64_t>(kMaxTensorBytes)) return std::nullopt;
  return bytes;
}

}  // namespace

ConstantTable::ConstantTable(const std::vector<const Graph*>& graphs) {
  for (const Graph* graph : graphs) {
    ForEachUse(*graph, [&](const std::shared_ptr<const Constant>& constant,
                           bool only_packs) {
      if (constant == nullptr) return;
      const auto [at, is_new] = numbers_.emplace(
          constant.get(), static_cast<uint32_t>(entries_.size()));
      if (is_new) {
        entries_.push_back({constant, constant->data.size() > kSmall});
      }
      if (!only_packs) entries_[at->second].left_out = false;
    });
  }
}

void ConstantTable::Write(ByteWriter& to) const {
  to.PutCount(entries_.size());
  for (const Entry& entry : entries_) {
    const Constant& constant = *entry.constant;
    to.Put(static_cast<uint8_t>(constant.type));
    WriteShape(constant.shape, to);
    to.Put(static_cast<uint8_t>(entry.left_out));
    if (!entry.left_out) to.PutRaw(constant.data);
  }
}

void ConstantTable::Read(ByteReader& from) {
  const size_t count = from.GetCount(/*least=*/10, kMaxValues);
  for (size_t i = 0; i < count && from.good(); ++i) {
    auto constant = std::make_shared<Constant>();
    constant->type = ReadType(from);
    constant->shape = ReadShape(from);
    const bool left_out = from.GetFlag();
    const auto bytes = DenseBytes(constant->type, constant->shape);
    if (!bytes.has_value()) return from.Fail();
    if (!left_out) {
      const auto data = from.GetRaw(static_cast<size_t>(*bytes));
      constant->data.assign(data.begin(), data.end());
    }
    numbers_.emplace(constant.get(), static_cast<uint32_t>(i));
    entries_.push_back({std::move(constant), left_out});
  }
}

uint32_t ConstantTable::NumberOf(const Constant* constant) const {
  const auto found = numbers_.find(constant);
  return found == numbers_.end() ? kNone : found->second;
}

std::shared_ptr<const Constant> ConstantTable::Get(uint32_t number,
                                                   ByteReader& from) const {
  if (number == kNone) return nullptr;
  if (number >= entries_.size()) {
    from.Fail();
    return nullptr;
  }
  return entries_[number].constant;
}

bool ConstantTable::LeftOut(const Constant* constant) const {
  const uint32_t number = NumberOf(constant);
  return number != kNone && entries_[number].left_out;
}

namespace {

// ---- writing ----------------------------------------------------------------

void WriteAttribute(const Attribute& attribute, const ConstantTable& constants,
                    ByteWriter& to) {
  to.Put(static_cast<uint8_t>(attribute.index()));
  std::visit(
      [&]<class T>(const T& value) {
        if constexpr (std::is_arithmetic_v<T>) {
          to.Put(value);
        } else if constexpr (std::is_same_v<T, std::string>) {
          to.PutText(value);
        } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
          to.PutCount(value.size());
          for (const std::string& text : value) to.PutText(text);
        } else if constexpr (std::is_same_v<T,
                                            std::shared_ptr<const Constant>>) {
          to.Put(constants.NumberOf(value.get()));
        } else if constexpr (std::is_same_v<T, std::shared_ptr<const Graph>>) {
          // Inference leaves no node with a body.
        } else {
          to.PutList(std::span(value));
        }
      },
      attribute);
}

void WriteNode(const Node& node, const ConstantTable& constants,
               ByteWriter& to) {
  to.PutText(node.name);
  to.PutText(node.type);
  to.PutText(node.domain);
  to.Put(int32_t{node.opset});
  to.PutList(std::span<const ValueId>(node.inputs));
  to.PutList(std::span<const ValueId>(node.outputs));
  to.PutCount(node.attributes.size());
  for (const auto& [name, attribute] : node.attributes) {
    to.PutText(name);
    WriteAttribute(attribute, constants, to);
  }
  to.Put(node.epilogue.add);
  to.Put(static_cast<uint8_t>(node.epilogue.activation));
  to.Put(node.epilogue.alpha);
  to.Put(node.epilogue.beta);
  to.PutText(node.layer_type);
  to.Put(static_cast<uint8_t>(node.joins_layer));
}

// What an import keeps of a port to name it in messages stays behind.
void WritePort(const GraphPort& port, ByteWriter& to) {
  to.PutText(port.name);
  to.Put(port.value);
  to.Put(port.onnx_type);
  for (const auto* scale : {&port.quantization, &port.stands_for}) {
    to.Put(static_cast<uint8_t>(scale->has_value()));
    if (!scale->has_value()) continue;
    to.Put((*scale)->scale);
    to.Put((*scale)->zero);
  }
  to.PutList(std::span<const float>(port.mean));
  to.PutList(std::span<const float>(port.deviation));
}

// ---- reading ----------------------------------------------------------------

Attribute ReadAttribute(ByteReader& from, const ConstantTable& constants) {
  switch (from.Get<uint8_t>()) {
    case 0:
      return from.Get<int64_t>();
    case 1:
      return from.Get<float>();
    case 2:
      return from.GetText();
    case 3:
      return from.GetList<int64_t>();
    case 4:
      return from.GetList<float>();
    case 5: {
      std::vector<std::string> texts(from.GetCount(sizeof(uint64_t)));
      for (std::string& text : texts) text = from.GetText();
      return texts;
    }
    case 6: {
      auto constant = constants.Get(from.Get<uint32_t>(), from);
      if (constant == nullptr) from.Fail();
      return constant;
    }
    default:
      from.Fail();
      return int64_t{0};
  }
}

Node ReadNode(ByteReader& from, const ConstantTable& constants) {
  Node node;
  node.name = from.GetText();
  node.type = from.GetText();
  node.domain = from.GetText();
  node.opset = from.Get<int32_t>();
  node.inputs = from.GetList<ValueId>(kMaxArity);
  node.outputs = from.GetList<ValueId>(kMaxArity);
  for (size_t left = from.GetCount(9); left > 0 && from.good(); --left) {
    std::string name = from.GetText();
    node.attributes[std::move(name)] = ReadAttribute(from, constants);
  }
  node.epilogue.add = from.Get<ValueId>();
  const auto activation = from.Get<uint8_t>();
  if (activation > static_cast<uint8_t>(Activation::kGeluTanh)) from.Fail();
  node.epilogue.activation = static_cast<Activation>(activation);
  node.epilogue.alpha = from.Get<float>();
  node.epilogue.beta = from.Get<float>();
  node.layer_type = from.GetText();
  node.joins_layer = from.GetFlag();
  return node;
}

GraphPort ReadPort(ByteReader& from) {
  GraphPort port;
  port.name = from.GetText();
  port.value = from.Get<ValueId>();
  port.onnx_type = from.Get<int32_t>();
  for (auto* scale : {&port.quantization, &port.stands_for}) {
    if (!from.GetFlag()) continue;
    Quantization& numbers = scale->emplace();
    numbers.scale = from.Get<float>();
    numbers.zero = from.Get<int32_t>();
  }
  port.mean = from.GetList<float>();
  port.deviation = from.GetList<float>();
  return port;
}

Value ReadValue(ByteReader& from, const ConstantTable& constants) {
  Value value;
  value.name = from.GetText();
  value.type = ReadType(from);
  if (from.GetFlag()) value.shape = ReadShape(from);
  value.constant = constants.Get(from.Get<uint32_t>(), from);
  if (value.shape.has_value() &&
      !DenseBytes(value.type, *value.shape).has_value()) {
    from.Fail();
  }
  if (value.constant != nullptr &&
      (!value.shape.has_value() || value.constant->type != value.type ||
       value.constant->shape != *value.shape)) {
    from.Fail();
  }
  return value;
}

// Follows the graph from its inputs on.
class GraphCheck {
 public:
  GraphCheck(const Graph& graph, const ConstantTable& constants,
             const OperatorTable& operators)
      : graph_(graph),
        constants_(constants),
        operators_(operators),
        made_(graph.values.size(), false) {}

  absl::Status Run() {
    for (size_t v = 0; v < graph_.values.size(); ++v) {
      made_[v] = graph_.values[v].constant != nullptr;
    }
    for (const GraphPort& port : graph_.inputs) {
      if (!IsValue(port.value) || !HasShape(port.value) ||
          graph_.value(port.value).constant != nullptr || !Make(port.value)) {
        return Damaged("an input of the network has no value of its own");
      }
      RKNND_RETURN_IF_ERROR(CheckPort(port));
    }
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      RKNND_RETURN_IF_ERROR(CheckNode(n));
    }
    for (const GraphPort& port : graph_.outputs) {
      if (!IsThere(port.value)) return Damaged("an output is never made");
      RKNND_RETURN_IF_ERROR(CheckPort(port));
    }
    bool left_out = false;
    ForEachUse(graph_, [&](const std::shared_ptr<const Constant>& constant,
                           bool only_packs) {
      left_out |= !only_packs && constants_.LeftOut(constant.get());
    });
    if (left_out) return Damaged("weights that are read are left out");
    return absl::OkStatus();
  }

 private:
  [[nodiscard]] bool IsValue(ValueId id) const {
    return id >= 0 && static_cast<size_t>(id) < graph_.values.size();
  }
  [[nodiscard]] bool HasShape(ValueId id) const {
    return graph_.value(id).shape.has_value();
  }
  // Made by now, and of a known shape.
  [[nodiscard]] bool IsThere(ValueId id) const {
    return IsValue(id) && made_[static_cast<size_t>(id)] && HasShape(id);
  }
  bool Make(ValueId id) {
    if (made_[static_cast<size_t>(id)]) return false;
    made_[static_cast<size_t>(id)] = true;
    return true;
  }

  // Of a value that is there: numbers for each channel of an image, and a scale
  // of 8-bit numbers only.
  absl::Status CheckPort(const GraphPort& port) const {
    const Value& value = graph_.value(port.value);
    const size_t channels =
        value.shape->size() == 4 ? static_cast<size_t>((*value.shape)[1]) : 0;
    for (const auto* list : {&port.mean, &port.deviation}) {
      if (!list->empty() &&
          (list->size() != channels || port.mean.size() != list->size())) {
        return Damaged("a mean or deviation is not one of the input's");
      }
    }
    for (const auto* scale : {&port.quantization, &port.stands_for}) {
      if (scale->has_value() &&
          (!IsEightBit(value.type) || !std::isfinite((*scale)->scale) ||
           !((*scale)->scale > 0))) {
        return Damaged("a port has a scale that cannot be");
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckNode(size_t n) {
    const Node& node = graph_.nodes[n];
    const Operator* op = operators_.Find(node.domain, node.type);
    if (op == nullptr || op->infer == nullptr || op->make == nullptr) {
      return Damaged(absl::StrCat("operator '", node.type, "' is unknown"));
    }
    for (const ValueId id : node.inputs) {
      if (id != kNoValue && !IsThere(id)) {
        return Damaged("a value is read before it is made");
      }
    }
    if (node.epilogue.add != kNoValue && !IsThere(node.epilogue.add)) {
      return Damaged("a value is added before it is made");
    }
    if (node.outputs.empty() || (node.joins_layer && n == 0) ||
        (node.epilogue.add != kNoValue && !op->takes_add)) {
      return Damaged("a node is not one");
    }
    RKNND_ASSIGN_OR_RETURN(const std::vector<InferredOutput> inferred,
                           op->infer(NodeView(graph_, node)));
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const ValueId id = node.outputs[i];
      if (id == kNoValue) continue;
      if (!IsValue(id) || i >= inferred.size() || !Make(id) || !HasShape(id) ||
          graph_.value(id).type != inferred[i].type ||
          *graph_.value(id).shape != inferred[i].shape) {
        return Damaged(absl::StrCat("output ", i, " of node '", node.name,
                                    "' is not what its operator makes"));
      }
    }
    if (node.outputs[0] == kNoValue) return Damaged("a node makes nothing");
    if (node.epilogue.add != kNoValue &&
        (*graph_.value(node.epilogue.add).shape !=
             *graph_.value(node.outputs[0]).shape ||
         graph_.value(node.epilogue.add).type !=
             graph_.value(node.outputs[0]).type)) {
      return Damaged("what is added has another shape");
    }
    return absl::OkStatus();
  }

  const Graph& graph_;
  const ConstantTable& constants_;
  const OperatorTable& operators_;
  std::vector<bool> made_;
};

}  // namespace

void WriteGraph(const Graph& graph, const ConstantTable& constants,
                ByteWriter& to) {
  to.PutText(graph.name);
  to.PutCount(graph.values.size());
  for (const Value& value : graph.values) {
    to.PutText(value.name);
    to.Put(static_cast<uint8_t>(value.type));
    to.Put(static_cast<uint8_t>(value.shape.has_value()));
    if (value.shape.has_value()) WriteShape(*value.shape, to);
    // kNone too for those that nothing reads any more.
    to.Put(constants.NumberOf(value.constant.get()));
  }
  to.PutCount(graph.nodes.size());
  for (const Node& node : graph.nodes) WriteNode(node, constants, to);
  for (const auto* ports : {&graph.inputs, &graph.outputs}) {
    to.PutCount(ports->size());
    for (const GraphPort& port : *ports) WritePort(port, to);
  }
}

absl::StatusOr<Graph> ReadGraph(ByteReader& from,
                                const ConstantTable& constants,
                                const OperatorTable& operators) {
  Graph graph;
  graph.name = from.GetText();
  const size_t values = from.GetCount(/*least=*/14, kMaxValues);
  graph.values.reserve(values);
  for (size_t v = 0; v < values && from.good(); ++v) {
    graph.values.push_back(ReadValue(from, constants));
  }
  const size_t nodes = from.GetCount(/*least=*/64, kMaxNodes);
  graph.nodes.reserve(nodes);
  for (size_t n = 0; n < nodes && from.good(); ++n) {
    graph.nodes.push_back(ReadNode(from, constants));
  }
  for (auto* ports : {&graph.inputs, &graph.outputs}) {
    const size_t count = from.GetCount(/*least=*/33, kMaxPorts);
    for (size_t p = 0; p < count && from.good(); ++p) {
      ports->push_back(ReadPort(from));
    }
  }
  if (!from.good()) return Damaged("its network cannot be read");
  RKNND_RETURN_IF_ERROR(GraphCheck(graph, constants, operators).Run());
  return graph;
}

}  // namespace rknnd::soft
