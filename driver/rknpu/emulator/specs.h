// What one task does, read from its registers: everything that is not known of
// the hardware was refused on the way, so that the engines compute what stands
// here and nothing else. Both engines work from these.
//
// The numbers are as the program gave them. Addresses and sizes are inside what
// their registers can hold, no more: whoever touches memory checks it.
// Thread: any.

#ifndef DRIVER_RKNPU_EMULATOR_SPECS_H_
#define DRIVER_RKNPU_EMULATOR_SPECS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "driver/rknpu/emulator/task_registers.h"

namespace rknnd::rknpu {

inline constexpr uint32_t kAtom = 16;  // bytes of one pixel of one surface

enum class Precision : uint8_t { kInt8, kHalf };
constexpr uint32_t BytesOf(Precision precision) {
  return precision == Precision::kHalf ? 2 : 1;
}
constexpr uint32_t ChannelsPerAtom(Precision precision) {
  return kAtom / BytesOf(precision);
}

// --- CNA and CORE ------------------------------------------------------------

// The map that a convolution reads.
struct FeatureSpec {
  uint64_t base = 0;
  int64_t line_step = 0, surface_step = 0;  // bytes
  uint32_t width = 0, height = 0;
  uint32_t channels = 0;     // whole atoms
  uint32_t interleaved = 0;  // channels of a pixel that lie together; 0: atoms
};

struct ConvSpec {
  Precision precision = Precision::kInt8;
  bool depthwise = false;
  bool window_sums = false;  // for the output stage's ow
  FeatureSpec feature;
  uint32_t kernel_width = 1, kernel_height = 1;
  uint32_t kernels = 1;  // with weights; depthwise: all
  // 0: the one pixel goes to all outputs.
  uint32_t stride_x = 1, stride_y = 1;
  // Distance of the input's pixels, in a map that is filled with the pad value
  // between them; 1: the map itself.
  uint32_t spread_x = 1, spread_y = 1;
  uint32_t pad_left = 0, pad_top = 0;
  uint32_t pad = 0;  // as in the register
  uint64_t weights = 0;
  uint32_t width = 0, height = 0, channels = 0;  // output

  [[nodiscard]] uint32_t taps() const { return kernel_width * kernel_height; }
  [[nodiscard]] uint32_t feature_surfaces() const {
    return feature.channels / ChannelsPerAtom(precision);
  }
  // What stands beyond the input's border, int8.
  [[nodiscard]] int8_t PadOf(uint32_t channel) const {
    const bool upper = depthwise && channel < 32 && channel % 2 == 1;
    return static_cast<int8_t>(upper ? pad >> 8 : pad);
  }
};
ConvSpec ReadConv(TaskRegisters& registers);

// --- DPU and DPU_RDMA --------------------------------------------------------

// Numbers that lie in memory, eight channels a record.
struct CoefficientSpec {
  uint64_t base = 0;
  bool bias = false, ow = false, mul = false;  // parts of a record
  [[nodiscard]] uint32_t record_bytes() const {
    return (bias ? 32U : 0U) + (ow ? 16U : 0U) + (mul ? 16U : 0U);
  }
};

// BS or BN.
struct StageSpec {
  bool add = false, add_from_memory = false;
  int32_t addend = 0;
  bool mul = false, mul_from_memory = false;
  int16_t factor = 0;
  uint32_t shift = 0;
  bool relu = false, limit = false;
  int32_t most = 0;
  CoefficientSpec memory;

  [[nodiscard]] bool idle() const { return !add && !mul && !relu; }
};

enum class Operand : uint8_t { kNone, kPixel, kChannel };
enum class Operation : uint8_t { kMax, kMin, kAdd, kMul };

struct ElementWiseSpec {
  Operand operand = Operand::kNone;
  Operation operation = Operation::kAdd;
  bool convert = false;  // (operand + offset) * factor, shifted
  int32_t offset = 0;
  int16_t factor = 1;
  uint32_t shift = 0;
  bool table = false, relu = false;
  // Surface i lies at base[i % 2] + (i / 2) * pair_step.
  uint64_t base[2] = {0, 0};
  int64_t pair_step = 0, line_step = 0;
};

// Beyond the table's ends.
struct SlopeSpec {
  int16_t below = 0, above = 0;
  uint32_t below_shift = 0, above_shift = 0;
};

struct ConvertSpec {
  int32_t offset = 0;
  uint16_t scale = 1;
  uint32_t shift = 0;
};

struct WriterSpec {
  uint64_t base = 0;
  uint32_t width = 0, height = 0, channels = 0;
  uint32_t group = 1;  // surfaces that lie `surface_step` apart
  int64_t surface_step = 0, group_step = 0, line_step = 0;  // bytes
};

// Where surfaces, lines and pixels come from when the DPU reads by itself.
enum class Flight : uint8_t {
  kCompute,        // atoms through the output stages, place by place
  kUnpool,         // each atom to a window of pixels
  kByteTranspose,  // 16 pixels and 16 channels change places
  kAtomTranspose,  // 8 pixels and lines change places
};
struct ReaderSpec {
  Flight flight = Flight::kCompute;
  uint64_t base = 0;
  uint32_t width = 0, height = 0, surfaces = 0;
  int64_t line_step = 0, surface_step = 0;
  uint32_t window_width = 1, window_height = 1;  // kUnpool
  uint32_t atoms = 0;                            // kByteTranspose
};

struct OutputSpec {
  Precision precision = Precision::kInt8;
  bool ow = false, ow_from_memory = false;
  int16_t ow_value = 0;
  StageSpec bs, bn;
  ElementWiseSpec ew;
  SlopeSpec slopes;
  ConvertSpec convert;
  WriterSpec writer;
  // A convolution of one group of 64 channels whose writer puts each line's
  // pixels where a larger map has them: surface s, line y and pixel x of the
  // convolution are surface y * group + s and line x of the writer.
  bool by_lines = false;
};
// Of a task with CNA and CORE.
OutputSpec ReadConvOutput(TaskRegisters& registers, const ConvSpec& conv);
// Of a DPU alone.
struct FlightSpec {
  ReaderSpec reader;
  OutputSpec output;
};
FlightSpec ReadFlight(TaskRegisters& registers);

// --- PPU and PPU_RDMA --------------------------------------------------------

struct PoolSpec {
  bool average = false;
  uint32_t width = 0, height = 0;  // input
  uint32_t out_width = 0, out_height = 0, surfaces = 0;
  uint32_t kernel_width = 1, kernel_height = 1;
  uint32_t stride_x = 1, stride_y = 1;
  uint32_t pad_left = 0, pad_top = 0;
  int8_t pad = 0;  // averages
  uint32_t reciprocal_width = 0, reciprocal_height = 0;
  uint64_t source = 0, target = 0;
  int64_t source_line = 0, source_surface = 0;
  int64_t target_line = 0, target_surface = 0;
};
PoolSpec ReadPool(TaskRegisters& registers);

}  // namespace rknnd::rknpu

#endif  // DRIVER_RKNPU_EMULATOR_SPECS_H_
