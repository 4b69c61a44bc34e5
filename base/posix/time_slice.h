// How long a thread may keep a CPU before others that want it have a turn, and
// so how soon it is on one itself when something wakes it.

#ifndef BASE_POSIX_TIME_SLICE_H_
#define BASE_POSIX_TIME_SLICE_H_

#include <sched.h>

#include "base/posix/clock.h"

namespace rknnd::base {

// The kernel's shortest (Linux 6.12 and later).
inline constexpr Nanoseconds kShortestSlice = 100 * kMicrosecond;

// Asks for turns of `length` for the calling thread, which is to wake often and
// run shortly: its share of the CPU stays the same, but a fair scheduler takes
// the CPU from a longer turn for it (sched_setattr(2), sched_runtime). False:
// this kernel does not know it, or the thread's policy has no turns; nothing
// has changed. Threads that it creates have the same.
bool AskForSlice(Nanoseconds length);
// That of the calling thread; 0: this kernel does not say.
Nanoseconds Slice();

// Between two pieces of work that takes long: who waits for this CPU has it
// now. If a worker that it woke has taken the CPU from it before, it would have
// to wait for the kernel's next tick, which may be 4 ms away.
inline void EndTurn() { sched_yield(); }

}  // namespace rknnd::base

#endif  // BASE_POSIX_TIME_SLICE_H_
