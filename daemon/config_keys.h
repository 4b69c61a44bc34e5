// How one key of the configuration file becomes a value: by its type, within
// its range, or an error that the reader of the whole file puts line and name
// to. Used by config*.cc only.

#ifndef DAEMON_CONFIG_KEYS_H_
#define DAEMON_CONFIG_KEYS_H_

#include <toml++/toml.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/posix/clock.h"

namespace rknnd {

using Setter = std::function<absl::Status(const toml::node&)>;
using Setters = std::map<std::string, Setter, std::less<>>;

absl::Status WrongType(const char* wanted);

Setter Text(std::string& target);
Setter Flag(bool& target);
// Seconds, a fraction perhaps.
Setter Seconds(base::Nanoseconds& target, double least, double most);

template <class Integer>
Setter Number(Integer& target, uint64_t least,
              uint64_t most = std::numeric_limits<Integer>::max()) {
  return [&target, least, most](const toml::node& node) -> absl::Status {
    const auto* value = node.as_integer();
    if (value == nullptr) return WrongType("a whole number");
    const int64_t number = value->get();
    if (number < 0 || static_cast<uint64_t>(number) < least ||
        static_cast<uint64_t>(number) > most) {
      return absl::InvalidArgumentError(
          absl::StrCat("is ", number, ", must be ", least, " to ", most));
    }
    target = static_cast<Integer>(number);
    return absl::OkStatus();
  };
}

// Each key of `table` by its setter. `prefix`: "limits." and the like.
absl::Status Apply(const toml::table& table, const Setters& setters,
                   const std::string& prefix, const std::string& path);

// `read` for each table of a list; `form`: how one is written.
Setter EachTable(const char* form,
                 std::function<absl::Status(const toml::table&)> read);

// About a key of `table` as a whole: one that is missing, perhaps.
absl::Status AtTable(const toml::table& table, const std::string& path,
                     const std::string& key, const std::string& what);

}  // namespace rknnd

#endif  // DAEMON_CONFIG_KEYS_H_
