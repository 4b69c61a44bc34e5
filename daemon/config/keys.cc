// The file is an administrator's: wrong, perhaps, but not hostile.

#include "daemon/config/keys.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "base/status/status.h"
#include "daemon/config/known.h"

namespace rknnd {
namespace {

// The keys of a table as they stand in the file.
std::vector<std::pair<uint32_t, std::string>> ByLine(const toml::table& table) {
  std::vector<std::pair<uint32_t, std::string>> keys;
  for (const auto& [key, node] : table) {
    keys.emplace_back(key.source().begin.line, key.str());
  }
  std::sort(keys.begin(), keys.end());
  return keys;
}

}  // namespace

void Complaints::Add(const absl::Status& status) {
  if (status.ok()) return;
  absl::StrAppend(&text_, text_.empty() ? "" : "\n",
                  std::string(status.message()));
}

absl::Status Complaints::status() const {
  return text_.empty() ? absl::OkStatus() : absl::InvalidArgumentError(text_);
}

absl::Status WrongType(const char* wanted) {
  return absl::InvalidArgumentError(absl::StrCat("must be ", wanted));
}

absl::Status OutOfRange(int64_t number, uint64_t least, uint64_t most,
                        const char* unit) {
  // What a file cannot say is no bound to tell of.
  const bool bounded = most < std::numeric_limits<int64_t>::max();
  return absl::InvalidArgumentError(
      bounded
          ? absl::StrCat("is ", number, ", must be ", least, " to ", most, unit)
          : absl::StrCat("is ", number, ", must be at least ", least, unit));
}

Setter Text(std::string& target) {
  return [&target](const toml::node& node) -> absl::Status {
    const auto* value = node.as_string();
    if (value == nullptr) return WrongType("a text in quotes");
    target = value->get();
    return absl::OkStatus();
  };
}

Setter Flag(bool& target) {
  return [&target](const toml::node& node) -> absl::Status {
    const auto* value = node.as_boolean();
    if (value == nullptr) return WrongType("true or false");
    target = value->get();
    return absl::OkStatus();
  };
}

Setter Seconds(base::Nanoseconds& target, double least, double most) {
  return [&target, least, most](const toml::node& node) -> absl::Status {
    const auto seconds = node.value<double>();
    if (!seconds.has_value()) return WrongType("a number of seconds");
    if (!(*seconds >= least && *seconds <= most)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "is ", *seconds, " seconds, must be ", least, " to ", most));
    }
    target = static_cast<base::Nanoseconds>(*seconds *
                                            static_cast<double>(base::kSecond));
    return absl::OkStatus();
  };
}

Setter Path(std::string& target) {
  return [&target](const toml::node& node) -> absl::Status {
    std::string path;
    RKNND_RETURN_IF_ERROR(Text(path)(node));
    if (!path.empty() && path.front() != '/') {
      return absl::InvalidArgumentError(
          absl::StrCat("is '", path, "', must be a path from the root"));
    }
    target = std::move(path);
    return absl::OkStatus();
  };
}

Setter Texts(std::vector<std::string>& target, bool one) {
  return [&target, one](const toml::node& node) -> absl::Status {
    target.clear();
    if (one && node.is_string()) return Text(target.emplace_back())(node);
    const auto* list = node.as_array();
    if (list == nullptr) return WrongType("a list of texts in quotes");
    for (const toml::node& entry : *list) {
      RKNND_RETURN_IF_ERROR(Text(target.emplace_back())(entry));
    }
    return absl::OkStatus();
  };
}

Setter OneOf(std::string& target, std::vector<std::string> words) {
  return [&target,
          words = std::move(words)](const toml::node& node) -> absl::Status {
    std::string word;
    RKNND_RETURN_IF_ERROR(Text(word)(node));
    if (std::find(words.begin(), words.end(), word) == words.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("is '", word, "', must be one of \"",
                       absl::StrJoin(words, "\", \""), "\""));
    }
    target = std::move(word);
    return absl::OkStatus();
  };
}

absl::Status Apply(const toml::table& table, const Setters& setters,
                   const std::string& prefix, const std::string& path) {
  const std::string place = absl::StrCat("'", path, "' line ");
  Complaints complaints;
  for (const auto& [line, key] : ByLine(table)) {
    const toml::node& node = *table.get(key);
    const std::string name = absl::StrCat(prefix, key);
    const auto where = [&, at = line](const std::string& what) {
      complaints.Add(absl::InvalidArgumentError(
          absl::StrCat(place, at, ": key '", name, "' ", what)));
    };
    const auto setter = setters.find(key);
    if (setter == setters.end() || !IsKnownKey(name)) {
      where(absl::StrCat("is unknown to this version", DidYouMean(name)));
      continue;
    }
    const absl::Status status = setter->second(node);
    if (status.ok()) continue;
    // A table's own key has said where.
    if (absl::StartsWith(status.message(), place)) {
      complaints.Add(status);
    } else {
      where(std::string(status.message()));
    }
  }
  return complaints.status();
}

Setter Table(const std::string& name, Setters setters,
             const std::string& path) {
  // Shared: setters are copied.
  const auto own = std::make_shared<const Setters>(std::move(setters));
  return [name, own, path](const toml::node& node) -> absl::Status {
    const auto* table = node.as_table();
    if (table == nullptr) {
      return WrongType(absl::StrCat("a table: [", name, "]").c_str());
    }
    return Apply(*table, *own, name + ".", path);
  };
}

Setter EachTable(const char* form,
                 std::function<absl::Status(const toml::table&)> read) {
  return [form, read = std::move(read)](const toml::node& node) {
    const auto* list = node.as_array();
    if (list == nullptr) {
      return WrongType(absl::StrCat("a list: ", form).c_str());
    }
    Complaints complaints;
    for (const toml::node& entry : *list) {
      const auto* table = entry.as_table();
      if (table == nullptr) return WrongType("a list of tables");
      complaints.Add(read(*table));
    }
    return complaints.status();
  };
}

absl::Status AtTable(const toml::table& table, const std::string& path,
                     const std::string& key, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("'", path, "' line ",
                                                 table.source().begin.line,
                                                 ": key '", key, "' ", what));
}

}  // namespace rknnd
