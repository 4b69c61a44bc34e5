// The SoCs the software NPU stands in for: what programs can tell apart, and
// what their layers cost. Read by the device, the planner and the timing model.
// Sources: the vendor's guide (tables 5-1, 5-2, chapters 1.3 and 5.7), the
// kernel driver's tables, published benchmarks. soc.cc says which number is
// weak.

#ifndef DRIVER_SOFT_SOC_H_
#define DRIVER_SOFT_SOC_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace rknnd::soft {

// What the simulator's time comes from: rates of one core at the SoC's highest
// clock, with 8-bit tensors. Fitted to published milliseconds as a whole:
// numbers of two rows do not mix.
struct TimingRow {
  double mac;                // of 1024 MAC/ns
  double lut_outputs;        // a ns behind Swish, Sigmoid, Tanh, ...; 0: no cap
  double plain_outputs;      // a ns behind ReLU, Clip or nothing
  double conv_bytes;         // a ns: convolutions, their weights included
  double mover_bytes;        // a ns: Concat, Add, Split and their like
  double layer_nanoseconds;  // start-up of each layer
};

struct SocProfile {
  const char* name;
  const char* family;  // models of one family run on all its SoCs
  uint32_t cores;
  uint64_t sram_bytes;  // system SRAM that the NPU may use; 0: none
  // C2 of NC1HWC2, by what a channel is.
  uint32_t int8_block;
  uint32_t int16_block;
  uint32_t half_block;       // float16
  uint32_t width_alignment;  // pixels, of 4-D inputs with 1, 3 or 4 channels
  uint32_t max_mhz;
  uint32_t macs_per_cycle;  // int8, of one core, nominal
  TimingRow timing;
  double core_gbs;  // DDR, GB/s: what one core takes at most
  double ddr_gbs;   // what all cores share
  // What the vendor's DDR cycles count with, whatever the board.
  double estimate_gbs;
  // driver::kZeroCopyOnly and the like.
  uint32_t limits;
  uint64_t sram_base = 0;  // bus address of its system SRAM, where it has any
};

// Case does not matter. NOT_FOUND listing the known ones.
absl::StatusOr<SocProfile> FindSoc(const std::string& name);

// That a model made for `target` ("" is any) runs on this SoC: it, or one with
// the same NPU. FAILED_PRECONDITION in the words users look for.
absl::Status CheckTarget(const std::string& target, const SocProfile& soc,
                         const std::string& model);

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_SOC_H_
