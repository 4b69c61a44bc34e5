// What processes take of the CPUs, and how often they let one go by themselves:
// the kernel lets those that sleep often come before those that do not.

#ifndef BENCH_COMMON_CPU_USE_H_
#define BENCH_COMMON_CPU_USE_H_

#include <sys/types.h>

namespace rknnd::bench {

struct CpuUse {
  double cpu = 0;     // seconds, of all CPUs together
  double sleeps = 0;  // of all threads, as far as they are there still

  CpuUse operator+(const CpuUse& more) const {
    return {cpu + more.cpu, sleeps + more.sleeps};
  }
  // Never less than nothing.
  CpuUse operator-(const CpuUse& less) const;
  CpuUse operator/(double seconds) const {
    return {cpu / seconds, sleeps / seconds};
  }
};

// Since its start; nothing once it has ended.
CpuUse UseOf(pid_t process);
CpuUse UseOfGroup(pid_t group);

}  // namespace rknnd::bench

#endif  // BENCH_COMMON_CPU_USE_H_
