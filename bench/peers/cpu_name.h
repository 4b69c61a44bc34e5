// What the CPU of this machine is called, for the head of a report.

#ifndef BENCH_PEERS_CPU_NAME_H_
#define BENCH_PEERS_CPU_NAME_H_

#include <istream>
#include <string>

namespace rknnd::bench {

// "AMD EPYC 9R14"; of a board, whose kernel names only the cores' parts: "Radxa
// ROCK 5B, 4 x Cortex-A55, 4 x Cortex-A76".
std::string CpuName();

// The same of a text like /proc/cpuinfo; `board`: its model, or "".
std::string CpuNameOf(std::istream& cpuinfo, const std::string& board);

}  // namespace rknnd::bench

#endif  // BENCH_PEERS_CPU_NAME_H_
