#include "driver/rknpu/device/custom_parts.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "driver/custom/custom_model.h"
#include "driver/rknpu/device/cpu_node.h"
#include "driver/tensor.h"

namespace rknnd::rknpu {
namespace {

using driver::TensorType;

// What programs get of a tensor: real numbers are float32.
std::optional<TensorType> TypeOutside(ElementType type) {
  switch (type) {
    case ElementType::kFloat32:
    case ElementType::kFloat16:
    case ElementType::kInt8:
      return TensorType::kFloat32;
    case ElementType::kInt32:
      return TensorType::kInt32;
    case ElementType::kInt64:
      return TensorType::kInt64;
    default:
      return std::nullopt;
  }
}

// ---- attributes: {"alpha": {"dtype": "f", "value": 0.5}} --------------------

// A BSON document, element by element. Of the file; nothing nested deeper than
// the attributes' is looked into.
class Document {
 public:
  explicit Document(std::span<const std::byte> bytes) {
    int32_t size = 0;
    if (bytes.size() < sizeof size) return;
    std::memcpy(&size, bytes.data(), sizeof size);
    if (size < 5 || static_cast<size_t>(size) > bytes.size()) return;
    rest_ = bytes.subspan(sizeof size, static_cast<size_t>(size) - 5);
  }

  struct Element {
    uint8_t type = 0;
    std::string_view name;
    std::span<const std::byte> value;
  };
  // False at the end, and where the rest is damaged.
  bool Next(Element& element) {
    if (rest_.empty()) return false;
    element.type = static_cast<uint8_t>(rest_[0]);
    rest_ = rest_.subspan(1);
    const auto* const end = static_cast<const std::byte*>(
        std::memchr(rest_.data(), 0, rest_.size()));
    if (end == nullptr) return Stop();
    const auto length = static_cast<size_t>(end - rest_.data());
    element.name = {reinterpret_cast<const char*>(rest_.data()), length};
    rest_ = rest_.subspan(length + 1);
    const size_t size = SizeOf(element.type);
    if (size == 0 || size > rest_.size()) return Stop();
    element.value = rest_.first(size);
    rest_ = rest_.subspan(size);
    return true;
  }

  static constexpr uint8_t kDouble = 1, kString = 2, kDocument = 3, kArray = 4,
                           kBool = 8, kInt32 = 16, kInt64 = 18;

 private:
  bool Stop() {
    rest_ = {};
    return false;
  }
  // Of a value that begins the rest; 0: none that is known.
  [[nodiscard]] size_t SizeOf(uint8_t type) const {
    int32_t size = 0;
    switch (type) {
      case kDouble:
      case kInt64:
        return 8;
      case kInt32:
        return 4;
      case kBool:
        return 1;
      case kString:
      case kDocument:
      case kArray:
        break;
      default:
        return 0;
    }
    if (rest_.size() < sizeof size) return 0;
    std::memcpy(&size, rest_.data(), sizeof size);
    if (size < 1) return 0;
    // A string's size leaves out its own four bytes.
    return static_cast<size_t>(size) + (type == kString ? sizeof size : 0);
  }

  std::span<const std::byte> rest_;
};

template <class T>
T As(std::span<const std::byte> bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

template <class T>
void Append(T number, custom::Attribute& attribute) {
  const auto* const bytes = reinterpret_cast<const std::byte*>(&number);
  attribute.data.insert(attribute.data.end(), bytes, bytes + sizeof number);
  ++attribute.count;
}

// A real number may be written as an integer.
void AppendNumber(const Document::Element& element, bool is_real,
                  custom::Attribute& attribute) {
  double real = 0;
  int64_t integer = 0;
  switch (element.type) {
    case Document::kDouble:
      real = As<double>(element.value);
      break;
    case Document::kInt32:
      integer = As<int32_t>(element.value);
      break;
    case Document::kInt64:
      integer = As<int64_t>(element.value);
      break;
    default:
      return;
  }
  if (is_real) {
    Append(static_cast<float>(element.type == Document::kDouble
                                  ? real
                                  : static_cast<double>(integer)),
           attribute);
  } else {
    Append(integer, attribute);
  }
}

std::vector<custom::Attribute> AttributesOf(const Node& node) {
  std::vector<custom::Attribute> attributes;
  Document document(node.custom_attributes);
  Document::Element entry;
  while (document.Next(entry)) {
    if (entry.type != Document::kDocument) continue;
    custom::Attribute attribute;
    attribute.name = entry.name;
    bool is_real = false;
    Document inner(entry.value);
    Document::Element field;
    std::optional<Document::Element> value;
    while (inner.Next(field)) {
      if (field.name == "value") value = field;
      if (field.name == "dtype" && field.type == Document::kString &&
          field.value.size() > sizeof(int32_t)) {
        is_real = static_cast<char>(field.value[sizeof(int32_t)]) == 'f';
      }
    }
    if (!value) continue;
    is_real = is_real || value->type == Document::kDouble;
    attribute.type = static_cast<uint32_t>(is_real ? TensorType::kFloat32
                                                   : TensorType::kInt64);
    if (value->type == Document::kString) {
      // Its size, the text, a zero.
      const auto text = value->value.subspan(sizeof(int32_t));
      attribute.type = static_cast<uint32_t>(TensorType::kUint8);
      attribute.data.assign(text.begin(), text.end() - 1);
      attribute.count = static_cast<uint32_t>(attribute.data.size());
    } else if (value->type == Document::kArray) {
      Document list(value->value);
      while (list.Next(field)) AppendNumber(field, is_real, attribute);
    } else {
      AppendNumber(*value, is_real, attribute);
    }
    attributes.push_back(std::move(attribute));
  }
  return attributes;
}

}  // namespace

absl::StatusOr<CustomParts> CustomParts::Of(
    const ProgramFile& file, std::span<const std::string> types) {
  CustomParts parts;
  const std::set<std::string> wanted(types.begin(), types.end());
  for (uint32_t n = 0; n < file.nodes.size(); ++n) {
    const Node& node = file.nodes[n];
    if (node.on_npu || IsPortNode(node)) continue;
    if (!CpuNode::Knows(node.type) || wanted.contains(node.type)) {
      parts.nodes_.push_back(n);
    }
  }
  if (parts.nodes_.empty()) return parts;
  absl::Status found = parts.Find(file);
  if (!found.ok()) return found;
  return parts;
}

bool CustomParts::Has(uint32_t node) const {
  return std::binary_search(nodes_.begin(), nodes_.end(), node);
}

std::string CustomParts::First(const ProgramFile& file) const {
  const Node& node = file.nodes[nodes_.front()];
  return absl::StrCat("operator '", node.type, "' of node '", node.name, "'");
}

uint32_t CustomParts::NumberOf(uint32_t tensor) const {
  return static_cast<uint32_t>(
      std::lower_bound(tensors_.begin(), tensors_.end(), tensor) -
      tensors_.begin());
}

absl::Status CustomParts::Find(const ProgramFile& file) {
  const size_t parts = nodes_.size() + 1;
  struct Sets {
    std::set<uint32_t> own_inputs, own_outputs, inputs, outputs;
  };
  std::vector<Sets> sets(parts);
  std::set<uint32_t> between, of_custom;
  // The part that writes a tensor; -1: a custom node, an input, a constant.
  std::vector<int64_t> writer(file.tensors.size(), -1);
  const auto part_of = [this](uint32_t n) {
    return static_cast<size_t>(
        std::lower_bound(nodes_.begin(), nodes_.end(), n) - nodes_.begin());
  };
  for (uint32_t n = 0; n < file.nodes.size(); ++n) {
    for (const uint32_t t : file.nodes[n].outputs) {
      if (Has(n)) {
        of_custom.insert(t);
      } else if (!IsPortNode(file.nodes[n])) {
        writer[t] = static_cast<int64_t>(part_of(n));
      }
    }
  }
  const auto own = [&file](uint32_t t) {
    return static_cast<uint32_t>(
        std::find(file.inputs.begin(), file.inputs.end(), t) -
        file.inputs.begin());
  };
  const auto read = [&](size_t part, uint32_t t) {
    if (writer[t] == static_cast<int64_t>(part) ||
        !file.tensors[t].in_internal_memory()) {
      return;
    }
    if (const uint32_t i = own(t); i < file.inputs.size()) {
      sets[part].own_inputs.insert(i);
      return;
    }
    sets[part].inputs.insert(t);
    between.insert(t);
    if (writer[t] >= 0) sets[static_cast<size_t>(writer[t])].outputs.insert(t);
  };
  for (uint32_t n = 0; n < file.nodes.size(); ++n) {
    const Node& node = file.nodes[n];
    if (IsPortNode(node)) continue;
    if (!Has(n)) {
      for (const uint32_t t : node.inputs) read(part_of(n), t);
      continue;
    }
    for (const uint32_t t : node.inputs) {
      if (!file.tensors[t].in_internal_memory()) {
        return absl::UnimplementedError(absl::StrCat(
            "node '", node.name, "' (", node.type, "): its input '",
            file.tensors[t].name,
            "' is a constant, which custom operators of compiled models cannot "
            "be given"));
      }
      between.insert(t);
      if (of_custom.contains(t)) continue;
      const size_t part =
          writer[t] >= 0 ? static_cast<size_t>(writer[t]) : part_of(n);
      sets[part].outputs.insert(t);
      if (const uint32_t i = own(t); i < file.inputs.size()) {
        sets[part].own_inputs.insert(i);
      }
    }
    between.insert(node.outputs.begin(), node.outputs.end());
  }
  for (uint32_t i = 0; i < file.outputs.size(); ++i) {
    const uint32_t t = file.outputs[i];
    const size_t part =
        writer[t] >= 0 ? static_cast<size_t>(writer[t]) : parts - 1;
    sets[part].own_outputs.insert(i);
    if (writer[t] < 0) read(part, t);
  }
  for (const uint32_t t : between) {
    if (!TypeOutside(file.tensors[t].type).has_value()) {
      return absl::UnimplementedError(absl::StrCat(
          "tensor '", file.tensors[t].name, "' beside a custom operator has ",
          ElementTypeName(file.tensors[t].type), " numbers"));
    }
  }
  tensors_.assign(between.begin(), between.end());
  for (const Sets& set : sets) {
    ports_.push_back({{set.own_inputs.begin(), set.own_inputs.end()},
                      {set.own_outputs.begin(), set.own_outputs.end()},
                      {set.inputs.begin(), set.inputs.end()},
                      {set.outputs.begin(), set.outputs.end()}});
  }
  return absl::OkStatus();
}

std::string CustomParts::Describe(const ProgramFile& file) const {
  custom::Model model;
  for (const uint32_t t : tensors_) {
    const Tensor& tensor = file.tensors[t];
    model.tensors.push_back({tensor.name,
                             static_cast<uint32_t>(*TypeOutside(tensor.type)),
                             tensor.shape});
  }
  for (const uint32_t n : nodes_) {
    const Node& node = file.nodes[n];
    custom::Operator op;
    op.name = node.name;
    op.type = node.type;
    op.is_known = CpuNode::Knows(node.type);
    for (const uint32_t t : node.inputs) op.inputs.push_back(NumberOf(t));
    for (const uint32_t t : node.outputs) op.outputs.push_back(NumberOf(t));
    op.attributes = AttributesOf(node);
    model.operators.push_back(std::move(op));
  }
  for (const Ports& ports : ports_) {
    custom::Part part;
    for (const uint32_t i : ports.own_inputs) part.inputs.push_back({false, i});
    for (const uint32_t t : ports.inputs) {
      part.inputs.push_back({true, NumberOf(t)});
    }
    for (const uint32_t i : ports.own_outputs) {
      part.outputs.push_back({false, i});
    }
    for (const uint32_t t : ports.outputs) {
      part.outputs.push_back({true, NumberOf(t)});
    }
    model.parts.push_back(std::move(part));
  }
  return custom::Write(model);
}

absl::Status CustomParts::CutPorts(uint32_t part, ProgramFile& file) const {
  if (part >= ports_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the model has ", ports_.size(),
                     " parts around its custom operators, not ", part + 1));
  }
  const Ports& ports = ports_[part];
  std::vector<uint32_t> inputs, outputs;
  std::vector<InputScaling> scaling;
  for (const uint32_t i : ports.own_inputs) {
    inputs.push_back(file.inputs[i]);
    if (!file.input_scaling.empty()) scaling.push_back(file.input_scaling[i]);
  }
  inputs.insert(inputs.end(), ports.inputs.begin(), ports.inputs.end());
  // Those of tensors between have none.
  if (!scaling.empty()) scaling.resize(inputs.size());
  for (const uint32_t i : ports.own_outputs) outputs.push_back(file.outputs[i]);
  outputs.insert(outputs.end(), ports.outputs.begin(), ports.outputs.end());
  file.inputs = std::move(inputs);
  file.outputs = std::move(outputs);
  file.input_scaling = std::move(scaling);
  return absl::OkStatus();
}

std::vector<Step> CustomParts::StepsOf(uint32_t part,
                                       std::vector<Step> steps) const {
  std::erase_if(steps, [&](const Step& step) {
    const uint32_t node = step.on_cpu ? step.node : step.piece.first_node;
    const auto at = std::lower_bound(nodes_.begin(), nodes_.end(), node);
    return Has(node) || at - nodes_.begin() != static_cast<int64_t>(part);
  });
  return steps;
}

}  // namespace rknnd::rknpu
