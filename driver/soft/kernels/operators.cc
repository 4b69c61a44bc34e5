// NodeView, TensorSpec and the table of operators (operator.h). Everything a
// NodeView hands out comes from a model file; accessors answer for whatever the
// file left out or gave the wrong type.

#include <unistd.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "driver/soft/kernels/families.h"
#include "driver/soft/kernels/operator.h"
#include "driver/soft/tiles/cpu_level.h"

namespace rknnd::soft {
namespace {

template <class T>
const T* Find(const Node& node, std::string_view name) {
  const auto it = node.attributes.find(std::string(name));
  if (it == node.attributes.end()) return nullptr;
  return std::get_if<T>(&it->second);
}

std::string Key(std::string_view domain, std::string_view type) {
  if (domain == "ai.onnx") domain = "";
  return std::string(domain).append(".").append(type);
}

}  // namespace

int64_t TensorSpec::elements() const {
  int64_t count = 1;
  for (const int64_t dim : shape) count *= dim;
  return count;
}

uint64_t TensorSpec::bytes() const {
  auto count = static_cast<uint64_t>(elements());
  if (placement.block > 1 && shape.size() > 1 && shape[1] > 0) {
    const int64_t block = placement.block;
    const int64_t padded = (shape[1] + block - 1) / block * block;
    count =
        count / static_cast<uint64_t>(shape[1]) * static_cast<uint64_t>(padded);
  }
  return count * SizeOf(type);
}

bool NodeView::has_input(size_t i) const {
  return i < node_.inputs.size() && node_.inputs[i] != kNoValue;
}

const Shape& NodeView::shape(size_t i) const {
  static const Shape kScalar;
  const auto& shape = graph_.value(node_.inputs[i]).shape;
  return shape.has_value() ? *shape : kScalar;
}

DataType NodeView::type(size_t i) const {
  return graph_.value(node_.inputs[i]).type;
}

const Constant* NodeView::constant(size_t i) const {
  if (!has_input(i)) return nullptr;
  return graph_.value(node_.inputs[i]).constant.get();
}

int64_t NodeView::Int(std::string_view name, int64_t otherwise) const {
  const auto* value = Find<int64_t>(node_, name);
  return value == nullptr ? otherwise : *value;
}

float NodeView::Float(std::string_view name, float otherwise) const {
  const auto* value = Find<float>(node_, name);
  return value == nullptr ? otherwise : *value;
}

std::string NodeView::String(std::string_view name,
                             std::string_view otherwise) const {
  const auto* value = Find<std::string>(node_, name);
  return value == nullptr ? std::string(otherwise) : *value;
}

std::vector<int64_t> NodeView::Ints(std::string_view name) const {
  const auto* value = Find<std::vector<int64_t>>(node_, name);
  return value == nullptr ? std::vector<int64_t>() : *value;
}

std::vector<float> NodeView::Floats(std::string_view name) const {
  const auto* value = Find<std::vector<float>>(node_, name);
  return value == nullptr ? std::vector<float>() : *value;
}

std::vector<std::string> NodeView::Strings(std::string_view name) const {
  const auto* value = Find<std::vector<std::string>>(node_, name);
  return value == nullptr ? std::vector<std::string>() : *value;
}

const Constant* NodeView::Tensor(std::string_view name) const {
  const auto* value = Find<std::shared_ptr<const Constant>>(node_, name);
  return value == nullptr ? nullptr : value->get();
}

std::shared_ptr<const Graph> NodeView::Body(std::string_view name) const {
  const auto* value = Find<std::shared_ptr<const Graph>>(node_, name);
  return value == nullptr ? nullptr : *value;
}

bool NodeView::Has(std::string_view name) const {
  return node_.attributes.contains(std::string(name));
}

absl::Status NodeView::NeedsConstant(size_t i) const {
  if (constant(i) != nullptr) return absl::OkStatus();
  const std::string what =
      absl::StrCat(node_.type, " '", node_.name, "': input ", i);
  for (const GraphPort& port : graph_.inputs) {
    if (!has_input(i) || port.value != node_.inputs[i]) continue;
    return absl::FailedPreconditionError(
        absl::StrCat(what,
                     " must be known when the model is loaded, here it "
                     "is the model's input '",
                     port.name, "': make it a constant (an initializer)"));
  }
  return absl::FailedPreconditionError(absl::StrCat(
      what,
      " must be known when the model is loaded, here it depends on the "
      "data; export the model with fixed shapes"));
}

absl::StatusOr<std::vector<int64_t>> NodeView::ConstantInts(size_t i) const {
  if (absl::Status known = NeedsConstant(i); !known.ok()) return known;
  const Constant* constant = this->constant(i);
  const int64_t count = constant->elements();
  std::vector<int64_t> values(static_cast<size_t>(count));
  if (constant->type == DataType::kInt64) {
    const auto* from = constant->as<int64_t>();
    values.assign(from, from + count);
  } else if (constant->type == DataType::kInt32) {
    const auto* from = constant->as<int32_t>();
    values.assign(from, from + count);
  } else {
    return Error(absl::StrCat("input ", i, " must be int64 or int32, it is ",
                              DataTypeName(constant->type)));
  }
  return values;
}

absl::Status NodeView::Error(std::string_view what) const {
  return absl::InvalidArgumentError(
      absl::StrCat(node_.type, " '", node_.name, "': ", std::string(what)));
}

void OperatorTable::Add(const Operator& op) {
  operators_.insert_or_assign(Key(op.domain, op.type), op);
}

const Operator* OperatorTable::Find(std::string_view domain,
                                    std::string_view type) const {
  const auto it = operators_.find(Key(domain, type));
  return it == operators_.end() ? nullptr : &it->second;
}

const OperatorTable& OperatorTable::Get() {
  static const OperatorTable table = [] {
    OperatorTable all;
#define RKNND_REGISTER(family) Register##family(all);
    RKNND_OPERATOR_FAMILIES(RKNND_REGISTER)
#undef RKNND_REGISTER
    return all;
  }();
  return table;
}

int ChannelBlock() {
  switch (CurrentCpuLevel()) {
    case CpuLevel::kAvx512:
    case CpuLevel::kAvx512Vnni:
      return 16;
    case CpuLevel::kSse41:
    case CpuLevel::kAvx:
    case CpuLevel::kAvx2:
    case CpuLevel::kAvx2Vnni:
    case CpuLevel::kNeon:
    case CpuLevel::kNeonDot:
      return 8;
    default:
      return 1;
  }
}

}  // namespace rknnd::soft
