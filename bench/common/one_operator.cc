// See one_operator.h.

#include "bench/common/one_operator.h"

#include <onnx/onnx_pb.h>

#include "bench/common/failure.h"

namespace rknnd::bench {

std::string OneOperatorModel() {
  constexpr int kElements = 16;
  onnx::ModelProto model;
  model.set_ir_version(onnx::IR_VERSION_2019_9_19);
  model.add_opset_import()->set_version(13);
  onnx::GraphProto& graph = *model.mutable_graph();
  graph.set_name("relu");
  for (onnx::ValueInfoProto* port : {graph.add_input(), graph.add_output()}) {
    auto& type = *port->mutable_type()->mutable_tensor_type();
    type.set_elem_type(onnx::TensorProto::FLOAT);
    type.mutable_shape()->add_dim()->set_dim_value(1);
    type.mutable_shape()->add_dim()->set_dim_value(kElements);
  }
  graph.mutable_input(0)->set_name("x");
  graph.mutable_output(0)->set_name("y");
  onnx::NodeProto& node = *graph.add_node();
  node.set_op_type("Relu");
  node.set_name("relu");
  node.add_input("x");
  node.add_output("y");
  return model.SerializeAsString();
}

OneOperatorContext::OneOperatorContext() {
  std::string model = OneOperatorModel();
  if (rknn_init(&context_, model.data(), static_cast<uint32_t>(model.size()), 0,
                nullptr) != RKNN_SUCC) {
    Fail("rknn_init");
  }
  input_ = Bind(RKNN_QUERY_INPUT_ATTR);
  output_ = Bind(RKNN_QUERY_OUTPUT_ATTR);
}

OneOperatorContext::~OneOperatorContext() {
  rknn_destroy_mem(context_, input_);
  rknn_destroy_mem(context_, output_);
  rknn_destroy(context_);
}

rknn_tensor_mem* OneOperatorContext::Bind(rknn_query_cmd which) {
  rknn_tensor_attr attr{};
  if (rknn_query(context_, which, &attr, sizeof attr) != RKNN_SUCC) {
    Fail("rknn_query");
  }
  attr.type = RKNN_TENSOR_FLOAT32;
  rknn_tensor_mem* mem =
      rknn_create_mem(context_, attr.n_elems * sizeof(float));
  if (mem == nullptr || rknn_set_io_mem(context_, mem, &attr) != RKNN_SUCC) {
    Fail("rknn_set_io_mem");
  }
  return mem;
}

}  // namespace rknnd::bench
