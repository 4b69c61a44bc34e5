// Convolutions of floats on our own tiles, at every level of CPU that this
// machine has and in every placement, against the definition in doubles.

#include "driver/soft/kernels/convolution/float_convolution.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "driver/soft/kernels/checks.h"
#include "driver/soft/kernels/loops.h"
#include "driver/soft/kernels/testing/one_node.h"
#include "gtest/gtest.h"

namespace rknnd::soft {
namespace {

class Layers {
 public:
  explicit Layers(uint32_t seed) : random_(seed) {}

  int64_t Number(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }
  bool Chance(int64_t of) { return Number(1, of) == 1; }
  float Real() { return static_cast<float>(Number(-1000, 1000)) * 1e-3F; }

  // Of one phase that makes every `step`-th pixel of the output, or all.
  FloatConvolutionSpec Next() {
    FloatConvolutionSpec spec;
    const auto axes = static_cast<size_t>(Chance(4) ? (Chance(2) ? 1 : 3) : 2);
    spec.groups = Chance(3) ? Number(2, 20) : 1;
    const bool depthwise = spec.groups > 1 && Chance(2);
    const int64_t inputs = depthwise ? 1 : Number(1, spec.groups > 1 ? 4 : 40);
    const int64_t outputs =
        depthwise ? 1 : Number(1, spec.groups > 1 || Chance(2) ? 8 : 40);
    spec.input.shape = {Number(1, 2), inputs * spec.groups};
    spec.output.shape = {spec.input.shape[0], outputs * spec.groups};
    ConvolutionPhase phase;
    const int64_t step = Chance(3) ? 2 : 1;
    const int64_t parts = step == 2 && spec.groups == 1 && Chance(2) ? 2 : 1;
    phase.output_first.resize(static_cast<size_t>(parts));
    int64_t taps = 1;
    for (size_t a = 0; a < axes; ++a) {
      phase.kernel.push_back(Number(1, 3));
      phase.strides.push_back(Chance(3) ? 2 : 1);
      phase.dilations.push_back(Chance(4) ? 2 : 1);
      phase.pads.push_back(Number(-1, 3));
      // Of few channels, long rows are computed otherwise.
      const bool is_row = a + 1 == axes && Chance(3);
      phase.outputs.push_back(is_row ? Number(12, 150)
                                     : Number(1, axes == 3 ? 4 : 11));
      phase.output_steps.push_back(step);
      taps *= phase.kernel.back();
      for (size_t p = 0; p < phase.output_first.size(); ++p) {
        phase.output_first[p].push_back(a + 1 == axes ? static_cast<int64_t>(p)
                                                      : 0);
      }
      spec.input.shape.push_back(is_row ? Number(1, 160)
                                        : Number(1, axes == 3 ? 5 : 12));
      spec.output.shape.push_back(phase.outputs.back() * step);
    }
    phase.weights.resize(
        static_cast<size_t>(parts * spec.output.shape[1] * inputs * taps));
    for (float& weight : phase.weights) weight = Real();
    if (Chance(2)) {
      for (int64_t o = 0; o < spec.output.shape[1]; ++o) {
        spec.bias.push_back(Real());
      }
    }
    for (TensorSpec* tensor : {&spec.input, &spec.output}) {
      const int blocks[] = {1, 8, 16, static_cast<int>(tensor->shape[1])};
      tensor->placement.block = blocks[Number(0, 3)];
    }
    spec.phases.push_back(std::move(phase));
    return spec;
  }

 private:
  std::mt19937 random_;
};

// Element (n, c, pixel) of a tensor in its placement.
size_t At(const TensorSpec& spec, int64_t n, int64_t c, int64_t pixel) {
  const int64_t block = spec.placement.block;
  const int64_t blocks = (spec.shape[1] + block - 1) / block;
  const int64_t pixels = ProductOf(spec.shape, 2, spec.shape.size());
  return static_cast<size_t>(
      ((n * blocks + c / block) * pixels + pixel) * block + c % block);
}

// What the definition gives for one pixel of a phase.
double Sum(const FloatConvolutionSpec& spec, const ConvolutionPhase& phase,
           const std::vector<float>& input, int64_t n, int64_t row, int64_t o,
           const Shape& at) {
  const int64_t each = spec.input.shape[1] / spec.groups;
  const int64_t taps = ProductOf(phase.kernel, 0, phase.kernel.size());
  const int64_t first = o / (spec.output.shape[1] / spec.groups) * each;
  double sum = spec.bias.empty() ? 0.0 : spec.bias[static_cast<size_t>(o)];
  for (int64_t k = 0; k < taps; ++k) {
    int64_t rest = k, pixel = 0, step = 1;
    bool inside = true;
    for (size_t a = at.size(); a > 0; --a) {
      const int64_t size = spec.input.shape[a + 1];
      const int64_t place = at[a - 1] * phase.strides[a - 1] -
                            phase.pads[a - 1] +
                            rest % phase.kernel[a - 1] * phase.dilations[a - 1];
      rest /= phase.kernel[a - 1];
      inside = inside && place >= 0 && place < size;
      pixel += place * step;
      step *= size;
    }
    for (int64_t c = 0; inside && c < each; ++c) {
      sum += double{input[At(spec.input, n, first + c, pixel)]} *
             phase.weights[static_cast<size_t>((row * each + c) * taps + k)];
    }
  }
  return sum;
}

struct Wanted {
  int64_t image = 0, channel = 0, pixel = 0;
  double value = 0.0;
};

// All that the first phase makes.
std::vector<Wanted> WantedOf(const FloatConvolutionSpec& spec,
                             const std::vector<float>& input) {
  std::vector<Wanted> all;
  const ConvolutionPhase& phase = spec.phases[0];
  const int64_t made = ProductOf(phase.outputs, 0, phase.outputs.size());
  for (size_t q = 0; q < phase.output_first.size(); ++q) {
    for (int64_t n = 0; n < spec.output.shape[0]; ++n) {
      for (int64_t o = 0; o < spec.output.shape[1]; ++o) {
        for (int64_t p = 0; p < made; ++p) {
          Shape at(phase.outputs.size(), 0);
          int64_t rest = p, pixel = 0, step = 1;
          for (size_t a = at.size(); a > 0; --a) {
            at[a - 1] = rest % phase.outputs[a - 1];
            rest /= phase.outputs[a - 1];
            pixel += (phase.output_first[q][a - 1] +
                      at[a - 1] * phase.output_steps[a - 1]) *
                     step;
            step *= spec.output.shape[a + 1];
          }
          const int64_t row =
              static_cast<int64_t>(q) * spec.output.shape[1] + o;
          all.push_back({n, o, pixel, Sum(spec, phase, input, n, row, o, at)});
        }
      }
    }
  }
  return all;
}

void Expect(const FloatConvolutionSpec& spec, std::mt19937& random) {
  SCOPED_TRACE(absl::StrCat(
      "input ", ShapeText(spec.input.shape), " in blocks of ",
      spec.input.placement.block, ", kernel ", ShapeText(spec.phases[0].kernel),
      ", groups ", spec.groups, ", output ", ShapeText(spec.output.shape),
      " in blocks of ", spec.output.placement.block));
  // Padding holds zeros, as everywhere in the plan.
  std::vector<float> input(spec.input.bytes() / sizeof(float), 0.0F);
  const int64_t pixels =
      ProductOf(spec.input.shape, 2, spec.input.shape.size());
  for (int64_t n = 0; n < spec.input.shape[0]; ++n) {
    for (int64_t c = 0; c < spec.input.shape[1]; ++c) {
      for (int64_t p = 0; p < pixels; ++p) {
        input[At(spec.input, n, c, p)] =
            static_cast<float>(random() % 2001) * 1e-3F - 1.0F;
      }
    }
  }
  const std::vector<Wanted> all_wanted = WantedOf(spec, input);
  Graph graph;
  Node node;
  const NodeView view(graph, node);
  for (const CpuLevel level : UsableCpuLevels()) {
    for (const uint32_t cores : {1U, 3U}) {
      SCOPED_TRACE(absl::StrCat(CpuLevelName(level), ", ", cores, " cores"));
      testing::TestWeights weights;
      const auto kernel = MakeFloatConvolution(
          {view, {&spec.input, 1}, {&spec.output, 1}, weights, cores}, spec,
          level);
      ASSERT_TRUE(kernel.ok()) << kernel.status();
      std::vector<float> output(spec.output.bytes() / sizeof(float), 77.0F);
      std::vector<std::byte> room((*kernel)->scratch_size() + 64,
                                  std::byte{0x7F});
      auto* const scratch = reinterpret_cast<std::byte*>(
          (reinterpret_cast<uintptr_t>(room.data()) + 63) / 64 * 64);
      const std::byte* const from[] = {
          reinterpret_cast<const std::byte*>(input.data())};
      std::byte* const to[] = {reinterpret_cast<std::byte*>(output.data())};
      const uint32_t parts = (*kernel)->PartsFor(cores);
      for (uint32_t part = parts; part > 0; --part) {
        ASSERT_TRUE(parts == 1
                        ? (*kernel)->Run(from, to, scratch).ok()
                        : (*kernel)
                              ->RunPart({part - 1, parts}, from, to, scratch)
                              .ok());
      }
      for (const Wanted& wanted : all_wanted) {
        ASSERT_NEAR(
            output[At(spec.output, wanted.image, wanted.channel, wanted.pixel)],
            wanted.value, 2e-4)
            << "image " << wanted.image << ", channel " << wanted.channel
            << ", pixel " << wanted.pixel;
      }
      // The channels that fill up the last block.
      const int64_t block = spec.output.placement.block;
      const int64_t all =
          ProductOf(spec.output.shape, 2, spec.output.shape.size());
      for (int64_t c = spec.output.shape[1]; c % block != 0; ++c) {
        for (int64_t p = 0; p < all; ++p) {
          ASSERT_EQ(output[At(spec.output, 0, c, p)], 0.0F) << "padding";
        }
      }
    }
  }
}

// As of the operators by themselves: neither is hidden by a bound.
TEST(FloatConvolutionTest, InfinitiesAndWhatIsNoNumberPass) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  FloatConvolutionSpec spec;
  spec.input = spec.output = {DataType::kFloat32, {1, 1, 1, 4}, {}};
  ConvolutionPhase phase;
  phase.kernel = phase.strides = phase.dilations = phase.output_steps = {1, 1};
  phase.pads = {0, 0};
  phase.outputs = {1, 4};
  phase.output_first = {Shape{0, 0}};
  phase.weights = {2.0F};
  spec.phases.push_back(phase);
  const std::vector<float> input = {std::nanf(""), kInfinity, -kInfinity, -3};
  for (const Activation activation :
       {Activation::kNone, Activation::kRelu, Activation::kClip}) {
    Graph graph;
    Node node;
    node.epilogue.activation = activation;
    node.epilogue.beta = kInfinity;  // of Clip, from 0 on
    const NodeView view(graph, node);
    const bool relu = activation != Activation::kNone;
    for (const CpuLevel level : UsableCpuLevels()) {
      SCOPED_TRACE(CpuLevelName(level));
      testing::TestWeights weights;
      const auto kernel = MakeFloatConvolution(
          {view, {&spec.input, 1}, {&spec.output, 1}, weights}, spec, level);
      ASSERT_TRUE(kernel.ok()) << kernel.status();
      std::vector<float> output(4);
      std::vector<std::byte> scratch((*kernel)->scratch_size());
      const std::byte* const from[] = {
          reinterpret_cast<const std::byte*>(input.data())};
      std::byte* const to[] = {reinterpret_cast<std::byte*>(output.data())};
      ASSERT_TRUE((*kernel)->Run(from, to, scratch.data()).ok());
      EXPECT_TRUE(std::isnan(output[0]));
      EXPECT_EQ(output[1], kInfinity);
      EXPECT_EQ(output[2], relu ? 0.0F : -kInfinity);
      EXPECT_EQ(output[3], relu ? 0.0F : -6.0F);
    }
  }
}

TEST(FloatConvolutionTest, IsTheDefinition) {
  constexpr uint32_t kLayers = 150;
  std::mt19937 random(5);
  for (uint32_t seed = 1; seed <= kLayers; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Layers layers(seed);
    Expect(layers.Next(), random);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

// Of sound or text: one row, which the cores have no rows of to share.
TEST(FloatConvolutionTest, OneRowIsSharedBetweenBlocksOfChannels) {
  constexpr int64_t kSteps = 300, kInputs = 20, kOutputs = 100, kTaps = 3;
  std::mt19937 random(7);
  FloatConvolutionSpec spec;
  spec.input = {DataType::kFloat32, {1, kInputs, kSteps}, {}};
  spec.output = {DataType::kFloat32, {1, kOutputs, kSteps}, {}};
  ConvolutionPhase phase;
  phase.kernel = {kTaps};
  phase.strides = phase.output_steps = {1};
  phase.dilations = {8};
  phase.pads = {16};
  phase.outputs = {kSteps};
  phase.output_first = {Shape{0}};
  phase.weights.resize(size_t{kOutputs * kInputs * kTaps});
  for (float& weight : phase.weights) {
    weight = static_cast<float>(random() % 2001) * 1e-3F - 1.0F;
  }
  spec.phases.push_back(phase);
  Graph graph;
  Node node;
  for (const int block : {1, 8, 16}) {
    spec.input.placement.block = spec.output.placement.block = block;
    Expect(spec, random);
    testing::TestWeights weights;
    const auto kernel = MakeFloatConvolution(
        {NodeView(graph, node), {&spec.input, 1}, {&spec.output, 1}, weights},
        spec, CurrentCpuLevel());
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    EXPECT_EQ((*kernel)->PartsFor(3), 3U) << block;
    EXPECT_EQ((*kernel)->PartsFor(8), 4U) << block;
  }
}

}  // namespace
}  // namespace rknnd::soft
