// What differs between two configurations, by the names of its keys: what a
// reload puts in force, and what has to wait for the next start. Used by
// reload.cc.

#ifndef DAEMON_CONFIG_CHANGES_H_
#define DAEMON_CONFIG_CHANGES_H_

#include <string>
#include <vector>

#include "daemon/config/config.h"

namespace rknnd {

// Keys, as "grace", or tables of a list, as "limits.users".
struct ConfigChanges {
  std::vector<std::string> live;     // in force after a reload
  std::vector<std::string> restart;  // at the next start
};

ConfigChanges CompareConfigs(const Config& before, const Config& after);

// Takes over what of `after` can change live, and leaves the rest.
void TakeLive(const Config& after, Config& config);

}  // namespace rknnd

#endif  // DAEMON_CONFIG_CHANGES_H_
