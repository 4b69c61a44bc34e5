// Whether this machine would rather save power than microseconds, as the kernel
// tells. Asked once, when the daemon starts.

#ifndef DAEMON_BOARD_POWER_H_
#define DAEMON_BOARD_POWER_H_

#include <string>

#include "base/posix/clock.h"

namespace rknnd {

// How long to wait awake where nobody said it: a wake-up's price.
inline constexpr base::Nanoseconds kDefaultSpin = 50 * base::kMicrosecond;

// On battery, or with a platform profile that is meant to save. `root`: "" or
// where a test keeps its /sys. What cannot be read is no reason to save.
bool SavesPower(const std::string& root = "");

// kDefaultSpin, or 0 where power is saved.
base::Nanoseconds AutomaticSpin(const std::string& root = "");

}  // namespace rknnd

#endif  // DAEMON_BOARD_POWER_H_
