// More than any plan of SRAM can save: what could be saved if a tensor could
// have any part of itself there, wherever there is room at each step.

#ifndef BENCH_SRAM_BOUND_H_
#define BENCH_SRAM_BOUND_H_

#include <cstdint>
#include <vector>

#include "driver/device.h"

namespace rknnd::bench {

double MostSaved(const std::vector<driver::TensorPlace>& tensors,
                 uint64_t bytes);

}  // namespace rknnd::bench

#endif  // BENCH_SRAM_BOUND_H_
