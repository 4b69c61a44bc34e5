// A network to run on several cores: with memory bound to all its tensors and
// noise in the inputs, so that a run copies nothing.

#ifndef BENCH_CORES_NETWORK_H_
#define BENCH_CORES_NETWORK_H_

#include <string>
#include <vector>

#include "client/include/rknnd.hpp"

namespace rknnd::bench {

struct NetworkFile {
  std::string name, path;
  // Convolutions are most of its time: two cores must pay.
  bool heavy = false;
};

// Those of $RKNND_SHARED/models that are there, the heavy one first; in its
// place the detector of this repository.
std::vector<NetworkFile> FindNetworks();

class Network {
 public:
  // Throws Error.
  explicit Network(const NetworkFile& file);

  void SetCores(rknn_core_mask mask) { context_.SetCoreMask(mask); }
  // Microseconds of so many runs.
  std::vector<double> Run(int count);
  // The bytes of all outputs; they are overwritten for the next run to fill.
  std::vector<char> TakeAnswer();

 private:
  Context context_;
  std::vector<Memory> inputs_, outputs_;
};

}  // namespace rknnd::bench

#endif  // BENCH_CORES_NETWORK_H_
