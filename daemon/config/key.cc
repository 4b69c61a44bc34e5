// The file is an administrator's: wrong, perhaps, but not hostile.

#include "daemon/config/key.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/str_join.h"

namespace rknnd {

void Findings::Complain(uint32_t line, const std::string& key,
                        const std::string& what) {
  complaints_.emplace_back(line, absl::StrCat("'", path_, "' line ", line,
                                              ": key '", key, "' ", what));
}

bool Findings::TakeName(uint32_t line, const std::string& given,
                        const std::string& name) {
  const auto [before, first] = names_.emplace(name, std::pair(given, line));
  if (!first) {
    const auto& [other, other_line] = before->second;
    Complain(line, given,
             absl::StrCat("is given twice: line ", other_line,
                          " has it by its other name, '", other, "'; keep '",
                          name, "' alone"));
    return false;
  }
  if (given != name && warned_.insert(given).second) {
    warnings_.push_back(absl::StrCat("'", path_, "' line ", line, ": key '",
                                     given, "' is now called '", name,
                                     "': the old name still works, rename it"));
  }
  return true;
}

void Findings::ForgetNames(const std::string& prefix) {
  std::erase_if(names_, [&prefix](const auto& name) {
    return name.first.starts_with(prefix);
  });
}

absl::Status Findings::status() const {
  if (complaints_.empty()) return absl::OkStatus();
  auto sorted = complaints_;
  std::stable_sort(
      sorted.begin(), sorted.end(),
      [](const auto& a, const auto& b) { return a.first < b.first; });
  return absl::InvalidArgumentError(
      absl::StrJoin(sorted, "\n", [](std::string* text, const auto& complaint) {
        *text += complaint.second;
      }));
}

std::vector<KeyInFile> KeysInFile(const toml::table& table) {
  std::vector<KeyInFile> keys;
  for (const auto& [key, node] : table) {
    keys.push_back({key.source().begin.line, std::string(key.str()), &node});
  }
  std::sort(keys.begin(), keys.end(), [](const auto& a, const auto& b) {
    return std::tuple(a.node->is_array_of_tables(), a.line, a.key) <
           std::tuple(b.node->is_array_of_tables(), b.line, b.key);
  });
  return keys;
}

}  // namespace rknnd
