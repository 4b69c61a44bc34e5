// Cycles that the vendor's runtime printed for convolutions, as users published
// them: facts to hold the estimate to. For the tests and bench/timing.

#ifndef DRIVER_SOFT_TIMING_TESTING_PUBLISHED_CYCLES_H_
#define DRIVER_SOFT_TIMING_TESTING_PUBLISHED_CYCLES_H_

#include <cstdint>
#include <span>

#include "driver/soft/soc.h"
#include "driver/soft/timing/layer_work.h"

namespace rknnd::soft {

// A row of a table, and how many times the table has it. Kernels and strides
// are square.
struct PublishedConv {
  uint32_t in_channels, out_channels, kernel, stride, height, width;  // output
  uint64_t npu_cycles, ddr_cycles;
  uint32_t count = 1;
  bool depthwise = false;
};

struct PublishedTable {
  const char* name;
  const char* soc;
  // Of the board: what its DDR cycles count with, GB/s.
  double ddr_gbs;
  std::span<const PublishedConv> rows;
};

std::span<const PublishedTable> PublishedTables();

LayerWork WorkOf(const PublishedConv& row, const SocProfile& soc);

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_TIMING_TESTING_PUBLISHED_CYCLES_H_
