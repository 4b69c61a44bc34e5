// Asks the machine's databases of users and groups, which may be on the
// network: at the start and at reloads only.

#include "daemon/config/names.h"

#include <grp.h>
#include <pwd.h>

#include <cerrno>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status/status.h"

namespace rknnd {
namespace {

// An entry of passwd or group; no system's is larger by much, and it grows.
constexpr size_t kNameRoom = 4096;
constexpr size_t kMostNameRoom = size_t{1} << 20;

// The last number means "as it is" to the kernel.
constexpr uint32_t kLastId = std::numeric_limits<uint32_t>::max() - 1;

const char* AskedFor(const std::string& name) { return name.c_str(); }
uint32_t AskedFor(uint32_t number) { return number; }

// The number that getpwnam_r and its like know `name` by, a name or a number.
template <class Entry, class Name, class Look, class Member>
absl::StatusOr<uint32_t> Find(const char* what, const Name& name, Look look,
                              Member member) {
  for (size_t room = kNameRoom; room <= kMostNameRoom; room *= 4) {
    std::vector<char> buffer(room);
    Entry entry{};
    Entry* found = nullptr;
    const int error =
        look(AskedFor(name), &entry, buffer.data(), buffer.size(), &found);
    if (error == ERANGE) continue;
    if (found == nullptr) break;
    return found->*member;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "is '", name, "': this machine has no ", what, " of that name"));
}

}  // namespace

Setter UserName(uint32_t& uid) {
  return [&uid](const toml::node& node) -> absl::Status {
    std::string name;
    RKNND_RETURN_IF_ERROR(Text(name)(node));
    RKNND_ASSIGN_OR_RETURN(
        uid, Find<passwd>("user", name, getpwnam_r, &passwd::pw_uid));
    return absl::OkStatus();
  };
}

Setter OtherUser(std::string& user) {
  return [&user](const toml::node& node) -> absl::Status {
    std::string name;
    RKNND_RETURN_IF_ERROR(Text(name)(node));
    uint32_t uid = 0;
    if (absl::SimpleAtoi(name, &uid)) {
      RKNND_RETURN_IF_ERROR(
          Find<passwd>("user", uid, getpwuid_r, &passwd::pw_uid).status());
    } else if (!name.empty()) {
      RKNND_ASSIGN_OR_RETURN(
          uid, Find<passwd>("user", name, getpwnam_r, &passwd::pw_uid));
    }
    if (uid == 0 && !name.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("is '", name,
                       "', which is root: name another, or \"\" to stay root"));
    }
    user = std::move(name);
    return absl::OkStatus();
  };
}

Setter GroupName(uint32_t& gid) {
  return [&gid](const toml::node& node) -> absl::Status {
    std::string name;
    RKNND_RETURN_IF_ERROR(Text(name)(node));
    RKNND_ASSIGN_OR_RETURN(
        gid, Find<::group>("group", name, getgrnam_r, &::group::gr_gid));
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
