// See network_files.h.

#include "tests/torture/network_files.h"

#include <onnx/onnx_pb.h>

#include <fstream>
#include <stdexcept>

namespace rknnd::torture {
namespace {

std::string NameOf(uint32_t layer) {
  std::string name = "v";
  return name += std::to_string(layer);
}

void Describe(onnx::ValueInfoProto& port, const std::string& name,
              uint32_t elements) {
  port.set_name(name);
  auto& type = *port.mutable_type()->mutable_tensor_type();
  type.set_elem_type(onnx::TensorProto::INT32);
  type.mutable_shape()->add_dim()->set_dim_value(1);
  type.mutable_shape()->add_dim()->set_dim_value(elements);
}

}  // namespace

NetworkFile WriteNetwork(const std::string& folder, const Network& network) {
  onnx::ModelProto model;
  model.set_ir_version(onnx::IR_VERSION_2019_9_19);
  model.add_opset_import()->set_version(13);
  onnx::GraphProto& graph = *model.mutable_graph();
  graph.set_name("offsets");
  Describe(*graph.add_input(), NameOf(0), network.elements);
  Describe(*graph.add_output(), NameOf(network.layers), network.elements);
  for (uint32_t layer = 0; layer < network.layers; ++layer) {
    onnx::TensorProto& constant = *graph.add_initializer();
    constant.set_name("c" + std::to_string(layer));
    constant.set_data_type(onnx::TensorProto::INT32);
    constant.add_dims(1);
    constant.add_dims(network.elements);
    for (uint32_t i = 0; i < network.elements; ++i) {
      constant.add_int32_data(ConstantOf(network, layer, i));
    }
    onnx::NodeProto& node = *graph.add_node();
    node.set_op_type("Add");
    node.set_name("layer" + std::to_string(layer));
    node.add_input(NameOf(layer));
    node.add_input(constant.name());
    node.add_output(NameOf(layer + 1));
  }
  NetworkFile file;
  file.network = network;
  file.path = folder + "/offsets-" + std::to_string(network.salt) + ".onnx";
  std::ofstream out(file.path, std::ios::binary);
  out << model.SerializeAsString();
  out.close();
  if (!out) throw std::runtime_error("cannot write '" + file.path + "'");
  return file;
}

}  // namespace rknnd::torture
