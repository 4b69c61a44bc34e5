#include "driver/soft/custom/custom_parts.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "driver/custom/custom_model.h"
#include "driver/soft/graph/fold.h"
#include "driver/soft/graph/onnx_operators.h"
#include "driver/soft/graph/passes.h"
#include "driver/tensor.h"

namespace rknnd::soft {
namespace {

using driver::TensorType;

// Of operators that a program overrides: nobody has them.
constexpr char kDomain[] = "custom";
constexpr int kReshapeOpset = 13;

bool IsNobodys(const Node& node, const OperatorTable& operators) {
  if (operators.Find(node.domain, node.type) != nullptr) return false;
  return !node.domain.empty() || !IsOnnxOperator(node.type);
}

struct TypePair {
  DataType inside;
  TensorType outside;
  int32_t onnx;  // TensorProto.DataType
};
constexpr TypePair kTypes[] = {
    {DataType::kFloat32, TensorType::kFloat32, 1},
    {DataType::kInt8, TensorType::kInt8, 3},
    {DataType::kUint8, TensorType::kUint8, 2},
    {DataType::kInt16, TensorType::kInt16, 5},
    {DataType::kUint16, TensorType::kUint16, 4},
    {DataType::kInt32, TensorType::kInt32, 6},
    {DataType::kUint32, TensorType::kUint32, 12},
    {DataType::kInt64, TensorType::kInt64, 7},
    {DataType::kBool, TensorType::kBool, 9},
};
const TypePair* FindType(DataType type) {
  for (const TypePair& pair : kTypes) {
    if (pair.inside == type) return &pair;
  }
  return nullptr;
}

template <class T>
custom::Attribute NoteOf(TensorType type, const T* numbers, size_t count) {
  custom::Attribute note;
  note.type = static_cast<uint32_t>(type);
  note.count = static_cast<uint32_t>(count);
  const auto* const bytes = reinterpret_cast<const std::byte*>(numbers);
  note.data.assign(bytes, bytes + count * sizeof(T));
  return note;
}

// Nothing: of a kind that the API has no words for.
std::optional<custom::Attribute> NoteOf(const Attribute& attribute) {
  if (const auto* number = std::get_if<int64_t>(&attribute)) {
    return NoteOf(TensorType::kInt64, number, 1);
  }
  if (const auto* number = std::get_if<float>(&attribute)) {
    return NoteOf(TensorType::kFloat32, number, 1);
  }
  if (const auto* text = std::get_if<std::string>(&attribute)) {
    return NoteOf(TensorType::kUint8, text->data(), text->size());
  }
  if (const auto* list = std::get_if<std::vector<int64_t>>(&attribute)) {
    return NoteOf(TensorType::kInt64, list->data(), list->size());
  }
  if (const auto* list = std::get_if<std::vector<float>>(&attribute)) {
    return NoteOf(TensorType::kFloat32, list->data(), list->size());
  }
  if (const auto* constant =
          std::get_if<std::shared_ptr<const Constant>>(&attribute)) {
    const TypePair* const type = FindType((*constant)->type);
    if (type == nullptr) return std::nullopt;
    custom::Attribute note;
    note.type = static_cast<uint32_t>(type->outside);
    note.count = static_cast<uint32_t>((*constant)->elements());
    note.data = (*constant)->data;
    return note;
  }
  return std::nullopt;
}

class Cutter {
 public:
  Cutter(const OperatorTable& operators, Graph& graph)
      : operators_(operators), graph_(graph) {}

  absl::Status Find(const std::vector<std::string>& types) {
    const std::set<std::string> wanted(types.begin(), types.end());
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      if (IsNobodys(node, operators_) || wanted.contains(node.type)) {
        custom_.push_back(i);
      }
    }
    RKNND_RETURN_IF_ERROR(TakeShapes());
    FindMakers();
    return FindPorts();
  }

  [[nodiscard]] absl::StatusOr<custom::Model> Describe() const {
    custom::Model model;
    for (const ValueId id : between_) {
      const Value& value = graph_.value(id);
      custom::Tensor tensor;
      tensor.name = value.name;
      tensor.type = static_cast<uint32_t>(FindType(value.type)->outside);
      for (const int64_t dim : *value.shape) {
        tensor.dims.push_back(static_cast<uint32_t>(dim));
      }
      model.tensors.push_back(std::move(tensor));
    }
    for (const size_t i : custom_) {
      const Node& node = graph_.nodes[i];
      custom::Operator op;
      op.name = node.name;
      op.type = node.type;
      op.is_known = operators_.Find(node.domain, node.type) != nullptr;
      for (const ValueId id : node.inputs) {
        if (id != kNoValue) op.inputs.push_back(NumberOf(id));
      }
      for (const ValueId id : node.outputs) {
        if (id != kNoValue) op.outputs.push_back(NumberOf(id));
      }
      for (const auto& [name, attribute] : node.attributes) {
        std::optional<custom::Attribute> note = NoteOf(attribute);
        if (!note) continue;
        note->name = name;
        op.attributes.push_back(*std::move(note));
      }
      model.operators.push_back(std::move(op));
    }
    for (const Ports& ports : ports_) {
      custom::Part part;
      for (const size_t i : ports.own_inputs) {
        part.inputs.push_back({false, static_cast<uint32_t>(i)});
      }
      for (const ValueId id : ports.inputs) {
        part.inputs.push_back({true, NumberOf(id)});
      }
      for (const size_t i : ports.own_outputs) {
        part.outputs.push_back({false, static_cast<uint32_t>(i)});
      }
      for (const ValueId id : ports.outputs) {
        part.outputs.push_back({true, NumberOf(id)});
      }
      model.parts.push_back(std::move(part));
    }
    return model;
  }

  // Nobody has the custom operators from now on.
  void Disown() {
    for (const size_t i : custom_) {
      Node& node = graph_.nodes[i];
      if (!IsNobodys(node, operators_)) node.domain = kDomain;
    }
  }

  absl::Status Keep(uint32_t part, ModelOptions& options) {
    if (part >= ports_.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the model has ", ports_.size(),
                       " parts around its custom operators, not ", part + 1));
    }
    const Ports& ports = ports_[part];
    std::vector<Node> nodes;
    std::vector<GraphPort> inputs, outputs;
    const auto pick = [&ports](std::vector<std::vector<float>>& lists) {
      if (lists.empty()) return;
      std::vector<std::vector<float>> picked;
      for (const size_t i : ports.own_inputs) {
        picked.push_back(i < lists.size() ? lists[i] : std::vector<float>());
      }
      lists = std::move(picked);
    };
    pick(options.mean_values);
    pick(options.std_values);
    for (const size_t i : ports.own_inputs) inputs.push_back(graph_.inputs[i]);
    for (const ValueId id : ports.inputs) {
      const ValueId flat = AddFlat(id);
      nodes.push_back(Reshape(flat, *graph_.value(id).shape, id));
      inputs.push_back(PortOf(flat));
    }
    for (size_t i = FirstOf(part); i < EndOf(part); ++i) {
      nodes.push_back(graph_.nodes[i]);
    }
    for (const size_t i : ports.own_outputs) {
      outputs.push_back(graph_.outputs[i]);
    }
    for (const ValueId id : ports.outputs) {
      const ValueId flat = AddFlat(id);
      nodes.push_back(Reshape(id, *graph_.value(flat).shape, flat));
      outputs.push_back(PortOf(flat));
    }
    if (outputs.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("part ", part, " of the model has nothing to do"));
    }
    graph_.nodes = std::move(nodes);
    graph_.inputs = std::move(inputs);
    graph_.outputs = std::move(outputs);
    RemoveDeadNodes(graph_);
    return absl::OkStatus();
  }

 private:
  struct Ports {
    std::set<size_t> own_inputs, own_outputs;
    std::set<ValueId> inputs, outputs;
  };

  // Of the nodes of a part.
  [[nodiscard]] size_t FirstOf(size_t part) const {
    return part == 0 ? 0 : custom_[part - 1] + 1;
  }
  [[nodiscard]] size_t EndOf(size_t part) const {
    return part == custom_.size() ? graph_.nodes.size() : custom_[part];
  }
  [[nodiscard]] uint32_t NumberOf(ValueId id) const { return number_.at(id); }

  // As inference finds them, where the custom operators' outputs are as
  // declared or assumed.
  absl::Status TakeShapes() {
    Graph shaped = graph_;
    for (const size_t i : custom_) {
      Node& node = shaped.nodes[i];
      if (operators_.Find(node.domain, node.type) == nullptr) {
        node.domain = kDomain;
      }
    }
    Folder folder;
    RKNND_RETURN_IF_ERROR(InferAndFold(shaped, operators_, folder,
                                       /*keep_dequantize=*/false,
                                       /*assume_shapes=*/true));
    for (const size_t i : custom_) {
      for (const auto* list :
           {&graph_.nodes[i].inputs, &graph_.nodes[i].outputs}) {
        for (const ValueId id : *list) {
          if (id != kNoValue) Take(shaped, id);
        }
      }
    }
    shaped_ = std::move(shaped);
    return absl::OkStatus();
  }
  void Take(const Graph& shaped, ValueId id) {
    const Value& known = shaped.value(id);
    Value& value = graph_.value(id);
    if (value.constant != nullptr) return;
    value.type = known.type;
    value.shape = known.shape;
  }

  // In which part each value is made; custom operator k's belong to no part
  // before k + 1.
  void FindMakers() {
    made_in_.assign(graph_.values.size(), -1);
    for (size_t part = 0; part <= custom_.size(); ++part) {
      for (size_t i = FirstOf(part); i < EndOf(part); ++i) {
        for (const ValueId id : graph_.nodes[i].outputs) {
          if (id != kNoValue) {
            made_in_[static_cast<size_t>(id)] = static_cast<int64_t>(part);
          }
        }
      }
    }
    for (const size_t i : custom_) {
      for (const ValueId id : graph_.nodes[i].outputs) {
        if (id != kNoValue) made_by_custom_.insert(id);
      }
    }
    for (size_t i = 0; i < graph_.inputs.size(); ++i) {
      input_of_.emplace(graph_.inputs[i].value, i);
    }
  }

  // `part` reads the value.
  absl::Status Read(size_t part, ValueId id) {
    const int64_t maker = made_in_[static_cast<size_t>(id)];
    if (maker == static_cast<int64_t>(part)) return absl::OkStatus();
    if (const auto own = input_of_.find(id); own != input_of_.end()) {
      ports_[part].own_inputs.insert(own->second);
      return absl::OkStatus();
    }
    if (graph_.value(id).constant != nullptr) return absl::OkStatus();
    ports_[part].inputs.insert(id);
    if (maker >= 0) ports_[static_cast<size_t>(maker)].outputs.insert(id);
    return Pass(id);
  }

  // The value is between parts or operators.
  absl::Status Pass(ValueId id) {
    if (!between_.insert(id).second) return absl::OkStatus();
    Take(shaped_, id);
    const Value& value = graph_.value(id);
    if (!value.shape.has_value()) {
      return absl::UnimplementedError(absl::StrCat(
          "the tensor '", value.name,
          "' beside a custom operator has no known shape: declare it in the "
          "model (value_info)"));
    }
    if (FindType(value.type) == nullptr) {
      return absl::UnimplementedError(absl::StrCat(
          "the tensor '", value.name, "' beside a custom operator is of ",
          DataTypeName(value.type), ", which the API has no type for"));
    }
    return ElementCount(*value.shape).status();
  }

  absl::Status FindPorts() {
    ports_.resize(custom_.size() + 1);
    for (size_t part = 0; part <= custom_.size(); ++part) {
      for (size_t i = FirstOf(part); i < EndOf(part); ++i) {
        for (const ValueId id : graph_.nodes[i].inputs) {
          if (id == kNoValue) continue;
          RKNND_RETURN_IF_ERROR(Read(part, id));
        }
      }
    }
    for (size_t k = 0; k < custom_.size(); ++k) {
      const Node& node = graph_.nodes[custom_[k]];
      for (const ValueId id : node.inputs) {
        if (id == kNoValue) continue;
        RKNND_RETURN_IF_ERROR(Pass(id));
        if (made_by_custom_.contains(id)) continue;
        // What a part makes, or what the part before the operator passes on.
        const int64_t maker = made_in_[static_cast<size_t>(id)];
        const size_t part = maker < 0 ? k : static_cast<size_t>(maker);
        ports_[part].outputs.insert(id);
        if (const auto own = input_of_.find(id); own != input_of_.end()) {
          ports_[part].own_inputs.insert(own->second);
        }
      }
      for (const ValueId id : node.outputs) {
        if (id != kNoValue) RKNND_RETURN_IF_ERROR(Pass(id));
      }
    }
    for (size_t i = 0; i < graph_.outputs.size(); ++i) {
      const ValueId id = graph_.outputs[i].value;
      const int64_t maker = made_in_[static_cast<size_t>(id)];
      const size_t part =
          maker < 0 ? custom_.size() : static_cast<size_t>(maker);
      ports_[part].own_outputs.insert(i);
      if (maker < 0) RKNND_RETURN_IF_ERROR(Read(part, id));
    }
    for (const ValueId id : between_) {
      number_.emplace(id, static_cast<uint32_t>(number_.size()));
    }
    return absl::OkStatus();
  }

  ValueId AddValue(Value value) {
    graph_.values.push_back(std::move(value));
    return static_cast<ValueId>(graph_.values.size() - 1);
  }
  // The same numbers along one axis.
  ValueId AddFlat(ValueId id) {
    Value flat;
    flat.name = absl::StrCat("custom.", graph_.value(id).name);
    flat.type = graph_.value(id).type;
    int64_t elements = 1;
    for (const int64_t dim : *graph_.value(id).shape) elements *= dim;
    flat.shape = Shape{elements};
    return AddValue(std::move(flat));
  }
  Node Reshape(ValueId from, const Shape& shape, ValueId to) {
    auto constant = std::make_shared<Constant>();
    constant->type = DataType::kInt64;
    constant->shape = {static_cast<int64_t>(shape.size())};
    constant->data.resize(shape.size() * sizeof(int64_t));
    if (!shape.empty()) {
      std::memcpy(constant->data.data(), shape.data(), constant->data.size());
    }
    Value dims;
    dims.name = absl::StrCat(graph_.value(to).name, ".shape");
    dims.type = DataType::kInt64;
    dims.shape = constant->shape;
    dims.constant = std::move(constant);
    const ValueId dims_id = AddValue(std::move(dims));
    Node node;
    node.name = absl::StrCat("custom.", graph_.value(to).name);
    node.type = node.layer_type = "Reshape";
    node.opset = kReshapeOpset;
    node.inputs = {from, dims_id};
    node.outputs = {to};
    return node;
  }
  [[nodiscard]] GraphPort PortOf(ValueId id) const {
    GraphPort port;
    port.name = graph_.value(id).name;
    port.value = id;
    port.onnx_type = FindType(graph_.value(id).type)->onnx;
    port.declared = graph_.value(id).shape;
    return port;
  }

  const OperatorTable& operators_;
  Graph& graph_;
  Graph shaped_;
  std::vector<size_t> custom_;  // nodes, ascending
  std::vector<int64_t> made_in_;
  std::set<ValueId> made_by_custom_;
  std::map<ValueId, size_t> input_of_;
  std::set<ValueId> between_;
  std::map<ValueId, uint32_t> number_;  // of those between
  std::vector<Ports> ports_;
};

}  // namespace

std::string ListCustomOperators(const Graph& graph,
                                const OperatorTable& operators) {
  custom::Model model;
  for (const Node& node : graph.nodes) {
    if (!IsNobodys(node, operators)) continue;
    custom::Operator op;
    op.name = node.name;
    op.type = node.type;
    model.operators.push_back(std::move(op));
  }
  if (model.operators.empty()) return {};
  model.parts.resize(model.operators.size() + 1);
  return custom::Write(model);
}

absl::StatusOr<std::string> CutAtCustomOperators(
    const base::CustomOperatorsOption& custom, const OperatorTable& operators,
    Graph& graph, ModelOptions& options) {
  if (options.rknn_batch_size > 1 || !options.dynamic_input.empty()) {
    return absl::UnimplementedError(
        "a model with option 'rknn_batch_size' or 'dynamic_input' cannot have "
        "custom operators");
  }
  Cutter cutter(operators, graph);
  RKNND_RETURN_IF_ERROR(cutter.Find(custom.types));
  if (custom.part) {
    RKNND_RETURN_IF_ERROR(cutter.Keep(*custom.part, options));
    return std::string();
  }
  RKNND_ASSIGN_OR_RETURN(const custom::Model model, cutter.Describe());
  cutter.Disown();
  return custom::Write(model);
}

}  // namespace rknnd::soft
