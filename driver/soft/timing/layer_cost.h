// What layers cost, twice over.
//
// The estimate is the vendor's own, as its profiling tables print it ("DDR
// Cycles", "NPU Cycles"). Its rule was read off published tables, whose
// convolutions it reproduces to the cycle; it is no forecast of time.
//
// The simulated time is ours: rates fitted to published milliseconds of whole
// networks (TimingRow in soc.h), good to 5 % on average and 20 % at worst. It
// paces jobs. Never quote it as a measurement.
//
//   time of a layer = max(MACs, outputs, bytes), each by its rate, + start-up
//
// Pure functions. Thread: any.

#ifndef DRIVER_SOFT_TIMING_LAYER_COST_H_
#define DRIVER_SOFT_TIMING_LAYER_COST_H_

#include <cstdint>
#include <span>

#include "base/posix/clock.h"
#include "driver/soft/soc.h"
#include "driver/soft/timing/layer_work.h"

namespace rknnd::soft {

struct LayerEstimate {
  uint64_t macs = 0;
  uint64_t npu_cycles = 0;  // of convolutions; 0 of anything else
  uint64_t ddr_cycles = 0;  // in cycles of a core
  uint64_t read_bytes = 0;  // inputs and weights
  uint64_t ddr_bytes = 0;   // and outputs
};

LayerEstimate EstimateLayer(const LayerWork& work, const SocProfile& soc);

// The simulated time of a layer, apart by what it depends on. Nanoseconds at
// the highest clock, on one core that has the memory to itself.
struct LayerTime {
  double compute = 0;  // MACs or outputs, whichever is slower
  double start_up = 0;
  double bytes = 0;
  double bytes_rate = 1;  // a nanosecond, at most
  bool splits = false;

  [[nodiscard]] double alone() const;
};

LayerTime SimulateLayer(const LayerWork& work, const SocProfile& soc);

// What a job meets on the SoC.
struct RunConditions {
  uint32_t cores = 1;  // of its gang
  uint32_t busy = 1;   // cores that use the DDR, its own included
  double clock = 1;    // of the highest; above 0
};

// The DDR's rate is shared evenly; a core's own rates go with its clock, as
// published measurements do from 300 MHz up. Layers that the cores of a gang do
// not share out run on one of them.
base::Nanoseconds SimulateProgram(std::span<const LayerTime> layers,
                                  const SocProfile& soc,
                                  const RunConditions& conditions);

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_TIMING_LAYER_COST_H_
