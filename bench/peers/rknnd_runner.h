// rknnd's side of the benchmark: the target local:, one context on one core or
// on two, in a process of its own.

#ifndef BENCH_PEERS_RKNND_RUNNER_H_
#define BENCH_PEERS_RKNND_RUNNER_H_

#include "bench/peers/side.h"

namespace rknnd::bench {

// This program again, with kRunnerArgument.
Side StartRknnd(const ModelSet& model, const Level& level, int threads);

inline constexpr char kRunnerArgument[] = "--side";
// The process that this starts, told by `arguments` of SideArguments(): its
// exit code. What goes wrong it says instead of an answer.
int RunRknnd(const std::vector<std::string>& arguments);

}  // namespace rknnd::bench

#endif  // BENCH_PEERS_RKNND_RUNNER_H_
