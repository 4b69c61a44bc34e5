// Users and groups of this machine, as its databases have them, which may be on
// the network: asked at the start and at reloads only. Used by this folder's
// setters, and by what gives up root's rights.

#ifndef DAEMON_CONFIG_USERS_H_
#define DAEMON_CONFIG_USERS_H_

#include <cstdint>
#include <optional>
#include <string>

namespace rknnd {

struct UserEntry {
  std::string name;
  uint32_t uid = 0, gid = 0;
};

// nullopt: there is none, or its database does not answer.
std::optional<UserEntry> FindUserNamed(const std::string& name);
// The same by name or number; what is a number is no name.
std::optional<UserEntry> FindUser(const std::string& name);
std::optional<uint32_t> FindGroupNamed(const std::string& name);

}  // namespace rknnd

#endif  // DAEMON_CONFIG_USERS_H_
