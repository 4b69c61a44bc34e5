// See load.h.

#include "bench/cores/load.h"

#include <sched.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <fstream>
#include <string>

namespace rknnd::bench {

int UsableCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

OthersLoad::OthersLoad() : start_(Now()) {}

double OthersLoad::Cpus() const {
  const Times now = Now();
  return (now.others - start_.others) / (now.wall - start_.wall);
}

OthersLoad::Times OthersLoad::Now() {
  // user nice system idle iowait irq softirq steal
  std::ifstream file("/proc/stat");
  std::string word;
  file >> word;
  double busy = 0;
  for (int column = 0; column < 8; ++column) {
    double ticks = 0;
    file >> ticks;
    if (column != 3 && column != 4) busy += ticks;
  }
  busy /= static_cast<double>(sysconf(_SC_CLK_TCK));
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) +
           static_cast<double>(time.tv_usec) * 1e-6;
  };
  timespec wall{};
  clock_gettime(CLOCK_MONOTONIC, &wall);
  return {static_cast<double>(wall.tv_sec) +
              static_cast<double>(wall.tv_nsec) * 1e-9,
          busy - seconds(usage.ru_utime) - seconds(usage.ru_stime)};
}

}  // namespace rknnd::bench
