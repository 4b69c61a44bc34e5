// See models.h.

#include "bench/hostile/models.h"

#include <onnx/onnx_pb.h>

#include <initializer_list>
#include <vector>

namespace rknnd::bench {
namespace {

class Builder {
 public:
  explicit Builder(const std::string& name) {
    model_.set_ir_version(onnx::IR_VERSION_2019_9_19);
    model_.add_opset_import()->set_version(13);
    graph().set_name(name);
  }

  onnx::GraphProto& graph() { return *model_.mutable_graph(); }
  // A width of 0 is left open.
  void Port(onnx::ValueInfoProto* port, const char* name, int64_t height,
            int64_t width) {
    port->set_name(name);
    auto& type = *port->mutable_type()->mutable_tensor_type();
    type.set_elem_type(onnx::TensorProto::FLOAT);
    type.mutable_shape()->add_dim()->set_dim_value(height);
    auto* const last = type.mutable_shape()->add_dim();
    if (width > 0) {
      last->set_dim_value(width);
    } else {
      last->set_dim_param("open");
    }
  }
  void Numbers(const char* name, const std::vector<int64_t>& numbers) {
    onnx::TensorProto& tensor = *graph().add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(onnx::TensorProto::INT64);
    tensor.add_dims(static_cast<int64_t>(numbers.size()));
    for (const int64_t number : numbers) tensor.add_int64_data(number);
  }
  onnx::NodeProto& Node(const std::string& type,
                        std::initializer_list<std::string> inputs,
                        const std::string& output) {
    onnx::NodeProto& node = *graph().add_node();
    node.set_op_type(type);
    node.set_name("make_" + output);
    for (const std::string& input : inputs) node.add_input(input);
    node.add_output(output);
    return node;
  }
  void Option(const std::string& name, const std::string& value) {
    onnx::StringStringEntryProto* entry = model_.add_metadata_props();
    entry->set_key("rknn." + name);
    entry->set_value(value);
  }
  [[nodiscard]] std::string Bytes() const { return model_.SerializeAsString(); }

 private:
  onnx::ModelProto model_;
};

void SetInt(onnx::NodeProto& node, const char* name, int64_t value) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::INT);
  attribute.set_i(value);
}

}  // namespace

std::string EndlessModel(int products) {
  constexpr int64_t kSide = 4000;
  Builder builder("endless_" + std::to_string(products));
  builder.Port(builder.graph().add_input(), "x", kSide, kSide);
  builder.Port(builder.graph().add_output(), "y", kSide, kSide);
  std::string last = "x";
  for (int i = 0; i < products; ++i) {
    const std::string next = i + 1 == products ? "y" : "t" + std::to_string(i);
    builder.Node("MatMul", {last, "x"}, next);
    last = next;
  }
  return builder.Bytes();
}

std::string SlowToLoadModel(uint64_t number) {
  // A power of whole numbers is the dearest function that is folded; more of
  // them than these would be left to the run.
  constexpr int64_t kElements = int64_t{1} << 20;
  constexpr int kPowers = 9;
  Builder builder("slow_" + std::to_string(number));
  builder.Port(builder.graph().add_input(), "x", 1, 0);
  builder.Port(builder.graph().add_output(), "y", 1, 0);
  builder.Numbers("size", {kElements});
  builder.Node("ConstantOfShape", {"size"}, "zeros");
  SetInt(builder.Node("Cast", {"zeros"}, "p0"), "to", onnx::TensorProto::INT32);
  for (int i = 0; i < kPowers; ++i) {
    builder.Node("Pow", {"p" + std::to_string(i), "p0"},
                 "p" + std::to_string(i + 1));
  }
  const std::string last = "p" + std::to_string(kPowers);
  SetInt(builder.Node("Cast", {last}, "floats"), "to",
         onnx::TensorProto::FLOAT);
  onnx::NodeProto& most = builder.Node("ReduceMax", {"floats"}, "most");
  SetInt(most, "keepdims", 0);
  builder.Node("Add", {"x", "most"}, "y");
  builder.Option("dynamic_input", "[[[1,16]],[[1,17]],[[1,18]],[[1,19]]]");
  return builder.Bytes();
}

}  // namespace rknnd::bench
