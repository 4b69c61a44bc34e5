// What a worker keeps the vendor's library from: sockets, other programs and
// their memory, files that are not the NPU's. Not a wall against an attacker
// who runs code in the worker (that is what its user's rights are for), but a
// library that does what it should not is seen, refused, and its job fails.
//
// A filter of system calls (seccomp) holds those; a thread of ours, the guard,
// lets them go on after a look at their path, or refuses them.

#ifndef DRIVER_RKNNRT_WORKER_CALL_FILTER_H_
#define DRIVER_RKNNRT_WORKER_CALL_FILTER_H_

#include <cstdint>
#include <string>

#include "base/values/expected.h"

namespace rknnd::rknnrt {

// For all threads of this process, for good. `folder`: the library's own.
// Before any other thread is there. kInvalidArgument, kUnimplemented: the
// kernel has no such filters (before Linux 5.5), and nothing is held.
base::Expected<void> InstallCallFilter(const std::string& folder);

// So many calls were refused so far, on any thread.
uint64_t RefusedCalls();
// The last of them: "open '/etc/passwd'". Thread: any.
std::string LastRefusedCall();

// Whether a file may be opened so; public for its test.
bool MayOpen(const char* path, bool writes, const char* folder);

}  // namespace rknnd::rknnrt

#endif  // DRIVER_RKNNRT_WORKER_CALL_FILTER_H_
