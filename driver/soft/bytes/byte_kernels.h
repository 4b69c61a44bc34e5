// The innermost loops of 8-bit layers: sums of products of bytes, exact in 32
// bits, then one rounding. One set of functions for each level of CPU; all give
// the same bits.
//
//   sum    = start + sum(x * w)                        exact, modulo 2^32
//   steps  = (float(sum) + bias) * scale, negative ones * slope
//   output = round(least(most(steps, low), high)) + zero, ties to even
//
// What calls them (kernels/integer_convolution.cc) brings the activations into
// the form that the CPU multiplies (ByteForm), channels last, with whatever
// padding the layer has written out: the functions meet no edge. A tile reads,
// for each output pixel, `runs` stretches of memory that begin at the same
// offsets from that pixel's address, in groups of four values ("quads"). What a
// stretch lacks to a whole quad has weights of zero, so that any readable bytes
// may stand there.
//
// Weights lie the same on every CPU (PackedWeights): as int8, by blocks of up
// to 32 output channels, in each block quad by quad: four bytes of each
// channel.
//
// Thread: any. Nothing allocates.

#ifndef DRIVER_SOFT_BYTES_BYTE_KERNELS_H_
#define DRIVER_SOFT_BYTES_BYTE_KERNELS_H_

#include <cstddef>
#include <cstdint>

#include "driver/soft/bytes/cpu_level.h"

namespace rknnd::soft {

// What activations are multiplied as.
enum class ByteForm : uint8_t {
  kUnsigned,  // uint8; int8 with its upper bit turned, 128 more than it was
  kSigned,    // int8; uint8 with its upper bit turned, 128 less than it was
  kWide,      // int16, the same number
};
constexpr size_t SizeOf(ByteForm form) {
  return form == ByteForm::kWide ? 2 : 1;
}

enum class ByteOutput : uint8_t {
  kByte,   // steps, rounded; low and high say of which type
  kSum,    // int32: the sum itself
  kFloat,  // float32: steps as they are
};
constexpr size_t SizeOf(ByteOutput output) {
  return output == ByteOutput::kByte ? 1 : 4;
}

// From sums to outputs. The arrays have an entry for each channel and are
// readable up to a multiple of kByteLanes channels.
struct ByteEpilogue {
  const int32_t* start = nullptr;
  const float* bias = nullptr;
  const float* scale = nullptr;
  float slope = 1.0F;
  float low = 0.0F, high = 0.0F;
  int32_t zero = 0;
  ByteOutput output = ByteOutput::kByte;
};

inline constexpr size_t kByteLanes = 16;    // of the widest CPU
inline constexpr size_t kByteBlock = 32;    // output channels of packed weights
inline constexpr size_t kQuad = 4;          // inputs multiplied at once
inline constexpr size_t kWeightSlack = 64;  // readable behind packed weights

// One block of channels for any number of pixels.
struct ByteTile {
  const std::byte* const* pixels = nullptr;  // one address each
  size_t count = 0;
  const ptrdiff_t* offsets = nullptr;  // of the runs, in bytes
  size_t runs = 0, quads = 0;          // quads of each run
  const int8_t* weights = nullptr;     // of the block
  size_t weight_step = 0;              // bytes from one quad to the next
  size_t channels = 0;                 // 1 to kByteBlock
  std::byte* output = nullptr;         // first channel of the first pixel
  size_t output_step = 0;              // bytes from pixel to pixel
};

// Each channel by itself. The activations are floats minus their zero point:
// integers below 2^24 in all sums, so exact, and float units are many.
struct DepthwiseTile {
  const std::byte* const* pixels = nullptr;
  size_t count = 0;
  const ptrdiff_t* offsets = nullptr;  // of the taps, in bytes
  size_t taps = 0;
  const int8_t* weights = nullptr;  // of the first tap
  size_t weight_step = 0;           // bytes from tap to tap
  size_t channels = 0;              // any number
  std::byte* output = nullptr;
  size_t output_step = 0;
};

struct ByteKernels {
  const char* name = "";
  ByteForm form = ByteForm::kWide;
  void (*tile)(const ByteTile& tile, const ByteEpilogue& epilogue) = nullptr;
  void (*depthwise)(const DepthwiseTile& tile,
                    const ByteEpilogue& epilogue) = nullptr;
  // `count` bytes to `form`.
  void (*convert)(const std::byte* from, bool is_signed, size_t count,
                  std::byte* to) = nullptr;
  // To floats, minus `zero`.
  void (*to_floats)(const std::byte* from, bool is_signed, int32_t zero,
                    size_t count, float* to) = nullptr;
};

// Those for `level`, which must be one that this process may use.
const ByteKernels& ByteKernelsFor(CpuLevel level);

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_BYTES_BYTE_KERNELS_H_
