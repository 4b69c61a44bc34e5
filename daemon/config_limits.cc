// See the header. Names of users and groups are looked up once, when the file
// is read: an unknown one is an error there and not a limit that never holds.

#include "daemon/config_limits.h"

#include <grp.h>
#include <pwd.h>

#include <cerrno>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status/status.h"

namespace rknnd {
namespace {

// Shares are proportions: a thousandth of another's is a mistake.
constexpr uint32_t kMostWeight = 1000;

// An entry of passwd or group; no system's is larger by much, and it grows.
constexpr size_t kNameRoom = 4096;
constexpr size_t kMostNameRoom = size_t{1} << 20;

// The number that getpwnam_r or getgrnam_r knows `name` by.
template <class Entry, class Look, class Member>
absl::StatusOr<uint32_t> Find(const char* what, const std::string& name,
                              Look look, Member member) {
  for (size_t room = kNameRoom; room <= kMostNameRoom; room *= 4) {
    std::vector<char> buffer(room);
    Entry entry{};
    Entry* found = nullptr;
    const int error =
        look(name.c_str(), &entry, buffer.data(), buffer.size(), &found);
    if (error == ERANGE) continue;
    if (found == nullptr) break;
    return found->*member;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "is '", name, "': this machine has no ", what, " of that name"));
}

Setter UserName(uint32_t& uid) {
  return [&uid](const toml::node& node) -> absl::Status {
    std::string name;
    RKNND_RETURN_IF_ERROR(Text(name)(node));
    RKNND_ASSIGN_OR_RETURN(
        uid, Find<passwd>("user", name, getpwnam_r, &passwd::pw_uid));
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

Setter Ceiling(std::optional<core::Priority>& target) {
  return [&target](const toml::node& node) -> absl::Status {
    std::string word;
    RKNND_RETURN_IF_ERROR(Text(word)(node));
    if (word == "high") {
      target = core::Priority::kHigh;
    } else if (word == "medium") {
      target = core::Priority::kMedium;
    } else if (word == "low") {
      target = core::Priority::kLow;
    } else {
      return absl::InvalidArgumentError(absl::StrCat(
          "is '", word, "', must be \"high\", \"medium\" or \"low\""));
    }
    return absl::OkStatus();
  };
}

// An entry names whom it is about once, by number or by name: `key` is the
// number's, `who` the name's. `first`: nobody else's entry has done so.
absl::Status CheckNamed(const toml::table& table, const std::string& path,
                        const std::string& key, const std::string& who,
                        uint32_t number, bool first) {
  const bool by_number = table.contains(key.substr(key.rfind('.') + 1));
  const bool by_name = table.contains(who);
  std::string fault;
  if (by_number && by_name) {
    fault =
        absl::StrCat("stands beside '", who, "': one of them names the ", who);
  } else if (!by_number && !by_name) {
    fault = absl::StrCat("is missing, and so is '", who, "'");
  } else if (!first) {
    fault = absl::StrCat("names ", who, " ", number, " again");
  } else {
    return absl::OkStatus();
  }
  return AtTable(table, path, key, fault);
}

}  // namespace

core::SharePolicy UserKeys::Share::Over(core::SharePolicy policy) const {
  if (ceiling.has_value()) policy.ceiling = *ceiling;
  if (weight.has_value()) policy.weight = *weight;
  return policy;
}

Setters UserKeys::LimitKeys(core::UserLimits& limits) {
  return {
      {"memory", Number(limits.memory, 0)},
      {"contexts", Number(limits.contexts, 0)},
      {"buffers", Number(limits.buffers, 0)},
  };
}

void UserKeys::AddShareKeys(Setters& setters, Share& share) {
  setters["max_priority"] = Ceiling(share.ceiling);
  setters["weight"] = [&share](const toml::node& node) {
    return Number(share.weight.emplace(), 1, kMostWeight)(node);
  };
}

absl::Status UserKeys::ReadUser(const toml::table& table,
                                const std::string& path) {
  User user;
  uint32_t uid = 0;
  Setters setters = LimitKeys(user.limits);
  AddShareKeys(setters, user.share);
  setters["uid"] = Number(uid, 0);
  setters["user"] = UserName(uid);
  RKNND_RETURN_IF_ERROR(Apply(table, setters, "limits.users.", path));
  return CheckNamed(table, path, "limits.users.uid", "user", uid,
                    users_.emplace(uid, user).second);
}

absl::Status UserKeys::ReadGroup(const toml::table& table,
                                 const std::string& path) {
  Share share;
  uint32_t gid = 0;
  Setters setters;
  AddShareKeys(setters, share);
  setters["gid"] = Number(gid, 0);
  setters["group"] = GroupName(gid);
  RKNND_RETURN_IF_ERROR(Apply(table, setters, "limits.groups.", path));
  return CheckNamed(table, path, "limits.groups.gid", "group", gid,
                    groups_.emplace(gid, share).second);
}

void UserKeys::AddTo(Setters& limits, const std::string& path) {
  limits["user"] = [this, path](const toml::node& node) -> absl::Status {
    const auto* table = node.as_table();
    if (table == nullptr) return WrongType("a table: [limits.user]");
    User& all = all_.emplace();
    Setters setters = LimitKeys(all.limits);
    AddShareKeys(setters, all.share);
    return Apply(*table, setters, "limits.user.", path);
  };
  limits["users"] = EachTable(
      "[[limits.users]]",
      [this, path](const toml::table& table) { return ReadUser(table, path); });
  limits["groups"] =
      EachTable("[[limits.groups]]", [this, path](const toml::table& table) {
        return ReadGroup(table, path);
      });
}

void UserKeys::ApplyTo(core::UserLimits& all,
                       std::map<uint32_t, core::UserLimits>& users,
                       core::SchedulingOptions& scheduling) const {
  if (all_.has_value()) {
    all = all_->limits;
    scheduling.share = all_->share.Over(scheduling.share);
  }
  for (const auto& [uid, user] : users_) {
    users[uid] = user.limits;
    // Else the user's groups have a say.
    if (user.share.named()) {
      scheduling.users[uid] = user.share.Over(scheduling.share);
    }
  }
  for (const auto& [gid, share] : groups_) {
    if (share.named()) {
      scheduling.groups[gid] = share.Over(scheduling.share);
    }
  }
}

}  // namespace rknnd
