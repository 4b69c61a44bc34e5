// Keys of the configuration file whose values are more than a number or a text:
// heaps, faults, ranges of physical memory. Used by config.cc.

#ifndef DAEMON_CONFIG_VALUES_H_
#define DAEMON_CONFIG_VALUES_H_

#include <optional>
#include <string>
#include <vector>

#include "base/posix/clock.h"
#include "daemon/config/config.h"
#include "daemon/config/keys.h"

namespace rknnd {

// "strict" or "off".
Setter Isolation(bool& target);
// How long to wait awake: "auto", "off", or microseconds.
Setter Spin(std::optional<base::Nanoseconds>& target);
// Names of heaps, best first.
Setter HeapOrder(std::vector<std::string>& target);
// [[physical_memory]].
Setter Windows(std::vector<driver::PhysicalWindow>& windows,
               const std::string& path);
// [faults].
Setter FaultKeys(FaultConfig& faults, const std::string& path);

}  // namespace rknnd

#endif  // DAEMON_CONFIG_VALUES_H_
