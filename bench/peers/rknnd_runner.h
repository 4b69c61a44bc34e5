// rknnd's side of the benchmark: the target local:, one context on one core.

#ifndef BENCH_PEERS_RKNND_RUNNER_H_
#define BENCH_PEERS_RKNND_RUNNER_H_

#include <cstddef>
#include <vector>

#include "bench/peers/model_set.h"
#include "client/include/rknnd.hpp"

namespace rknnd::bench {

// Thread: one. Throws Error.
class RknndRunner {
 public:
  explicit RknndRunner(const ModelSet& model);

  // Microseconds of each of `count` runs, from the program's inputs to its
  // outputs as floats.
  std::vector<double> Run(int count);

 private:
  void RunOnce();

  Context context_;
  std::vector<std::vector<std::byte>> bytes_;
  std::vector<rknn_input> inputs_;
  std::vector<std::vector<float>> floats_;
  std::vector<rknn_output> outputs_;
};

}  // namespace rknnd::bench

#endif  // BENCH_PEERS_RKNND_RUNNER_H_
