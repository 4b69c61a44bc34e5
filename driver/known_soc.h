// Whether a device can look like an SoC, known without opening it: a
// configuration is checked before anything is started. Called by the daemon's
// main and at reloads.

#ifndef DRIVER_KNOWN_SOC_H_
#define DRIVER_KNOWN_SOC_H_

#include <string>

#include "absl/status/status.h"

namespace rknnd::driver {

// NOT_FOUND, and which are known, for another.
absl::Status CheckSoc(const std::string& soc);

}  // namespace rknnd::driver

#endif  // DRIVER_KNOWN_SOC_H_
