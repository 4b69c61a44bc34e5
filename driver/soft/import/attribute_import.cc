#include "driver/soft/import/attribute_import.h"

#include <onnx/onnx_pb.h>

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "driver/soft/import/tensor_import.h"

namespace rknnd::soft {
namespace {

using onnx::AttributeProto;

// Files from before ONNX 1.1 leave the type out; the field that is there says.
AttributeProto::AttributeType TypeOf(const AttributeProto& attribute) {
  if (attribute.type() != AttributeProto::UNDEFINED) return attribute.type();
  if (attribute.has_f()) return AttributeProto::FLOAT;
  if (attribute.has_i()) return AttributeProto::INT;
  if (attribute.has_s()) return AttributeProto::STRING;
  if (attribute.has_t()) return AttributeProto::TENSOR;
  if (attribute.has_g() || attribute.graphs_size() > 0) {
    return AttributeProto::GRAPH;
  }
  if (attribute.floats_size() > 0) return AttributeProto::FLOATS;
  if (attribute.strings_size() > 0) return AttributeProto::STRINGS;
  return AttributeProto::INTS;
}

template <class T>
std::shared_ptr<const Constant> Vector(DataType type, const T* from,
                                       size_t count, Shape shape) {
  auto constant = std::make_shared<Constant>();
  constant->type = type;
  constant->shape = std::move(shape);
  constant->data.resize(count * sizeof(T));
  if (count > 0) std::memcpy(constant->data.data(), from, count * sizeof(T));
  return constant;
}

}  // namespace

absl::StatusOr<Attribute> ImportAttribute(const AttributeProto& attribute,
                                          const Node& node) {
  if (!attribute.ref_attr_name().empty()) {
    return absl::UnimplementedError(
        absl::StrCat("node '", node.name, "': attribute '", attribute.name(),
                     "' refers to a function's, but the node is in none"));
  }
  switch (TypeOf(attribute)) {
    case AttributeProto::FLOAT:
      return Attribute(attribute.f());
    case AttributeProto::INT:
      return Attribute(static_cast<int64_t>(attribute.i()));
    case AttributeProto::STRING:
      return Attribute(attribute.s());
    case AttributeProto::TENSOR: {
      RKNND_ASSIGN_OR_RETURN(
          std::shared_ptr<const Constant> constant,
          ImportTensor(attribute.t(),
                       absl::StrCat("attribute '", attribute.name(),
                                    "' of node '", node.name, "'")));
      return Attribute(std::move(constant));
    }
    case AttributeProto::FLOATS:
      return Attribute(std::vector<float>(attribute.floats().begin(),
                                          attribute.floats().end()));
    case AttributeProto::INTS:
      return Attribute(std::vector<int64_t>(attribute.ints().begin(),
                                            attribute.ints().end()));
    case AttributeProto::STRINGS:
      return Attribute(std::vector<std::string>(attribute.strings().begin(),
                                                attribute.strings().end()));
    case AttributeProto::GRAPH:
    case AttributeProto::GRAPHS:
      return absl::UnimplementedError(
          absl::StrCat("operator '", node.type, "' of node '", node.name,
                       "' holds a graph of its own, which the software NPU "
                       "does not support"));
    default:
      return absl::UnimplementedError(
          absl::StrCat("operator '", node.type, "' of node '", node.name,
                       "': attribute '", attribute.name(),
                       "' is of a kind the software NPU does not support"));
  }
}

absl::StatusOr<std::shared_ptr<const Constant>> ConstantOf(const Node& node) {
  for (const auto& [name, attribute] : node.attributes) {
    if (const auto* tensor =
            std::get_if<std::shared_ptr<const Constant>>(&attribute)) {
      return *tensor;
    }
    if (const auto* number = std::get_if<float>(&attribute)) {
      return Vector(DataType::kFloat32, number, 1, {});
    }
    if (const auto* number = std::get_if<int64_t>(&attribute)) {
      return Vector(DataType::kInt64, number, 1, {});
    }
    if (const auto* list = std::get_if<std::vector<float>>(&attribute)) {
      return Vector(DataType::kFloat32, list->data(), list->size(),
                    {static_cast<int64_t>(list->size())});
    }
    if (const auto* list = std::get_if<std::vector<int64_t>>(&attribute)) {
      return Vector(DataType::kInt64, list->data(), list->size(),
                    {static_cast<int64_t>(list->size())});
    }
  }
  return absl::UnimplementedError(
      absl::StrCat("Constant '", node.name,
                   "' is of a kind the software NPU does not support"));
}

}  // namespace rknnd::soft
