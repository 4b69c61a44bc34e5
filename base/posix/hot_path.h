// Code that runs for each frame. After a job that computed for milliseconds
// none of it is in a cache near the CPU, and what costs is not to run it but to
// wait for each of its lines in turn. So it lies together, in a section of its
// own, and is asked for at once where a thread comes back from such a wait.

#ifndef BASE_POSIX_HOT_PATH_H_
#define BASE_POSIX_HOT_PATH_H_

#include "base/posix/clock.h"

// Before the definition of a function that every frame passes, none of them a
// template or inline.
#define RKNND_HOT_PATH __attribute__((section("rknnd_hot")))

extern "C" {
// Made by the linker, of each program and library its own; absent where it has
// no such section.
extern const char rknnd_hot_begin[] __asm__("__start_rknnd_hot")
    __attribute__((weak, visibility("hidden")));
extern const char rknnd_hot_end[] __asm__("__stop_rknnd_hot")
    __attribute__((weak, visibility("hidden")));
}

namespace rknnd::base {

// Who waited for so long finds the caches cold: a network's weights alone are
// larger than those of one CPU.
inline constexpr Nanoseconds kColdAfter = kMillisecond / 2;

// Asks for all of it and waits for none: the loads go on beside what follows.
// Thread: any.
inline void FetchHotPath() {
  constexpr int kLine = 64;
  for (const char* at = rknnd_hot_begin; at < rknnd_hot_end; at += kLine) {
    __builtin_prefetch(at, 0, 2);
    // A compiler may drop a loop that does nothing else.
    __asm__ volatile("");
  }
}

}  // namespace rknnd::base

#endif  // BASE_POSIX_HOT_PATH_H_
