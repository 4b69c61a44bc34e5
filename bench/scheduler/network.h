// A network that an RK3588 is long at and a CPU is not: a chain of layers over
// sixteen numbers, each of which costs the SoC its start-up. Paced jobs of it
// sleep, so that two CPUs do for three cores at full load.

#ifndef BENCH_SCHEDULER_NETWORK_H_
#define BENCH_SCHEDULER_NETWORK_H_

#include <string>

namespace rknnd::bench {

// ONNX, of so many layers: 8 us each by the SoC's timing model.
std::string ChainModel(int layers);

}  // namespace rknnd::bench

#endif  // BENCH_SCHEDULER_NETWORK_H_
