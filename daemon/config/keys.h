// How one key of the configuration file becomes a value: by its type, within
// its range, or an error that the reader of the whole file puts line and name
// to. Used by other files of this folder only.

#ifndef DAEMON_CONFIG_KEYS_H_
#define DAEMON_CONFIG_KEYS_H_

#include <toml++/toml.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/posix/clock.h"

namespace rknnd {

using Setter = std::function<absl::Status(const toml::node&)>;
using Setters = std::map<std::string, Setter, std::less<>>;

// All that is wrong, a line each: people correct files over slow lines, and
// want to do so once.
class Complaints {
 public:
  // Nothing for OK.
  void Add(const absl::Status& status);
  // OK when nothing was added.
  [[nodiscard]] absl::Status status() const;

 private:
  std::string text_;
};

absl::Status WrongType(const char* wanted);

// "is 7 bytes, must be 1 to 5 bytes". `unit`: "" or as " bytes".
absl::Status OutOfRange(int64_t number, uint64_t least, uint64_t most,
                        const char* unit);

Setter Text(std::string& target);
Setter Flag(bool& target);
// Seconds, a fraction perhaps.
Setter Seconds(base::Nanoseconds& target, double least, double most);
// A path from the root, or nothing.
Setter Path(std::string& target);
// A list of texts; `one`: or one text.
Setter Texts(std::vector<std::string>& target, bool one = false);
// One of some words.
Setter OneOf(std::string& target, std::vector<std::string> words);

template <class Integer>
Setter Number(Integer& target, uint64_t least,
              uint64_t most = std::numeric_limits<Integer>::max(),
              const char* unit = "") {
  return [&target, least, most, unit](const toml::node& node) -> absl::Status {
    const auto* value = node.as_integer();
    if (value == nullptr) return WrongType("a whole number");
    const int64_t number = value->get();
    if (number < 0 || static_cast<uint64_t>(number) < least ||
        static_cast<uint64_t>(number) > most) {
      return OutOfRange(number, least, most, unit);
    }
    target = static_cast<Integer>(number);
    return absl::OkStatus();
  };
}

// The same of what need not be given.
template <class Integer>
Setter Number(std::optional<Integer>& target, uint64_t least,
              uint64_t most = std::numeric_limits<Integer>::max(),
              const char* unit = "") {
  return [&target, least, most, unit](const toml::node& node) {
    return Number(target.emplace(), least, most, unit)(node);
  };
}

// A number of bytes.
inline Setter Bytes(uint64_t& target, uint64_t least,
                    uint64_t most = std::numeric_limits<int64_t>::max()) {
  return Number(target, least, most, " bytes");
}

// Each key of `table` by its setter. `prefix`: "limits." and the like. All that
// is wrong with it, not only the first.
absl::Status Apply(const toml::table& table, const Setters& setters,
                   const std::string& prefix, const std::string& path);

// A key that is a table; `name`: "limits".
Setter Table(const std::string& name, Setters setters, const std::string& path);

// `read` for each table of a list; `form`: how one is written.
Setter EachTable(const char* form,
                 std::function<absl::Status(const toml::table&)> read);

// About a key of `table` as a whole: one that is missing, perhaps.
absl::Status AtTable(const toml::table& table, const std::string& path,
                     const std::string& key, const std::string& what);

}  // namespace rknnd

#endif  // DAEMON_CONFIG_KEYS_H_
