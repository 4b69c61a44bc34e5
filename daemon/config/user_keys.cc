// Keys of what users may hold, and of what they may have of the cores:
// [limits.user], and [[limits.users]] and [[limits.groups]], where what an
// entry does not name is as in [limits.user].

#include <map>
#include <string>
#include <tuple>

#include "daemon/config/key_table.h"
#include "daemon/config/value_types.h"

namespace rknnd {
namespace {

using core::Priority;
using core::SchedulingOptions;
using core::SharePolicy;
using core::UserLimits;

// An entry of a list.
struct Entry {
  uint32_t id = 0;  // of the user or group
  UserLimits limits;
  SharePolicy share;
};

// `kLimits`: the way from an Owner to its UserLimits.
template <class Owner, auto... kLimits>
KeyTable<Owner> LimitKeys(const std::string& prefix) {
  KeyTable<Owner> table;
  table.Live(prefix + "memory", Bytes(0), At<kLimits..., &UserLimits::memory>,
             "All buffers, and uploads on their way. 0: no limit.");
  table.Live(prefix + "contexts", Number(0),
             At<kLimits..., &UserLimits::contexts>, "Contexts. 0: no limit.");
  table.Live(prefix + "buffers", Number(0),
             At<kLimits..., &UserLimits::buffers>, "Buffers. 0: no limit.");
  table.Live(prefix + "sessions", Number(0),
             At<kLimits..., &UserLimits::sessions>,
             "Sessions; operators' on `admin.sock` do not count. 0: no "
             "limit.");
  table.Live(prefix + "queue", Number(0), At<kLimits..., &UserLimits::queue>,
             "Jobs that wait or run, of all contexts. 0: no limit.");
  return table;
}

// `kShare`: the way from an Owner to its SharePolicy.
template <class Owner, auto... kShare>
KeyTable<Owner> ShareKeys(const std::string& prefix) {
  KeyTable<Owner> table;
  table.Live(prefix + "max_priority",
             OneOf<Priority>({{"high", Priority::kHigh},
                              {"medium", Priority::kMedium},
                              {"low", Priority::kLow}}),
             At<kShare..., &SharePolicy::ceiling>,
             "The highest priority that jobs may have; what asks for more "
             "gets this.");
  table.Live(prefix + "weight", Number(1, SharePolicy::kMostWeight),
             At<kShare..., &SharePolicy::weight>,
             "Part of the NPU's time beside others': twice as much weight "
             "gets twice the time.");
  table
      .Live(prefix + "cores", Cores(), At<kShare..., &SharePolicy::cores>,
            "The cores that jobs may have.")
      .Unset("all")
      .Example("[0, 1, 2]");
  return table;
}

// Takes over what `file` names; whether it names anything.
bool TakeNamed(const KeyTable<Entry>& keys, const toml::table& file,
               const std::string& prefix, const Entry& from, Entry& to) {
  bool any = false;
  for (const Key<Entry>& key : keys.keys()) {
    for (const auto& [name, node] : file) {
      if (!key.IsNamed(prefix + std::string(name.str()))) continue;
      key.take(from, to);
      any = true;
    }
  }
  return any;
}

// Of users, or of groups.
struct Kind {
  std::string table;   // "limits.users"
  std::string word;    // "user"
  std::string number;  // "uid"
  std::map<uint32_t, UserLimits> Config::*limits;
  std::map<uint32_t, SharePolicy> SchedulingOptions::*shares;
};

// An entry names whom it is about once, by number or by name, and no other does
// so. Empty: it does.
std::string FaultOfNames(const toml::table& file, const Kind& kind, uint32_t id,
                         bool again) {
  const bool by_number = file.contains(kind.number);
  const bool by_name = file.contains(kind.word);
  if (by_number && by_name) {
    return absl::StrCat("stands beside '", kind.word,
                        "': one of them names the ", kind.word);
  }
  if (!by_number && !by_name) {
    return absl::StrCat("is missing, and so is '", kind.word, "'");
  }
  return again ? absl::StrCat("names ", kind.word, " ", id, " again") : "";
}

template <class Name>
void AddList(KeyTable<Config>& table, const Kind& kind, Name name,
             const char* whom, const char* example) {
  const std::string prefix = kind.table + ".";
  auto limits = LimitKeys<Entry, &Entry::limits>(prefix);
  auto shares = ShareKeys<Entry, &Entry::share>(prefix);
  KeyTable<Entry> entries;
  entries.Live(prefix + kind.word, name, At<&Entry::id>, whom).Example(example);
  entries.Live(prefix + kind.number, Number(0), At<&Entry::id>,
               "The same by number.");
  entries.SayDefault(
      absl::StrCat("`", kind.number, "` or `", kind.word, "` must be given"));
  limits.SayDefault("as in `[limits.user]`");
  shares.SayDefault("as in `[limits.user]`");
  entries.Append(limits);
  entries.Append(shares);
  const auto add = [=](const toml::table& file, const Entry& entry, bool good,
                       Config& config, Findings& findings) {
    auto& own_limits = config.*kind.limits;
    auto& own_shares = config.scheduling.*kind.shares;
    const std::string fault =
        FaultOfNames(file, kind, entry.id,
                     good && (own_limits.contains(entry.id) ||
                              own_shares.contains(entry.id)));
    const uint32_t line = file.source().begin.line;
    if (!fault.empty()) findings.Complain(line, prefix + kind.number, fault);
    if (!good) return;
    Entry all{entry.id, config.user_limits, config.scheduling.share};
    // Where an entry names nothing of a kind, others have a say: a user's
    // groups, then [limits.user].
    const bool limited = TakeNamed(limits, file, prefix, entry, all);
    const bool shared = TakeNamed(shares, file, prefix, entry, all);
    if (!limited && !shared) {
      findings.Complain(line, kind.table,
                        "limits nothing: name a limit in it, of which 0 is "
                        "none");
    }
    if (limited) own_limits.emplace(entry.id, all.limits);
    if (shared) own_shares.emplace(entry.id, all.share);
  };
  table.List(kind.table, entries, add, [kind](auto& config) {
    return std::tie(config.*kind.limits, config.scheduling.*kind.shares);
  });
}

}  // namespace

void AddUserKeys(KeyTable<Config>& table) {
  table.Append(LimitKeys<Config, &Config::user_limits>("limits.user."));
  table.Append(
      ShareKeys<Config, &Config::scheduling, &SchedulingOptions::share>(
          "limits.user."));
  AddList(table,
          {"limits.users", "user", "uid", &Config::users,
           &SchedulingOptions::users},
          UserName(), "The user whom an entry is for, by name.", "\"frigate\"");
  AddList(table,
          {"limits.groups", "group", "gid", &Config::groups,
           &SchedulingOptions::groups},
          GroupName(), "The group whose members an entry is for, by name.",
          "\"video\"");
}

}  // namespace rknnd
