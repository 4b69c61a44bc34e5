// The innermost loops of convolutions and products: sums of products of bytes,
// exact in 32 bits, then one rounding; and of floats. One set of functions for
// each level of CPU. Those of bytes give the same bits on all; those of floats
// differ in the last one, as some CPUs multiply and add at once.
//
//   sum    = start + sum(x * w)            bytes: exact, modulo 2^32
//   steps  = (float(sum) + bias) * scale, negative ones * slope
//   output = round(least(most(steps, low), high)) + zero, ties to even
//
// What calls them (integer_*.cc and float_convolution.cc of kernels/)
// brings the activations into the form that the CPU multiplies (TileForm),
// channels last, with whatever padding the layer has written out: the functions
// meet no edge. A tile reads, for each output pixel, `runs` stretches of memory
// that begin at the same offsets from that pixel's address, in cells of four
// bytes or one float. What a stretch of bytes lacks to a whole cell has weights
// of zero, so that any readable bytes may stand there.
//
// Weights lie the same on every CPU (packed_weights.h): by blocks of up to 32
// output channels, in each block cell by cell: four int8, or one float, of each
// channel.
//
// Thread: any. Nothing allocates.

#ifndef DRIVER_SOFT_TILES_TILE_KERNELS_H_
#define DRIVER_SOFT_TILES_TILE_KERNELS_H_

#include <cstddef>
#include <cstdint>

#include "driver/soft/tiles/cpu_level.h"

namespace rknnd::soft {

// What activations are multiplied as.
enum class TileForm : uint8_t {
  kUnsigned,  // uint8; int8 with its upper bit turned, 128 more than it was
  kSigned,    // int8; uint8 with its upper bit turned, 128 less than it was
  kWide,      // int16, the same number
  kFloat,     // float32
};
constexpr size_t SizeOf(TileForm form) {
  return form == TileForm::kFloat ? 4 : form == TileForm::kWide ? 2 : 1;
}
// Of activations.
constexpr size_t CellBytes(TileForm form) {
  return form == TileForm::kWide ? 8 : 4;
}

enum class TileOutput : uint8_t {
  kByte,   // steps, rounded; low and high say of which type
  kSum,    // int32: the sum itself
  kFloat,  // float32: steps as they are
};
constexpr size_t SizeOf(TileOutput output) {
  return output == TileOutput::kByte ? 1 : 4;
}

// From sums to outputs. The arrays have an entry for each channel and are
// readable up to a multiple of kMaxLanes channels.
struct TileEpilogue {
  const int32_t* start = nullptr;  // of bytes; null: zeros
  const float* bias = nullptr;
  const float* scale = nullptr;
  float slope = 1.0F;
  float low = 0.0F, high = 0.0F;
  int32_t zero = 0;
  TileOutput output = TileOutput::kByte;
};

inline constexpr size_t kMaxLanes = 16;  // of the widest CPU
inline constexpr size_t kChannelBlock =
    32;                                     // output channels of packed weights
inline constexpr size_t kWeightCell = 4;    // bytes of one channel's weights
inline constexpr size_t kWeightSlack = 64;  // readable behind packed weights

// One block of channels for any number of pixels.
struct Tile {
  const std::byte* const* pixels = nullptr;  // one address each
  size_t count = 0;
  const ptrdiff_t* offsets = nullptr;  // of the runs, in bytes
  size_t runs = 0, cells = 0;          // cells of each run
  const std::byte* weights = nullptr;  // of the first channel
  size_t weight_step = 0;              // bytes from one cell to the next
  size_t channels = 0;                 // 1 to kChannelBlock
  std::byte* output = nullptr;         // first channel of the first pixel
  size_t output_step = 0;              // bytes from pixel to pixel
  // Channels that lie together in the output, and the bytes from the first of
  // them to the first of the next: less than `channels` only where it is a
  // multiple of the kernels' lanes.
  size_t together = kChannelBlock;
  size_t together_step = 0;
};

// Each channel by itself. The activations are floats; those of bytes, minus
// their zero point, are integers below 2^24 in all sums, so exact.
struct DepthwiseTile {
  const std::byte* const* pixels = nullptr;
  size_t count = 0;
  const ptrdiff_t* offsets = nullptr;  // of the taps, in bytes
  size_t taps = 0;
  // Of the first tap: int8, or float32 where the layer is one of floats.
  const std::byte* weights = nullptr;
  size_t weight_step = 0;  // bytes from tap to tap
  size_t channels = 0;     // any number
  std::byte* output = nullptr;
  size_t output_step = 0;
};

// Few output channels for pixels of one row that follow each other, planes of
// floats apart: each vector holds pixels.
struct RowTile {
  const std::byte* pixels = nullptr;  // the first one's window
  size_t count = 0;
  const ptrdiff_t* offsets = nullptr;  // of the taps, in bytes
  size_t taps = 0;
  // Of the first tap (pixel_rows.h).
  const std::byte* weights = nullptr;
  size_t weight_step = 0;       // bytes from tap to tap
  size_t outputs = 0;           // channels
  std::byte* output = nullptr;  // first pixel of the first channel
  size_t output_step = 0;       // bytes from channel to channel
};

struct WinogradKernels;

// Layers of bytes.
struct ByteKernels {
  const char* name = "";
  TileForm form = TileForm::kWide;
  void (*tile)(const Tile& tile, const TileEpilogue& epilogue) = nullptr;
  void (*depthwise)(const DepthwiseTile& tile,
                    const TileEpilogue& epilogue) = nullptr;
  // `count` bytes to `form`.
  void (*convert)(const std::byte* from, bool is_signed, size_t count,
                  std::byte* to) = nullptr;
  // To floats, minus `zero`.
  void (*to_floats)(const std::byte* from, bool is_signed, int32_t zero,
                    size_t count, float* to) = nullptr;
  // For windows of 3x3, where that is quicker than `tile` (winograd.h).
  const WinogradKernels* winograd = nullptr;
};

// Layers of floats.
struct FloatKernels {
  const char* name = "";
  size_t lanes = 1;  // channels of a vector
  void (*tile)(const Tile& tile, const TileEpilogue& epilogue) = nullptr;
  void (*depthwise)(const DepthwiseTile& tile,
                    const TileEpilogue& epilogue) = nullptr;
  // May read up to kMaxLanes floats behind the last pixel.
  void (*row)(const RowTile& tile, const TileEpilogue& epilogue) = nullptr;
};

// Those for `level`, which must be one that this process may use.
const ByteKernels& ByteKernelsFor(CpuLevel level);
const FloatKernels& FloatKernelsFor(CpuLevel level);

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_TILES_TILE_KERNELS_H_
