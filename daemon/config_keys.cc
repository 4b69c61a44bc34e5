// The file is an administrator's: wrong, perhaps, but not hostile.

#include "daemon/config_keys.h"

#include <utility>

#include "absl/strings/match.h"
#include "base/status/status.h"

namespace rknnd {

absl::Status WrongType(const char* wanted) {
  return absl::InvalidArgumentError(absl::StrCat("must be ", wanted));
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

absl::Status Apply(const toml::table& table, const Setters& setters,
                   const std::string& prefix, const std::string& path) {
  const std::string place = absl::StrCat("'", path, "' line ");
  for (const auto& [key, node] : table) {
    const std::string name = absl::StrCat(prefix, std::string(key.str()));
    const auto where = [&, &value = node](const std::string& what) {
      return absl::InvalidArgumentError(absl::StrCat(
          place, value.source().begin.line, ": key '", name, "' ", what));
    };
    const auto setter = setters.find(std::string(key.str()));
    if (setter == setters.end()) return where("is unknown to this version");
    const absl::Status status = setter->second(node);
    if (status.ok()) continue;
    // A table's own key has said where.
    if (absl::StartsWith(status.message(), place)) return status;
    return where(std::string(status.message()));
  }
  return absl::OkStatus();
}

Setter EachTable(const char* form,
                 std::function<absl::Status(const toml::table&)> read) {
  return [form, read = std::move(read)](const toml::node& node) {
    const auto* list = node.as_array();
    if (list == nullptr) {
      return WrongType(absl::StrCat("a list: ", form).c_str());
    }
    for (const toml::node& entry : *list) {
      const auto* table = entry.as_table();
      if (table == nullptr) return WrongType("a list of tables");
      RKNND_RETURN_IF_ERROR(read(*table));
    }
    return absl::OkStatus();
  };
}

absl::Status AtTable(const toml::table& table, const std::string& path,
                     const std::string& key, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("'", path, "' line ",
                                                 table.source().begin.line,
                                                 ": key '", key, "' ", what));
}

}  // namespace rknnd
