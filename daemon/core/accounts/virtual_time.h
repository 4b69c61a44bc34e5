// What accounts have had of something that is divided by weights. Used by the
// shares of the NPU, and by the turns of the loader.

#ifndef DAEMON_CORE_ACCOUNTS_VIRTUAL_TIME_H_
#define DAEMON_CORE_ACCOUNTS_VIRTUAL_TIME_H_

#include <cstdint>

namespace rknnd::core {

// Of virtual times, which wrap; all that are compared lie close together.
inline bool IsEarlier(uint64_t a, uint64_t b) {
  return static_cast<int64_t>(a - b) < 0;
}
inline uint64_t Later(uint64_t a, uint64_t b) {
  return IsEarlier(a, b) ? b : a;
}

}  // namespace rknnd::core

#endif  // DAEMON_CORE_ACCOUNTS_VIRTUAL_TIME_H_
