// The peer: ONNX Runtime in a process of Node.js, from the registry of npm into
// the benchmark's own folder and nowhere else.

#ifndef BENCH_PEERS_ONNXRUNTIME_H_
#define BENCH_PEERS_ONNXRUNTIME_H_

#include <string>
#include <vector>

#include "base/posix/child_process.h"
#include "base/posix/expected.h"
#include "bench/peers/model_set.h"

namespace rknnd::bench {

inline constexpr char kOnnxRuntime[] = "onnxruntime-node@1.30.0";

// Puts it into `folder` if it is not there. Fails where npm or the network is
// missing.
base::Expected<void> InstallOnnxRuntime(const std::string& folder);

// Thread: one.
class OnnxRuntime {
 public:
  // On the CPUs that the calling process may use.
  static base::Expected<OnnxRuntime> Start(const std::string& folder,
                                           const ModelSet& model);

  // Microseconds of each of `count` runs.
  base::Expected<std::vector<double>> Run(int count);

 private:
  explicit OnnxRuntime(base::ChildProcess process)
      : process_(std::move(process)) {}

  base::ChildProcess process_;
};

}  // namespace rknnd::bench

#endif  // BENCH_PEERS_ONNXRUNTIME_H_
