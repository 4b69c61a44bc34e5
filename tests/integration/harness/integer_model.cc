#include "tests/integration/harness/integer_model.h"

#include <onnx/onnx_pb.h>

namespace rknnd::integration {
namespace {

void Describe(onnx::ValueInfoProto& port, const std::string& name) {
  port.set_name(name);
  auto& type = *port.mutable_type()->mutable_tensor_type();
  type.set_elem_type(onnx::TensorProto::INT32);
  type.mutable_shape()->add_dim()->set_dim_value(1);
  type.mutable_shape()->add_dim()->set_dim_value(16);
}

}  // namespace

std::string IntegerSum() {
  onnx::ModelProto model;
  model.set_ir_version(onnx::IR_VERSION_2019_9_19);
  model.add_opset_import()->set_version(13);
  onnx::GraphProto& graph = *model.mutable_graph();
  graph.set_name("integer_sum");
  Describe(*graph.add_input(), "x");
  Describe(*graph.add_output(), "y");
  onnx::NodeProto& node = *graph.add_node();
  node.set_op_type("Add");
  node.set_name("sum");
  node.add_input("x");
  node.add_input("x");
  node.add_output("y");
  return model.SerializeAsString();
}

}  // namespace rknnd::integration
