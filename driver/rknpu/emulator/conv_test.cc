// Convolutions by hand-made programs, against sums that the test computes by
// itself from maps and weights in their logical order.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <ostream>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "driver/rknpu/emulator/emulator.h"
#include "driver/rknpu/emulator/testing/arena.h"
#include "driver/rknpu/emulator/testing/task_builder.h"
#include "driver/rknpu/file/testing/shared_programs.h"

namespace rknnd::rknpu {
namespace {

using testing::Arena;
using testing::ConvShape;
using testing::ConvTask;
using testing::Map;
using testing::ReadShared;
using testing::RegisterValues;
using testing::TaskProgram;

constexpr uint32_t kInput = Arena::kBase, kWeights = kInput + 0x20000,
                   kCoefficients = kInput + 0x40000, kOutput = kInput + 0x50000,
                   kOperand = kInput + 0x70000, kCommands = 0x08000000;

int64_t Rounded(int64_t v, int n) {
  return n == 0 ? v : (v + (int64_t{1} << (n - 1))) >> n;
}

int8_t Clip(int64_t v) {
  return static_cast<int8_t>(std::clamp<int64_t>(v, -128, 127));
}

// What the test multiplies and adds, in logical order.
struct Layer {
  std::vector<int8_t> weights;  // [kernel][channel][y][x]
  std::vector<int32_t> bias;
  std::vector<int16_t> ow, mul;
};

Layer RandomLayer(const ConvShape& shape, std::mt19937& random) {
  std::uniform_int_distribution<int> byte(-128, 127), small(-40, 40),
      bias(-20000, 20000), mul(1000, 32767);
  Layer layer;
  const uint32_t kernels = shape.depthwise ? shape.channels : shape.kernels;
  const uint32_t each = (shape.depthwise ? 1 : shape.channels) *
                        shape.kernel_width * shape.kernel_height;
  for (uint32_t i = 0; i < kernels * each; ++i) {
    layer.weights.push_back(static_cast<int8_t>(byte(random)));
  }
  for (uint32_t i = 0; i < shape.out_channels; ++i) {
    layer.bias.push_back(bias(random));
    layer.ow.push_back(static_cast<int16_t>(small(random)));
    layer.mul.push_back(static_cast<int16_t>(mul(random)));
  }
  return layer;
}

void PutWeights(Arena& arena, const ConvShape& shape, const Layer& layer) {
  const uint32_t taps = shape.kernel_width * shape.kernel_height;
  std::vector<int8_t> stored;
  if (shape.depthwise) {
    for (uint32_t c0 = 0; c0 < shape.channels; c0 += 64) {
      const uint32_t left = shape.channels - c0;
      const uint32_t group = left > 32 ? 64 : left > 16 ? 32 : 16;
      for (uint32_t t = 0; t < taps; ++t) {
        for (uint32_t c = c0; c < c0 + group; ++c) {
          stored.push_back(c < shape.channels ? layer.weights[c * taps + t]
                                              : int8_t{77});
        }
      }
    }
  } else {
    for (uint32_t o0 = 0; o0 < shape.kernels; o0 += 32) {
      for (uint32_t c0 = 0; c0 < shape.channels; c0 += 32) {
        for (uint32_t t = 0; t < taps; ++t) {
          for (uint32_t o = o0; o < std::min(o0 + 32, shape.kernels); ++o) {
            for (uint32_t c = c0; c < std::min(c0 + 32, shape.channels); ++c) {
              stored.push_back(
                  layer.weights[(o * shape.channels + c) * taps + t]);
            }
          }
        }
      }
    }
  }
  arena.Put<int8_t>(kWeights, stored);
}

void PutCoefficients(Arena& arena, const Layer& layer) {
  uint32_t at = kCoefficients;
  for (size_t first = 0; first < layer.bias.size(); first += 8, at += 64) {
    arena.Put<int32_t>(at, std::span(layer.bias).subspan(first, 8));
    arena.Put<int16_t>(at + 32, std::span(layer.ow).subspan(first, 8));
    arena.Put<int16_t>(at + 48, std::span(layer.mul).subspan(first, 8));
  }
}

// The value that a window's tap meets: of the map, or the pad value.
int Meets(const ConvShape& shape, const Map& map, uint32_t c, int y, int x) {
  const int spread_y = static_cast<int>(shape.spread_y),
            spread_x = static_cast<int>(shape.spread_x);
  const bool inside = y >= 0 && x >= 0 && y % spread_y == 0 &&
                      x % spread_x == 0 &&
                      y / spread_y < static_cast<int>(map.height) &&
                      x / spread_x < static_cast<int>(map.width);
  if (inside) {
    return map.At(c, static_cast<uint32_t>(y / spread_y),
                  static_cast<uint32_t>(x / spread_x));
  }
  const bool upper = shape.depthwise && c < 32 && c % 2 == 1;
  return static_cast<int8_t>(upper ? shape.pad >> 8 : shape.pad);
}

// Sums, ow, bias and multiplier with a shift of 14.
int64_t Value(const ConvShape& shape, const Map& map, const Layer& layer,
              uint32_t o, uint32_t y, uint32_t x) {
  int64_t sum = 0;
  const uint32_t taps = shape.kernel_width * shape.kernel_height;
  const bool has_weights =
      o < (shape.depthwise ? shape.channels : shape.kernels);
  const uint32_t first = shape.depthwise ? o : 0;
  const uint32_t last =
      shape.depthwise ? (has_weights ? o + 1 : o) : shape.channels;
  for (uint32_t c = first; c < last; ++c) {
    for (uint32_t t = 0; t < taps; ++t) {
      const int value =
          Meets(shape, map, c,
                static_cast<int>(y * shape.stride_y + t / shape.kernel_width) -
                    static_cast<int>(shape.pad_top),
                static_cast<int>(x * shape.stride_x + t % shape.kernel_width) -
                    static_cast<int>(shape.pad_left));
      const int weight =
          !has_weights ? 0
          : shape.depthwise
              ? layer.weights[o * taps + t]
              : layer.weights[(o * shape.channels + c) * taps + t];
      sum += (weight + layer.ow[o]) * value;
    }
  }
  return Rounded((sum + layer.bias[o]) * layer.mul[o], 14);
}

absl::Status RunTask(Arena& arena, uint32_t mask,
                     const RegisterValues& registers, Engine engine) {
  TaskProgram program(kCommands);
  program.Add(mask, registers);
  program.Finish(arena.memory());
  Machine machine;
  const std::span<const Task> tasks = program.tasks();
  RunOptions options;
  options.engine = engine;
  std::vector<TaskReport> report;
  options.report = &report;
  const absl::Status status = machine.Run(arena.memory(), {{tasks}}, options);
  EXPECT_TRUE(arena.memory().Detach(kCommands).ok());
  return status;
}

struct Case {
  const char* name;
  ConvShape shape;
};

void PrintTo(const Case& one, std::ostream* to) { *to << one.name; }

ConvShape Placed(ConvShape shape) {
  shape.input = kInput;
  shape.weights = kWeights;
  shape.coefficients = kCoefficients;
  shape.output = kOutput;
  return shape;
}

const Case kCases[] = {
    {"Pointwise",
     {.width = 5,
      .height = 4,
      .channels = 48,
      .kernels = 40,
      .out_width = 5,
      .out_height = 4,
      .out_channels = 64}},
    {"ThreeByThreePadded",
     {.width = 7,
      .height = 6,
      .channels = 32,
      .kernels = 16,
      .kernel_width = 3,
      .kernel_height = 3,
      .pad_left = 1,
      .pad_top = 1,
      .pad = 0xfffffff3,
      .out_width = 7,
      .out_height = 6}},
    {"StrideTwoFiveByThree",
     {.width = 9,
      .height = 8,
      .channels = 16,
      .grouped_lines = false,
      .kernels = 33,
      .kernel_width = 5,
      .kernel_height = 3,
      .stride_x = 2,
      .stride_y = 2,
      .pad_left = 2,
      .pad_top = 1,
      .pad = 17,
      .out_width = 5,
      .out_height = 4,
      .out_channels = 64}},
    {"FewLines",
     {.width = 6,
      .height = 2,
      .channels = 32,
      .kernels = 2,
      .out_width = 6,
      .out_height = 2}},
    {"FullyConnected", {.channels = 144, .kernels = 100, .out_channels = 128}},
    {"Depthwise",
     {.width = 6,
      .height = 5,
      .channels = 80,
      .kernel_width = 3,
      .kernel_height = 3,
      .depthwise = true,
      .pad_left = 1,
      .pad_top = 1,
      .pad = 0x07f9,
      .out_width = 6,
      .out_height = 5,
      .out_channels = 128}},
    {"DepthwiseStride",
     {.width = 8,
      .height = 8,
      .channels = 48,
      .kernel_width = 5,
      .kernel_height = 5,
      .depthwise = true,
      .stride_x = 2,
      .stride_y = 2,
      .pad_left = 2,
      .pad_top = 2,
      .pad = 0x8080,
      .out_width = 4,
      .out_height = 4,
      .out_channels = 64}},
    {"Transposed",
     {.width = 5,
      .height = 4,
      .channels = 32,
      .kernels = 24,
      .kernel_width = 2,
      .kernel_height = 2,
      .spread_x = 2,
      .spread_y = 2,
      .pad_left = 1,
      .pad_top = 1,
      .pad = 0xffffff85,
      .out_width = 10,
      .out_height = 8}},
    {"Expanded",
     {.channels = 32,
      .kernels = 32,
      .stride_x = 0,
      .stride_y = 0,
      .out_width = 7,
      .out_height = 5}},
};

class ConvTest : public ::testing::TestWithParam<std::tuple<Case, Engine>> {};

TEST_P(ConvTest, SumsAreThoseOfTheDefinition) {
  const ConvShape shape = Placed(std::get<0>(GetParam()).shape);
  std::mt19937 random(7);
  Map map(shape.channels, shape.height, shape.width);
  map.Fill(random);
  const Layer layer = RandomLayer(shape, random);
  Arena arena(0x80000);
  arena.PutMap(kInput, map);
  PutWeights(arena, shape, layer);
  PutCoefficients(arena, layer);
  RegisterValues registers = ConvTask(shape);
  registers[0x4060] = 0x92;  // at least 0, at most 20000
  registers[0x406c] = 20000;
  registers[0x4080] = static_cast<uint32_t>(-100);
  registers[0x4084] = 40000;
  registers[0x4088] = 22;

  const absl::Status status =
      RunTask(arena, testing::kConvMask, registers, std::get<1>(GetParam()));

  ASSERT_TRUE(status.ok()) << status;
  const Map output = arena.GetMap(kOutput, shape.out_channels, shape.out_height,
                                  shape.out_width);
  std::set<int> seen;
  for (uint32_t o = 0; o < shape.out_channels; ++o) {
    for (uint32_t y = 0; y < shape.out_height; ++y) {
      for (uint32_t x = 0; x < shape.out_width; ++x) {
        const int64_t value =
            std::clamp<int64_t>(Value(shape, map, layer, o, y, x), 0, 20000);
        const int8_t expected = Clip(Rounded(value * 40000, 22) - 100);
        ASSERT_EQ(int{output.At(o, y, x)}, int{expected})
            << "channel " << o << ", line " << y << ", pixel " << x;
        seen.insert(expected);
      }
    }
  }
  EXPECT_GT(seen.size(), 8U) << "the numbers say little";
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, ConvTest,
    ::testing::Combine(::testing::ValuesIn(kCases),
                       ::testing::Values(Engine::kPlain, Engine::kFast)),
    [](const auto& instance) {
      return std::string(std::get<0>(instance.param).name) +
             (std::get<1>(instance.param) == Engine::kPlain ? "Plain" : "Fast");
    });

// 13 pixels of 3 channels lie 16 apart from line to line.
TEST(ConvTaskTest, ImagesHavePixelsThatLieTogether) {
  const ConvShape shape = Placed({.width = 13,
                                  .height = 6,
                                  .channels = 16,
                                  .interleaved = 3,
                                  .kernels = 8,
                                  .kernel_width = 3,
                                  .kernel_height = 3,
                                  .pad_left = 1,
                                  .pad_top = 1,
                                  .pad = 0xfffffff0,
                                  .out_width = 13,
                                  .out_height = 6});
  std::mt19937 random(3);
  Map map(3, 6, 13);
  map.Fill(random);
  Layer layer = RandomLayer(shape, random);
  // Channels that the image has not weigh nothing: zero point of the weights.
  Map whole(16, 6, 13);
  for (uint32_t c = 0; c < 3; ++c) {
    for (uint32_t p = 0; p < 6 * 13; ++p) {
      whole.values[c * 78 + p] = map.values[c * 78 + p];
    }
  }
  for (uint32_t o = 0; o < 8; ++o) {
    for (uint32_t i = 27; i < 144; ++i) {
      layer.weights[o * 144 + i] = static_cast<int8_t>(-layer.ow[o]);
    }
  }
  for (size_t o = 8; o < 32; ++o) layer.ow[o] = 0;
  for (const Engine engine : {Engine::kPlain, Engine::kFast}) {
    Arena arena(0x80000);
    for (uint32_t y = 0; y < 6; ++y) {
      for (uint32_t x = 0; x < 13; ++x) {
        for (uint32_t c = 0; c < 3; ++c) {
          *arena.At(kInput + (y * 16 + x) * 3 + c) =
              static_cast<std::byte>(map.At(c, y, x));
        }
      }
    }
    PutWeights(arena, shape, layer);
    PutCoefficients(arena, layer);
    RegisterValues registers = ConvTask(shape);
    registers[0x4084] = 3000;
    registers[0x4088] = 20;

    const absl::Status status =
        RunTask(arena, testing::kConvMask, registers, engine);

    ASSERT_TRUE(status.ok()) << status;
    const Map output = arena.GetMap(kOutput, 32, 6, 13);
    for (uint32_t o = 0; o < 32; ++o) {
      for (uint32_t y = 0; y < 6; ++y) {
        for (uint32_t x = 0; x < 13; ++x) {
          ASSERT_EQ(int{output.At(o, y, x)},
                    int{Clip(Rounded(Value(shape, whole, layer, o, y, x) * 3000,
                                     20))})
              << o << " " << y << " " << x;
        }
      }
    }
  }
}

// The operand of a convolution lies in two interleaved rows of surfaces.
TEST(ConvTaskTest, OperandSurfacesAlternateBetweenTwoAddresses) {
  const ConvShape shape = Placed({.width = 4,
                                  .height = 3,
                                  .channels = 16,
                                  .kernels = 64,
                                  .out_width = 4,
                                  .out_height = 3,
                                  .out_channels = 64});
  std::mt19937 random(11);
  Map map(16, 3, 4), operand(64, 3, 4);
  map.Fill(random);
  operand.Fill(random);
  const Layer layer = RandomLayer(shape, random);
  for (const Engine engine : {Engine::kPlain, Engine::kFast}) {
    Arena arena(0x80000);
    arena.PutMap(kInput, map);
    arena.PutMap(kOperand, operand);
    PutWeights(arena, shape, layer);
    PutCoefficients(arena, layer);
    RegisterValues registers = ConvTask(shape);
    registers[0x4070] = 0x904200c0;  // add, ReLU
    registers[0x4074] = static_cast<uint32_t>(-9);
    registers[0x4078] = 3 << 16 | 555;
    registers[0x4084] = 9000;
    registers[0x4088] = 20;
    registers[0x5018] = kOperand;
    registers[0x5034] = 0x40000004;
    registers[0x5038] = kOperand + 192;
    registers[0x5040] = 192;
    registers[0x5044] = 0x7d00;
    registers[0x506c] = 192;

    const absl::Status status =
        RunTask(arena, testing::kConvMask, registers, engine);

    ASSERT_TRUE(status.ok()) << status;
    const Map output = arena.GetMap(kOutput, 64, 3, 4);
    for (uint32_t o = 0; o < 64; ++o) {
      for (uint32_t y = 0; y < 3; ++y) {
        for (uint32_t x = 0; x < 4; ++x) {
          const int64_t e = Rounded((operand.At(o, y, x) - 9) * 555, 3);
          const int64_t v =
              std::max<int64_t>(Value(shape, map, layer, o, y, x) + e, 0);
          ASSERT_EQ(int{output.At(o, y, x)}, int{Clip(Rounded(v * 9000, 20))})
              << o << " " << y << " " << x;
        }
      }
    }
  }
}

// Bilinear resize: each line of the convolution is a group of surfaces of the
// writer, which puts its pixels two apart.
TEST(ConvTaskTest, LinesAndPixelsMayLandApart) {
  const ConvShape shape = Placed({.width = 4,
                                  .height = 3,
                                  .channels = 64,
                                  .kernel_width = 2,
                                  .kernel_height = 2,
                                  .depthwise = true,
                                  .out_width = 3,
                                  .out_height = 2,
                                  .out_channels = 64});
  std::mt19937 random(5);
  Map map(64, 3, 4);
  map.Fill(random);
  Layer layer = RandomLayer(shape, random);
  constexpr uint32_t kLine = 6 * 16, kSurface = 4 * kLine;
  for (const Engine engine : {Engine::kPlain, Engine::kFast}) {
    Arena arena(0x80000);
    arena.PutMap(kInput, map);
    PutWeights(arena, shape, layer);
    PutCoefficients(arena, layer);
    RegisterValues registers = ConvTask(shape);
    registers[0x4058] = 64 * 2 - 1;
    registers[0x405c] = 2 << 16;  // one wide, three high
    registers[0x4038] = 1 << 16 | 1;
    registers[0x4024] = kSurface;
    registers[0x40c0] = 2 * kLine;
    registers[0x4084] = 9000;
    registers[0x4088] = 20;

    const absl::Status status =
        RunTask(arena, testing::kConvMask, registers, engine);

    ASSERT_TRUE(status.ok()) << status;
    const Map output = arena.GetMap(kOutput, 64, 4, 6);
    for (uint32_t c = 0; c < 64; ++c) {
      for (uint32_t y = 0; y < 4; ++y) {
        for (uint32_t x = 0; x < 6; ++x) {
          const bool written = y % 2 == 0 && x % 2 == 0;
          const int64_t value =
              written ? Value(shape, map, layer, c, y / 2, x / 2) : 0;
          ASSERT_EQ(int{output.At(c, y, x)},
                    int{Clip(Rounded(value * 9000, 20))})
              << c << " " << y << " " << x;
        }
      }
    }
  }
}

TEST(ConvTaskTest, DepthwiseVectorRecordedOnABoard) {
  const std::vector<std::byte> input =
      ReadShared("vectors/dw_silicon_in_i8_nc1hwc2.bin");
  if (input.empty()) GTEST_SKIP() << "no ../shared (set RKNND_SHARED)";
  const ConvShape shape = Placed({.width = 8,
                                  .height = 8,
                                  .channels = 64,
                                  .kernel_width = 3,
                                  .kernel_height = 3,
                                  .depthwise = true,
                                  .pad_left = 1,
                                  .pad_top = 1,
                                  .pad = 0x7e,
                                  .out_width = 8,
                                  .out_height = 8,
                                  .out_channels = 64});
  for (const Engine engine : {Engine::kPlain, Engine::kFast}) {
    Arena arena(0x80000);
    arena.Put<std::byte>(kInput, input);
    arena.Put<std::byte>(kWeights,
                         ReadShared("vectors/dw_silicon_weights_i8.bin"));
    arena.Put<std::byte>(kCoefficients,
                         ReadShared("vectors/dw_silicon_bias_i32.bin"));
    RegisterValues registers = ConvTask(shape);
    registers[0x4010] = 0;
    registers[0x4040] = 0x20150;
    registers[0x4048] = 0;
    registers[0x4050] = 0x36c;
    registers[0x4054] = 128;
    registers[0x501c] = 2;
    registers[0x4080] = static_cast<uint32_t>(-123);
    registers[0x4084] = 17675;
    registers[0x4088] = 22;

    const absl::Status status =
        RunTask(arena, testing::kConvMask, registers, engine);

    ASSERT_TRUE(status.ok()) << status;
    const std::vector<std::byte> expected =
        ReadShared("vectors/dw_silicon_out_i8_nc1hwc2.bin");
    ASSERT_EQ(expected.size(), 4096U);
    EXPECT_EQ(
        std::vector<std::byte>(arena.At(kOutput), arena.At(kOutput) + 4096),
        expected);
  }
}

}  // namespace
}  // namespace rknnd::rknpu
