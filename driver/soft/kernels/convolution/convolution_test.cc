// Conv against a plain loop, dense and blocked, with what fusion puts behind
// it; and what a hostile file may say.

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "driver/soft/kernels/loops.h"
#include "driver/soft/kernels/testing/one_node.h"

namespace rknnd::soft {
namespace {

using testing::Noise;
using testing::OneNode;

struct Geometry {
  int64_t batch = 1, channels = 1, height = 1, width = 1, outputs = 1;
  int64_t kernel = 1, stride = 1, pad = 0, dilation = 1, groups = 1;

  [[nodiscard]] int64_t Out(int64_t size) const {
    return (size + 2 * pad - ((kernel - 1) * dilation + 1)) / stride + 1;
  }
  [[nodiscard]] Shape input() const { return {batch, channels, height, width}; }
  [[nodiscard]] Shape weights() const {
    return {outputs, channels / groups, kernel, kernel};
  }
  [[nodiscard]] Shape output() const {
    return {batch, outputs, Out(height), Out(width)};
  }
};

int64_t ElementsIn(const Shape& shape) {
  return ProductOf(shape, 0, shape.size());
}

std::vector<float> Reference(const Geometry& g, const std::vector<float>& x,
                             const std::vector<float>& w,
                             const std::vector<float>& bias) {
  std::vector<float> out;
  const int64_t of_group = g.outputs / g.groups;
  const int64_t inputs = g.channels / g.groups;
  for (int64_t n = 0; n < g.batch; ++n) {
    for (int64_t o = 0; o < g.outputs; ++o) {
      for (int64_t y = 0; y < g.Out(g.height); ++y) {
        for (int64_t c = 0; c < g.Out(g.width); ++c) {
          double sum = bias[static_cast<size_t>(o)];
          for (int64_t i = 0; i < inputs; ++i) {
            for (int64_t k = 0; k < g.kernel * g.kernel; ++k) {
              const int64_t row =
                  y * g.stride - g.pad + k / g.kernel * g.dilation;
              const int64_t column =
                  c * g.stride - g.pad + k % g.kernel * g.dilation;
              if (row < 0 || row >= g.height || column < 0 ||
                  column >= g.width) {
                continue;
              }
              const int64_t channel = o / of_group * inputs + i;
              sum +=
                  double{x[static_cast<size_t>(
                      ((n * g.channels + channel) * g.height + row) * g.width +
                      column)]} *
                  w[static_cast<size_t>((o * inputs + i) * g.kernel * g.kernel +
                                        k)];
            }
          }
          out.push_back(static_cast<float>(sum));
        }
      }
    }
  }
  return out;
}

OneNode Conv(const Geometry& g, const std::vector<float>& x,
             const std::vector<float>& w, const std::vector<float>& bias) {
  OneNode node("Conv");
  node.Values(g.input(), x)
      .Floats(g.weights(), w)
      .Floats({g.outputs}, bias)
      .With("strides", std::vector<int64_t>{g.stride, g.stride})
      .With("pads", std::vector<int64_t>{g.pad, g.pad, g.pad, g.pad})
      .With("dilations", std::vector<int64_t>{g.dilation, g.dilation})
      .With("group", g.groups);
  return node;
}

void ExpectNear(const std::vector<float>& have,
                const std::vector<float>& want) {
  ASSERT_EQ(have.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    ASSERT_NEAR(have[i], want[i], 1e-4) << "element " << i;
  }
}

class ConvolutionTest : public ::testing::TestWithParam<Geometry> {};

TEST_P(ConvolutionTest, EqualsThePlainLoopInEveryPlacement) {
  const Geometry g = GetParam();
  const auto x = Noise(ElementsIn(g.input()), 1),
             w = Noise(ElementsIn(g.weights()), 2);
  const auto bias = Noise(g.outputs, 3);
  const std::vector<float> want = Reference(g, x, w, bias);
  for (const int block : {1, 8, 16}) {
    OneNode node = Conv(g, x, w, bias);
    const auto have = node.Run(block);
    ASSERT_TRUE(have.ok()) << have.status();
    ExpectNear(*have, want);
    EXPECT_TRUE(node.padding_is_zero()) << "block " << block;
  }
}

TEST_P(ConvolutionTest, AddsAndActivatesAfterwards) {
  const Geometry g = GetParam();
  const auto x = Noise(ElementsIn(g.input()), 1),
             w = Noise(ElementsIn(g.weights()), 2);
  const auto bias = Noise(g.outputs, 3),
             added = Noise(ElementsIn(g.output()), 4);
  std::vector<float> want = Reference(g, x, w, bias);
  const struct {
    Activation activation;
    float alpha, beta;
    double (*function)(double);
  } cases[] = {
      {Activation::kNone, 0, 0, [](double v) { return v; }},
      {Activation::kRelu, 0, 0, [](double v) { return std::fmax(v, 0); }},
      {Activation::kClip, -0.5F, 0.5F,
       [](double v) { return std::fmin(std::fmax(v, -0.5), 0.5); }},
      {Activation::kClip, 0.25F, 0.5F,
       [](double v) { return std::fmin(std::fmax(v, 0.25), 0.5); }},
      {Activation::kSigmoid, 0, 0,
       [](double v) { return 1 / (1 + std::exp(-v)); }},
      {Activation::kSwish, 0, 0,
       [](double v) { return v / (1 + std::exp(-v)); }},
  };
  for (const auto& c : cases) {
    for (const int block : {1, 8, 16}) {
      OneNode node = Conv(g, x, w, bias);
      node.Plus(g.output(), added).Then(c.activation, c.alpha, c.beta);
      const auto have = node.Run(block);
      ASSERT_TRUE(have.ok()) << have.status();
      for (size_t i = 0; i < want.size(); ++i) {
        ASSERT_NEAR((*have)[i], c.function(double{want[i]} + added[i]), 1e-4)
            << "element " << i << " block " << block;
      }
      EXPECT_TRUE(node.padding_is_zero()) << "block " << block;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Geometries, ConvolutionTest,
                         ::testing::Values(Geometry{.channels = 3,
                                                    .height = 9,
                                                    .width = 11,
                                                    .outputs = 24,
                                                    .kernel = 3,
                                                    .stride = 2,
                                                    .pad = 1},
                                           Geometry{.batch = 2,
                                                    .channels = 20,
                                                    .height = 6,
                                                    .width = 5,
                                                    .outputs = 12},
                                           Geometry{.channels = 32,
                                                    .height = 7,
                                                    .width = 7,
                                                    .outputs = 48,
                                                    .kernel = 3,
                                                    .pad = 2,
                                                    .dilation = 2},
                                           Geometry{.channels = 24,
                                                    .height = 8,
                                                    .width = 6,
                                                    .outputs = 24,
                                                    .kernel = 3,
                                                    .stride = 2,
                                                    .pad = 1,
                                                    .groups = 24},
                                           Geometry{.channels = 12,
                                                    .height = 5,
                                                    .width = 5,
                                                    .outputs = 6,
                                                    .kernel = 3,
                                                    .groups = 3},
                                           Geometry{.channels = 32,
                                                    .height = 5,
                                                    .width = 5,
                                                    .outputs = 64,
                                                    .kernel = 3,
                                                    .pad = 1,
                                                    .groups = 2},
                                           Geometry{.channels = 5,
                                                    .height = 4,
                                                    .width = 4,
                                                    .outputs = 7,
                                                    .kernel = 3,
                                                    .pad = 4}));

TEST(ConvolutionTest, WeightsMayComeWithEachRun) {
  const Geometry g{.channels = 20,
                   .height = 6,
                   .width = 6,
                   .outputs = 9,
                   .kernel = 3,
                   .pad = 1};
  const auto x = Noise(ElementsIn(g.input()), 1),
             w = Noise(ElementsIn(g.weights()), 2);
  const auto have = OneNode("Conv")
                        .Values(g.input(), x)
                        .Values(g.weights(), w)
                        .With("pads", std::vector<int64_t>{1, 1, 1, 1})
                        .Run(16);
  ASSERT_TRUE(have.ok()) << have.status();
  ExpectNear(*have, Reference(g, x, w, std::vector<float>(9, 0.0F)));
}

TEST(ConvolutionTest, MoreThreadsThanSetsShareAKernel) {
  const Geometry g{.channels = 16,
                   .height = 8,
                   .width = 8,
                   .outputs = 16,
                   .kernel = 3,
                   .pad = 1};
  const auto x = Noise(ElementsIn(g.input()), 1),
             w = Noise(ElementsIn(g.weights()), 2);
  const auto bias = Noise(16, 3);
  const std::vector<float> want = Reference(g, x, w, bias);
  OneNode node = Conv(g, x, w, bias);
  const auto kernel = node.Make();
  ASSERT_TRUE(kernel.ok()) << kernel.status();

  std::vector<std::vector<float>> have(9, std::vector<float>(want.size()));
  std::vector<std::thread> threads;
  for (std::vector<float>& out : have) {
    threads.emplace_back([&] {
      std::vector<std::byte> scratch((*kernel)->scratch_size() + 64);
      std::byte* aligned =
          scratch.data() +
          (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64) % 64;
      const std::byte* inputs[] = {reinterpret_cast<const std::byte*>(x.data()),
                                   nullptr, nullptr};
      std::byte* outputs[] = {reinterpret_cast<std::byte*>(out.data())};
      for (int i = 0; i < 20; ++i) {
        EXPECT_TRUE((*kernel)->Run(inputs, outputs, aligned).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();

  for (const std::vector<float>& out : have) ExpectNear(out, want);
}

TEST(ConvolutionTest, HostileAttributesAreRefused) {
  const auto refused = [](const char* name, Attribute value) {
    return !OneNode("Conv")
                .Values({1, 4, 8, 8}, {})
                .Floats({4, 4, 3, 3}, Noise(144))
                .With(name, std::move(value))
                .Infer()
                .ok();
  };
  using Ints = std::vector<int64_t>;
  EXPECT_TRUE(refused("strides", Ints{0, 1}));
  EXPECT_TRUE(refused("strides", Ints{-1, 1}));
  EXPECT_TRUE(refused("strides", Ints{1}));
  EXPECT_TRUE(refused("strides", Ints{INT64_MAX, 1}));
  EXPECT_TRUE(refused("dilations", Ints{INT64_MAX, INT64_MAX}));
  EXPECT_TRUE(refused("dilations", Ints{100, 1}));
  EXPECT_TRUE(refused("pads", Ints{-5, -5, -5, -5}));
  EXPECT_TRUE(refused("pads", Ints{INT64_MAX, 0, INT64_MAX, 0}));
  EXPECT_TRUE(refused("kernel_shape", Ints{5, 5}));
  EXPECT_TRUE(refused("group", int64_t{0}));
  EXPECT_TRUE(refused("group", int64_t{-1}));
  EXPECT_TRUE(refused("group", int64_t{3}));
  EXPECT_TRUE(refused("auto_pad", std::string("SIDEWAYS")));
}

TEST(ConvolutionTest, KernelLargerThanItsInputIsRefusedByName) {
  const auto inferred = OneNode("Conv")
                            .Values({1, 4, 2, 2}, {})
                            .Floats({4, 4, 3, 3}, Noise(144))
                            .Infer();
  ASSERT_FALSE(inferred.ok());
  EXPECT_NE(inferred.status().message().find("Conv 'it'"), std::string::npos);
}

}  // namespace
}  // namespace rknnd::soft
