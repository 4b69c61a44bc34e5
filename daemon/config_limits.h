// [limits.user], [[limits.users]] and [[limits.groups]]: what users may hold,
// and what they may have of the cores. Used by config.cc.

#ifndef DAEMON_CONFIG_LIMITS_H_
#define DAEMON_CONFIG_LIMITS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "daemon/config_keys.h"
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
               core::SchedulingOptions& scheduling) const;

 private:
  // Of the cores. What is not named is as in [limits.user].
  struct Share {
    std::optional<core::Priority> ceiling;
    std::optional<uint32_t> weight;

    [[nodiscard]] bool named() const {
      return ceiling.has_value() || weight.has_value();
    }
    [[nodiscard]] core::SharePolicy Over(core::SharePolicy policy) const;
  };
  struct User {
    core::UserLimits limits;  // what is not named has none
    Share share;
  };

  static Setters LimitKeys(core::UserLimits& limits);
  static void AddShareKeys(Setters& setters, Share& share);
  absl::Status ReadUser(const toml::table& table, const std::string& path);
  absl::Status ReadGroup(const toml::table& table, const std::string& path);

  std::optional<User> all_;
  std::map<uint32_t, User> users_;
  std::map<uint32_t, Share> groups_;
};

}  // namespace rknnd

#endif  // DAEMON_CONFIG_LIMITS_H_
