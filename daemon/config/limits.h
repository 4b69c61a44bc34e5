// [limits.user], [[limits.users]] and [[limits.groups]]: what users may hold,
// and what they may have of the cores. What an entry does not name is as in
// [limits.user]. Used by config.cc.

#ifndef DAEMON_CONFIG_LIMITS_H_
#define DAEMON_CONFIG_LIMITS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "daemon/config/keys.h"
#include "daemon/core/types.h"

namespace rknnd {

// Whose keys are read before all of them are known: [[limits.users]] may stand
// above [limits.user], whose values fill what an entry does not name.
class UserKeys {
 public:
  // Takes keys of [limits] itself.
  void AddTo(Setters& limits, const std::string& path);
  // Once all is read.
  void ApplyTo(core::UserLimits& all,
               std::map<uint32_t, core::UserLimits>& users,
               std::map<uint32_t, core::UserLimits>& groups,
               core::SchedulingOptions& scheduling) const;

 private:
  // What an entry names.
  struct Entry {
    std::optional<uint64_t> memory;
    std::optional<uint32_t> contexts, buffers, sessions, queue;
    std::optional<core::Priority> ceiling;
    std::optional<uint32_t> weight, cores;

    [[nodiscard]] bool names_limits() const;
    [[nodiscard]] bool names_share() const;
    [[nodiscard]] core::UserLimits Over(core::UserLimits limits) const;
    [[nodiscard]] core::SharePolicy Over(core::SharePolicy policy) const;
  };
  // Those of users, or of groups.
  struct Kind {
    std::string word;    // "user"
    std::string number;  // "uid"
    std::string table;   // "limits.users"
    Setter (*name)(uint32_t& number);
  };

  static Setters KeysOf(Entry& entry);
  static absl::Status Read(const toml::table& table, const std::string& path,
                           const Kind& kind, std::map<uint32_t, Entry>& all);

  Entry all_;
  std::map<uint32_t, Entry> users_, groups_;
};

}  // namespace rknnd

#endif  // DAEMON_CONFIG_LIMITS_H_
