// 8-bit convolutions at every level of CPU that this machine has, against the
// definition written down as plain loops: random layers, compared to the bit.
// Inputs end where a page ends that cannot be read, so that a kernel which
// reads too far dies here.

#include "driver/soft/kernels/convolution/integer_convolution.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "driver/soft/kernels/checks.h"
#include "driver/soft/kernels/loops.h"
#include "driver/soft/kernels/quantization.h"
#include "driver/soft/kernels/testing/guarded.h"
#include "driver/soft/kernels/testing/one_node.h"
#include "gtest/gtest.h"

namespace rknnd::soft {
namespace {

using testing::Guarded;

// Where element (n, c, pixel) of a tensor lies.
size_t PlaceAt(const TensorSpec& spec, int64_t n, int64_t c, int64_t pixel) {
  const int64_t pixels = ProductOf(spec.shape, 2, spec.shape.size());
  const int64_t channels = spec.shape[1];
  return static_cast<size_t>(spec.channels_last()
                                 ? (n * pixels + pixel) * channels + c
                                 : (n * channels + c) * pixels + pixel);
}

int32_t ByteAt(DataType type, const std::byte* data, size_t at) {
  return type == DataType::kInt8 ? int32_t{As<int8_t>(data)[at]}
                                 : int32_t{As<uint8_t>(data)[at]};
}

// The definition, in 64-bit integers.
void Compute(const IntegerConvolutionSpec& spec, int32_t zero,
             const std::byte* input, std::byte* output) {
  const Shape& in = spec.input.shape;
  const Shape& out = spec.output.shape;
  const Shape& kernel = spec.weights_shape;
  const int64_t pixels = ProductOf(out, 2, out.size());
  const int64_t taps = ProductOf(kernel, 2, kernel.size());
  for (int64_t n = 0; n < out[0]; ++n) {
    for (int64_t o = 0; o < out[1]; ++o) {
      const int64_t first = o / (out[1] / spec.groups) * kernel[1];
      for (int64_t p = 0; p < pixels; ++p) {
        int64_t sum = 0;
        for (int64_t k = 0; k < taps; ++k) {
          int64_t pixel = 0, row = 1, p_rest = p, k_rest = k;
          bool inside = true;
          for (size_t d = out.size() - 1; d >= 2; --d) {
            const int64_t place = p_rest % out[d] * spec.strides[d - 2] +
                                  k_rest % kernel[d] * spec.dilations[d - 2] -
                                  spec.pads_begin[d - 2];
            inside = inside && place >= 0 && place < in[d];
            pixel += place * row;
            row *= in[d];
            p_rest /= out[d];
            k_rest /= kernel[d];
          }
          for (int64_t c = 0; inside && c < kernel[1]; ++c) {
            const int32_t x = ByteAt(spec.input.type, input,
                                     PlaceAt(spec.input, n, first + c, pixel));
            sum += int64_t{x - zero} * spec.weights[static_cast<size_t>(
                                           (o * kernel[1] + c) * taps + k)];
          }
        }
        const size_t at = PlaceAt(spec.output, n, o, p);
        if (spec.output.type == DataType::kInt32) {
          As<int32_t>(output)[at] = static_cast<int32_t>(sum);
          continue;
        }
        const auto channel = static_cast<size_t>(o);
        float v = static_cast<float>(static_cast<int32_t>(sum));
        v += spec.bias.empty() ? 0.0F : spec.bias[channel];
        v *= spec.scale[spec.scale.size() == 1 ? 0 : channel];
        const Epilogue& epilogue = spec.epilogue;
        if (epilogue.activation == Activation::kRelu && v < 0.0F) v *= 0.0F;
        if (epilogue.activation == Activation::kLeakyRelu && v < 0.0F) {
          v *= epilogue.alpha;
        }
        if (epilogue.activation == Activation::kClip) {
          v = std::min(std::max(v, epilogue.alpha), epilogue.beta);
        }
        if (spec.output.type == DataType::kFloat32) {
          As<float>(output)[at] = v;
        } else if (spec.output.type == DataType::kInt8) {
          As<int8_t>(output)[at] = Quantize<int8_t>(v, spec.output_zero);
        } else {
          As<uint8_t>(output)[at] = Quantize<uint8_t>(v, spec.output_zero);
        }
      }
    }
  }
}

class IntegerLayers {
 public:
  explicit IntegerLayers(uint32_t seed) : random_(seed) {}

  int64_t Number(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }
  bool Chance(int64_t of) { return Number(1, of) == 1; }

  IntegerConvolutionSpec Next() {
    IntegerConvolutionSpec spec;
    const auto axes = static_cast<size_t>(Chance(4) ? (Chance(2) ? 1 : 3) : 2);
    spec.groups = Chance(3) ? Number(2, 40) : 1;
    const bool depthwise = spec.groups > 1 && Chance(2);
    const int64_t inputs = depthwise ? 1 : Number(1, spec.groups > 1 ? 5 : 70);
    const int64_t outputs = depthwise ? 1 : Number(1, spec.groups > 1 ? 9 : 70);
    spec.weights_shape = {outputs * spec.groups, inputs};
    spec.input.shape = {Number(1, 2), inputs * spec.groups};
    spec.output.shape = {spec.input.shape[0], outputs * spec.groups};
    const bool pointwise = Chance(4);
    for (size_t a = 0; a < axes; ++a) {
      const int64_t kernel = pointwise ? 1 : Number(1, 4);
      const int64_t dilation = Chance(4) ? Number(1, 3) : 1;
      const int64_t stride = Chance(3) ? Number(1, 3) : 1;
      const int64_t extent = (kernel - 1) * dilation + 1;
      const int64_t before = Chance(2) ? Number(0, extent) : 0;
      const int64_t after = Chance(2) ? Number(0, extent) : 0;
      const int64_t least = std::max<int64_t>(1, extent - before - after);
      const int64_t size = Number(least, least + (axes == 3 ? 4 : 14));
      spec.weights_shape.push_back(kernel);
      spec.strides.push_back(stride);
      spec.dilations.push_back(dilation);
      spec.pads_begin.push_back(before);
      spec.pads_end.push_back(after);
      spec.input.shape.push_back(size);
      spec.output.shape.push_back((size + before + after - extent) / stride +
                                  1);
    }
    spec.input.type = Chance(2) ? DataType::kInt8 : DataType::kUint8;
    const DataType types[] = {DataType::kInt8,  DataType::kUint8,
                              DataType::kInt8,  DataType::kUint8,
                              DataType::kInt32, DataType::kFloat32};
    spec.output.type = types[Number(0, 5)];
    for (TensorSpec* tensor : {&spec.input, &spec.output}) {
      if (!Chance(5)) {
        tensor->placement.block = static_cast<int>(tensor->shape[1]);
      }
    }
    const int64_t largest = Chance(6) ? 255 : 128;
    spec.weights.resize(static_cast<size_t>(
        ProductOf(spec.weights_shape, 0, spec.weights_shape.size())));
    for (int16_t& w : spec.weights) {
      w = static_cast<int16_t>(Number(-largest, largest == 128 ? 127 : 255));
    }
    spec.input_zero = static_cast<int32_t>(spec.input.type == DataType::kInt8
                                               ? Number(-128, 127)
                                               : Number(0, 255));
    if (Chance(6)) spec.input_zero_at = 1;
    if (spec.output.type == DataType::kInt32) return spec;
    spec.scale.assign(static_cast<size_t>(Chance(2) ? 1 : spec.output.shape[1]),
                      0.0F);
    for (float& s : spec.scale) {
      s = static_cast<float>(Number(1, 1000)) * 3e-6F;
    }
    if (Chance(2)) {
      for (int64_t o = 0; o < spec.output.shape[1]; ++o) {
        spec.bias.push_back(static_cast<float>(Number(-90000, 90000)) / 8);
      }
    }
    if (SizeOf(spec.output.type) == 1) {
      spec.output_zero = static_cast<int32_t>(
          spec.output.type == DataType::kInt8 ? Number(-128, 127)
                                              : Number(0, 255));
    }
    const Activation activations[] = {Activation::kNone, Activation::kRelu,
                                      Activation::kLeakyRelu,
                                      Activation::kClip};
    spec.epilogue.activation = activations[Number(0, 3)];
    spec.epilogue.alpha =
        spec.epilogue.activation == Activation::kClip ? -20.5F : 0.1015625F;
    spec.epilogue.beta = 30.25F;
    return spec;
  }

 private:
  std::mt19937 random_;
};

std::string Describe(const IntegerConvolutionSpec& spec) {
  return absl::StrCat(
      "input ", ShapeText(spec.input.shape), " ", DataTypeName(spec.input.type),
      spec.input.channels_last() ? " last" : "", ", weights ",
      ShapeText(spec.weights_shape), ", groups ", spec.groups, ", strides ",
      ShapeText(spec.strides), ", dilations ", ShapeText(spec.dilations),
      ", pads ", ShapeText(spec.pads_begin), " ", ShapeText(spec.pads_end),
      ", output ", ShapeText(spec.output.shape), " ",
      DataTypeName(spec.output.type),
      spec.output.channels_last() ? " last" : "");
}

// Runs `spec` at each level in so many parts, last part first, and compares
// each byte with the definition's.
void Expect(const IntegerConvolutionSpec& spec,
            const std::vector<uint32_t>& gangs) {
  SCOPED_TRACE(Describe(spec));
  const Guarded input(spec.input.bytes());
  std::mt19937 random(7);
  for (size_t i = 0; i < input.size(); ++i) {
    input.data()[i] = static_cast<std::byte>(random());
  }
  const auto zero = static_cast<std::byte>(spec.input_zero);
  std::vector<std::byte> wanted(spec.output.bytes());
  Compute(spec, spec.input_zero, input.data(), wanted.data());

  Graph graph;
  Node node;
  const NodeView view(graph, node);
  for (const CpuLevel level : UsableCpuLevels()) {
    for (const uint32_t cores : gangs) {
      SCOPED_TRACE(absl::StrCat(CpuLevelName(level), ", ", cores, " cores"));
      testing::TestWeights weights;
      auto kernel = MakeIntegerConvolution(
          {view, {&spec.input, 1}, {&spec.output, 1}, weights, cores}, spec,
          level);
      ASSERT_TRUE(kernel.ok()) << kernel.status();
      const Guarded output(spec.output.bytes());
      // Aligned as a core's is, and full of what is no zero.
      std::vector<std::byte> room((*kernel)->scratch_size() + 64,
                                  std::byte{0x7F});
      auto* const scratch = reinterpret_cast<std::byte*>(
          (reinterpret_cast<uintptr_t>(room.data()) + 63) / 64 * 64);
      const std::byte* const from[] = {input.data(), &zero};
      std::byte* const to[] = {output.data()};
      const uint32_t parts = (*kernel)->PartsFor(cores);
      for (uint32_t part = parts; part > 0; --part) {
        ASSERT_TRUE(
            (*kernel)->RunPart({part - 1, parts}, from, to, scratch).ok());
      }
      ASSERT_EQ(std::memcmp(output.data(), wanted.data(), wanted.size()), 0);
    }
  }
}

TEST(IntegerConvolutionTest, GivesTheBitsOfTheDefinition) {
  constexpr uint32_t kLayers = 200;
  for (uint32_t seed = 1; seed <= kLayers; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    IntegerLayers layers(seed);
    Expect(layers.Next(), {1});
    if (::testing::Test::HasFatalFailure()) return;
  }
}

// Windows of 3x3 as CPUs without a dot product of bytes compute them
// (integer_winograd.cc): tiles that are cut off on both sides, several strips
// of them, blocks of channels that are not full.
TEST(IntegerConvolutionTest, WindowsOfThreeByThree) {
  for (uint32_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    IntegerLayers layers(seed);
    IntegerConvolutionSpec spec = layers.Next();
    const int64_t images = layers.Number(1, 2);
    const int64_t inputs = layers.Number(3, 6) * 4;
    const int64_t outputs = layers.Number(20, 40);
    const int64_t pad = layers.Number(0, 1), left = layers.Number(0, 2);
    const int64_t height = layers.Number(4, 25), width = layers.Number(4, 41);
    spec.groups = 1;
    spec.weights_shape = {outputs, inputs, 3, 3};
    spec.input.shape = {images, inputs, height, width};
    spec.output.shape = {images, outputs, height + 2 * pad - 2,
                         width + left + pad - 2};
    if (!layers.Chance(5)) {
      spec.input.placement.block = static_cast<int>(inputs);
    } else {
      spec.input.placement.block = 1;
    }
    spec.output.placement.block = static_cast<int>(outputs);
    spec.strides = spec.dilations = {1, 1};
    spec.pads_begin = {pad, left};
    spec.pads_end = {pad, pad};
    spec.weights.resize(static_cast<size_t>(outputs * inputs * 9));
    // The ends of the range are frequent.
    for (int16_t& w : spec.weights) {
      w = static_cast<int16_t>(
          std::clamp<int64_t>(layers.Number(-160, 160), -128, 127));
    }
    spec.scale = {3e-5F};
    spec.bias.clear();
    Expect(spec, {1, 3});
    if (::testing::Test::HasFatalFailure()) return;
  }
}

// At one level at least.
bool IsWinograd(const IntegerConvolutionSpec& spec) {
  Graph graph;
  Node node;
  testing::TestWeights weights;
  const std::span<const CpuLevel> levels = UsableCpuLevels();
  return std::any_of(levels.begin(), levels.end(), [&](CpuLevel level) {
    const auto kernel = MakeIntegerConvolution({NodeView(graph, node),
                                                {&spec.input, 1},
                                                {&spec.output, 1},
                                                weights,
                                                1},
                                               spec, level);
    return kernel.ok() && (*kernel)->implementation().ends_with("winograd");
  });
}

// Sums of the last two are too large for that.
TEST(IntegerConvolutionTest, WindowsOfThreeByThreeWithLargestSums) {
  IntegerConvolutionSpec spec;
  for (const auto& [inputs, weight] :
       {std::pair<int64_t, int16_t>{112, 127}, {116, -128}, {200, 127}}) {
    spec.input = {
        DataType::kUint8, {1, inputs, 13, 14}, {static_cast<int>(inputs)}};
    spec.output = {DataType::kInt32, {1, 24, 11, 12}, {24}};
    spec.weights_shape = {24, inputs, 3, 3};
    spec.strides = spec.dilations = {1, 1};
    spec.pads_begin = spec.pads_end = {0, 0};
    spec.weights.assign(static_cast<size_t>(24 * inputs * 9), weight);
    const bool exact = inputs == 112;
    EXPECT_EQ(IsWinograd(spec), exact && UsableCpuLevels().size() > 1);
    Expect(spec, {1});
  }
}

// Large enough to be shared out, by rows or by channels.
TEST(IntegerConvolutionTest, PartsGiveTheSameBits) {
  IntegerConvolutionSpec spec;
  for (const auto& [height, outputs] :
       {std::pair<int64_t, int64_t>{19, 40}, {2, 200}, {1, 64}}) {
    spec.input = {DataType::kUint8, {1, 16, height, 33}, {16}};
    spec.output = {
        DataType::kInt8, {1, outputs, height, 33}, {static_cast<int>(outputs)}};
    spec.weights_shape = {outputs, 16, 3, 3};
    spec.strides = spec.dilations = spec.pads_begin = spec.pads_end = {1, 1};
    spec.weights.assign(static_cast<size_t>(outputs * 16 * 9), 0);
    std::mt19937 random(3);
    for (int16_t& w : spec.weights) {
      w = static_cast<int16_t>(static_cast<int>(random() % 255) - 127);
    }
    spec.input_zero = 117;
    spec.scale = {1e-4F};
    Expect(spec, {1, 2, 3});
  }
}

// Sums of several thousand products at the ends of the range, which 16 bits and
// floats do not hold.
TEST(IntegerConvolutionTest, LargestSumsAreExact) {
  IntegerConvolutionSpec spec;
  for (const int16_t weight : {int16_t{127}, int16_t{-128}, int16_t{-255}}) {
    spec.input = {DataType::kUint8, {1, 4096, 1, 5}, {4096}};
    spec.output = {DataType::kInt32, {1, 20, 1, 5}, {20}};
    spec.weights_shape = {20, 4096, 1, 1};
    spec.strides = spec.dilations = {1, 1};
    spec.pads_begin = spec.pads_end = {0, 0};
    spec.weights.assign(size_t{20} * 4096, weight);
    spec.input_zero = 255;
    Expect(spec, {1});
  }
}

}  // namespace
}  // namespace rknnd::soft
