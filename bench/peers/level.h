// Levels of CPU that this machine can be measured at (cpu_level.h): by the
// preloaded library (older_cpu.cc) and oneDNN's own variable, which both sides
// are started with.

#ifndef BENCH_PEERS_LEVEL_H_
#define BENCH_PEERS_LEVEL_H_

#include <string>
#include <utility>
#include <vector>

namespace rknnd::bench {

// The CPU as it is.
inline constexpr char kNativeLevel[] = "native";

struct Level {
  std::string name;
  std::vector<std::pair<std::string, std::string>> environment;
};

// The newest whose features CPUID gives this process; kNativeLevel where CPUs
// have no such levels.
std::string LevelOfThisProcess();

// Those of `names`, newest first; all that this machine can be measured at
// where `names` is empty. Says which of them it cannot be and why. Where CPUID
// cannot be made to fault it is the native level alone. Throws where a name is
// none.
std::vector<Level> FindLevels(const std::vector<std::string>& names);

// This program with that argument does no more than to say what it takes the
// CPU for.
inline constexpr char kLevelArgument[] = "--level-of-this-process";
void SayLevelOfThisProcess();

}  // namespace rknnd::bench

#endif  // BENCH_PEERS_LEVEL_H_
