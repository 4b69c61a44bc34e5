// See network.h.

#include "bench/scheduler/network.h"

#include <onnx/onnx_pb.h>

namespace rknnd::bench {

std::string ChainModel(int layers) {
  constexpr int kElements = 16;
  onnx::ModelProto model;
  model.set_ir_version(onnx::IR_VERSION_2019_9_19);
  model.add_opset_import()->set_version(13);
  onnx::GraphProto& graph = *model.mutable_graph();
  graph.set_name("chain");
  for (onnx::ValueInfoProto* port : {graph.add_input(), graph.add_output()}) {
    auto& type = *port->mutable_type()->mutable_tensor_type();
    type.set_elem_type(onnx::TensorProto::FLOAT);
    type.mutable_shape()->add_dim()->set_dim_value(1);
    type.mutable_shape()->add_dim()->set_dim_value(kElements);
  }
  graph.mutable_input(0)->set_name("v0");
  graph.mutable_output(0)->set_name("v" + std::to_string(layers));
  for (int i = 0; i < layers; ++i) {
    // Nothing that could be joined with its neighbour.
    onnx::NodeProto& node = *graph.add_node();
    node.set_op_type("Sigmoid");
    node.set_name("layer" + std::to_string(i));
    node.add_input("v" + std::to_string(i));
    node.add_output("v" + std::to_string(i + 1));
  }
  return model.SerializeAsString();
}

}  // namespace rknnd::bench
