#include "client/ctl/board/discovery.h"

#include <arpa/inet.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <utility>

#include "base/posix/child_process.h"
#include "base/posix/clock.h"

namespace rknnd::client {
namespace {

// avahi-browse ends by itself when it has asked everybody, within a second or
// two; one that does not is ended.
constexpr base::Nanoseconds kPatience = 5 * base::kSecond;
// More than a network of boards has.
constexpr size_t kMostLines = 4096;
constexpr size_t kMostDevices = 256;
constexpr size_t kLongestLine = 4096;

// "=;eth0;IPv4;NAME;_rknnd._tcp;local;HOST;ADDRESS;PORT;TEXT". A semicolon in a
// name is written "\059".
constexpr size_t kFields = 10;
enum Field {
  kKind,
  kInterface,
  kProtocol,
  kName,
  kType,
  kDomain,
  kHost,
  kAddress,
  kPort,
  kText
};

std::vector<std::string_view> Split(std::string_view line) {
  std::vector<std::string_view> fields;
  // The text is the last and may have semicolons of its own.
  while (fields.size() + 1 < kFields) {
    const size_t end = line.find(';');
    if (end == std::string_view::npos) return {};
    fields.push_back(line.substr(0, end));
    line.remove_prefix(end + 1);
  }
  fields.push_back(line);
  return fields;
}

// A value of a TXT record: a word, nothing else.
bool IsWord(std::string_view text) {
  return !text.empty() && text.size() <= 32 &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                  (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '+' ||
                  c == '~' || c == '_';
         });
}

// Of `"soc=rk3588" "cores=3"`; "" where it is not there or no word.
std::string_view TextOf(std::string_view records, std::string_view key) {
  while (!records.empty()) {
    const size_t begin = records.find('"');
    if (begin == std::string_view::npos) return "";
    const size_t end = records.find('"', begin + 1);
    if (end == std::string_view::npos) return "";
    std::string_view record = records.substr(begin + 1, end - begin - 1);
    records.remove_prefix(end + 1);
    if (record.size() > key.size() && record.starts_with(key) &&
        record[key.size()] == '=') {
      record.remove_prefix(key.size() + 1);
      return IsWord(record) ? record : "";
    }
  }
  return "";
}

template <class Number>
std::optional<Number> NumberOf(std::string_view text) {
  Number number = 0;
  const auto parsed =
      std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) {
    return std::nullopt;
  }
  return number;
}

// How good an address is for its daemon; 0: none.
int Rank(const std::string& address) {
  in_addr v4{};
  if (::inet_pton(AF_INET, address.c_str(), &v4) == 1) return 3;
  in6_addr v6{};
  if (::inet_pton(AF_INET6, address.c_str(), &v6) != 1) return 0;
  return IN6_IS_ADDR_LINKLOCAL(&v6) ? 1 : 2;
}

std::string TargetOf(const std::string& address, int rank,
                     std::string_view interface, uint16_t port) {
  std::string host = address;
  if (rank == 1) host += "%" + std::string(interface);
  if (rank < 3) host = "[" + host + "]";
  return "tcp://" + host + ":" + std::to_string(port);
}

// "" where it is not in PATH.
std::string FindProgram(const std::string& name) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody sets it meanwhile
  const char* path = std::getenv("PATH");
  const std::string folders = path == nullptr ? "/usr/bin:/bin" : path;
  for (size_t begin = 0; begin <= folders.size();) {
    const size_t end = std::min(folders.find(':', begin), folders.size());
    const std::string folder = folders.substr(begin, end - begin);
    const std::string program = folder + "/" + name;
    if (!folder.empty() && ::access(program.c_str(), X_OK) == 0) {
      return program;
    }
    begin = end + 1;
  }
  return "";
}

}  // namespace

std::vector<FoundDevice> ParseBrowsed(std::string_view text) {
  struct Best {
    int rank = 0;
    FoundDevice device;
  };
  // By name and port: one daemon is told once for each interface and address.
  std::map<std::pair<std::string, uint16_t>, Best> found;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.size() > kLongestLine || !line.starts_with("=;")) continue;
    const std::vector<std::string_view> fields = Split(line);
    if (fields.empty() || fields[kType] != "_rknnd._tcp" ||
        !IsWord(fields[kInterface])) {
      continue;
    }
    const std::optional<uint16_t> port = NumberOf<uint16_t>(fields[kPort]);
    const std::string address(fields[kAddress]);
    const int rank = Rank(address);
    if (!port || *port == 0 || rank == 0) continue;
    const std::pair<std::string, uint16_t> key(fields[kName], *port);
    if (found.size() == kMostDevices && !found.contains(key)) continue;
    Best& best = found[key];
    if (rank <= best.rank) continue;
    best.rank = rank;
    best.device.target = TargetOf(address, rank, fields[kInterface], *port);
    best.device.soc = TextOf(fields[kText], "soc");
    best.device.cores =
        NumberOf<uint8_t>(TextOf(fields[kText], "cores")).value_or(0);
    best.device.version = TextOf(fields[kText], "version");
    best.device.source = "network";
  }
  std::vector<FoundDevice> devices;
  for (auto& [key, best] : found) devices.push_back(std::move(best.device));
  return devices;
}

std::vector<FoundDevice> BrowseNetwork() {
  const std::string program = FindProgram("avahi-browse");
  if (program.empty()) return {};
  base::ChildProcess::Options options;
  options.arguments = {program, "-rpt", "_rknnd._tcp"};
  options.error_file = "/dev/null";
  options.dies_with_parent = true;
  base::Expected<base::ChildProcess> browser =
      base::ChildProcess::Start(options);
  if (!browser) return {};
  const base::MonotonicClock clock;
  const base::Nanoseconds deadline = clock.Now() + kPatience;
  std::string text;
  for (size_t lines = 0; lines < kMostLines; ++lines) {
    // What came until then counts.
    const base::Expected<std::string> line = browser->ReadLine(
        std::max<base::Nanoseconds>(deadline - clock.Now(), 0));
    if (!line) break;
    text += *line + "\n";
  }
  return ParseBrowsed(text);
}

}  // namespace rknnd::client
