// The names of all keys that the configuration file may have, whether each can
// change while the daemon runs, and which of them somebody may have meant.

#ifndef DAEMON_CONFIG_KNOWN_H_
#define DAEMON_CONFIG_KNOWN_H_

#include <span>
#include <string>
#include <string_view>

namespace rknnd {

struct KnownKey {
  enum class Kind {
    kTable,    // that has keys of its own
    kLive,     // in force after a reload (SIGHUP)
    kRestart,  // read at the start only
  };
  std::string_view name;  // "limits.users.weight"
  Kind kind;
};

// In the order of docs/configuration.md.
std::span<const KnownKey> KnownKeys();

[[nodiscard]] bool IsKnownKey(std::string_view name);

// base/posix/near_name.h with the names of all keys.
std::string DidYouMean(std::string_view name);

}  // namespace rknnd

#endif  // DAEMON_CONFIG_KNOWN_H_
