// See spinning.h.

#include "base/posix/spinning.h"

#include <sched.h>

namespace rknnd::base {

uint32_t UsableCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  // Fails on machines with more CPUs than the set has room for.
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 2;
  return static_cast<uint32_t>(std::max(CPU_COUNT(&set), 1));
}

}  // namespace rknnd::base
