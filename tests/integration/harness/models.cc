// All numbers in these models are small integers, so that float32 computes them
// exactly in whatever order.

#include "tests/integration/harness/models.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "tests/integration/harness/files.h"

namespace rknnd::integration {
namespace {

using Dims = std::vector<int64_t>;

// A model of one input and one output, both float32 unless told otherwise.
class Builder {
 public:
  Builder(const std::string& name, int opset) {
    model_.set_ir_version(onnx::IR_VERSION_2019_9_19);
    model_.add_opset_import()->set_version(opset);
    graph().set_name(name);
  }

  onnx::GraphProto& graph() { return *model_.mutable_graph(); }

  void AddDomain(const std::string& domain) {
    onnx::OperatorSetIdProto* set = model_.add_opset_import();
    set->set_domain(domain);
    set->set_version(1);
  }

  // What the vendor's converter is told.
  void Option(const std::string& name, const std::string& value) {
    onnx::StringStringEntryProto* entry = model_.add_metadata_props();
    entry->set_key("rknn." + name);
    entry->set_value(value);
  }

  // Dims of -1 are left open.
  void Input(const std::string& name, const Dims& dims) {
    Describe(*graph().add_input(), name, dims, onnx::TensorProto::FLOAT);
  }
  void Output(const std::string& name, const Dims& dims,
              int32_t type = onnx::TensorProto::FLOAT) {
    Describe(*graph().add_output(), name, dims, type);
  }

  void Weights(const std::string& name, const Dims& dims,
               const std::vector<float>& values) {
    onnx::TensorProto& tensor = *graph().add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(onnx::TensorProto::FLOAT);
    for (const int64_t dim : dims) tensor.add_dims(dim);
    tensor.set_raw_data(values.data(), values.size() * sizeof(float));
  }

  onnx::NodeProto& Node(const std::string& type, const std::string& name,
                        const std::vector<std::string>& inputs,
                        const std::string& output) {
    onnx::NodeProto& node = *graph().add_node();
    node.set_op_type(type);
    node.set_name(name);
    for (const std::string& input : inputs) node.add_input(input);
    node.add_output(output);
    return node;
  }

  TestModel Write(const std::string& folder, const std::vector<float>& input,
                  const std::vector<float>& output) {
    const std::string stem = folder + "/" + graph().name();
    return {WriteFile(stem + ".onnx", model_.SerializeAsString()),
            {WriteFloats(stem + ".input", input)},
            {WriteFloats(stem + ".output", output)}};
  }

 private:
  static void Describe(onnx::ValueInfoProto& port, const std::string& name,
                       const Dims& dims, int32_t element) {
    port.set_name(name);
    auto& type = *port.mutable_type()->mutable_tensor_type();
    type.set_elem_type(element);
    for (const int64_t dim : dims) {
      auto* added = type.mutable_shape()->add_dim();
      if (dim >= 0) {
        added->set_dim_value(dim);
      } else {
        added->set_dim_param("open");
      }
    }
  }

  onnx::ModelProto model_;
};

void AddInts(onnx::NodeProto& node, const std::string& name,
             const Dims& values) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::INTS);
  for (const int64_t value : values) attribute.add_ints(value);
}

// Integers from -11 to 11 in an order without pattern.
std::vector<float> Numbers(size_t count, size_t step = 7) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) {
    values[i] = static_cast<float>((i * step + i / 13) % 23) - 11.0F;
  }
  return values;
}

constexpr int kOpset = 13;
constexpr size_t kSide = 16;  // of the picture
constexpr size_t kIn = 3;     // channels
constexpr size_t kOut = 4;

struct Convolution {
  std::vector<float> weights = Numbers(kOut * kIn * 9, 5);
  std::vector<float> bias = {1, -2, 3, -4};

  // With Relu behind it.
  [[nodiscard]] std::vector<float> ApplyRelu(const std::vector<float>& x,
                                             size_t width) const {
    std::vector<float> y = Apply(x, width);
    for (float& value : y) value = value < 0 ? 0 : value;
    return y;
  }

  // 3x3, padded by one pixel, on a square picture of `width`.
  [[nodiscard]] std::vector<float> Apply(const std::vector<float>& x,
                                         size_t width = kSide) const {
    const auto side = static_cast<int>(width);
    std::vector<float> y(kOut * width * width);
    for (size_t o = 0; o < kOut; ++o) {
      for (int row = 0; row < side; ++row) {
        for (int column = 0; column < side; ++column) {
          float sum = bias[o];
          for (size_t c = 0; c < kIn; ++c) {
            for (int k = 0; k < 9; ++k) {
              const int from_row = row + k / 3 - 1;
              const int from_column = column + k % 3 - 1;
              if (from_row < 0 || from_row >= side || from_column < 0 ||
                  from_column >= side) {
                continue;
              }
              sum += weights[(o * kIn + c) * 9 + static_cast<size_t>(k)] *
                     x[(c * width + static_cast<size_t>(from_row)) * width +
                       static_cast<size_t>(from_column)];
            }
          }
          y[(o * width + static_cast<size_t>(row)) * width +
            static_cast<size_t>(column)] = sum;
        }
      }
    }
    return y;
  }

  void Add(Builder& builder, const std::string& output) const {
    builder.Weights("w", {kOut, kIn, 3, 3}, weights);
    builder.Weights("b", {kOut}, bias);
    onnx::NodeProto& node =
        builder.Node("Conv", "conv", {"image", "w", "b"}, output);
    AddInts(node, "kernel_shape", {3, 3});
    AddInts(node, "pads", {1, 1, 1, 1});
  }
};

TestModel MakeConvNetOf(const std::string& folder, const std::string& name,
                        const Convolution& convolution) {
  const std::vector<float> x = Numbers(kIn * kSide * kSide);
  std::vector<float> y = convolution.Apply(x);
  for (float& value : y) value = value < 0 ? 0 : value;
  Builder builder(name, kOpset);
  builder.Input("image", {1, kIn, kSide, kSide});
  builder.Output("features", {1, kOut, kSide, kSide});
  convolution.Add(builder, "sums");
  builder.Node("Relu", "relu", {"sums"}, "features");
  return builder.Write(folder, x, y);
}

// The net for a square picture of `side`, -1 left open, without its files.
Builder ConvNetBuilder(const std::string& name, int64_t side) {
  Builder builder(name, kOpset);
  builder.Input("image", {1, kIn, side, side});
  builder.Output("features", {1, kOut, side, side});
  Convolution().Add(builder, "sums");
  builder.Node("Relu", "relu", {"sums"}, "features");
  return builder;
}

// `layers` products with matrices that each move every column one to the
// right. As many different matrices as `matrices`.
TestModel MakeShifts(const std::string& folder, const std::string& name,
                     size_t rows, size_t columns, size_t layers,
                     size_t matrices) {
  std::vector<float> shift(columns * columns);
  for (size_t k = 0; k < columns; ++k) {
    shift[k * columns + (k + 1) % columns] = 1;
  }
  Builder builder(name, kOpset);
  const Dims dims = {static_cast<int64_t>(rows), static_cast<int64_t>(columns)};
  const auto width = static_cast<int64_t>(columns);
  builder.Input("x", dims);
  builder.Output("y", dims);
  for (size_t i = 0; i < matrices; ++i) {
    builder.Weights("w" + std::to_string(i), {width, width}, shift);
  }
  std::string last = "x";
  for (size_t i = 0; i < layers; ++i) {
    const std::string next = i + 1 == layers ? "y" : "t" + std::to_string(i);
    builder.Node("MatMul", "product_" + std::to_string(i),
                 {last, "w" + std::to_string(i % matrices)}, next);
    last = next;
  }
  const std::vector<float> x = Numbers(rows * columns);
  std::vector<float> y(x.size());
  for (size_t row = 0; row < rows; ++row) {
    for (size_t column = 0; column < columns; ++column) {
      y[row * columns + (column + layers) % columns] =
          x[row * columns + column];
    }
  }
  return builder.Write(folder, x, y);
}

std::string List(const std::vector<std::string>& files) {
  std::string list;
  for (const std::string& file : files) list += " " + file;
  return list;
}

TestModel MakeOddOne(const std::string& folder, const std::string& name,
                     const std::string& domain, const std::string& type) {
  Builder builder(name, kOpset);
  if (!domain.empty()) builder.AddDomain(domain);
  builder.Input("x", {1, 4, 4});
  builder.Output("y", {1});
  builder.Node(type, "odd_one", {"x"}, "y").set_domain(domain);
  return builder.Write(folder, Numbers(16), {0});
}

}  // namespace

std::string TestModel::input_list() const { return List(inputs); }
std::string TestModel::output_list() const { return List(outputs); }

TestModel MakeRelu(const std::string& folder) {
  const std::vector<float> x = Numbers(16);
  std::vector<float> y = x;
  for (float& value : y) value = value < 0 ? 0 : value;
  Builder builder("relu", kOpset);
  builder.Input("x", {1, 16});
  builder.Output("y", {1, 16});
  builder.Node("Relu", "relu", {"x"}, "y");
  return builder.Write(folder, x, y);
}

TestModel MakeConvNet(const std::string& folder) {
  return MakeConvNetOf(folder, "conv_net", Convolution());
}

TestModel MakeOtherConvNet(const std::string& folder) {
  Convolution convolution;
  convolution.bias = {5, 6, 7, 8};
  return MakeConvNetOf(folder, "other_conv_net", convolution);
}

TestModel MakeConvNetOfSide(const std::string& folder, int side) {
  const auto width = static_cast<size_t>(side);
  const std::vector<float> x = Numbers(kIn * width * width);
  return ConvNetBuilder("conv_net_" + std::to_string(side), side)
      .Write(folder, x, Convolution().ApplyRelu(x, width));
}

TestModel MakeFrameNet(const std::string& folder, int width, int height) {
  constexpr int64_t kWindow = 4;
  static_assert(kOut == kWindow);  // a number for each row of a window
  Builder builder("frame_net", kOpset);
  builder.Input("image", {1, kIn, height, width});
  builder.Output("features", {1, int64_t{width} * height / kWindow});
  // The sums of a window of pixels fit into halves.
  std::vector<float> weights = Numbers(kOut * kIn * kWindow * kWindow, 5);
  for (float& weight : weights) weight /= 64;
  builder.Weights("w", {kOut, kIn, kWindow, kWindow}, weights);
  onnx::NodeProto& node = builder.Node("Conv", "conv", {"image", "w"}, "sums");
  AddInts(node, "kernel_shape", {kWindow, kWindow});
  AddInts(node, "strides", {kWindow, kWindow});
  builder.Node("Flatten", "flatten", {"sums"}, "features");
  TestModel model = builder.Write(folder, {}, {});
  model.inputs.clear();
  model.outputs.clear();
  return model;
}

TestModel MakeHugeKernel(const std::string& folder) {
  constexpr int64_t kSize = 200;
  constexpr int64_t kKernel = 151;
  constexpr int64_t kChannels = 6;
  constexpr int64_t kGroups = 3;
  constexpr int64_t kLeft = kSize - kKernel + 1;
  Builder builder("huge_kernel", kOpset);
  builder.Input("image", {1, kChannels, kSize, kSize});
  builder.Output("sums", {1, kChannels, kLeft, kLeft});
  builder.Input("w", {kChannels, kChannels / kGroups, kKernel, kKernel});
  onnx::NodeProto& node = builder.Node("Conv", "huge", {"image", "w"}, "sums");
  AddInts(node, "kernel_shape", {kKernel, kKernel});
  onnx::AttributeProto* group = node.add_attribute();
  group->set_name("group");
  group->set_type(onnx::AttributeProto::INT);
  group->set_i(kGroups);
  TestModel model = builder.Write(folder, {}, {});
  model.inputs.clear();
  model.outputs.clear();
  return model;
}

TestModel MakeListedConvNet(const std::string& folder,
                            const std::vector<int>& sides) {
  Builder builder = ConvNetBuilder("listed", -1);
  std::string rows;
  for (const int side : sides) {
    const std::string extent = std::to_string(side);
    rows += rows.empty() ? "[[[1,3," : "],[[1,3,";
    rows += extent + "," + extent + "]";
  }
  builder.Option("dynamic_input", rows + "]]");
  TestModel listed = builder.Write(folder, {}, {});
  listed.inputs.clear();
  listed.outputs.clear();
  for (const int side : sides) {
    const TestModel fixed = MakeConvNetOfSide(folder, side);
    listed.inputs.push_back(fixed.inputs[0]);
    listed.outputs.push_back(fixed.outputs[0]);
  }
  return listed;
}

TestModel MakeBatchConvNet(const std::string& folder, int batch) {
  Builder builder =
      ConvNetBuilder("batch_" + std::to_string(batch), int64_t{kSide});
  builder.Option("rknn_batch_size", std::to_string(batch));
  constexpr size_t kPicture = kIn * kSide * kSide;
  const std::vector<float> x = Numbers(static_cast<size_t>(batch) * kPicture);
  std::vector<float> y;
  for (auto at = x.begin(); at != x.end(); at += kPicture) {
    const auto one = Convolution().ApplyRelu({at, at + kPicture}, kSide);
    y.insert(y.end(), one.begin(), one.end());
  }
  return builder.Write(folder, x, y);
}

TestModel MakeSlow(const std::string& folder, size_t products) {
  return MakeShifts(folder, "slow_" + std::to_string(products), 512, 512,
                    products, 1);
}

TestModel MakeEndless(const std::string& folder) {
  constexpr int64_t kSide = 4000;
  constexpr int kProducts = 100;
  Builder builder("endless", kOpset);
  builder.Input("x", {kSide, kSide});
  builder.Output("y", {kSide, kSide});
  std::string last = "x";
  for (int i = 0; i < kProducts; ++i) {
    const std::string next = i + 1 == kProducts ? "y" : "t" + std::to_string(i);
    builder.Node("MatMul", "product_" + std::to_string(i), {last, "x"}, next);
    last = next;
  }
  TestModel model = builder.Write(folder, {}, {});
  model.inputs.clear();
  model.outputs.clear();
  return model;
}

TestModel MakeConvChain(const std::string& folder, size_t convolutions) {
  constexpr size_t kChannels = 64;
  constexpr size_t kWidth = 40;
  constexpr size_t kPixels = kWidth * kWidth;
  // Only the middle of the window counts.
  std::vector<float> turn(kChannels * kChannels * 9);
  for (size_t o = 0; o < kChannels; ++o) {
    turn[(o * kChannels + (o + 1) % kChannels) * 9 + 4] = 1;
  }
  Builder builder("conv_chain_" + std::to_string(convolutions), kOpset);
  const Dims dims = {1, kChannels, kWidth, kWidth};
  builder.Input("x", dims);
  builder.Output("y", dims);
  builder.Weights("w", {kChannels, kChannels, 3, 3}, turn);
  std::string last = "x";
  for (size_t i = 0; i < convolutions; ++i) {
    const std::string next =
        i + 1 == convolutions ? "y" : "t" + std::to_string(i);
    onnx::NodeProto& node =
        builder.Node("Conv", "conv_" + std::to_string(i), {last, "w"}, next);
    AddInts(node, "pads", {1, 1, 1, 1});
    last = next;
  }
  const std::vector<float> x = Numbers(kChannels * kPixels);
  std::vector<float> y(x.size());
  for (size_t c = 0; c < kChannels; ++c) {
    const size_t from = (c + convolutions) % kChannels;
    std::copy_n(x.begin() + static_cast<ptrdiff_t>(from * kPixels), kPixels,
                y.begin() + static_cast<ptrdiff_t>(c * kPixels));
  }
  return builder.Write(folder, x, y);
}

namespace {

// Convolutions that each turn the channels by one and multiply them by these
// numbers.
TestModel MakeTurns(const std::string& folder, const std::string& name,
                    size_t side, const std::vector<float>& factors,
                    bool with_weights) {
  constexpr size_t kChannels = 64;
  const size_t pixels = side * side;
  Builder builder(name, kOpset);
  const Dims dims = {1, kChannels, static_cast<int64_t>(side),
                     static_cast<int64_t>(side)};
  builder.Input("x", dims);
  builder.Output("y", dims);
  std::string last = "x";
  float product = 1;
  for (size_t i = 0; i < factors.size(); ++i) {
    // Only the middle of the window counts.
    std::vector<float> turn(kChannels * kChannels * 9);
    for (size_t o = 0; o < kChannels; ++o) {
      turn[(o * kChannels + (o + 1) % kChannels) * 9 + 4] = factors[i];
    }
    if (!with_weights) turn.clear();
    const std::string weights = "w" + std::to_string(i);
    builder.Weights(weights, {kChannels, kChannels, 3, 3}, turn);
    const std::string next =
        i + 1 == factors.size() ? "y" : "t" + std::to_string(i);
    onnx::NodeProto& node = builder.Node("Conv", "conv_" + std::to_string(i),
                                         {last, weights}, next);
    AddInts(node, "pads", {1, 1, 1, 1});
    last = next;
    product *= factors[i];
  }
  const std::vector<float> x = Numbers(kChannels * pixels);
  std::vector<float> y(x.size());
  for (size_t c = 0; c < kChannels; ++c) {
    const size_t from = (c + factors.size()) % kChannels;
    for (size_t i = 0; i < pixels; ++i) {
      y[c * pixels + i] = product * x[from * pixels + i];
    }
  }
  return builder.Write(folder, x, y);
}

}  // namespace

TestModel MakeResolution(const std::string& folder, size_t side,
                         bool with_weights) {
  return MakeTurns(folder,
                   "turns_" + std::to_string(side) +
                       (with_weights ? "" : "_without_weights"),
                   side, {2, -1, 3}, with_weights);
}

TestModel MakeOtherResolution(const std::string& folder, size_t side) {
  return MakeTurns(folder, "other_turns_" + std::to_string(side), side,
                   {2, -1, 5}, true);
}

TestModel MakeTinyLayers(const std::string& folder, size_t layers) {
  return MakeShifts(folder, "tiny_layers", 1, 16, layers, 2);
}

TestModel MakeChain(const std::string& folder) {
  return MakeShifts(folder, "chain", 32, 64, 3, 3);
}

TestModel MakeHeavy(const std::string& folder) {
  return MakeShifts(folder, "heavy", 1, 2048, 4, 4);
}

TestModel MakeIntegers(const std::string& folder) {
  const Convolution convolution;
  const std::vector<float> x = Numbers(kIn * kSide * kSide);
  Builder builder("integers", kOpset);
  builder.Input("image", {1, kIn, kSide, kSide});
  builder.Output("counts", {1, kOut, kSide, kSide}, onnx::TensorProto::INT32);
  convolution.Add(builder, "sums");
  onnx::AttributeProto& to =
      *builder.Node("Cast", "cast", {"sums"}, "counts").add_attribute();
  to.set_name("to");
  to.set_type(onnx::AttributeProto::INT);
  to.set_i(onnx::TensorProto::INT32);
  return builder.Write(folder, x, convolution.Apply(x));
}

TestModel MakeLackingOperator(const std::string& folder) {
  return MakeOddOne(folder, "lacking", "", "Det");
}

TestModel MakeCustomOperator(const std::string& folder) {
  return MakeOddOne(folder, "custom", "acme", "Frobnicate");
}

std::string SharedFolder() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody changes it
  const char* given = std::getenv("RKNND_SHARED");
  const std::string folder =
      given != nullptr ? given : RKNND_SOURCE_ROOT "/../shared";
  std::error_code error;
  return std::filesystem::is_directory(folder, error) ? folder : "";
}

std::optional<TestModel> SharedModel(const std::string& name, int set) {
  const std::string folder = SharedFolder() + "/models/" + name;
  TestModel model;
  model.path = folder + "/model.onnx";
  if (!std::filesystem::exists(model.path)) return std::nullopt;
  const auto collect = [&](const std::string& kind,
                           std::vector<std::string>& files) {
    for (int i = 0;; ++i) {
      const std::string path = folder + "/set_" + std::to_string(set) + "/" +
                               kind + "_" + std::to_string(i) + ".bin";
      if (!std::filesystem::exists(path)) return;
      files.push_back(path);
    }
  };
  collect("input", model.inputs);
  collect("output", model.outputs);
  return model;
}

}  // namespace rknnd::integration
