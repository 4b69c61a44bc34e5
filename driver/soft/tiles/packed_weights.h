// Weights as tile_kernels.h reads them: the same on every CPU, those of 8-bit
// layers one byte each. What does not fit int8 (the weights of a uint8 tensor,
// minus their zero point) is added in further rounds of the same runs.
//
// Thread: any.

#ifndef DRIVER_SOFT_TILES_PACKED_WEIGHTS_H_
#define DRIVER_SOFT_TILES_PACKED_WEIGHTS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "driver/soft/tiles/tile_kernels.h"

namespace rknnd::soft {

// The sizes of a layer's packed weights.
struct PackedShape {
  int64_t groups = 1;
  int64_t outputs = 1;    // of a group
  int64_t inputs = 1;     // of a group
  int64_t kernel = 1;     // positions
  int64_t positions = 1;  // of a run
  int64_t rounds = 1;     // RoundsOf; of floats 1
  int64_t cell = 4;       // inputs of a cell: 4, of floats 1

  [[nodiscard]] int64_t runs() const { return kernel / positions * rounds; }
  [[nodiscard]] int64_t cells() const;   // of a run
  [[nodiscard]] int64_t blocks() const;  // of a group's output channels
  // Channels of block `b`, and those that it has room for.
  [[nodiscard]] int64_t ChannelsOf(int64_t b) const;
  [[nodiscard]] size_t StepOf(int64_t b) const;
  [[nodiscard]] size_t GroupBytes() const;
  [[nodiscard]] size_t OffsetOf(int64_t group, int64_t b) const;
  // With what is read behind them.
  [[nodiscard]] size_t bytes() const {
    return static_cast<size_t>(groups) * GroupBytes() + kWeightSlack;
  }
};

// How many int8 it takes to make up each of the weights, which are within 255
// of zero.
int64_t RoundsOf(std::span<const int16_t> weights);

// `weights`: output channels of all groups, inputs of a group, kernel
// positions. `to` has shape.bytes(), all zero.
void PackWeights(const PackedShape& shape, std::span<const int16_t> weights,
                 std::byte* to);
void PackWeights(const PackedShape& shape, std::span<const float> weights,
                 std::byte* to);

// Of depthwise layers of bytes: by kernel position, all channels of each, the
// whole `repeats` times.
size_t DepthwiseBytes(int64_t channels, int64_t kernel, int64_t repeats);
void PackDepthwise(int64_t channels, int64_t kernel, int64_t repeats,
                   std::span<const int16_t> weights, std::byte* to);

// The sum of each output channel's weights.
std::vector<int32_t> WeightSums(std::span<const int16_t> weights,
                                int64_t outputs);

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_TILES_PACKED_WEIGHTS_H_
