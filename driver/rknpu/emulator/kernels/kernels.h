// The innermost loops of the fast engine, one set for each level of CPU. All
// sets compute the same numbers: sums modulo 2^32, and output stages in doubles
// that hold every intermediate value exactly (stage_plan.h proves it first).
//
// Maps lie in planes of atoms, one plane for 16 channels: an atom is 16 bytes,
// or 32 where the CPU multiplies int16 (Form). Weights lie as the loops read
// them: by blocks of kernels, in each by runs (one tap of one plane), in each
// by cells of four bytes, in each the block's kernels.
//
// Thread: any. Nothing allocates.

#ifndef DRIVER_RKNPU_EMULATOR_KERNELS_KERNELS_H_
#define DRIVER_RKNPU_EMULATOR_KERNELS_KERNELS_H_

#include <cstddef>
#include <cstdint>

#include "driver/soft/tiles/cpu_level.h"

namespace rknnd::rknpu::fast {

inline constexpr size_t kLanes = 16;  // channels of an atom

// What is multiplied.
enum class Form : uint8_t {
  kBytes,     // int8 by int8
  kUnsigned,  // int8 by the weight plus 128, as uint8: 128 times too much
  kWide,      // int16 by int16
};
constexpr size_t ValueBytes(Form form) { return form == Form::kWide ? 2 : 1; }
constexpr size_t AtomBytes(Form form) { return kLanes * ValueBytes(form); }

// Sums of one block of kernels for some pixels.
struct TileJob {
  const std::byte* const* pixels = nullptr;  // each one's window
  size_t count = 0;
  const ptrdiff_t* offsets = nullptr;  // of the runs, in bytes
  size_t runs = 0;
  const std::byte* weights = nullptr;
  // Kernel k of pixel p: sums[(k / 16) * surface_step + 16 p + k % 16].
  int32_t* sums = nullptr;
  size_t surface_step = 0;
};

// Each channel of one plane by itself.
struct DepthwiseJob {
  const std::byte* const* pixels = nullptr;
  size_t count = 0;
  const ptrdiff_t* offsets = nullptr;  // of the taps
  size_t taps = 0;
  const int32_t* weights = nullptr;  // 16 for each tap
  int32_t* sums = nullptr;           // 16 for each pixel
};

// v = floor(v * factor + half), where nothing is shifted `half` is 0.
struct Scale {
  double factor = 1.0, half = 0.0;
};
// What a stage leaves: least(most(v, low), high).
struct Bounds {
  double low = -0x1p60, high = 0x1p60;
};

// v to a byte: bounded(floor(v * factor + half) + offset). The bounds are data,
// or compilers would compute both sides of each for every value.
struct ByteConversion {
  Scale scale;
  double offset = 0.0;
  Bounds bounds = {-128.0, 127.0};
};

// Values beyond the ends of a table, which covers those from -end to end:
// edge + floor((v -+ end) * slope).
struct TableEnds {
  double end = 16384.0;
  double below_edge = 0.0, below_slope = 0.0;
  double above_edge = 0.0, above_slope = 0.0;
};

// From sums to bytes, for pixels of one atom's channels:
//   v = sum + ow * window sum + bias       modulo 2^32
//   v = floor(v * bs_factor + bs_half), bounded; the same of BN, + bn_addend
//   element-wise with e = floor((operand + offset) * factor + half), bounded
//   out = that as a byte
struct StageJob {
  size_t count = 0;
  // Sixteen of each pixel; one of the two.
  const int32_t* sums = nullptr;
  const int8_t* values = nullptr;
  const int32_t* window_sums = nullptr;  // one of each pixel; null: no ow
  // Sixteen of each.
  const uint32_t* ow = nullptr;
  const uint32_t* bias = nullptr;
  const double* bs_factor = nullptr;
  const double* bn_factor = nullptr;
  const double* bn_addend = nullptr;
  double bs_half = 0.0, bn_half = 0.0;
  Bounds bs, bn, ew;
  enum class Operation : uint8_t { kNone, kAdd, kMul, kMax, kMin };
  Operation operation = Operation::kNone;
  const int8_t* operands = nullptr;  // sixteen of each pixel
  double operand_offset = 0.0;
  Scale operand;
  ByteConversion convert;
  int8_t* out = nullptr;  // sixteen of each pixel
};

// One level's loops.
struct Kernels {
  const char* name = "";
  Form form = Form::kBytes;
  size_t block = 16;  // kernels, a divisor of 32
  void (*tile)(const TileJob& job) = nullptr;
  void (*depthwise)(const DepthwiseJob& job) = nullptr;
  void (*stages)(const StageJob& job) = nullptr;
  // The stages up to BN only: sixteen doubles of each pixel, and each one's
  // place in a table. True: some are beyond its ends.
  bool (*front)(const StageJob& job, const TableEnds& ends, double* values,
                int32_t* places) = nullptr;
  // out[i] of those values that are beyond the ends.
  void (*beyond)(const double* values, size_t count, const TableEnds& ends,
                 const ByteConversion& convert, int8_t* out) = nullptr;
  // The last step alone.
  void (*convert)(const double* values, size_t count,
                  const ByteConversion& convert, int8_t* out) = nullptr;
  // sums[i] += values of atom i, all 16 together; `partial` has room for 16
  // int16 of each atom. Planes lie `plane` bytes apart.
  void (*channel_sums)(const std::byte* atoms, size_t count, size_t planes,
                       size_t plane, int16_t* partial, int32_t* sums) = nullptr;
  // `count` int8 to the form's values.
  void (*load)(const std::byte* from, size_t count, std::byte* to) = nullptr;
};

// Those of `level`, or of the highest level below that has some.
const Kernels& KernelsFor(soft::CpuLevel level);

}  // namespace rknnd::rknpu::fast

#endif  // DRIVER_RKNPU_EMULATOR_KERNELS_KERNELS_H_
