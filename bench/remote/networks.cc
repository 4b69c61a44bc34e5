// See networks.h.

#include "bench/remote/networks.h"

#include <onnx/onnx_pb.h>

#include <cmath>
#include <initializer_list>
#include <random>

namespace rknnd::bench {
namespace {

onnx::ModelProto Empty() {
  onnx::ModelProto model;
  model.set_ir_version(onnx::IR_VERSION_2019_9_19);
  model.add_opset_import()->set_version(13);
  model.mutable_graph()->set_name("remote");
  return model;
}

void Describe(onnx::ValueInfoProto* port, const std::string& name, int type,
              std::initializer_list<int64_t> dims) {
  port->set_name(name);
  auto& tensor = *port->mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(type);
  for (const int64_t dim : dims) {
    tensor.mutable_shape()->add_dim()->set_dim_value(dim);
  }
}

onnx::NodeProto& Add(onnx::GraphProto& graph, const std::string& type,
                     const std::string& from, const std::string& to) {
  onnx::NodeProto& node = *graph.add_node();
  node.set_op_type(type);
  node.set_name(to);
  node.add_input(from);
  node.add_output(to);
  return node;
}

void AddCast(onnx::GraphProto& graph, const std::string& from,
             const std::string& to, int type) {
  onnx::AttributeProto& attribute =
      *Add(graph, "Cast", from, to).add_attribute();
  attribute.set_name("to");
  attribute.set_type(onnx::AttributeProto::INT);
  attribute.set_i(type);
}

// The means of 'image', as the model's output 'means', behind `layers` others.
void AddMeans(onnx::GraphProto& graph, const std::string& image, int layers) {
  std::string last = "pooled";
  Add(graph, "GlobalAveragePool", image, layers == 0 ? "means" : last);
  for (int layer = 1; layer <= layers; ++layer) {
    const std::string next =
        layer == layers ? "means" : "v" + std::to_string(layer);
    Add(graph, "Sigmoid", last, next);
    last = next;
  }
  Describe(graph.add_output(), "means", onnx::TensorProto::FLOAT, {1, 3, 1, 1});
}

}  // namespace

std::string FloatImageModel() {
  onnx::ModelProto model = Empty();
  onnx::GraphProto& graph = *model.mutable_graph();
  Describe(graph.add_input(), "image", onnx::TensorProto::FLOAT,
           {1, 3, 320, 320});
  AddMeans(graph, "image", 0);
  return model.SerializeAsString();
}

std::string SameImageModel() {
  onnx::ModelProto model = Empty();
  onnx::GraphProto& graph = *model.mutable_graph();
  Describe(graph.add_input(), "image", onnx::TensorProto::FLOAT,
           {1, 3, 320, 320});
  Add(graph, "Relu", "image", "same");
  Describe(graph.add_output(), "same", onnx::TensorProto::FLOAT,
           {1, 3, 320, 320});
  return model.SerializeAsString();
}

std::string ByteImageModel(int layers) {
  onnx::ModelProto model = Empty();
  onnx::GraphProto& graph = *model.mutable_graph();
  Describe(graph.add_input(), "image", onnx::TensorProto::UINT8,
           {1, 3, 640, 640});
  AddCast(graph, "image", "pixels", onnx::TensorProto::FLOAT);
  AddMeans(graph, "pixels", layers);
  return model.SerializeAsString();
}

std::string IntegerImageModel() {
  onnx::ModelProto model = Empty();
  onnx::GraphProto& graph = *model.mutable_graph();
  Describe(graph.add_input(), "image", onnx::TensorProto::UINT8,
           {1, 3, 640, 640});
  AddCast(graph, "image", "pixels", onnx::TensorProto::FLOAT);
  Add(graph, "GlobalAveragePool", "pixels", "pooled");
  Add(graph, "Flatten", "pooled", "flat");
  AddCast(graph, "flat", "means", onnx::TensorProto::INT32);
  Describe(graph.add_output(), "means", onnx::TensorProto::INT32, {1, 3});
  return model.SerializeAsString();
}

std::string HeavyModel(size_t bytes, unsigned seed) {
  const auto side =
      static_cast<int64_t>(std::sqrt(static_cast<double>(bytes) / 4));
  onnx::ModelProto model = Empty();
  onnx::GraphProto& graph = *model.mutable_graph();
  Describe(graph.add_input(), "in", onnx::TensorProto::FLOAT, {1, side});
  Describe(graph.add_output(), "out", onnx::TensorProto::FLOAT, {1, side});
  Add(graph, "MatMul", "in", "out").add_input("weights");
  onnx::TensorProto& weights = *graph.add_initializer();
  weights.set_name("weights");
  weights.set_data_type(onnx::TensorProto::FLOAT);
  weights.add_dims(side);
  weights.add_dims(side);
  std::minstd_rand random(seed + 1);
  std::string& raw = *weights.mutable_raw_data();
  raw.resize(static_cast<size_t>(side * side) * sizeof(float));
  for (size_t at = 0; at < raw.size(); at += sizeof(float)) {
    const float value = static_cast<float>(random() % 1000) * 1e-3F;
    raw.replace(at, sizeof value, reinterpret_cast<const char*>(&value),
                sizeof value);
  }
  return model.SerializeAsString();
}

}  // namespace rknnd::bench
