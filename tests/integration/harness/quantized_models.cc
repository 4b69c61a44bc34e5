#include "tests/integration/harness/quantized_models.h"

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <vector>

#include "tests/integration/harness/files.h"

namespace rknnd::integration {
namespace {

constexpr int kConvolutions = 4;
constexpr int kChannels = 4;
constexpr int kPixels = 64;

constexpr float kScale = 1.0F / 32;        // of tensors
constexpr float kWeightScale = 1.0F / 64;  // of weights

class Network {
 public:
  Network() {
    model_.set_ir_version(onnx::IR_VERSION_2019_9_19);
    model_.add_opset_import()->set_version(13);
    Describe(graph().add_input(), "x");
    Describe(graph().add_output(), "y");
  }

  onnx::GraphProto& graph() { return *model_.mutable_graph(); }

  void Node(const std::string& type, const std::vector<std::string>& inputs,
            const std::string& output) {
    onnx::NodeProto& node = *graph().add_node();
    node.set_op_type(type);
    node.set_name(type + "_" + output);
    for (const std::string& input : inputs) node.add_input(input);
    node.add_output(output);
  }
  void Scale(const std::string& name, float scale) {
    onnx::TensorProto& tensor = *graph().add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(onnx::TensorProto::FLOAT);
    tensor.add_float_data(scale);
  }
  void Byte(const std::string& name, char value) {
    onnx::TensorProto& tensor = *graph().add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(onnx::TensorProto::INT8);
    tensor.set_raw_data(std::string(1, value));
  }

  TestModel Write(const std::string& folder, const std::string& name) {
    graph().set_name(name);
    const std::string stem = folder + "/" + name;
    std::vector<float> input;
    for (int i = 0; i < kChannels * kPixels; ++i) {
      input.push_back(static_cast<float>((i * 37 + 11) % 101) / 40.0F - 1.1F);
    }
    return {WriteFile(stem + ".onnx", model_.SerializeAsString()),
            {WriteFloats(stem + ".bin", input)},
            {}};
  }

 private:
  static void Describe(onnx::ValueInfoProto* info, const std::string& name) {
    info->set_name(name);
    auto* tensor = info->mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(onnx::TensorProto::FLOAT);
    for (const int dim : {1, kChannels, 8, 8}) {
      tensor->mutable_shape()->add_dim()->set_dim_value(dim);
    }
  }

  onnx::ModelProto model_;
};

// Of convolution n: near a rotation of the channels, so that no tensor fades.
std::vector<int8_t> WeightsOf(int n) {
  std::vector<int8_t> weights;
  for (int to = 0; to < kChannels; ++to) {
    for (int from = 0; from < kChannels; ++from) {
      const bool main = (to + n + 1) % kChannels == from;
      weights.push_back(static_cast<int8_t>(
          main ? 60 + n : (to * 7 + from * 5 + n * 3) % 9 - 4));
    }
  }
  return weights;
}

void AddWeights(Network& network, const std::string& name, int n, bool bytes) {
  onnx::TensorProto& tensor = *network.graph().add_initializer();
  tensor.set_name(name);
  for (const int dim : {kChannels, kChannels, 1, 1}) tensor.add_dims(dim);
  const std::vector<int8_t> weights = WeightsOf(n);
  if (bytes) {
    tensor.set_data_type(onnx::TensorProto::INT8);
    tensor.set_raw_data(weights.data(), weights.size());
    return;
  }
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  for (const int8_t weight : weights) {
    tensor.add_float_data(static_cast<float>(weight) * kWeightScale);
  }
}

}  // namespace

TestModel MakeQuantizedChain(const std::string& folder, int wrong) {
  Network network;
  network.Scale("scale", kScale);
  network.Scale("wrong_scale", 32 * kScale);
  network.Scale("weight_scale", kWeightScale);
  network.Byte("zero", 3);
  network.Byte("no_zero", 0);
  const auto pair = [&network](const std::string& name, bool right,
                               const std::string& real) {
    const std::string bytes = name + "_QuantizeLinear_Output";
    network.Node("QuantizeLinear", {name, "scale", "zero"}, bytes);
    network.Node("DequantizeLinear",
                 {bytes, right ? "scale" : "wrong_scale", "zero"}, real);
  };
  pair("x", wrong != 0, "x_DequantizeLinear_Output");
  std::string last = "x_DequantizeLinear_Output";
  for (int n = 0; n < kConvolutions; ++n) {
    const std::string number = std::to_string(n);
    const std::string weights = "w" + number;
    AddWeights(network, weights, n, true);
    network.Node("DequantizeLinear", {weights, "weight_scale", "no_zero"},
                 weights + ".d");
    std::string made = "c" + number;
    network.Node("Conv", {last, weights + ".d"}, made);
    if (n == 0) {
      network.Node("Relu", {made}, "r0");
      made = "r0";
    }
    last = n + 1 == kConvolutions ? "y" : made + "_DequantizeLinear_Output";
    pair(made, wrong != n + 1, last);
  }
  return network.Write(folder, wrong < 0 ? "chain" : "wrong_chain");
}

TestModel MakeFloatChain(const std::string& folder) {
  Network network;
  std::string last = "x";
  for (int n = 0; n < kConvolutions; ++n) {
    const std::string weights = "w" + std::to_string(n);
    AddWeights(network, weights, n, false);
    std::string made = n + 1 == kConvolutions ? "y" : "c" + std::to_string(n);
    network.Node("Conv", {last, weights}, made);
    if (n == 0) {
      network.Node("Relu", {made}, "r0");
      made = "r0";
    }
    last = made;
  }
  return network.Write(folder, "float_chain");
}

TestModel MakeInfinite(const std::string& folder) {
  Network network;
  network.Node("Relu", {"x"}, "r");
  network.Node("Log", {"r"}, "l");
  network.Node("Relu", {"l"}, "y");
  return network.Write(folder, "infinite");
}

}  // namespace rknnd::integration
