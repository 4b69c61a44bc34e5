// Every level of this CPU against plain loops: those of bytes to the bit, those
// of floats within a few roundings. On Arm both levels where the CPU has dot
// products; on x86 the level in force, of which CPU_LEVELS has all.

#include "driver/soft/tiles/tile_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace rknnd::soft {
namespace {

std::vector<CpuLevel> Levels() {
  std::vector<CpuLevel> levels = {CpuLevel::kPortable};
  const CpuLevel current = CurrentCpuLevel();
  if (current == CpuLevel::kNeonDot) levels.push_back(CpuLevel::kNeon);
  if (current != CpuLevel::kPortable) levels.push_back(current);
  return levels;
}

// Pixels that follow each other, of windows of `runs` stretches of `cells`
// cells, for `channels` output channels.
struct Shape {
  size_t pixels = 0, runs = 0, cells = 0, channels = 0;
};

std::vector<Shape> Shapes(std::mt19937* random) {
  std::vector<Shape> shapes = {{1, 1, 1, 1},   {7, 3, 2, 32}, {13, 9, 4, 17},
                               {64, 1, 33, 8}, {5, 2, 3, 31}, {6, 1, 64, 16}};
  for (int i = 0; i < 40; ++i) {
    shapes.push_back({1 + (*random)() % 20, 1 + (*random)() % 5,
                      1 + (*random)() % 12, 1 + (*random)() % kChannelBlock});
  }
  return shapes;
}

// What a tile reads and writes, with addresses into it.
struct Work {
  std::vector<const std::byte*> pixels;
  std::vector<ptrdiff_t> offsets;
  std::vector<float> bias, scale;
  std::vector<int32_t> start;
  Tile tile;
  TileEpilogue epilogue;

  // Runs overlap those of the next pixel, as windows do.
  Work(const Shape& shape, const std::byte* activations, size_t cell_bytes,
       const std::byte* weights, std::mt19937* random) {
    const size_t step = shape.cells * cell_bytes;
    for (size_t p = 0; p < shape.pixels; ++p) {
      pixels.push_back(activations + p * step);
    }
    for (size_t r = 0; r < shape.runs; ++r) {
      offsets.push_back(static_cast<ptrdiff_t>(r * step));
    }
    std::uniform_real_distribution<float> numbers(-1.0F, 1.0F);
    for (size_t c = 0; c < kChannelBlock + kMaxLanes; ++c) {
      start.push_back(static_cast<int32_t>((*random)() % 2001) - 1000);
      bias.push_back(numbers(*random) * 500.0F);
      scale.push_back(numbers(*random) * 0.01F);
    }
    tile.pixels = pixels.data();
    tile.count = shape.pixels;
    tile.offsets = offsets.data();
    tile.runs = shape.runs;
    tile.cells = shape.cells;
    tile.weights = weights;
    tile.weight_step = kChannelBlock * kWeightCell;
    tile.channels = shape.channels;
    epilogue.bias = bias.data();
    epilogue.scale = scale.data();
    epilogue.slope = 0.25F;
    epilogue.low = -128.0F;
    epilogue.high = 127.0F;
  }
};

TEST(TileKernelsTest, TilesOfBytesAreTheSameToTheBitAtEachLevel) {
  std::mt19937 random(20);  // NOLINT: the same numbers each time
  for (const Shape& shape : Shapes(&random)) {
    const size_t bytes =
        (shape.pixels + shape.runs) * shape.cells * kWeightCell;
    std::vector<std::byte> given(bytes);
    for (std::byte& byte : given) byte = static_cast<std::byte>(random());
    std::vector<int8_t> weights(
        shape.runs * shape.cells * kChannelBlock * kWeightCell + kWeightSlack);
    for (int8_t& weight : weights) weight = static_cast<int8_t>(random());
    const bool is_signed = random() % 2 != 0;
    for (const CpuLevel level : Levels()) {
      const ByteKernels& kernels = ByteKernelsFor(level);
      const size_t cell = CellBytes(kernels.form);
      std::vector<std::byte> activations(bytes * SizeOf(kernels.form) +
                                         kWeightSlack);
      kernels.convert(given.data(), is_signed, bytes, activations.data());
      std::mt19937 same(7);  // NOLINT
      Work work(shape, activations.data(), cell,
                reinterpret_cast<const std::byte*>(weights.data()), &same);
      work.epilogue.start = work.start.data();
      std::vector<int8_t> out(shape.pixels * shape.channels + 1, 99);
      std::vector<int32_t> sums(shape.pixels * shape.channels + 1, 99);
      work.tile.output = reinterpret_cast<std::byte*>(out.data());
      work.tile.output_step = shape.channels;
      kernels.tile(work.tile, work.epilogue);
      work.tile.output = reinterpret_cast<std::byte*>(sums.data());
      work.tile.output_step = shape.channels * sizeof(int32_t);
      work.epilogue.output = TileOutput::kSum;
      kernels.tile(work.tile, work.epilogue);

      const int shift = kernels.form == TileForm::kUnsigned && is_signed  ? 128
                        : kernels.form == TileForm::kSigned && !is_signed ? -128
                                                                          : 0;
      for (size_t p = 0; p < shape.pixels; ++p) {
        for (size_t c = 0; c < shape.channels; ++c) {
          int32_t sum = work.start[c];
          for (size_t r = 0; r < shape.runs; ++r) {
            for (size_t k = 0; k < shape.cells * kWeightCell; ++k) {
              const std::byte byte =
                  given[(p + r) * shape.cells * kWeightCell + k];
              const int x = is_signed ? static_cast<int8_t>(byte)
                                      : static_cast<uint8_t>(byte);
              const size_t at = r * shape.cells + k / kWeightCell;
              sum +=
                  (x + shift) * weights[(at * kChannelBlock + c) * kWeightCell +
                                        k % kWeightCell];
            }
          }
          const size_t at = p * shape.channels + c;
          ASSERT_EQ(sums[at], sum) << kernels.name << " channel " << c;
          float steps =
              (static_cast<float>(sum) + work.bias[c]) * work.scale[c];
          if (steps < 0.0F) steps *= work.epilogue.slope;
          steps = std::min(std::max(steps, -128.0F), 127.0F);
          ASSERT_EQ(out[at], static_cast<int8_t>(std::nearbyint(steps)))
              << kernels.name << " channel " << c << " steps " << steps;
        }
      }
      EXPECT_EQ(out.back(), 99) << kernels.name;
      EXPECT_EQ(sums.back(), 99) << kernels.name;
    }
  }
}

// The same tile into an output in which fewer channels lie together, in blocks
// of all pixels: `dense` has them all together.
void ExpectTogether(const FloatKernels& kernels, Work work,
                    const std::vector<float>& dense) {
  const size_t channels = work.tile.channels, pixels = work.tile.count;
  const size_t together = kernels.lanes;
  const size_t blocks = (channels + together - 1) / together;
  std::vector<float> out(blocks * pixels * together, 99.0F);
  work.tile.output = reinterpret_cast<std::byte*>(out.data());
  work.tile.output_step = together * sizeof(float);
  work.tile.together = together;
  work.tile.together_step = pixels * together * sizeof(float);
  kernels.tile(work.tile, work.epilogue);
  for (size_t c = 0; c < blocks * together; ++c) {
    for (size_t p = 0; p < pixels; ++p) {
      const float value =
          out[(c / together * pixels + p) * together + c % together];
      ASSERT_EQ(value, c < channels ? dense[p * channels + c] : 99.0F)
          << kernels.name << " channel " << c;
    }
  }
}

TEST(TileKernelsTest, TilesOfFloatsAreNearPlainSumsAtEachLevel) {
  std::mt19937 random(21);  // NOLINT
  std::uniform_real_distribution<float> numbers(-1.0F, 1.0F);
  for (const Shape& shape : Shapes(&random)) {
    std::vector<float> given((shape.pixels + shape.runs) * shape.cells +
                             kWeightSlack);
    for (float& number : given) number = numbers(random);
    std::vector<float> weights(shape.runs * shape.cells * kChannelBlock +
                               kWeightSlack);
    for (float& number : weights) number = numbers(random);
    for (const CpuLevel level : Levels()) {
      const FloatKernels& kernels = FloatKernelsFor(level);
      std::mt19937 same(7);  // NOLINT
      Work work(shape, reinterpret_cast<const std::byte*>(given.data()),
                CellBytes(TileForm::kFloat),
                reinterpret_cast<const std::byte*>(weights.data()), &same);
      work.epilogue.output = TileOutput::kFloat;
      work.epilogue.slope = 1.0F;
      std::vector<float> out(shape.pixels * shape.channels + 1, 99.0F);
      work.tile.output = reinterpret_cast<std::byte*>(out.data());
      work.tile.output_step = shape.channels * sizeof(float);
      kernels.tile(work.tile, work.epilogue);
      for (size_t p = 0; p < shape.pixels; ++p) {
        for (size_t c = 0; c < shape.channels; ++c) {
          double sum = 0;
          for (size_t k = 0; k < shape.runs * shape.cells; ++k) {
            sum += static_cast<double>(given[p * shape.cells + k]) *
                   weights[k * kChannelBlock + c];
          }
          const double steps = (sum + work.bias[c]) * work.scale[c];
          const double clamped = std::min(std::max(steps, -128.0), 127.0);
          ASSERT_NEAR(out[p * shape.channels + c], clamped, 1e-4)
              << kernels.name << " channel " << c;
        }
      }
      EXPECT_EQ(out.back(), 99.0F) << kernels.name;
      ExpectTogether(kernels, work, out);
    }
  }
}

}  // namespace
}  // namespace rknnd::soft
