// The daemon a measurement is made on.

#ifndef BENCH_COMMON_PROCESS_H_
#define BENCH_COMMON_PROCESS_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/posix/child_process.h"

namespace rknnd::bench {

// Ends the program with `what` and rknnd_last_error()'s text.
[[noreturn]] void Die(const std::string& what);

// A program beside this one, by name; on `cpu`, or anywhere for -1.
base::ChildProcess StartSibling(std::vector<std::string> arguments,
                                int cpu = -1);

base::TemporaryFolder MakeFolder();

// A software-NPU daemon in `folder`, listening when this returns; points
// RKNND_TARGET at it.
base::ChildProcess StartDaemon(const std::string& folder, int cpu = -1);

}  // namespace rknnd::bench

#endif  // BENCH_COMMON_PROCESS_H_
