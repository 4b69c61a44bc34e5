// The types that a key of the configuration file may have. Each says its name
// and range in words, reads a value of it into a member, with an error that the
// reader of the whole file puts line and name to, and shows one as the file
// would say it. Used by other files of this folder only.

#ifndef DAEMON_CONFIG_VALUE_TYPES_H_
#define DAEMON_CONFIG_VALUE_TYPES_H_

#include <toml++/toml.h>

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/posix/clock.h"
#include "base/status/status.h"
#include "driver/fault.h"

namespace rknnd {

absl::Status WrongType(const char* wanted);

// Whole numbers from `least` to `most`, or to the last of the member's type.
class Number {
 public:
  static constexpr uint64_t kNoMost = std::numeric_limits<uint64_t>::max();

  explicit Number(uint64_t least, uint64_t most = kNoMost,
                  const char* name = "number", const char* unit = "")
      : least_(least), most_(most), name_(name), unit_(unit) {}

  template <std::integral Integer>
  absl::Status Read(const toml::node& node, Integer& target) const {
    RKNND_ASSIGN_OR_RETURN(
        const uint64_t value,
        Parse(node,
              std::min<uint64_t>(most_, std::numeric_limits<Integer>::max())));
    target = static_cast<Integer>(value);
    return absl::OkStatus();
  }
  template <std::integral Integer>
  [[nodiscard]] std::string Show(Integer value) const {
    return absl::StrCat(value);
  }
  [[nodiscard]] const char* name() const { return name_; }
  [[nodiscard]] std::string range() const;

 private:
  [[nodiscard]] absl::StatusOr<uint64_t> Parse(const toml::node& node,
                                               uint64_t most) const;

  uint64_t least_, most_;
  const char* name_;
  const char* unit_;
};

inline Number Bytes(uint64_t least,
                    uint64_t most = std::numeric_limits<int64_t>::max()) {
  return Number(least, most, "bytes", " bytes");
}

// A fraction perhaps.
struct Seconds {
  double least, most;
  absl::Status Read(const toml::node& node, base::Nanoseconds& target) const;
  [[nodiscard]] std::string Show(base::Nanoseconds value) const;
  static const char* name() { return "seconds"; }
  [[nodiscard]] std::string range() const;
};

struct Milliseconds {
  uint64_t most;
  absl::Status Read(const toml::node& node, base::Nanoseconds& target) const;
  [[nodiscard]] std::string Show(base::Nanoseconds value) const;
  static const char* name() { return "milliseconds"; }
  [[nodiscard]] std::string range() const;
};

// What any of its values is good for.
template <class Value>
struct Unbounded {
  static std::string range() { return ""; }
  static std::string Show(const Value& /*value*/) { return ""; }
};

struct Decimal {
  absl::Status Read(const toml::node& node, double& target) const;
  [[nodiscard]] std::string Show(double value) const;
  static const char* name() { return "number"; }
  static std::string range() { return ""; }
};

struct Flag {
  absl::Status Read(const toml::node& node, bool& target) const;
  [[nodiscard]] std::string Show(bool value) const;
  static const char* name() { return "true or false"; }
  static std::string range() { return ""; }
};

struct Text {
  absl::Status Read(const toml::node& node, std::string& target) const;
  [[nodiscard]] std::string Show(const std::string& value) const;
  static const char* name() { return "text"; }
  static std::string range() { return ""; }
};

// From the root, or nothing.
struct Path : Text {
  absl::Status Read(const toml::node& node, std::string& target) const;
  static const char* name() { return "path"; }
};

// A list of texts; `one`: or one text.
struct Texts : Unbounded<std::vector<std::string>> {
  bool one = false;
  absl::Status Read(const toml::node& node,
                    std::vector<std::string>& target) const;
  [[nodiscard]] const char* name() const {
    return one ? "text or list of texts" : "list of texts";
  }
};

// Names of heaps, best first.
struct HeapOrder : Texts {
  absl::Status Read(const toml::node& node,
                    std::vector<std::string>& target) const;
};

// One of some words, each with what it means to the member.
template <class Value>
class OneOf {
 public:
  explicit OneOf(std::vector<std::pair<const char*, Value>> words)
      : words_(std::move(words)) {}

  absl::Status Read(const toml::node& node, Value& target) const {
    std::string given;
    RKNND_RETURN_IF_ERROR(Text().Read(node, given));
    for (const auto& [word, value] : words_) {
      if (given != word) continue;
      target = value;
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        absl::StrCat("is '", given, "', must be ", Join("\"", " or ")));
  }
  [[nodiscard]] std::string Show(const Value& value) const {
    for (const auto& [word, meant] : words_) {
      if (meant == value) return absl::StrCat("\"", word, "\"");
    }
    return "";
  }
  static const char* name() { return "text"; }
  [[nodiscard]] std::string range() const { return Join("`\"", ", "); }

 private:
  [[nodiscard]] std::string Join(const std::string& quote,
                                 const char* last) const {
    const std::string end(quote.rbegin(), quote.rend());
    std::string text;
    for (size_t i = 0; i < words_.size(); ++i) {
      absl::StrAppend(&text,
                      i == 0                  ? ""
                      : i + 1 < words_.size() ? ", "
                                              : last,
                      quote, words_[i].first, end);
    }
    return text;
  }

  std::vector<std::pair<const char*, Value>> words_;
};
// Whose words are what the member has.
OneOf<std::string> Words(const std::vector<const char*>& words);

// Of a file, as 0o660.
struct Mode {
  absl::Status Read(const toml::node& node, uint32_t& target) const;
  [[nodiscard]] std::string Show(uint32_t value) const;
  static const char* name() { return "mode"; }
  static std::string range() { return "0o600 to 0o666"; }
};

// Users and groups by name are looked up once, when the file is read: an
// unknown one is an error there and not a limit that never holds.
struct UserName : Unbounded<uint32_t> {
  absl::Status Read(const toml::node& node, uint32_t& uid) const;
  static const char* name() { return "text"; }
};
struct GroupName : Unbounded<uint32_t> {
  absl::Status Read(const toml::node& node, uint32_t& gid) const;
  static const char* name() { return "text"; }
};
// By name or number.
struct Group : Unbounded<uint32_t> {
  absl::Status Read(const toml::node& node, uint32_t& gid) const;
  static const char* name() { return "name or number"; }
};
// By name or number, as a text; whoever is not root. Or nobody: "".
struct OtherUser : Text {
  absl::Status Read(const toml::node& node, std::string& user) const;
};

// How long to wait awake: "auto" (unset), "off", or microseconds.
struct Spin {
  absl::Status Read(const toml::node& node,
                    std::optional<base::Nanoseconds>& target) const;
  [[nodiscard]] std::string Show(
      const std::optional<base::Nanoseconds>& value) const;
  static const char* name() { return "text or microseconds"; }
  static std::string range();
};

// Numbers of cores as bits.
struct Cores : Unbounded<uint32_t> {
  absl::Status Read(const toml::node& node, uint32_t& target) const;
  static const char* name() { return "list of numbers"; }
  static std::string range();
};

struct FaultName : Unbounded<driver::FaultKind> {
  absl::Status Read(const toml::node& node, driver::FaultKind& target) const;
  static const char* name() { return "text"; }
};

}  // namespace rknnd

#endif  // DAEMON_CONFIG_VALUE_TYPES_H_
