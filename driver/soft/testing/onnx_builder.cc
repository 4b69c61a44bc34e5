#include "driver/soft/testing/onnx_builder.h"

#include <cstring>

namespace rknnd::soft::testing {
namespace {

void Declare(onnx::ValueInfoProto* info, const std::string& name,
             const Dims& dims, int32_t type) {
  info->set_name(name);
  auto* tensor = info->mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(type);
  auto* shape = tensor->mutable_shape();
  for (int64_t dim : dims) {
    // -1 stands for a dim with a name instead of a number.
    if (dim >= 0) {
      shape->add_dim()->set_dim_value(dim);
    } else {
      shape->add_dim()->set_dim_param("N");
    }
  }
}

}  // namespace

OnnxBuilder::OnnxBuilder() {
  model_.set_ir_version(8);
  model_.mutable_graph()->set_name("test");
  auto* opset = model_.add_opset_import();
  opset->set_version(13);
}

OnnxBuilder& OnnxBuilder::Input(const std::string& name, const Dims& dims,
                                int32_t type) {
  Declare(model_.mutable_graph()->add_input(), name, dims, type);
  return *this;
}

OnnxBuilder& OnnxBuilder::Output(const std::string& name, const Dims& dims,
                                 int32_t type) {
  Declare(model_.mutable_graph()->add_output(), name, dims, type);
  return *this;
}

OnnxBuilder& OnnxBuilder::Node(const std::string& type,
                               const std::vector<std::string>& inputs,
                               const std::vector<std::string>& outputs,
                               const std::string& name,
                               const std::string& domain) {
  auto* node = model_.mutable_graph()->add_node();
  node->set_op_type(type);
  node->set_name(name);
  if (!domain.empty()) node->set_domain(domain);
  for (const std::string& input : inputs) node->add_input(input);
  for (const std::string& output : outputs) node->add_output(output);
  return *this;
}

onnx::AttributeProto* OnnxBuilder::Attribute(const std::string& name) {
  auto* nodes = model_.mutable_graph()->mutable_node();
  auto* attribute = nodes->Mutable(nodes->size() - 1)->add_attribute();
  attribute->set_name(name);
  return attribute;
}

OnnxBuilder& OnnxBuilder::Ints(const std::string& name, const Dims& values) {
  auto* attribute = Attribute(name);
  attribute->set_type(onnx::AttributeProto::INTS);
  for (int64_t value : values) attribute->add_ints(value);
  return *this;
}

OnnxBuilder& OnnxBuilder::Int(const std::string& name, int64_t value) {
  auto* attribute = Attribute(name);
  attribute->set_type(onnx::AttributeProto::INT);
  attribute->set_i(value);
  return *this;
}

OnnxBuilder& OnnxBuilder::Float(const std::string& name, float value) {
  auto* attribute = Attribute(name);
  attribute->set_type(onnx::AttributeProto::FLOAT);
  attribute->set_f(value);
  return *this;
}

OnnxBuilder& OnnxBuilder::Floats(const std::string& initializer,
                                 const Dims& dims,
                                 const std::vector<float>& values) {
  auto* tensor = model_.mutable_graph()->add_initializer();
  tensor->set_name(initializer);
  tensor->set_data_type(onnx::TensorProto::FLOAT);
  for (int64_t dim : dims) tensor->add_dims(dim);
  tensor->set_raw_data(values.data(), values.size() * sizeof(float));
  return *this;
}

OnnxBuilder& OnnxBuilder::Int64s(const std::string& initializer,
                                 const Dims& dims,
                                 const std::vector<int64_t>& values) {
  auto* tensor = model_.mutable_graph()->add_initializer();
  tensor->set_name(initializer);
  tensor->set_data_type(onnx::TensorProto::INT64);
  for (int64_t dim : dims) tensor->add_dims(dim);
  for (int64_t value : values) tensor->add_int64_data(value);
  return *this;
}

OnnxBuilder& OnnxBuilder::Metadata(const std::string& key,
                                   const std::string& value) {
  auto* entry = model_.add_metadata_props();
  entry->set_key(key);
  entry->set_value(value);
  return *this;
}

OnnxBuilder& OnnxBuilder::Opset(int64_t version, const std::string& domain) {
  for (auto& opset : *model_.mutable_opset_import()) {
    if (opset.domain() == domain) {
      opset.set_version(version);
      return *this;
    }
  }
  auto* opset = model_.add_opset_import();
  opset->set_domain(domain);
  opset->set_version(version);
  return *this;
}

std::vector<std::byte> OnnxBuilder::Bytes() const {
  std::string text = model_.SerializeAsString();
  std::vector<std::byte> bytes(text.size());
  if (!text.empty()) std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

}  // namespace rknnd::soft::testing
