// The file is an administrator's: wrong, perhaps, but not hostile.

#include "daemon/config/value_types.h"

#include "absl/strings/str_format.h"
#include "daemon/config/users.h"
#include "driver/memory/heap.h"

namespace rknnd {
namespace {

// The last number means "as it is" to the kernel.
constexpr uint32_t kLastId = std::numeric_limits<uint32_t>::max() - 1;
// Beyond a frame's time a core that waits awake is simply lost.
constexpr uint32_t kMostSpinUs = 10'000;
// That a core mask of the vendor's can name.
constexpr uint32_t kLastCore = 2;

std::string InWords(double number) {
  std::string text = absl::StrFormat("%.6f", number);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

absl::Status Unknown(const char* what, const std::string& name) {
  return absl::InvalidArgumentError(absl::StrCat(
      "is '", name, "': this machine has no ", what, " of that name"));
}

}  // namespace

absl::Status WrongType(const char* wanted) {
  return absl::InvalidArgumentError(absl::StrCat("must be ", wanted));
}

absl::StatusOr<uint64_t> Number::Parse(const toml::node& node,
                                       uint64_t most) const {
  const auto* value = node.as_integer();
  if (value == nullptr) return WrongType("a whole number");
  const int64_t number = value->get();
  if (number >= 0 && static_cast<uint64_t>(number) >= least_ &&
      static_cast<uint64_t>(number) <= most) {
    return static_cast<uint64_t>(number);
  }
  // What a file cannot say is no bound to tell of.
  const bool bounded = most < std::numeric_limits<int64_t>::max();
  return absl::InvalidArgumentError(
      bounded
          ? absl::StrCat("is ", number, ", must be ", least_, " to ", most,
                         unit_)
          : absl::StrCat("is ", number, ", must be at least ", least_, unit_));
}

std::string Number::range() const {
  if (most_ < std::numeric_limits<int64_t>::max()) {
    return absl::StrCat(least_, " to ", most_);
  }
  return least_ == 0 ? "" : absl::StrCat("from ", least_);
}

absl::Status Seconds::Read(const toml::node& node,
                           base::Nanoseconds& target) const {
  const auto seconds = node.value<double>();
  if (!seconds.has_value()) return WrongType("a number of seconds");
  if (!(*seconds >= least && *seconds <= most)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "is ", *seconds, " seconds, must be ", least, " to ", most));
  }
  target = static_cast<base::Nanoseconds>(*seconds *
                                          static_cast<double>(base::kSecond));
  return absl::OkStatus();
}

std::string Seconds::Show(base::Nanoseconds value) const {
  return InWords(static_cast<double>(value) /
                 static_cast<double>(base::kSecond));
}

std::string Seconds::range() const {
  return absl::StrCat(InWords(least), " to ", InWords(most));
}

absl::Status Milliseconds::Read(const toml::node& node,
                                base::Nanoseconds& target) const {
  uint64_t ms = 0;
  RKNND_RETURN_IF_ERROR(Number(0, most, name(), " ms").Read(node, ms));
  target = static_cast<base::Nanoseconds>(ms) * base::kMillisecond;
  return absl::OkStatus();
}

std::string Milliseconds::Show(base::Nanoseconds value) const {
  return absl::StrCat(value / base::kMillisecond);
}

std::string Milliseconds::range() const { return Number(0, most).range(); }

absl::Status Decimal::Read(const toml::node& node, double& target) const {
  const auto value = node.value<double>();
  if (!value.has_value()) return WrongType("a number");
  target = *value;
  return absl::OkStatus();
}

std::string Decimal::Show(double value) const { return InWords(value); }

absl::Status Flag::Read(const toml::node& node, bool& target) const {
  const auto* value = node.as_boolean();
  if (value == nullptr) return WrongType("true or false");
  target = value->get();
  return absl::OkStatus();
}

std::string Flag::Show(bool value) const { return value ? "true" : "false"; }

absl::Status Text::Read(const toml::node& node, std::string& target) const {
  const auto* value = node.as_string();
  if (value == nullptr) return WrongType("a text in quotes");
  target = value->get();
  return absl::OkStatus();
}

std::string Text::Show(const std::string& value) const {
  return absl::StrCat("\"", value, "\"");
}

absl::Status Path::Read(const toml::node& node, std::string& target) const {
  std::string path;
  RKNND_RETURN_IF_ERROR(Text::Read(node, path));
  if (!path.empty() && path.front() != '/') {
    return absl::InvalidArgumentError(
        absl::StrCat("is '", path, "', must be a path from the root"));
  }
  target = std::move(path);
  return absl::OkStatus();
}

absl::Status Texts::Read(const toml::node& node,
                         std::vector<std::string>& target) const {
  target.clear();
  if (one && node.is_string()) return Text().Read(node, target.emplace_back());
  const auto* list = node.as_array();
  if (list == nullptr) return WrongType("a list of texts in quotes");
  for (const toml::node& entry : *list) {
    RKNND_RETURN_IF_ERROR(Text().Read(entry, target.emplace_back()));
  }
  return absl::OkStatus();
}

absl::Status HeapOrder::Read(const toml::node& node,
                             std::vector<std::string>& target) const {
  RKNND_RETURN_IF_ERROR(Texts::Read(node, target));
  for (const std::string& name : target) {
    const absl::Status named = driver::CheckHeapName(name);
    if (!named.ok()) return base::Annotate(named, "is wrong");
    if (std::count(target.begin(), target.end(), name) > 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("names '", name, "' twice"));
    }
  }
  return absl::OkStatus();
}

OneOf<std::string> Words(const std::vector<const char*>& words) {
  std::vector<std::pair<const char*, std::string>> all;
  all.reserve(words.size());
  for (const char* word : words) all.emplace_back(word, word);
  return OneOf<std::string>(std::move(all));
}

absl::Status Mode::Read(const toml::node& node, uint32_t& target) const {
  const auto* value = node.as_integer();
  if (value == nullptr) return WrongType("a mode, as 0o660");
  const int64_t mode = value->get();
  // An owner that cannot connect, or others that may: with a socket's group
  // there is no need of either.
  if (mode < 0 || (mode & ~0666) != 0 || (mode & 0600) != 0600) {
    return absl::InvalidArgumentError(
        absl::StrCat("is ", Show(static_cast<uint32_t>(mode)),
                     ", must be 0o600 to 0o666, of read and write"));
  }
  target = static_cast<uint32_t>(mode);
  return absl::OkStatus();
}

std::string Mode::Show(uint32_t value) const {
  return absl::StrFormat("0o%o", value);
}

absl::Status UserName::Read(const toml::node& node, uint32_t& uid) const {
  std::string name;
  RKNND_RETURN_IF_ERROR(Text().Read(node, name));
  const auto user = FindUserNamed(name);
  if (!user.has_value()) return Unknown("user", name);
  uid = user->uid;
  return absl::OkStatus();
}

absl::Status GroupName::Read(const toml::node& node, uint32_t& gid) const {
  std::string name;
  RKNND_RETURN_IF_ERROR(Text().Read(node, name));
  const auto group = FindGroupNamed(name);
  if (!group.has_value()) return Unknown("group", name);
  gid = *group;
  return absl::OkStatus();
}

absl::Status Group::Read(const toml::node& node, uint32_t& gid) const {
  if (node.is_integer()) return Number(0, kLastId).Read(node, gid);
  if (!node.is_string()) return WrongType("a group's name or number");
  return GroupName().Read(node, gid);
}

absl::Status OtherUser::Read(const toml::node& node, std::string& user) const {
  std::string name;
  RKNND_RETURN_IF_ERROR(Text::Read(node, name));
  if (!name.empty()) {
    const auto found = FindUser(name);
    if (!found.has_value()) return Unknown("user", name);
    if (found->uid == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("is '", name,
                       "', which is root: name another, or \"\" to stay root"));
    }
  }
  user = std::move(name);
  return absl::OkStatus();
}

absl::Status Spin::Read(const toml::node& node,
                        std::optional<base::Nanoseconds>& target) const {
  constexpr char kForms[] = "\"auto\", \"off\" or microseconds";
  if (const auto* word = node.as_string(); word != nullptr) {
    if (word->get() != "auto" && word->get() != "off") {
      return absl::InvalidArgumentError(
          absl::StrCat("is '", word->get(), "', must be ", kForms));
    }
    target.reset();
    if (word->get() == "off") target = 0;
    return absl::OkStatus();
  }
  if (!node.is_integer()) return WrongType(kForms);
  uint32_t us = 0;
  RKNND_RETURN_IF_ERROR(Number(0, kMostSpinUs).Read(node, us));
  target = us * base::kMicrosecond;
  return absl::OkStatus();
}

std::string Spin::Show(const std::optional<base::Nanoseconds>& value) const {
  return value.has_value() ? absl::StrCat(*value / base::kMicrosecond)
                           : "\"auto\"";
}

std::string Spin::range() {
  return absl::StrCat("`\"auto\"`, `\"off\"`, 0 to ", kMostSpinUs);
}

absl::Status Cores::Read(const toml::node& node, uint32_t& target) const {
  const auto* list = node.as_array();
  if (list == nullptr || list->empty()) {
    return WrongType("a list of cores, as [0, 1]");
  }
  uint32_t cores = 0;
  for (const toml::node& entry : *list) {
    uint32_t core = 0;
    RKNND_RETURN_IF_ERROR(Number(0, kLastCore).Read(entry, core));
    cores |= uint32_t{1} << core;
  }
  target = cores;
  return absl::OkStatus();
}

std::string Cores::range() { return absl::StrCat("0 to ", kLastCore); }

absl::Status FaultName::Read(const toml::node& node,
                             driver::FaultKind& target) const {
  std::string name;
  RKNND_RETURN_IF_ERROR(Text().Read(node, name));
  const auto kind = driver::FaultKindOf(name);
  if (!kind.ok()) return base::Annotate(kind.status(), "is wrong");
  target = *kind;
  return absl::OkStatus();
}

}  // namespace rknnd
