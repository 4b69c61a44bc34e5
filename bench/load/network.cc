// See network.h.

#include "bench/load/network.h"

#include <onnx/onnx_pb.h>

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

namespace rknnd::bench {
namespace {

// A third of YOLOv5l's channels gives 15 MB of float32.
constexpr double kWidth = 0.36;
constexpr int64_t kHeads = 255;  // three anchors of 80 classes and a box

int64_t Channels(int full) {
  return static_cast<int64_t>(full * kWidth + 4) / 8 * 8;
}

// A feature map by name.
struct Map {
  std::string name;
  int64_t channels = 0, size = 0;
};

class Builder {
 public:
  Builder() {
    model_.set_ir_version(onnx::IR_VERSION_2020_5_8);
    model_.add_opset_import()->set_version(12);
    graph_.set_name("detector15");
  }

  Map Image(int64_t size) {
    Declare(*graph_.add_input(), {"x", 3, size});
    return {"x", 3, size};
  }
  void Output(const Map& map) { Declare(*graph_.add_output(), map); }

  // With a bias, and nothing behind it.
  Map Conv(const Map& in, int64_t channels, int64_t kernel,
           int64_t stride = 1) {
    const std::string weights = Floats(
        {channels, in.channels, kernel, kernel},
        1 / std::sqrt(static_cast<double>(in.channels * kernel * kernel)));
    const std::string bias = Floats({channels}, 0.1);
    onnx::NodeProto& node = Node("Conv", {in.name, weights, bias});
    Ints(node, "kernel_shape", {kernel, kernel});
    Ints(node, "strides", {stride, stride});
    const int64_t pad = kernel / 2;
    Ints(node, "pads", {pad, pad, pad, pad});
    return {node.output(0), channels, in.size / stride};
  }
  // With SiLU behind it, as exporters write it.
  Map Silu(const Map& in, int64_t channels, int64_t kernel,
           int64_t stride = 1) {
    const Map made = Conv(in, channels, kernel, stride);
    const std::string gate = Node("Sigmoid", {made.name}).output(0);
    return {Node("Mul", {made.name, gate}).output(0), made.channels, made.size};
  }
  Map Concat(std::initializer_list<Map> parts) {
    Map whole = *parts.begin();
    whole.channels = 0;
    onnx::NodeProto& node = Node("Concat", {});
    for (const Map& part : parts) {
      node.add_input(part.name);
      whole.channels += part.channels;
    }
    Int(node, "axis", 1);
    whole.name = node.output(0);
    return whole;
  }
  Map Stage(const Map& in, int64_t channels, int depth, bool adds) {
    Map deep = Silu(in, channels / 2, 1);
    const Map side = Silu(in, channels / 2, 1);
    for (int i = 0; i < depth; ++i) {
      const Map made = Silu(Silu(deep, channels / 2, 1), channels / 2, 3);
      deep.name =
          adds ? Node("Add", {deep.name, made.name}).output(0) : made.name;
    }
    return Silu(Concat({deep, side}), channels, 1);
  }
  Map Pyramid(const Map& in, int64_t channels) {
    const Map a = Silu(in, in.channels / 2, 1);
    const Map b = Pool(a);
    const Map c = Pool(b);
    return Silu(Concat({a, b, c, Pool(c)}), channels, 1);
  }
  Map Enlarge(const Map& in) {
    if (scales_.empty()) {
      roi_ = NewConstant({0}).name();
      onnx::TensorProto& scales = NewConstant({4});
      for (const float scale : {1.0F, 1.0F, 2.0F, 2.0F}) {
        scales.add_float_data(scale);
      }
      scales_ = scales.name();
    }
    onnx::NodeProto& node = Node("Resize", {in.name, roi_, scales_});
    String(node, "mode", "nearest");
    String(node, "coordinate_transformation_mode", "asymmetric");
    String(node, "nearest_mode", "floor");
    return {node.output(0), in.channels, in.size * 2};
  }

  std::string Bytes() {
    *model_.mutable_graph() = std::move(graph_);
    return model_.SerializeAsString();
  }

 private:
  static void Declare(onnx::ValueInfoProto& port, const Map& map) {
    port.set_name(map.name);
    auto& type = *port.mutable_type()->mutable_tensor_type();
    type.set_elem_type(onnx::TensorProto::FLOAT);
    for (const int64_t dim : {int64_t{1}, map.channels, map.size, map.size}) {
      type.mutable_shape()->add_dim()->set_dim_value(dim);
    }
  }
  onnx::NodeProto& Node(const char* type,
                        std::initializer_list<std::string> inputs) {
    onnx::NodeProto& node = *graph_.add_node();
    node.set_op_type(type);
    node.set_name(std::string(type) + std::to_string(graph_.node_size()));
    for (const std::string& input : inputs) node.add_input(input);
    node.add_output("v" + std::to_string(graph_.node_size()));
    return node;
  }
  Map Pool(const Map& in) {
    onnx::NodeProto& node = Node("MaxPool", {in.name});
    Ints(node, "kernel_shape", {5, 5});
    Ints(node, "pads", {2, 2, 2, 2});
    return {node.output(0), in.channels, in.size};
  }
  onnx::TensorProto& NewConstant(std::initializer_list<int64_t> dims) {
    onnx::TensorProto& tensor = *graph_.add_initializer();
    tensor.set_name("w" + std::to_string(graph_.initializer_size()));
    tensor.set_data_type(onnx::TensorProto::FLOAT);
    for (const int64_t dim : dims) tensor.add_dims(dim);
    return tensor;
  }
  // Noise of about this size.
  std::string Floats(std::initializer_list<int64_t> dims, double size) {
    onnx::TensorProto& tensor = NewConstant(dims);
    int64_t count = 1;
    for (const int64_t dim : dims) count *= dim;
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) {
      noise_ = noise_ * 1664525U + 1013904223U;
      value = static_cast<float>(
          (static_cast<double>(noise_ >> 8) / (1 << 23) - 1) * size);
    }
    tensor.set_raw_data(values.data(), values.size() * sizeof(float));
    return tensor.name();
  }
  static onnx::AttributeProto& Attribute(
      onnx::NodeProto& node, const char* name,
      onnx::AttributeProto::AttributeType type) {
    onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(type);
    return attribute;
  }
  static void Int(onnx::NodeProto& node, const char* name, int64_t value) {
    Attribute(node, name, onnx::AttributeProto::INT).set_i(value);
  }
  static void Ints(onnx::NodeProto& node, const char* name,
                   std::initializer_list<int64_t> values) {
    auto& attribute = Attribute(node, name, onnx::AttributeProto::INTS);
    for (const int64_t value : values) attribute.add_ints(value);
  }
  static void String(onnx::NodeProto& node, const char* name,
                     const char* value) {
    Attribute(node, name, onnx::AttributeProto::STRING).set_s(value);
  }

  onnx::ModelProto model_;
  onnx::GraphProto graph_;
  std::string roi_, scales_;
  uint32_t noise_ = 1;
};

}  // namespace

std::string DetectorOf15Megabytes(int64_t image) {
  Builder net;
  const int64_t c2 = Channels(128), c3 = Channels(256), c4 = Channels(512),
                c5 = Channels(1024);
  Map x = net.Silu(net.Image(image), Channels(64), 5, 2);
  x = net.Stage(net.Silu(x, c2, 3, 2), c2, 1, true);
  const Map p3 = x = net.Stage(net.Silu(x, c3, 3, 2), c3, 2, true);
  const Map p4 = x = net.Stage(net.Silu(x, c4, 3, 2), c4, 3, true);
  x = net.Stage(net.Silu(x, c5, 3, 2), c5, 1, true);
  x = net.Pyramid(x, c5);
  const Map n5 = net.Silu(x, c4, 1);
  x = net.Stage(net.Concat({net.Enlarge(n5), p4}), c4, 1, false);
  const Map n4 = net.Silu(x, c3, 1);
  const Map small = net.Stage(net.Concat({net.Enlarge(n4), p3}), c3, 1, false);
  const Map middle =
      net.Stage(net.Concat({net.Silu(small, c3, 3, 2), n4}), c4, 1, false);
  const Map large =
      net.Stage(net.Concat({net.Silu(middle, c4, 3, 2), n5}), c5, 1, false);
  for (const Map& scale : {small, middle, large}) {
    net.Output(net.Conv(scale, kHeads, 1));
  }
  return net.Bytes();
}

}  // namespace rknnd::bench
