// Users and groups of the configuration file by name. Looked up once, when the
// file is read: an unknown one is an error there and not a limit that never
// holds. Used by other files of this folder only.

#ifndef DAEMON_CONFIG_NAMES_H_
#define DAEMON_CONFIG_NAMES_H_

#include <cstdint>
#include <optional>
#include <string>

#include "daemon/config/keys.h"

namespace rknnd {

Setter UserName(uint32_t& uid);
// By name or number, as a text; whoever is not root. Or nobody: "".
Setter OtherUser(std::string& user);
Setter GroupName(uint32_t& gid);
// By name or number.
Setter Group(std::optional<uint32_t>& gid);

}  // namespace rknnd

#endif  // DAEMON_CONFIG_NAMES_H_
