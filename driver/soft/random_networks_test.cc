// Random networks on the device against the same networks node by node: what
// fusion, shared memory and views do must not be seen in any answer.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "driver/soft/graph/passes.h"
#include "driver/soft/import/onnx_import.h"
#include "driver/soft/soft_device.h"
#include "driver/soft/testing/onnx_builder.h"
#include "driver/soft/testing/run_model.h"
#include "gtest/gtest.h"

namespace rknnd::soft {
namespace {

using testing::Dims;

class RandomNetwork {
 public:
  // With pictures that many times as wide and as high.
  explicit RandomNetwork(uint32_t seed, int64_t larger = 1)
      : random_(seed), larger_(larger) {}

  testing::OnnxBuilder Make() {
    const Dims image = {1, 4 * (1 + Pick(10)), larger_ * (1 + Pick(9)),
                        larger_ * (1 + Pick(9))};
    builder_.Input("x", image);
    Add("x", image);
    const int64_t nodes = 2 + Pick(14);
    for (int64_t i = 0; i < nodes; ++i) AddNode();
    // The last value, and some in between.
    const size_t last = values_.size() - 1;
    for (size_t v = 1; v < values_.size(); ++v) {
      if (v == last || Pick(8) == 0) {
        builder_.Output(values_[v].name, values_[v].dims);
      }
    }
    return builder_;
  }

 private:
  struct Value {
    std::string name;
    Dims dims;
  };

  int64_t Pick(int64_t below) {
    return static_cast<int64_t>(random_() % static_cast<uint32_t>(below));
  }
  void Add(const std::string& name, const Dims& dims) {
    values_.push_back({name, dims});
  }
  // Late ones rather: chains.
  Value Any() {
    const auto count = static_cast<int64_t>(values_.size());
    return values_[static_cast<size_t>(
        Pick(4) == 0 ? Pick(count)
                     : count - 1 - Pick(std::min<int64_t>(count, 3)))];
  }
  std::string Name() { return "v" + std::to_string(++names_); }
  std::string Numbers(const Dims& dims) {
    int64_t count = 1;
    for (int64_t dim : dims) count *= dim;
    std::vector<float> numbers;
    for (int64_t i = 0; i < count; ++i) {
      numbers.push_back(static_cast<float>(Pick(65) - 32) / 64.0F);
    }
    std::string name = "c" + Name();
    builder_.Floats(name, dims, numbers);
    return name;
  }
  std::string Shape(const Dims& dims) {
    std::string name = "s" + Name();
    builder_.Int64s(name, {static_cast<int64_t>(dims.size())}, dims);
    return name;
  }

  void Unary(const Value& in) {
    static const char* const kTypes[] = {
        "Relu", "Sigmoid", "Tanh", "Elu", "LeakyRelu", "HardSwish", "Neg"};
    const std::string out = Name();
    builder_.Node(kTypes[Pick(7)], {in.name}, {out});
    Add(out, in.dims);
  }

  void Text(const std::string& name, const std::string& value) {
    auto& nodes = *builder_.proto().mutable_graph()->mutable_node();
    auto* attribute = nodes.Mutable(nodes.size() - 1)->add_attribute();
    attribute->set_name(name);
    attribute->set_type(onnx::AttributeProto::STRING);
    attribute->set_s(value);
  }

  // The channels of a picture as steps, its rows as sequences.
  void Recurrent(const Value& in) {
    if (in.dims.size() != 4 || in.dims[0] != 1) return Unary(in);
    static const char* const kTypes[] = {"RNN", "GRU", "LSTM"};
    const int64_t kind = Pick(3), directions = 1 + Pick(2);
    const int64_t gates = kind == 0 ? 1 : 2 + kind;
    const int64_t hidden = 8 * (1 + Pick(3)), rows = gates * hidden;
    const std::string turned = Name(), out = Name();
    const Dims steps = {in.dims[1], in.dims[2], in.dims[3]};
    builder_.Node("Reshape", {in.name, Shape(steps)}, {turned});
    builder_.Node(
        kTypes[kind],
        {turned, Numbers({directions, rows, steps[2]}),
         Numbers({directions, rows, hidden}), Numbers({directions, 2 * rows})},
        {out});
    builder_.Int("hidden_size", hidden);
    builder_.Int("linear_before_reset", Pick(2));
    Text("direction", directions == 2 ? "bidirectional"
                      : Pick(2) == 0  ? "forward"
                                      : "reverse");
    Add(out, {steps[0], directions, steps[1], hidden});
  }

  // Slices of it elsewhere, or elements replaced or added.
  void Indexed(const Value& in) {
    if (in.dims.size() < 2) return Unary(in);
    const std::string out = Name(), indices = "i" + out;
    const int64_t first = Pick(in.dims[1]), second = Pick(in.dims[1]);
    Dims rest(in.dims.begin() + 2, in.dims.end());
    Dims updates = rest;
    updates.insert(updates.begin(), 2);
    if (Pick(2) == 0) {
      builder_.Int64s(indices, {2, 2}, {0, first, 0, second});
      if (Pick(2) == 0) {
        builder_.Node("GatherND", {in.name, indices}, {out});
        return Add(out, updates);
      }
      builder_.Node("ScatterND", {in.name, indices, Numbers(updates)}, {out});
      Text("reduction", Pick(2) == 0 ? "none" : "add");
      return Add(out, in.dims);
    }
    const Dims one(in.dims.size(), 1);
    builder_.Int64s(indices, one, {first});
    builder_.Node("ScatterElements", {in.name, indices, Numbers(one)}, {out});
    builder_.Int("axis", 1);
    Text("reduction", Pick(2) == 0 ? "none" : "add");
    Add(out, in.dims);
  }

  void AddNode() {
    const Value in = Any();
    const std::string out = Name();
    switch (Pick(22)) {
      case 0:
      case 1:
        return Unary(in);
      case 2: {
        if (in.dims.size() != 4) return Unary(in);
        const int64_t channels = 8 * (1 + Pick(4));
        std::vector<std::string> inputs = {
            in.name, Numbers({channels, in.dims[1], 1, 1})};
        if (Pick(2) == 0) inputs.push_back(Numbers({channels}));
        builder_.Node("Conv", inputs, {out});
        Add(out, {in.dims[0], channels, in.dims[2], in.dims[3]});
        if (Pick(2) == 0) Unary(values_.back());
        return;
      }
      case 3: {
        if (in.dims.size() != 4) return Unary(in);
        builder_.Node(
            "Conv", {in.name, Numbers({in.dims[1], in.dims[1], 3, 3})}, {out});
        builder_.Ints("pads", {1, 1, 1, 1});
        Add(out, in.dims);
        // What it read comes back: a residual sum.
        const std::string sum = Name();
        builder_.Node("Add", {out, in.name}, {sum});
        Add(sum, in.dims);
        return;
      }
      case 4:
      case 5: {
        std::vector<std::string> parts = {in.name};
        Dims dims = in.dims;
        const size_t axis = dims.size() > 1 ? 1 : 0;
        for (size_t v = values_.size(); v-- > 0 && parts.size() < 4;) {
          Dims other = values_[v].dims;
          if (other.size() != dims.size()) continue;
          const int64_t size = other[axis];
          other[axis] = dims[axis];
          if (other != dims) continue;
          dims[axis] += size;
          parts.push_back(values_[v].name);
        }
        if (dims[axis] > 200) return Unary(in);
        builder_.Node("Concat", parts, {out})
            .Int("axis", static_cast<int64_t>(axis));
        Add(out, dims);
        return;
      }
      case 6: {
        if (in.dims.size() < 2 || in.dims[1] < 2) return Unary(in);
        const int64_t first = 1 + Pick(in.dims[1] - 1);
        const std::string second = Name();
        builder_
            .Node("Split", {in.name, Shape({first, in.dims[1] - first})},
                  {out, second})
            .Int("axis", 1);
        Dims dims = in.dims;
        dims[1] = first;
        Add(out, dims);
        dims[1] = in.dims[1] - first;
        Add(second, dims);
        return;
      }
      case 7: {
        const size_t axis =
            static_cast<size_t>(Pick(static_cast<int64_t>(in.dims.size())));
        const int64_t begin = Pick(in.dims[axis]);
        const int64_t end = begin + 1 + Pick(in.dims[axis] - begin);
        builder_.Node("Slice",
                      {in.name, Shape({begin}), Shape({end}),
                       Shape({static_cast<int64_t>(axis)})},
                      {out});
        Dims dims = in.dims;
        dims[axis] = end - begin;
        Add(out, dims);
        return;
      }
      case 8: {
        int64_t count = 1;
        for (size_t d = 1; d < in.dims.size(); ++d) count *= in.dims[d];
        const Dims dims = {in.dims[0], count};
        builder_.Node("Reshape", {in.name, Shape(dims)}, {out});
        Add(out, dims);
        return;
      }
      case 9: {
        if (in.dims.size() < 2) return Unary(in);
        Dims slopes(in.dims.size() - 1, 1);
        slopes[0] = in.dims[1];
        builder_.Node("PRelu", {in.name, Numbers(slopes)}, {out});
        Add(out, in.dims);
        return;
      }
      case 10: {
        // Layer normalisation as exporters write it.
        const std::string mean = Name(), d = Name(), square = Name(),
                          variance = Name(), sum = Name(), root = Name();
        builder_.Node("ReduceMean", {in.name}, {mean}).Ints("axes", {-1});
        builder_.Node("Sub", {in.name, mean}, {d});
        builder_.Node("Mul", {d, d}, {square});
        builder_.Node("ReduceMean", {square}, {variance}).Ints("axes", {-1});
        std::string epsilon = "e" + out;
        builder_.Floats(epsilon, {}, {0.05F});
        builder_.Node("Add", {variance, epsilon}, {sum});
        builder_.Node("Sqrt", {sum}, {root});
        builder_.Node("Div", {d, root}, {out});
        Add(out, in.dims);
        return;
      }
      case 11: {
        if (in.dims.size() < 2 || in.dims[1] % 2 != 0) return Unary(in);
        const std::string open = Name(), gate = Name(), sigmoid = Name();
        const int64_t half = in.dims[1] / 2;
        builder_.Node("Split", {in.name, Shape({half, half})}, {open, gate})
            .Int("axis", 1);
        builder_.Node("Sigmoid", {gate}, {sigmoid});
        builder_.Node("Mul", {open, sigmoid}, {out});
        Dims dims = in.dims;
        dims[1] = half;
        Add(out, dims);
        return;
      }
      case 12: {
        // Products: each pixel's row of a picture, or all of it at once.
        const int64_t last = in.dims.back(), columns = 8 * (1 + Pick(24));
        builder_.Node("MatMul", {in.name, Numbers({last, columns})}, {out});
        Dims dims = in.dims;
        dims.back() = columns;
        Add(out, dims);
        if (last > 500) return;
        // Back to the size it had.
        const std::string back = Name(), sum = Name();
        builder_.Node("MatMul", {out, Numbers({columns, last})}, {back});
        builder_.Node("Add", {back, Numbers({last})}, {sum});
        Add(sum, in.dims);
        return;
      }
      case 13: {
        if (in.dims.size() != 4) return Unary(in);
        // Attention within each channel, of the columns.
        const std::string turned = Name(), scores = Name(), weights = Name();
        builder_.Node("Transpose", {in.name}, {turned})
            .Ints("perm", {0, 1, 3, 2});
        builder_.Node("MatMul", {in.name, turned}, {scores});
        builder_.Node("Softmax", {scores}, {weights}).Int("axis", -1);
        builder_.Node("MatMul", {weights, in.name}, {out});
        Add(out, in.dims);
        return;
      }
      case 14: {
        if (in.dims.size() != 4 || in.dims[2] < 2 || in.dims[3] < 2) {
          return Unary(in);
        }
        builder_.Node(Pick(2) == 0 ? "MaxPool" : "AveragePool", {in.name},
                      {out});
        builder_.Ints("kernel_shape", {2, 2});
        builder_.Ints("strides", {2, 2});
        const Dims half = {in.dims[0], in.dims[1], in.dims[2] / 2,
                           in.dims[3] / 2};
        Add(out, half);
        return;
      }
      case 15:
        return Recurrent(in);
      case 16:
      case 17:
        return Indexed(in);
      case 18: {
        if (in.dims.size() != 4) return Unary(in);
        // Rows of a channel against each other.
        builder_.Node("Einsum", {in.name, in.name}, {out});
        Text("equation", "bchw,bcvw->bchv");
        Add(out, {in.dims[0], in.dims[1], in.dims[2], in.dims[2]});
        return;
      }
      case 19: {
        if (in.dims.size() != 4) return Unary(in);
        const int64_t high = 1 + Pick(12), wide = 1 + Pick(12);
        builder_.Node("GridSample",
                      {in.name, Numbers({in.dims[0], high, wide, 2})}, {out});
        static const char* const kModes[] = {"nearest", "bilinear", "bicubic"};
        static const char* const kOutside[] = {"zeros", "border", "reflection"};
        Text("mode", kModes[Pick(3)]);
        Text("padding_mode", kOutside[Pick(3)]);
        builder_.Int("align_corners", Pick(2));
        Add(out, {in.dims[0], in.dims[1], high, wide});
        return;
      }
      case 20: {
        if (in.dims.size() != 4) return Unary(in);
        const int64_t groups = in.dims[1] % 2 == 0 ? 2 : 1;
        builder_.Node("GroupNormalization",
                      {in.name, Numbers({groups}), Numbers({groups})}, {out});
        builder_.Int("num_groups", groups).Float("epsilon", 0.05F);
        Add(out, in.dims);
        return;
      }
      default: {
        std::string other = in.name;
        for (const Value& value : values_) {
          if (value.dims == in.dims && Pick(2) == 0) other = value.name;
        }
        static const char* const kTypes[] = {"Add", "Sub", "Mul", "Max"};
        builder_.Node(kTypes[Pick(4)], {in.name, other}, {out});
        Add(out, in.dims);
      }
    }
  }

  std::mt19937 random_;
  const int64_t larger_;
  testing::OnnxBuilder builder_;
  std::vector<Value> values_;
  int names_ = 0;
};

std::vector<float> InputOf(int64_t count) {
  std::vector<float> numbers;
  for (int64_t i = 0; i < count; ++i) {
    numbers.push_back(static_cast<float>(i * 53 % 97 - 48) * 0.02F);
  }
  return numbers;
}

// Each output of the network as written: folded, node by node.
std::vector<std::vector<float>> NodeByNode(Graph graph) {
  auto constant = std::make_shared<Constant>();
  Value& input = graph.value(graph.inputs[0].value);
  constant->shape = *input.shape;
  const std::vector<float> numbers = InputOf(constant->elements());
  constant->data.resize(numbers.size() * sizeof(float));
  std::memcpy(constant->data.data(), numbers.data(), constant->data.size());
  input.constant = constant;
  Folder folder;
  const absl::Status status = InferAndFold(graph, OperatorTable::Get(), folder);
  EXPECT_TRUE(status.ok()) << status;
  std::vector<std::vector<float>> answers;
  for (const GraphPort& port : graph.outputs) {
    const auto answer = graph.value(port.value).constant;
    if (answer == nullptr) return {};
    answers.emplace_back(answer->as<float>(),
                         answer->as<float>() + answer->elements());
  }
  return answers;
}

TEST(ReportedPlanTest, LayersAndTensorsAreInTheNpusWords) {
  testing::OnnxBuilder builder;
  builder.Input("x", {1, 16, 4, 4})
      .Floats("w", {16, 16, 1, 1}, std::vector<float>(256, 0.5F))
      .Node("Conv", {"x", "w"}, {"c"}, "first")
      .Node("Relu", {"c"}, {"r"})
      .Node("Add", {"r", "x"}, {"a"})
      .Node("Concat", {"a", "x"}, {"y"}, "last")
      .Int("axis", 1)
      .Output("y", {1, 32, 4, 4});
  auto device = *OpenSoftDevice({.kind = "soft", .soc = "rk3588"});
  auto model = device->Load({builder.Bytes(), "", "m.onnx"});
  ASSERT_TRUE(model.ok()) << model.status();
  const driver::ProgramInfo& info = (*model)->info().programs[0];

  ASSERT_EQ(info.layers.size(), 4U);
  EXPECT_EQ(info.layers[0].type, "InputOperator");
  EXPECT_TRUE(info.layers[0].on_cpu);
  EXPECT_EQ(info.layers[1].type, "ConvReluAdd");
  EXPECT_EQ(info.layers[1].name, "first");
  EXPECT_EQ(info.layers[1].data_type, "FLOAT16");
  EXPECT_FALSE(info.layers[1].on_cpu);
  EXPECT_EQ(info.layers[2].type, "Concat");
  EXPECT_EQ(info.layers[3].type, "OutputOperator");
  ASSERT_FALSE(info.tensors.empty());
  EXPECT_EQ(info.tensors[0].name, "x");
  EXPECT_EQ(info.tensors[0].shape, "1,16,4,4");
  EXPECT_EQ(info.tensors[0].native_shape, "1,2,4,4,8");
  // All of it fits an RK3588's SRAM.
  uint64_t traffic = 0;
  for (const driver::TensorPlace& tensor : info.tensors) {
    traffic += tensor.traffic();
    EXPECT_LE(tensor.offset + tensor.size, info.internal_size);
  }
  EXPECT_EQ(info.sram.saved, traffic);
  EXPECT_EQ((*model)->PlanSram(0, 0).saved, 0U);
}

std::unique_ptr<testing::BoundModel> Bind(driver::Device& device,
                                          const driver::Model& model) {
  const auto type = driver::TensorType::kFloat32;
  const driver::ProgramInfo& info = model.info().programs[0];
  std::vector<driver::TensorFormat> formats;
  for (const driver::TensorAttr& attr : info.outputs) {
    formats.push_back(testing::PlainFormat(attr, type));
  }
  auto bound = testing::BoundModel::Make(
      device, model, {testing::PlainFormat(info.inputs[0], type)}, formats);
  EXPECT_TRUE(bound.ok()) << bound.status();
  if (!bound.ok()) return nullptr;
  const std::vector<float> numbers =
      InputOf(static_cast<int64_t>(info.inputs[0].elements));
  std::memcpy((*bound)->input(0).data(), numbers.data(),
              numbers.size() * sizeof(float));
  return *std::move(bound);
}

// One output after the other, whatever bits they have.
std::vector<std::byte> Bits(testing::BoundModel& bound,
                            const driver::ProgramInfo& info) {
  std::vector<std::byte> bits;
  for (size_t o = 0; o < info.outputs.size(); ++o) {
    std::byte* const from = bound.output(o).data();
    const size_t size = info.outputs[o].elements * sizeof(float);
    bits.insert(bits.end(), from, from + size);
    std::memset(from, 0x55, size);
  }
  return bits;
}

TEST(RandomNetworksTest, GangsGiveTheBitsOfOneCore) {
  auto device = *OpenSoftDevice({.kind = "soft", .soc = "rk3588"});
  device->EnterWorker();
  std::map<std::string, int> shared;  // layers, by their types
  for (uint32_t seed = 1000; seed < 1060; ++seed) {
    SCOPED_TRACE(seed);
    const testing::OnnxBuilder builder = RandomNetwork(seed, 12).Make();
    auto model = device->Load({builder.Bytes(), "", "m.onnx"});
    ASSERT_TRUE(model.ok()) << model.status();
    const driver::ProgramInfo& info = (*model)->info().programs[0];
    for (const driver::LayerInfo& layer : info.layers) {
      if (layer.splits) ++shared[layer.type];
    }
    const auto bound = Bind(*device, **model);
    ASSERT_NE(bound, nullptr);
    ASSERT_TRUE(bound->Run().status.ok());
    const std::vector<std::byte> alone = Bits(*bound, info);
    for (const uint32_t mask : {3U, 7U}) {
      const driver::JobResult result = bound->RunGang(mask);
      ASSERT_TRUE(result.status.ok()) << result.status;
      ASSERT_EQ(Bits(*bound, info), alone) << "cores " << mask;
    }
  }
  for (const char* type : {"Conv", "MatMul", "Softmax", "Transpose", "Add",
                           "Sigmoid", "MaxPool", "AveragePool", "Slice"}) {
    EXPECT_GT(shared[type], 0) << type;
  }
}

TEST(RandomNetworksTest, AnswerAsTheirNodesOneByOne) {
  auto device = *OpenSoftDevice({.kind = "soft", .soc = "rk3588"});
  device->EnterWorker();
  size_t compared = 0;
  for (uint32_t seed = 0; seed < 460; ++seed) {
    SCOPED_TRACE(seed);
    const testing::OnnxBuilder builder = RandomNetwork(seed).Make();
    auto graph = ImportOnnx(builder.Bytes(), "m.onnx");
    ASSERT_TRUE(graph.ok()) << graph.status();
    const std::vector<std::vector<float>> wanted = NodeByNode(*graph);
    if (wanted.empty()) continue;  // more than folding does
    auto model = device->Load({builder.Bytes(), "", "m.onnx"});
    ASSERT_TRUE(model.ok()) << model.status();
    const driver::ProgramInfo& info = (*model)->info().programs[0];
    const auto bound = Bind(*device, **model);
    ASSERT_NE(bound, nullptr);
    ASSERT_EQ(info.outputs.size(), wanted.size());

    // By one core, then by all of them at once.
    for (const uint32_t mask : {1U, 7U}) {
      const driver::JobResult result =
          mask == 1 ? bound->Run() : bound->RunGang(mask);

      ASSERT_TRUE(result.status.ok()) << result.status;
      for (size_t o = 0; o < wanted.size(); ++o) {
        std::vector<float> got(wanted[o].size());
        ASSERT_EQ(info.outputs[o].elements, got.size());
        std::memcpy(got.data(), bound->output(o).data(),
                    got.size() * sizeof(float));
        float largest = 1.0F;
        for (float value : wanted[o]) {
          largest = std::max(largest, std::fabs(value));
        }
        for (size_t i = 0; i < got.size(); ++i) {
          ASSERT_NEAR(got[i], wanted[o][i], 1e-4F * largest)
              << info.outputs[o].name << " " << i << ", cores " << mask;
        }
      }
    }
    ++compared;
  }
  // Of the others some node was too costly to be folded.
  EXPECT_GT(compared, 250U);
}

}  // namespace
}  // namespace rknnd::soft
