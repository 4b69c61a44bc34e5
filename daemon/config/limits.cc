// The file is an administrator's: wrong, perhaps, but not hostile.

#include "daemon/config/limits.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "daemon/config/names.h"

namespace rknnd {
namespace {

// That a core mask of the vendor's can name.
constexpr uint32_t kLastCore = 2;
// All that a file can say.
constexpr uint64_t kMostBytes = std::numeric_limits<int64_t>::max();

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

// The cores that may be used, by number.
Setter Cores(std::optional<uint32_t>& target) {
  return [&target](const toml::node& node) -> absl::Status {
    const auto* list = node.as_array();
    if (list == nullptr || list->empty()) {
      return WrongType("a list of cores, as [0, 1]");
    }
    uint32_t cores = 0;
    for (const toml::node& entry : *list) {
      uint32_t core = 0;
      RKNND_RETURN_IF_ERROR(Number(core, 0, kLastCore)(entry));
      cores |= uint32_t{1} << core;
    }
    target = cores;
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

bool UserKeys::Entry::names_limits() const {
  return memory.has_value() || contexts.has_value() || buffers.has_value() ||
         sessions.has_value() || queue.has_value();
}

bool UserKeys::Entry::names_share() const {
  return ceiling.has_value() || weight.has_value() || cores.has_value();
}

core::UserLimits UserKeys::Entry::Over(core::UserLimits limits) const {
  limits.memory = memory.value_or(limits.memory);
  limits.contexts = contexts.value_or(limits.contexts);
  limits.buffers = buffers.value_or(limits.buffers);
  limits.sessions = sessions.value_or(limits.sessions);
  limits.queue = queue.value_or(limits.queue);
  return limits;
}

core::SharePolicy UserKeys::Entry::Over(core::SharePolicy policy) const {
  policy.ceiling = ceiling.value_or(policy.ceiling);
  policy.weight = weight.value_or(policy.weight);
  policy.cores = cores.value_or(policy.cores);
  return policy;
}

Setters UserKeys::KeysOf(Entry& entry) {
  return {
      {"memory", Number(entry.memory, 0, kMostBytes, " bytes")},
      {"contexts", Number(entry.contexts, 0)},
      {"buffers", Number(entry.buffers, 0)},
      {"sessions", Number(entry.sessions, 0)},
      {"queue", Number(entry.queue, 0)},
      {"max_priority", Ceiling(entry.ceiling)},
      {"weight", Number(entry.weight, 1, core::SharePolicy::kMostWeight)},
      {"cores", Cores(entry.cores)},
  };
}

absl::Status UserKeys::Read(const toml::table& table, const std::string& path,
                            const Kind& kind, std::map<uint32_t, Entry>& all) {
  Entry entry;
  uint32_t number = 0;
  Setters setters = KeysOf(entry);
  setters[kind.number] = Number(number, 0);
  setters[kind.word] = kind.name(number);
  Complaints complaints;
  complaints.Add(Apply(table, setters, kind.table + ".", path));
  // One whose name is unknown is nobody's, and not another's again.
  const bool known = complaints.status().ok();
  complaints.Add(CheckNamed(
      table, path, absl::StrCat(kind.table, ".", kind.number), kind.word,
      number, !known || all.emplace(number, entry).second));
  if (known && !entry.names_limits() && !entry.names_share()) {
    complaints.Add(AtTable(table, path, kind.table,
                           "limits nothing: name a limit in it, of which 0 is "
                           "none"));
  }
  return complaints.status();
}

void UserKeys::AddTo(Setters& limits, const std::string& path) {
  limits["user"] = Table("limits.user", KeysOf(all_), path);
  limits["users"] =
      EachTable("[[limits.users]]", [this, path](const auto& table) {
        return Read(table, path, {"user", "uid", "limits.users", &UserName},
                    users_);
      });
  limits["groups"] =
      EachTable("[[limits.groups]]", [this, path](const auto& table) {
        return Read(table, path, {"group", "gid", "limits.groups", &GroupName},
                    groups_);
      });
}

void UserKeys::ApplyTo(core::UserLimits& all,
                       std::map<uint32_t, core::UserLimits>& users,
                       std::map<uint32_t, core::UserLimits>& groups,
                       core::SchedulingOptions& scheduling) const {
  all = all_.Over(all);
  scheduling.share = all_.Over(scheduling.share);
  // Where an entry names nothing of a kind, others have a say: a user's groups,
  // then [limits.user].
  for (const auto& [uid, entry] : users_) {
    if (entry.names_limits()) users[uid] = entry.Over(all);
    if (entry.names_share()) {
      scheduling.users[uid] = entry.Over(scheduling.share);
    }
  }
  for (const auto& [gid, entry] : groups_) {
    if (entry.names_limits()) groups[gid] = entry.Over(all);
    if (entry.names_share()) {
      scheduling.groups[gid] = entry.Over(scheduling.share);
    }
  }
}

}  // namespace rknnd
