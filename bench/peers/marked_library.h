// A copy of a library in which each question for the CPU's features is marked:
// an instruction that no CPU has stands in the place of CPUID, so that a
// handler of SIGILL can answer (older_cpu.cc). For programs that have no option
// for the kernels they choose, on every x86 CPU and under every hypervisor.

#ifndef BENCH_PEERS_MARKED_LIBRARY_H_
#define BENCH_PEERS_MARKED_LIBRARY_H_

#include <string>

#include "base/values/expected.h"

namespace rknnd::bench {

// Writes `copy`. Takes ten seconds for a library of 40 MB, as objdump reads all
// its instructions. Fails where objdump is missing (Debian's binutils), or
// where the library has no CPUID that is found.
base::Expected<void> MarkCpuid(const std::string& library,
                               const std::string& copy);

}  // namespace rknnd::bench

#endif  // BENCH_PEERS_MARKED_LIBRARY_H_
