// What a daemon holds, by the kernel's word and by its own: to compare before
// and after.

#ifndef TESTS_TORTURE_OBSERVER_H_
#define TESTS_TORTURE_OBSERVER_H_

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/values/expected.h"

namespace rknnd::torture {

// By the kernel.
struct ProcessUse {
  uint64_t fds = 0, mappings = 0, threads = 0;
  uint64_t shared_mappings =
      0;                  // of memfds, dma-bufs, devices: clients' memory
  uint64_t rss = 0;       // bytes
  uint64_t switches = 0;  // of all threads: at least one a wake-up
};
ProcessUse UseOf(pid_t pid);
// Without the connection that asked it last, which is on its way out: the
// least of some looks. Takes a fifth of a second.
ProcessUse SettledUseOf(pid_t pid);

// By its own reports.
struct Holdings {
  uint64_t sessions = 0;  // without the one that asks
  uint64_t contexts = 0, buffers = 0, models = 0;
  uint64_t weight = 0, internal = 0, io = 0, other = 0;  // bytes

  [[nodiscard]] uint64_t bytes() const {
    return weight + internal + io + other;
  }
  [[nodiscard]] bool nothing() const {
    return sessions + contexts + buffers + models + bytes() == 0;
  }
};
base::Expected<Holdings> HoldingsOf(const std::string& target);

// "14 descriptors, 61 mappings (0 shared), 6 threads, 17.9 MB resident".
std::string ToText(const ProcessUse& use);
// "0 sessions, 0 contexts, 0 buffers, 0 models, 0 bytes".
std::string ToText(const Holdings& holdings);

}  // namespace rknnd::torture

#endif  // TESTS_TORTURE_OBSERVER_H_
