// See the header.

#include "daemon/config/names.h"

#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "daemon/config/users.h"

namespace rknnd {
namespace {

// The last number means "as it is" to the kernel.
constexpr uint32_t kLastId = std::numeric_limits<uint32_t>::max() - 1;

absl::Status Unknown(const char* what, const std::string& name) {
  return absl::InvalidArgumentError(absl::StrCat(
      "is '", name, "': this machine has no ", what, " of that name"));
}

}  // namespace

Setter UserName(uint32_t& uid) {
  return [&uid](const toml::node& node) -> absl::Status {
    std::string name;
    RKNND_RETURN_IF_ERROR(Text(name)(node));
    const auto user = FindUserNamed(name);
    if (!user.has_value()) return Unknown("user", name);
    uid = user->uid;
    return absl::OkStatus();
  };
}

Setter OtherUser(std::string& user) {
  return [&user](const toml::node& node) -> absl::Status {
    std::string name;
    RKNND_RETURN_IF_ERROR(Text(name)(node));
    if (!name.empty()) {
      const auto found = FindUser(name);
      if (!found.has_value()) return Unknown("user", name);
      if (found->uid == 0) {
        return absl::InvalidArgumentError(absl::StrCat(
            "is '", name,
            "', which is root: name another, or \"\" to stay root"));
      }
    }
    user = std::move(name);
    return absl::OkStatus();
  };
}

Setter GroupName(uint32_t& gid) {
  return [&gid](const toml::node& node) -> absl::Status {
    std::string name;
    RKNND_RETURN_IF_ERROR(Text(name)(node));
    const auto group = FindGroupNamed(name);
    if (!group.has_value()) return Unknown("group", name);
    gid = *group;
    return absl::OkStatus();
  };
}

Setter Group(std::optional<uint32_t>& gid) {
  return [&gid](const toml::node& node) -> absl::Status {
    if (node.is_integer()) return Number(gid, 0, kLastId)(node);
    if (!node.is_string()) return WrongType("a group's name or number");
    return GroupName(gid.emplace())(node);
  };
}

}  // namespace rknnd
