// See expansion.h.

#include "driver/soft/kernels/expansion.h"

#include <cstring>
#include <memory>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"

namespace rknnd::soft {
namespace {

template <class T>
Constant ConstantOf(DataType type, const Shape& shape,
                    const std::vector<T>& values) {
  Constant constant;
  constant.type = type;
  constant.shape = shape;
  constant.data.resize(values.size() * sizeof(T));
  if (!values.empty()) {
    std::memcpy(constant.data.data(), values.data(), constant.data.size());
  }
  return constant;
}

}  // namespace

size_t CountOf(const std::vector<Node>& nodes) {
  constexpr size_t kOperands = 32;
  size_t count = 0;
  for (const Node& node : nodes) {
    count += 1 + (node.inputs.size() + node.outputs.size()) / kOperands;
  }
  return count;
}

ValueId Expansion::NewValue(std::string name) {
  graph_.values.emplace_back();
  graph_.values.back().name = std::move(name);
  return static_cast<ValueId>(graph_.values.size() - 1);
}

ValueId Expansion::Known(Constant constant) {
  const ValueId id = NewValue(absl::StrCat(node_.name, "/known"));
  Value& value = graph_.value(id);
  value.type = constant.type;
  value.shape = constant.shape;
  value.constant = std::make_shared<const Constant>(std::move(constant));
  return id;
}

ValueId Expansion::Ints(const std::vector<int64_t>& values) {
  return Known(ConstantOf(DataType::kInt64,
                          {static_cast<int64_t>(values.size())}, values));
}

ValueId Expansion::Int(int64_t value) {
  return Known(ConstantOf(DataType::kInt64, {}, std::vector<int64_t>{value}));
}

ValueId Expansion::Floats(const Shape& shape,
                          const std::vector<float>& values) {
  return Known(ConstantOf(DataType::kFloat32, shape, values));
}

ValueId Expansion::Add(std::string_view type, std::vector<ValueId> inputs,
                       Attributes attributes) {
  Node node;
  node.name =
      absl::StrCat(node_.name, "/", std::string(type), "_", nodes_.size());
  node.type = node.layer_type = type;
  node.opset = kOpset;
  node.inputs = std::move(inputs);
  node.attributes = std::move(attributes);
  node.outputs = {NewValue(node.name)};
  const ValueId output = node.outputs[0];
  nodes_.push_back(std::move(node));
  return output;
}

Node& Expansion::Be(std::string_view type, std::vector<ValueId> inputs,
                    Attributes attributes) {
  Node node;
  node.name = node_.name;
  node.type = node.layer_type = type;
  node.opset = kOpset;
  node.inputs = std::move(inputs);
  node.attributes = std::move(attributes);
  node.outputs = node_.outputs;
  nodes_.push_back(std::move(node));
  return nodes_.back();
}

void Expansion::Finish(size_t i, ValueId value) {
  if (i >= node_.outputs.size() || node_.outputs[i] == kNoValue) return;
  // Passes take it out again.
  Add("Identity", {value});
  nodes_.back().outputs = {node_.outputs[i]};
}

std::vector<ValueId> Expansion::Inline(const Graph& body,
                                       const std::vector<ValueId>& inputs,
                                       const std::string& prefix) {
  std::unordered_map<ValueId, ValueId> ids;
  for (size_t i = 0; i < body.inputs.size() && i < inputs.size(); ++i) {
    ids[body.inputs[i].value] = inputs[i];
  }
  // Only what is used: files may have more of them than nodes.
  const auto here = [&](ValueId in_body) {
    const auto [at, is_new] = ids.try_emplace(in_body, kNoValue);
    if (!is_new) return at->second;
    const Value& value = body.value(in_body);
    const ValueId id = NewValue(absl::StrCat(prefix, value.name));
    at->second = id;
    if (value.constant != nullptr) {
      Value& known = graph_.value(id);
      known.type = value.type;
      known.shape = value.shape;
      known.constant = value.constant;
    }
    return id;
  };
  const auto take = [&](std::vector<ValueId>& values) {
    for (ValueId& value : values) {
      if (value != kNoValue) value = here(value);
    }
  };
  for (Node node : body.nodes) {
    node.name = prefix + node.name;
    take(node.inputs);
    take(node.outputs);
    nodes_.push_back(std::move(node));
  }
  std::vector<ValueId> outputs;
  for (const GraphPort& port : body.outputs) {
    outputs.push_back(here(port.value));
  }
  return outputs;
}

}  // namespace rknnd::soft
