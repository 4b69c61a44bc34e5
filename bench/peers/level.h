// Levels of CPU that this machine can be measured at (cpu_level.h). rknnd is
// told by oneDNN's own variable, by which its kernels go too; ONNX Runtime by a
// module that answers its questions for the CPU (older_cpu.cc).

#ifndef BENCH_PEERS_LEVEL_H_
#define BENCH_PEERS_LEVEL_H_

#include <string>
#include <vector>

#include "bench/peers/cpu_level.h"

namespace rknnd::bench {

// The CPU as it is.
inline constexpr char kNativeLevel[] = "native";

struct Level {
  std::string name;
  const CpuLevel* older = nullptr;  // none: the CPU as it is
};

// Those of `names`, newest first; all that this CPU has where `names` is empty.
// Says which of them it does not have; where that is all of them, the native
// level alone. Throws where a name is none.
std::vector<Level> FindLevels(const std::vector<std::string>& names);

}  // namespace rknnd::bench

#endif  // BENCH_PEERS_LEVEL_H_
