// The peer: ONNX Runtime in a process of Node.js, from the registry of npm into
// the benchmark's own folder and nowhere else.

#ifndef BENCH_PEERS_ONNXRUNTIME_H_
#define BENCH_PEERS_ONNXRUNTIME_H_

#include <string>

#include "base/values/expected.h"
#include "bench/peers/side.h"

namespace rknnd::bench {

inline constexpr char kOnnxRuntime[] = "onnxruntime-node@1.30.0";

// Puts it into `folder` if it is not there. Fails where npm or the network is
// missing.
base::Expected<void> InstallOnnxRuntime(const std::string& folder);

// What StartOnnxRuntime needs for a level below the CPU's own; `folder` as
// above.
base::Expected<void> PrepareForOlderCpus(const std::string& folder);

Side StartOnnxRuntime(const std::string& folder, const ModelSet& model,
                      const Level& level, int threads);

}  // namespace rknnd::bench

#endif  // BENCH_PEERS_ONNXRUNTIME_H_
