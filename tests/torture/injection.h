// What the injection library does in a process, in a page of memory that the
// campaign writes while the process runs.

#ifndef TESTS_TORTURE_INJECTION_H_
#define TESTS_TORTURE_INJECTION_H_

#include <atomic>
#include <cstdint>

namespace rknnd::torture {

// The environment's name of the file that is the page.
inline constexpr char kInjectionVariable[] = "RKNND_TORTURE_INJECTION";

// Calls that can be made to fail, as bits.
inline constexpr uint32_t kFailMmap = 1;      // ENOMEM
inline constexpr uint32_t kFailMemfd = 2;     // ENOMEM
inline constexpr uint32_t kFailAccept = 4;    // EMFILE
inline constexpr uint32_t kFailSockets = 8;   // EMFILE
inline constexpr uint32_t kFailOpen = 16;     // EMFILE
inline constexpr uint32_t kFailEventfd = 32;  // EMFILE
inline constexpr uint32_t kFailThread = 64;   // EAGAIN
inline constexpr uint32_t kFailMunmap = 128;  // ENOMEM, as where it splits
inline constexpr uint32_t kFailMremap = 256;  // ENOMEM
inline constexpr uint32_t kFailAll = 511;

// Zero does nothing.
struct InjectionPage {
  std::atomic<uint32_t> calls;      // that fail, as bits
  std::atomic<uint32_t> one_in;     // so many of them; 0: none
  std::atomic<uint32_t> random;     // the state of the dice
  std::atomic<uint32_t> failed;     // so many have, so far
  std::atomic<uint32_t> disk_full;  // not 0: writes below `folder` find no room
  std::atomic<int64_t> realtime_offset;  // ns that CLOCK_REALTIME is wrong by
  char folder[256];
};

}  // namespace rknnd::torture

#endif  // TESTS_TORTURE_INJECTION_H_
