// Networks of the vendor's benchmark table, layer by layer as a converted model
// has them: fused, 8-bit, without what the CPU does. For checking the timing
// model against published milliseconds.

#ifndef BENCH_TIMING_NETWORKS_H_
#define BENCH_TIMING_NETWORKS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "driver/soft/soc.h"
#include "driver/soft/timing/layer_work.h"

namespace rknnd::bench {

// Of one core, milliseconds; the vendor's rknn_model_zoo 2.3.2.
struct PublishedTimes {
  double rk3588, rk3576, rk3562, rk3568;
};

struct Network {
  std::string name;
  double gmac;  // published
  PublishedTimes published;
  std::vector<soft::LayerWork> (*layers)(const soft::SocProfile& soc);
};

const std::vector<Network>& Networks();

}  // namespace rknnd::bench

#endif  // BENCH_TIMING_NETWORKS_H_
