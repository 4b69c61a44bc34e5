// See one_operator.h.

#include "bench/common/one_operator.h"

#include <onnx/onnx_pb.h>

#include <cstring>
#include <utility>
#include <vector>

#include "bench/common/failure.h"
#include "client/include/rknn_custom_op.h"

namespace rknnd::bench {
namespace {

constexpr int kElements = 16;
constexpr char kCustomDomain[] = "rknn_cst", kCustomType[] = "cstNothing";

// A network of operators in a row, each with its domain.
std::string Row(
    const std::vector<std::pair<std::string, std::string>>& operators) {
  onnx::ModelProto model;
  model.set_ir_version(onnx::IR_VERSION_2019_9_19);
  model.add_opset_import()->set_version(13);
  onnx::OperatorSetIdProto& custom = *model.add_opset_import();
  custom.set_domain(kCustomDomain);
  custom.set_version(1);
  onnx::GraphProto& graph = *model.mutable_graph();
  graph.set_name("row");
  std::string value = "x";
  for (const auto& [type, domain] : operators) {
    onnx::NodeProto& node = *graph.add_node();
    node.set_op_type(type);
    node.set_domain(domain);
    node.set_name("node" + std::to_string(graph.node_size()));
    node.add_input(value);
    value = "y" + std::to_string(graph.node_size());
    node.add_output(value);
  }
  for (onnx::ValueInfoProto* port : {graph.add_input(), graph.add_output()}) {
    auto& type = *port->mutable_type()->mutable_tensor_type();
    type.set_elem_type(onnx::TensorProto::FLOAT);
    type.mutable_shape()->add_dim()->set_dim_value(1);
    type.mutable_shape()->add_dim()->set_dim_value(kElements);
  }
  graph.mutable_input(0)->set_name("x");
  graph.mutable_output(0)->set_name(value);
  return model.SerializeAsString();
}

std::string InterruptedModel() {
  return Row({{"Relu", ""}, {kCustomType, kCustomDomain}, {"Relu", ""}});
}

int DoNothing(rknn_custom_op_context*, rknn_custom_op_tensor*, uint32_t,
              rknn_custom_op_tensor*, uint32_t) {
  return 0;
}

}  // namespace

std::string OneOperatorModel() { return Row({{"Relu", ""}}); }

OneOperatorContext::OneOperatorContext(bool interrupted) {
  std::string model = interrupted ? InterruptedModel() : OneOperatorModel();
  if (rknn_init(&context_, model.data(), static_cast<uint32_t>(model.size()), 0,
                nullptr) != RKNN_SUCC) {
    Fail("rknn_init");
  }
  if (interrupted) {
    rknn_custom_op op = {};
    op.version = 1;
    op.target = RKNN_TARGET_TYPE_CPU;
    std::strncpy(op.op_type, kCustomType, sizeof op.op_type - 1);
    op.compute = DoNothing;
    if (rknn_register_custom_ops(context_, &op, 1) != RKNN_SUCC) {
      Fail("rknn_register_custom_ops");
    }
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
