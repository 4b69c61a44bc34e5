// Operators on 8-bit tensors against plain loops in doubles, dense and with
// the channels last.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "driver/soft/kernels/loops.h"
#include "driver/soft/kernels/testing/one_node.h"
#include "driver/soft/kernels/threads.h"

namespace rknnd::soft {
namespace {

using Numbers = std::vector<double>;
using IntList = std::vector<int64_t>;

struct Tensor {
  DataType type = DataType::kUint8;
  Shape shape;
  Numbers numbers;
  bool known = true;
};

Tensor Scalar(double value) { return {DataType::kFloat32, {}, {value}}; }
Tensor ZeroPoint(DataType type, double value) { return {type, {}, {value}}; }

int64_t CountOf(const Shape& shape) {
  return ProductOf(shape, 0, shape.size());
}

// Whole numbers of the type's range, the same for the same seed.
Tensor NoiseOf(DataType type, const Shape& shape, uint32_t seed,
               bool known = false) {
  Tensor tensor{type, shape, {}, known};
  const int low = type == DataType::kInt8 ? -128 : 0;
  for (int64_t i = 0; i < CountOf(shape); ++i) {
    seed = seed * 1664525U + 1013904223U;
    tensor.numbers.push_back(static_cast<int>(seed >> 24) + low);
  }
  return tensor;
}

// Where element `i` of the dense tensor lies.
int64_t PlaceOf(const TensorSpec& spec, int64_t i) {
  if (!spec.channels_last()) return i;
  const int64_t pixels = ProductOf(spec.shape, 2, spec.shape.size());
  const int64_t channels = spec.shape[1];
  const int64_t n = i / pixels / channels;
  return (n * pixels + i % pixels) * channels + i / pixels % channels;
}

std::vector<std::byte> BytesOf(const TensorSpec& spec, const Numbers& numbers) {
  std::vector<std::byte> bytes(spec.bytes() + 64);
  VisitType(spec.type, [&]<class T>(std::type_identity<T>) {
    for (size_t i = 0; i < numbers.size(); ++i) {
      const auto value = static_cast<T>(numbers[i]);
      const auto at = static_cast<size_t>(PlaceOf(spec, int64_t(i)));
      std::memcpy(bytes.data() + at * sizeof(T), &value, sizeof(T));
    }
  });
  return bytes;
}

struct Trial {
  std::string type, domain;
  std::vector<Tensor> inputs;
  std::map<std::string, Attribute> attributes = {};
  Epilogue epilogue = {};
  bool last = false;           // channels last wherever the operator takes that
  bool all_last = false;       // and an error where it does not
  mutable uint32_t parts = 1;  // into how many Go() cut it for three cores

  absl::StatusOr<Numbers> Go() const {
    Graph graph;
    Node node;
    node.name = "it";
    node.type = type;
    node.domain = domain;
    node.opset = domain.empty() ? 13 : 1;
    node.attributes = attributes;
    node.epilogue = epilogue;
    for (const Tensor& tensor : inputs) {
      Value value;
      value.type = tensor.type;
      value.shape = tensor.shape;
      if (tensor.known) {
        auto constant = std::make_shared<Constant>();
        constant->type = tensor.type;
        constant->shape = tensor.shape;
        constant->data =
            BytesOf({tensor.type, tensor.shape, {}}, tensor.numbers);
        constant->data.resize(tensor.numbers.size() * SizeOf(tensor.type));
        value.constant = std::move(constant);
      }
      node.inputs.push_back(static_cast<ValueId>(graph.values.size()));
      graph.values.push_back(std::move(value));
    }
    node.outputs = {static_cast<ValueId>(graph.values.size())};
    graph.values.emplace_back();
    const SingleThreaded as_on_a_core;
    const Operator* op = OperatorTable::Get().Find(domain, type);
    if (op == nullptr) return absl::UnimplementedError(type);
    const NodeView view(graph, node);
    RKNND_ASSIGN_OR_RETURN(const auto inferred, op->infer(view));

    const auto place = [&](TensorSpec& spec, size_t i) {
      if (last && spec.shape.size() > 2 && op->may_channels_last != nullptr &&
          op->may_channels_last(view, i)) {
        spec.placement.block = static_cast<int>(spec.shape[1]);
      }
    };
    std::vector<TensorSpec> specs;
    std::vector<std::vector<std::byte>> data;
    std::vector<const std::byte*> pointers;
    for (size_t i = 0; i < inputs.size(); ++i) {
      specs.push_back({inputs[i].type, inputs[i].shape, {}});
      place(specs.back(), i);
      data.push_back(BytesOf(specs.back(), inputs[i].numbers));
    }
    for (const auto& bytes : data) pointers.push_back(bytes.data());
    TensorSpec output{inferred[0].type, inferred[0].shape, {}};
    place(output, inputs.size());
    if (all_last && !output.channels_last()) {
      return absl::InternalError("it does not take channels last");
    }
    testing::TestWeights weights;
    RKNND_ASSIGN_OR_RETURN(
        const std::unique_ptr<Kernel> kernel,
        op->make({view, specs, std::span(&output, 1), weights, 3}));
    std::vector<std::byte> out(output.bytes() + 64);
    std::byte* const outputs[] = {out.data()};
    std::vector<std::byte> scratch(kernel->scratch_size() + 64);
    void* at = scratch.data();
    size_t room_size = scratch.size();
    auto* const room = static_cast<std::byte*>(
        std::align(64, kernel->scratch_size(), at, room_size));
    RKNND_RETURN_IF_ERROR(kernel->Run(pointers, outputs, room));
    for (const uint32_t cores : {2U, 3U}) {
      const std::vector<std::byte> whole = out;
      std::fill(out.begin(), out.end(), std::byte{0x55});
      parts = kernel->PartsFor(cores);
      for (uint32_t part = parts; part > 0; --part) {
        RKNND_RETURN_IF_ERROR(
            kernel->RunPart({part - 1, parts}, pointers, outputs, room));
      }
      if (std::memcmp(whole.data(), out.data(), output.bytes()) != 0) {
        return absl::InternalError(
            absl::StrCat("in ", parts, " parts it is another"));
      }
    }
    Numbers numbers(static_cast<size_t>(output.elements()));
    const NumberReader read = ReaderOf(output.type);
    for (size_t i = 0; i < numbers.size(); ++i) {
      numbers[i] = read(out.data(), PlaceOf(output, int64_t(i)));
    }
    return numbers;
  }
};

double Steps(DataType type, double real, double scale, double zero) {
  const double low = type == DataType::kInt8 ? -128 : 0;
  return std::clamp(std::nearbyint(real / scale) + zero, low, low + 255);
}

void ExpectClose(const absl::StatusOr<Numbers>& have, const Numbers& want) {
  ASSERT_TRUE(have.ok()) << have.status();
  ASSERT_EQ(have->size(), want.size());
  size_t off = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    ASSERT_LE(std::fabs((*have)[i] - want[i]), 1.0) << "element " << i;
    off += (*have)[i] != want[i] ? 1 : 0;
  }
  // Ties between two steps may fall either way.
  EXPECT_LE(off, want.size() / 100);
}

struct QuantizedConvCase {
  const char* name;
  DataType x, w;
  int64_t channels, outputs, groups;
  int64_t kernel, stride, pad;
  double x_zero, w_zero;
  bool per_channel;
};

void PrintTo(const QuantizedConvCase& c, std::ostream* out) { *out << c.name; }

class QLinearConvTest : public ::testing::TestWithParam<QuantizedConvCase> {
 protected:
  static constexpr int64_t kSize = 9;

  Trial Node() const {
    const QuantizedConvCase& c = GetParam();
    Tensor scale = Scalar(0.02);
    Tensor zero = ZeroPoint(c.w, c.w_zero);
    if (c.per_channel) {
      scale.shape = zero.shape = {c.outputs};
      scale.numbers.clear();
      for (int64_t o = 0; o < c.outputs; ++o) {
        scale.numbers.push_back(0.01 + 0.002 * static_cast<double>(o % 7));
      }
      zero.numbers.assign(static_cast<size_t>(c.outputs), c.w_zero);
    }
    Tensor bias{DataType::kInt32, {c.outputs}, {}};
    for (int64_t o = 0; o < c.outputs; ++o) {
      bias.numbers.push_back(static_cast<double>(o * 37 % 1000 - 500));
    }
    return {.type = "QLinearConv",
            .domain = "",
            .inputs = {NoiseOf(c.x, {2, c.channels, kSize, kSize}, 1),
                       Scalar(0.05), ZeroPoint(c.x, c.x_zero),
                       NoiseOf(c.w,
                               {c.outputs, c.channels / c.groups, c.kernel,
                                c.kernel},
                               2, true),
                       scale, zero, Scalar(1.7), ZeroPoint(c.x, 3), bias},
            .attributes = {{"group", c.groups},
                           {"strides", IntList{c.stride, c.stride}},
                           {"pads", IntList{c.pad, c.pad, c.pad, c.pad}}}};
  }

  Numbers Reference(const Trial& run, double slope = 1.0) const {
    const QuantizedConvCase& c = GetParam();
    const int64_t size = (kSize + 2 * c.pad - c.kernel) / c.stride + 1;
    const int64_t each = c.channels / c.groups;
    Numbers out;
    for (int64_t n = 0; n < 2; ++n) {
      for (int64_t o = 0; o < c.outputs; ++o) {
        const int64_t g = o / (c.outputs / c.groups);
        for (int64_t y = 0; y < size; ++y) {
          for (int64_t x = 0; x < size; ++x) {
            double sum = run.inputs[8].numbers[static_cast<size_t>(o)];
            for (int64_t i = 0; i < each; ++i) {
              for (int64_t a = 0; a < c.kernel; ++a) {
                for (int64_t b = 0; b < c.kernel; ++b) {
                  const int64_t h = y * c.stride + a - c.pad;
                  const int64_t w = x * c.stride + b - c.pad;
                  if (h < 0 || w < 0 || h >= kSize || w >= kSize) continue;
                  const int64_t at =
                      ((n * c.channels + g * each + i) * kSize + h) * kSize + w;
                  const int64_t k =
                      ((o * each + i) * c.kernel + a) * c.kernel + b;
                  sum += (run.inputs[0].numbers[static_cast<size_t>(at)] -
                          c.x_zero) *
                         (run.inputs[3].numbers[static_cast<size_t>(k)] -
                          c.w_zero);
                }
              }
            }
            const double scale =
                run.inputs[4]
                    .numbers[c.per_channel ? static_cast<size_t>(o) : 0];
            double real = sum * 0.05 * scale;
            if (real < 0) real *= slope;
            out.push_back(Steps(c.x, real, 1.7, 3));
          }
        }
      }
    }
    return out;
  }
};

struct RowCase {
  const char* name;
  int64_t channels, outputs, groups, kernel, stride, dilation;
  double x_zero, w_zero, y_zero;
};
void PrintTo(const RowCase& c, std::ostream* out) { *out << c.name; }

// Rows of one picture, as the cores of a gang share them: Go() compares.
class QLinearConvRowsTest : public ::testing::TestWithParam<RowCase> {};

TEST_P(QLinearConvRowsTest, PartsAreTheWhole) {
  const RowCase& c = GetParam();
  for (const DataType type : {DataType::kInt8, DataType::kUint8}) {
    const DataType weights = c.w_zero == 0 ? DataType::kInt8 : DataType::kUint8;
    const int64_t pad = c.kernel / 2;
    const Trial trial = {
        .type = "QLinearConv",
        .domain = "",
        .inputs = {NoiseOf(type, {1, c.channels, 37, 29}, 1), Scalar(0.05),
                   ZeroPoint(type, c.x_zero),
                   NoiseOf(
                       weights,
                       {c.outputs, c.channels / c.groups, c.kernel, c.kernel},
                       2, true),
                   Scalar(0.02), ZeroPoint(weights, c.w_zero), Scalar(1.7),
                   ZeroPoint(type, c.y_zero)},
        .attributes = {{"group", c.groups},
                       {"strides", IntList{c.stride, c.stride}},
                       {"dilations", IntList{c.dilation, c.dilation}},
                       {"pads", IntList{pad, pad, pad, pad}}},
        .last = true};
    const auto have = trial.Go();
    ASSERT_TRUE(have.ok()) << have.status();
    EXPECT_EQ(trial.parts, 3U);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Forms, QLinearConvRowsTest,
    ::testing::Values(RowCase{"plain", 16, 24, 1, 3, 1, 1, 0, 0, 0},
                      RowCase{"zero_points", 16, 24, 1, 3, 1, 1, 3, 0, 5},
                      RowCase{"uneven_weights", 16, 24, 1, 3, 1, 1, 3, 131, 5},
                      RowCase{"strided", 24, 40, 1, 5, 2, 1, 7, 0, 3},
                      RowCase{"dilated", 16, 17, 1, 3, 1, 3, 7, 0, 3},
                      RowCase{"pointwise", 32, 19, 1, 1, 1, 1, 7, 0, 3},
                      RowCase{"depthwise", 48, 48, 48, 3, 1, 1, 7, 0, 3},
                      RowCase{"groups", 32, 32, 2, 3, 1, 1, 0, 0, 0}),
    [](const auto& test) { return std::string(test.param.name); });

TEST_P(QLinearConvTest, AgreesWithPlainLoops) {
  Trial run = Node();
  const Numbers want = Reference(run);

  ExpectClose(run.Go(), want);
  run.last = true;
  ExpectClose(run.Go(), want);
}

TEST_P(QLinearConvTest, TakesAnActivation) {
  Trial run = Node();
  run.last = true;
  run.epilogue.activation = Activation::kLeakyRelu;
  run.epilogue.alpha = 0.125F;

  ExpectClose(run.Go(), Reference(run, 0.125));
}

TEST_P(QLinearConvTest, GivesTheSameBytesEveryTime) {
  Trial run = Node();
  run.last = true;

  EXPECT_EQ(*run.Go(), *run.Go());
}

constexpr DataType kU8 = DataType::kUint8;
constexpr DataType kS8 = DataType::kInt8;
INSTANTIATE_TEST_SUITE_P(
    Forms, QLinearConvTest,
    ::testing::Values(
        QuantizedConvCase{"Image", kU8, kS8, 3, 16, 1, 3, 2, 1, 114, 0, true},
        QuantizedConvCase{"Pointwise", kU8, kS8, 24, 58, 1, 1, 1, 0, 0, 0,
                          true},
        QuantizedConvCase{"PointwiseZero", kU8, kS8, 58, 58, 1, 1, 1, 0, 128, 0,
                          true},
        QuantizedConvCase{"Signed", kS8, kS8, 16, 32, 1, 3, 1, 1, 0, 0, false},
        QuantizedConvCase{"SignedZero", kS8, kS8, 17, 5, 1, 3, 1, 1, -128, 0,
                          false},
        QuantizedConvCase{"Depthwise", kU8, kS8, 24, 24, 24, 3, 1, 1, 7, 0,
                          true},
        QuantizedConvCase{"SignedDepthwise", kS8, kS8, 8, 8, 8, 3, 2, 1, 0, 0,
                          false},
        QuantizedConvCase{"Groups", kU8, kS8, 12, 8, 4, 3, 1, 1, 9, 0, false},
        QuantizedConvCase{"UnsignedWeights", kU8, kU8, 8, 8, 1, 3, 1, 1, 100,
                          131, false},
        QuantizedConvCase{"MiddleWeights", kU8, kU8, 8, 8, 1, 3, 1, 1, 0, 128,
                          true}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(QuantizeTest, ScalesAlongAnAxis) {
  Trial run{
      .type = "QuantizeLinear",
      .domain = "",
      .inputs = {{DataType::kFloat32, {1, 2, 2}, {0.5, 1.5, 10, -9}, false},
                 {DataType::kFloat32, {2}, {1.0, 0.5}},
                 {kS8, {2}, {0, 100}}},
      .attributes = {{"axis", int64_t{1}}}};

  // Halves go to the even neighbour; what is too large saturates.
  EXPECT_EQ(*run.Go(), (Numbers{0, 2, 120, 82}));
}

TEST(QuantizeTest, NumbersBeyondTheRangeAndNotANumberSaturate) {
  const double inf = std::numeric_limits<double>::infinity();
  Trial run{.type = "QuantizeLinear",
            .domain = "",
            .inputs = {{DataType::kFloat32, {4}, {inf, -inf, NAN, 1e30}, false},
                       Scalar(0.1),
                       ZeroPoint(kU8, 5)}};

  EXPECT_EQ(*run.Go(), (Numbers{255, 0, 0, 255}));
}

TEST(QuantizeTest, DequantizeTakesOffTheZeroPoint) {
  Trial run{.type = "DequantizeLinear",
            .domain = "",
            .inputs = {{kU8, {1, 2, 1, 2}, {0, 128, 255, 130}, false},
                       Scalar(0.5),
                       ZeroPoint(kU8, 128)}};

  EXPECT_EQ(*run.Go(), (Numbers{-64, 0, 63.5, 1}));
  run.last = true;
  EXPECT_EQ(*run.Go(), (Numbers{-64, 0, 63.5, 1}));
}

class MatMulTest : public ::testing::TestWithParam<bool> {};

TEST_P(MatMulTest, AgreesWithPlainLoops) {
  const int64_t m = 5, n = 7, k = 19;
  const Tensor a = NoiseOf(kU8, {m, k}, 3);
  const Tensor b = NoiseOf(kS8, {k, n}, 4, GetParam());
  Numbers sums;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t l = 0; l < k; ++l) {
        sum += (a.numbers[static_cast<size_t>(i * k + l)] - 12) *
               (b.numbers[static_cast<size_t>(l * n + j)] - 1);
      }
      sums.push_back(sum);
    }
  }
  Numbers steps;
  for (double sum : sums) steps.push_back(Steps(kU8, sum * 0.02, 9.1, 100));

  EXPECT_EQ(*(Trial{.type = "MatMulInteger",
                    .domain = "",
                    .inputs = {a, b, ZeroPoint(kU8, 12), ZeroPoint(kS8, 1)}}
                  .Go()),
            sums);
  ExpectClose(
      Trial{.type = "QLinearMatMul",
            .domain = "",
            .inputs = {a, Scalar(0.2), ZeroPoint(kU8, 12), b, Scalar(0.1),
                       ZeroPoint(kS8, 1), Scalar(9.1), ZeroPoint(kU8, 100)}}
          .Go(),
      steps);
}

INSTANTIATE_TEST_SUITE_P(KnownOrNot, MatMulTest, ::testing::Bool());

Trial Binary(const char* type, const Shape& b) {
  return {.type = type,
          .domain = "com.microsoft",
          .inputs = {NoiseOf(kU8, {1, 6, 4, 3}, 5), Scalar(0.1),
                     ZeroPoint(kU8, 10), NoiseOf(kU8, b, 6), Scalar(0.2),
                     ZeroPoint(kU8, 20), Scalar(0.35), ZeroPoint(kU8, 30)}};
}

Numbers BinaryReference(const Trial& run, bool product) {
  Numbers want;
  for (size_t i = 0; i < run.inputs[0].numbers.size(); ++i) {
    const size_t j =
        run.inputs[3].numbers.size() == 6 ? i / 12 : i;  // one for each channel
    const double a = (run.inputs[0].numbers[i] - 10) * 0.1;
    const double b = (run.inputs[3].numbers[j] - 20) * 0.2;
    want.push_back(Steps(kU8, product ? a * b : a + b, 0.35, 30));
  }
  return want;
}

TEST(QLinearBinaryTest, AddsAndMultiplies) {
  for (const char* type : {"QLinearAdd", "QLinearMul"}) {
    for (const Shape& shape : {Shape{1, 6, 4, 3}, Shape{6, 1, 1}}) {
      Trial run = Binary(type, shape);
      const Numbers want =
          BinaryReference(run, std::string(type) == "QLinearMul");
      ExpectClose(run.Go(), want);
      run.last = true;
      ExpectClose(run.Go(), want);
    }
  }
}

TEST(QLinearUnaryTest, SigmoidAndLeakyRelu) {
  const Tensor x = NoiseOf(kS8, {1, 5, 3, 3}, 8);
  Numbers sigmoid, leaky;
  for (double q : x.numbers) {
    const double real = (q - 4) * 0.05;
    sigmoid.push_back(Steps(kS8, 1 / (1 + std::exp(-real)), 1 / 256.0, -128));
    leaky.push_back(
        Steps(kS8, real < 0 ? real * 0.125 : real, 1 / 256.0, -128));
  }
  Trial run{.type = "QLinearSigmoid",
            .domain = "com.microsoft",
            .inputs = {x, Scalar(0.05), ZeroPoint(kS8, 4), Scalar(1 / 256.0),
                       ZeroPoint(kS8, -128)}};
  run.last = true;

  ExpectClose(run.Go(), sigmoid);
  run.type = "QLinearLeakyRelu";
  run.attributes["alpha"] = 0.125F;
  ExpectClose(run.Go(), leaky);
}

TEST(QLinearPoolTest, AveragesTheWholePicture) {
  const Tensor x = NoiseOf(kU8, {2, 20, 5, 5}, 9);
  Numbers want;
  for (size_t plane = 0; plane < 40; ++plane) {
    double sum = 0;
    for (size_t i = 0; i < 25; ++i) sum += x.numbers[plane * 25 + i] - 128;
    want.push_back(Steps(kU8, sum / 25 * 0.5, 0.3, 100));
  }
  Trial run{.type = "QLinearGlobalAveragePool",
            .domain = "com.microsoft",
            .inputs = {x, Scalar(0.5), ZeroPoint(kU8, 128), Scalar(0.3),
                       ZeroPoint(kU8, 100)}};

  ExpectClose(run.Go(), want);
  run.last = true;
  ExpectClose(run.Go(), want);
}

TEST(QLinearPoolTest, AveragesWhatAWindowSees) {
  Trial run{.type = "QLinearAveragePool",
            .domain = "com.microsoft",
            .inputs = {{kU8, {1, 1, 2, 2}, {10, 20, 30, 40}, false},
                       Scalar(1.0),
                       ZeroPoint(kU8, 0),
                       Scalar(1.0),
                       ZeroPoint(kU8, 0)},
            .attributes = {{"kernel_shape", IntList{2, 2}},
                           {"pads", IntList{1, 1, 0, 0}}}};

  EXPECT_EQ(*run.Go(), (Numbers{10, 15, 20, 25}));
}

TEST(QLinearConcatTest, BringsPiecesToOneScale) {
  Trial run{.type = "QLinearConcat",
            .domain = "com.microsoft",
            .inputs = {Scalar(0.5),
                       ZeroPoint(kU8, 10),
                       {kU8, {1, 2}, {0, 4}, false},
                       Scalar(1.0),
                       ZeroPoint(kU8, 0),
                       {kU8, {1, 1}, {12}, false},
                       Scalar(0.25),
                       ZeroPoint(kU8, 2)},
            .attributes = {{"axis", int64_t{1}}}};

  EXPECT_EQ(*run.Go(), (Numbers{10, 18, 15}));
}

TEST(MovedBytesTest, PoolConcatAndShuffleTakeChannelsLast) {
  Trial pool{.type = "MaxPool",
             .domain = "",
             .inputs = {NoiseOf(kU8, {1, 24, 7, 7}, 11)},
             .attributes = {{"kernel_shape", IntList{3, 3}},
                            {"strides", IntList{2, 2}},
                            {"pads", IntList{1, 1, 1, 1}}}};
  Trial concat{.type = "Concat",
               .domain = "",
               .inputs = {NoiseOf(kU8, {2, 3, 4, 4}, 12),
                          NoiseOf(kU8, {2, 5, 4, 4}, 13)},
               .attributes = {{"axis", int64_t{1}}}};
  Trial shuffle{.type = "ShuffleChannels",
                .domain = "rknnd",
                .inputs = {NoiseOf(kU8, {2, 6, 3, 3}, 14)},
                .attributes = {{"groups", int64_t{3}}}};
  for (Trial run : {pool, concat, shuffle}) {
    const auto dense = run.Go();
    run.last = run.all_last = true;
    const auto last = run.Go();
    ASSERT_TRUE(dense.ok() && last.ok()) << dense.status() << last.status();
    EXPECT_EQ(*dense, *last) << run.type;
  }
}

TEST(ConvIntegerTest, SumsExactlyWithAZeroPointOfTheRun) {
  Trial run{.type = "ConvInteger",
            .domain = "",
            .inputs = {{kU8, {1, 1, 2, 2}, {5, 6, 7, 8}, false},
                       {kU8, {1, 1, 2, 2}, {1, 2, 3, 4}},
                       {kU8, {}, {1}, false}}};

  EXPECT_EQ(*run.Go(), (Numbers{4 + 10 + 18 + 28}));
}

// Sums past 2^24, where floats leave out integers.
Numbers SumsOf(const Tensor& a, const Tensor& b, int64_t rows, int64_t columns,
               double a_zero, bool b_is_transposed) {
  const auto k = static_cast<int64_t>(a.numbers.size()) / rows;
  Numbers sums;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      double sum = 0;
      for (int64_t l = 0; l < k; ++l) {
        const int64_t at = b_is_transposed ? j * k + l : l * columns + j;
        sum += (a.numbers[static_cast<size_t>(i * k + l)] - a_zero) *
               b.numbers[static_cast<size_t>(at)];
      }
      sums.push_back(sum);
    }
  }
  return sums;
}

Tensor High(const Shape& shape, uint32_t seed, bool known) {
  Tensor tensor = NoiseOf(kU8, shape, seed, known);
  for (double& number : tensor.numbers) number = 255 - std::fmod(number, 16);
  return tensor;
}

TEST(ConvIntegerTest, SumsOfAnySizeAreExact) {
  const int64_t channels = 1031, outputs = 5;
  const Tensor w = High({outputs, channels, 1, 1}, 22, true);
  Trial run{.type = "ConvInteger",
            .domain = "",
            .inputs = {
                High({1, channels, 1, 1}, 21, false), w, {kU8, {}, {3}, true}}};
  const Numbers want = SumsOf(run.inputs[0], w, 1, outputs, 3, true);

  EXPECT_EQ(*run.Go(), want);
  run.last = true;
  EXPECT_EQ(*run.Go(), want);
  run.inputs[2].known = false;
  EXPECT_EQ(*run.Go(), want);
}

TEST(ConvIntegerTest, LargeSumsOfWindowsAndGroupsAreExact) {
  // Each group sees 2x2 pixels of 300 channels, all alike.
  const int64_t each = 300;
  Tensor x{kU8, {1, 2 * each, 2, 3}, {}, false};
  for (int64_t c = 0; c < 2 * each; ++c) {
    const double first = c < each ? 255 : 127;
    x.numbers.insert(x.numbers.end(), {first, 254, 253, 252, 251, 250});
  }
  Tensor w{kU8, {2, each, 2, 2}, {}};
  for (int64_t i = 0; i < 2 * each; ++i) {
    w.numbers.insert(w.numbers.end(), {255, 254, 253, 252});
  }
  Trial run{.type = "ConvInteger",
            .domain = "",
            .inputs = {x, w},
            .attributes = {{"group", int64_t{2}},
                           {"strides", IntList{1, 2}},
                           {"pads", IntList{0, 1, 0, 0}}}};
  const double left = 254, right = 252;
  const auto edge = [&](double first) {
    return each * (first * left + 252 * right);
  };
  const double inner =
      each * (254 * 255.0 + 253 * 254.0 + 251 * 253.0 + 250 * 252.0);
  const Numbers want = {edge(255), inner, edge(127), inner};

  EXPECT_EQ(*run.Go(), want);
  run.last = true;
  EXPECT_EQ(*run.Go(), want);
}

TEST(ConvIntegerTest, SumsPastInt32Wrap) {
  const int64_t channels = 40000;
  const Numbers all(channels, 255);
  Trial run{.type = "ConvInteger",
            .domain = "",
            .inputs = {{kU8, {1, channels, 1, 1}, all, false},
                       {kU8, {1, channels, 1, 1}, all}}};

  const auto sum = static_cast<int32_t>(static_cast<uint32_t>(40000U * 65025U));
  EXPECT_EQ(*run.Go(), (Numbers{static_cast<double>(sum)}));
}

TEST(MatMulIntegerTest, SumsOfAnySizeAreExact) {
  for (const bool known : {false, true}) {
    const Tensor a = High({3, 1024}, 23, false);
    const Tensor b = High({1024, 4}, 24, known);

    EXPECT_EQ(
        *(Trial{.type = "MatMulInteger", .domain = "", .inputs = {a, b}}.Go()),
        SumsOf(a, b, 3, 4, 0, false));
  }
}

TEST(DynamicQuantizeTest, TakesScaleAndZeroPointFromTheNumbers) {
  const auto quantized = [](Numbers numbers) {
    const auto count = static_cast<int64_t>(numbers.size());
    return *(Trial{
        .type = "DynamicQuantizeLinear",
        .domain = "",
        .inputs = {{DataType::kFloat32, {count}, std::move(numbers), false}}}
                 .Go());
  };
  // 255 steps of 1/51 from -2 to 3; 0 is always among them.
  EXPECT_EQ(quantized({-2, 0, 1, 3}), (Numbers{0, 102, 153, 255}));
  EXPECT_EQ(quantized({1, 2, 5}), (Numbers{51, 102, 255}));
  EXPECT_EQ(quantized({-5, -1}), (Numbers{0, 204}));
  EXPECT_EQ(quantized({0, 0}), (Numbers{0, 0}));
}

TEST(QuantizeTest, TypeIsWhatOutputDtypeSays) {
  Trial run{.type = "QuantizeLinear",
            .domain = "",
            .inputs = {{DataType::kFloat32, {2}, {-1, 1}, false}, Scalar(0.5)},
            .attributes = {{"output_dtype", int64_t{3}}}};
  EXPECT_EQ(*run.Go(), (Numbers{-2, 2}));

  run.attributes["output_dtype"] = int64_t{2};
  EXPECT_EQ(*run.Go(), (Numbers{0, 2}));

  // INT16; what the zero point says otherwise.
  run.attributes["output_dtype"] = int64_t{5};
  EXPECT_FALSE(run.Go().ok());
  run.attributes["output_dtype"] = int64_t{3};
  run.inputs.push_back(ZeroPoint(kU8, 0));
  EXPECT_FALSE(run.Go().ok());
}

TEST(QuantizeTest, ScalesOfBlocksAreRefused) {
  Trial run{.type = "DequantizeLinear",
            .domain = "",
            .inputs = {{kU8, {4, 2}, Numbers(8, 1), false},
                       {DataType::kFloat32, {2, 2}, {1, 2, 3, 4}}},
            .attributes = {{"axis", int64_t{0}}}};
  // Four scales along an axis of four, but not one for each.
  EXPECT_FALSE(run.Go().ok());

  run.attributes["block_size"] = int64_t{2};
  EXPECT_NE(run.Go().status().message().find("block_size"), std::string::npos);
}

// A product whose scales are inputs 1 and 4, its float bias the last.
Trial WithFloatBias(const char* type, double weight_scale) {
  const bool is_gemm = std::string(type) == "QGemm";
  const Tensor bias{DataType::kFloat32, {2}, {0.5, 0.5}};
  const Shape x = is_gemm ? Shape{1, 2} : Shape{1, 2, 1, 1};
  const Shape w = is_gemm ? Shape{2, 2} : Shape{2, 2, 1, 1};
  std::vector<Tensor> inputs = {NoiseOf(kU8, x, 1),   Scalar(0.02),
                                ZeroPoint(kU8, 3),    NoiseOf(kS8, w, 2, true),
                                Scalar(weight_scale), ZeroPoint(kS8, 0)};
  if (is_gemm) inputs.push_back(bias);
  inputs.push_back(Scalar(0.05));
  inputs.push_back(ZeroPoint(kU8, 3));
  if (!is_gemm) inputs.push_back(bias);
  return {.type = type,
          .domain = is_gemm ? "com.microsoft" : "",
          .inputs = std::move(inputs)};
}

TEST(QuantizedTest, ABiasTooLargeForItsScalesIsRefused) {
  for (const char* type : {"QLinearConv", "QGemm"}) {
    EXPECT_TRUE(WithFloatBias(type, 0.01).Go().ok()) << type;
    EXPECT_FALSE(WithFloatBias(type, 1.2e-38).Go().ok()) << type;
  }
  Trial nothing = WithFloatBias("QGemm", 0.01);
  nothing.attributes["alpha"] = 0.0F;
  EXPECT_FALSE(nothing.Go().ok());
}

TEST(QuantizedTest, ResultsThatAreNotEightBitAreRefused) {
  for (const DataType type :
       {DataType::kBool, DataType::kInt32, DataType::kFloat32}) {
    const std::vector<Tensor> inputs = {NoiseOf(kU8, {4, 4}, 1),
                                        Scalar(0.1),
                                        ZeroPoint(kU8, 0),
                                        NoiseOf(kS8, {4, 4}, 2, true),
                                        Scalar(0.1),
                                        ZeroPoint(kS8, 0),
                                        Scalar(0.1),
                                        ZeroPoint(type, 1)};
    EXPECT_FALSE(
        (Trial{.type = "QLinearMatMul", .domain = "", .inputs = inputs}.Go())
            .ok())
        << DataTypeName(type);
    const std::vector<Tensor> sum = {NoiseOf(kU8, {4}, 1), Scalar(0.1),
                                     ZeroPoint(kU8, 0), Scalar(0.1),
                                     ZeroPoint(type, 1)};
    EXPECT_FALSE(
        (Trial{
             .type = "QLinearSigmoid", .domain = "com.microsoft", .inputs = sum}
             .Go())
            .ok())
        << DataTypeName(type);
  }
}

TEST(QuantizedTest, BrokenScalesAreRefusedByName) {
  for (const double scale : {0.0, -1.0, double{NAN}, double{INFINITY}}) {
    Trial run = Binary("QLinearAdd", {1, 6, 4, 3});
    run.inputs[1] = Scalar(scale);
    const auto made = run.Go();
    ASSERT_FALSE(made.ok());
    EXPECT_NE(made.status().message().find("'it'"), std::string::npos);
  }
}

}  // namespace
}  // namespace rknnd::soft
