// Where the two ends of a measurement run. Latencies across a wake-up compare
// within one placement only.

#ifndef BENCH_COMMON_PLACEMENT_H_
#define BENCH_COMMON_PLACEMENT_H_

#include <sched.h>

#include <string>
#include <vector>

namespace rknnd::bench {

struct Placement {
  std::string name;
  int client_cpu = 0;
  int server_cpu = 0;
};

// The calling process, and the threads and processes it makes from now on.
inline void PinTo(const std::vector<int>& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) CPU_SET(cpu, &set);
  sched_setaffinity(0, sizeof set, &set);
}
inline void PinTo(int cpu) { PinTo(std::vector<int>{cpu}); }

// One CPU, and two where this process may use two.
inline std::vector<Placement> Placements() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  std::vector<Placement> placements = {{"one CPU", cpus[0], cpus[0]}};
  if (cpus.size() > 1) placements.push_back({"two CPUs", cpus[0], cpus[1]});
  return placements;
}

}  // namespace rknnd::bench

#endif  // BENCH_COMMON_PLACEMENT_H_
