// See the header.

#include "daemon/config/pages.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/status/status.h"

namespace rknnd {
namespace {

constexpr size_t kWidth = 80;

bool IsNumber(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return c == '.' || std::isdigit(static_cast<unsigned char>(c)) != 0;
  });
}

// "4 GiB".
std::string InBytes(const std::string& number) {
  uint64_t bytes = std::stoull(number);
  const char* unit = "";
  for (const char* larger : {" KiB", " MiB", " GiB"}) {
    if (bytes == 0 || bytes % 1024 != 0) break;
    bytes /= 1024;
    unit = larger;
  }
  return absl::StrCat(bytes, unit);
}

// As it is said to people; code in backquotes.
std::string DefaultOf(const KnownKey& key) {
  if (key.initial.empty()) return key.unset;
  if (key.type == "bytes") return InBytes(key.initial);
  return IsNumber(key.initial) ? key.initial
                               : absl::StrCat("`", key.initial, "`");
}

std::string Plain(const std::string& text) {
  return absl::StrReplaceAll(text, {{"`", ""}});
}

// In lines that begin with `prefix`.
std::string Wrapped(const std::string& text, const std::string& prefix) {
  std::string lines;
  std::string line = prefix;
  for (const auto word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    const bool first = line.size() == prefix.size();
    if (!first && line.size() + 1 + word.size() > kWidth) {
      absl::StrAppend(&lines, line, "\n");
      line = prefix;
    } else if (!first) {
      line += ' ';
    }
    absl::StrAppend(&line, word);
  }
  return absl::StrCat(lines, line, "\n");
}

std::string OwnName(const KnownKey& key) {
  return key.name.substr(TableOf(key.name).size());
}

// mdoc wants each sentence to begin a line.
std::string Sentences(const std::string& text) {
  std::string lines;
  const std::vector<std::string> sentences = absl::StrSplit(text, ". ");
  for (const std::string& sentence : sentences) {
    lines += Wrapped(sentence.ends_with('.') ? sentence : sentence + ".", "");
  }
  return lines;
}

std::string ManualEntry(const KnownKey& key) {
  std::string facts = absl::StrCat("Type: ", key.type);
  if (!key.range.empty()) absl::StrAppend(&facts, ", ", key.range);
  absl::StrAppend(&facts, "; default: ", DefaultOf(key), ".");
  return absl::StrCat(".It Cm ", OwnName(key), key.live ? " Pq live" : "", "\n",
                      Sentences(Plain(key.help)), Wrapped(Plain(facts), ""));
}

// 4_294_967_296.
std::string Grouped(const std::string& number) {
  if (number.size() < 6 || !IsNumber(number)) return number;
  std::string grouped;
  for (size_t i = 0; i < number.size(); ++i) {
    if (i > 0 && (number.size() - i) % 3 == 0) grouped += '_';
    grouped += number[i];
  }
  return grouped;
}

std::string ExampleEntry(const KnownKey& key) {
  std::string help = key.help;
  if (!key.range.empty()) {
    absl::StrAppend(&help, " (", key.type == "text" ? "" : key.type + ", ",
                    key.range, ")");
  }
  const std::string value =
      !key.shipped.empty()
          ? key.shipped
          : Grouped(key.example.empty() ? key.initial : key.example);
  return absl::StrCat(Wrapped(Plain(help), "# "),
                      key.shipped.empty() ? "#" : "", OwnName(key), " = ",
                      value, "\n");
}

// What one line "@keys TABLE KEY@" asks for.
absl::StatusOr<std::vector<KnownKey>> KeysOf(const std::string& line) {
  std::vector<std::string> words =
      absl::StrSplit(line.substr(1, line.size() - 2), ' ', absl::SkipEmpty());
  if (words.size() < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("line '", line, "' names no table"));
  }
  const std::string table = words[1] == "." ? "" : words[1] + ".";
  std::vector<KnownKey> keys;
  for (const KnownKey& key : KnownKeys()) {
    if (TableOf(key.name) != table) continue;
    const auto wanted = std::find(words.begin() + 2, words.end(), OwnName(key));
    if (words.size() > 2 && wanted == words.end()) continue;
    keys.push_back(key);
  }
  const size_t wanted = std::max<size_t>(words.size() - 2, 1);
  if (keys.size() < wanted) {
    return absl::InvalidArgumentError(
        absl::StrCat("line '", line, "': not all of these are keys"));
  }
  return keys;
}

absl::StatusOr<std::string> Filled(
    const std::string& text,
    const std::function<std::string(const KnownKey&)>& entry) {
  std::string page;
  std::set<std::string> shown;
  std::vector<std::string> lines = absl::StrSplit(text, '\n');
  if (lines.back().empty()) lines.pop_back();
  for (const std::string& line : lines) {
    if (!line.starts_with("@keys")) {
      absl::StrAppend(&page, line, "\n");
      continue;
    }
    RKNND_ASSIGN_OR_RETURN(const std::vector<KnownKey> keys, KeysOf(line));
    for (const KnownKey& key : keys) {
      page += entry(key);
      shown.insert(key.name);
      shown.emplace(TableOf(key.name));
    }
  }
  for (const KnownKey& key : KnownKeys()) {
    // Of what entries of a list may have, the text shows what it likes.
    const bool told =
        shown.contains(key.list ? std::string(TableOf(key.name)) : key.name);
    if (!told) {
      return absl::InvalidArgumentError(absl::StrCat(
          "key '", key.name, "' is in no line '@keys TABLE@': add one"));
    }
  }
  return page;
}

// Of a row: "grace"; of another line "".
std::string NameInRow(const std::string& line) {
  if (!line.starts_with("| `")) return "";
  const bool row = line.find(" | reload |") != std::string::npos ||
                   line.find(" | restart |") != std::string::npos;
  return row ? line.substr(3, line.find('`', 3) - 3) : "";
}

}  // namespace

std::string MarkdownRow(const KnownKey& key) {
  return absl::StrCat("| `", key.name, "` | ", key.type, " | ", key.range,
                      key.range.empty() ? "" : " ", "| ", DefaultOf(key), " | ",
                      key.live ? "reload" : "restart", " | ", key.help, " |");
}

std::string WithMarkdownRows(const std::string& page) {
  const std::vector<std::string> lines = absl::StrSplit(page, '\n');
  std::set<std::string> there;
  for (const std::string& line : lines) there.insert(NameInRow(line));
  // Behind which each that is missing goes.
  std::map<std::string, std::vector<KnownKey>> rows;
  std::string before;
  for (const KnownKey& key : KnownKeys()) {
    if (there.contains(key.name)) before = key.name;
    rows[before].push_back(key);
  }
  std::vector<std::string> all;
  for (const std::string& line : lines) {
    const std::string name = NameInRow(line);
    if (name.empty()) {
      all.push_back(line);
    } else {
      for (const KnownKey& key : rows[name]) all.push_back(MarkdownRow(key));
    }
  }
  return absl::StrJoin(all, "\n");
}

absl::StatusOr<std::string> ManualPage(const std::string& text) {
  return Filled(text, ManualEntry);
}

absl::StatusOr<std::string> ExampleFile(const std::string& text) {
  return Filled(text, ExampleEntry);
}

}  // namespace rknnd
