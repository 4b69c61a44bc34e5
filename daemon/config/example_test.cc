// Tests of the configuration file as it is shipped: the daemon takes it, takes
// every line of it that is only shown, and has no key that is not shown.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "daemon/config/config.h"
#include "daemon/config/known.h"

namespace rknnd {
namespace {

using testing::ContainerEq;

constexpr char kFile[] = "rknnd.toml";

std::string Source() {
  std::ifstream file(std::string(RKNND_SOURCE_ROOT "/packaging/") + kFile);
  return {std::istreambuf_iterator<char>(file),
          std::istreambuf_iterator<char>()};
}

std::string Replaced(std::string text, const std::string& from,
                     const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos;) {
    text.replace(at, from.size(), to);
    at += to.size();
  }
  return text;
}

// With names that every machine knows; the package makes the others.
std::string Shipped() {
  std::string text = Source();
  text = Replaced(text, "socket_group = \"rknnd\"", "socket_group = \"root\"");
  text = Replaced(text, "user = \"rknnd\"", "user = \"nobody\"");
  return Replaced(text, "\"frigate\"", "\"root\"");
}

TEST(ConfigExampleTest, TheDaemonTakesItAndItChangesNothingButNames) {
  Config config;
  const absl::Status status = ReadToml(Shipped(), kFile, config);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(CheckConfig(config).ok()) << CheckConfig(config).message();
  const Config defaults;
  EXPECT_EQ(config.run_as, "nobody");
  EXPECT_EQ(config.state_dir, "/var/lib/rknnd");
  EXPECT_EQ(config.device, defaults.device);
  EXPECT_EQ(config.socket, defaults.socket);
  EXPECT_EQ(config.limits, defaults.limits);
  EXPECT_EQ(config.user_limits, defaults.user_limits);
  EXPECT_TRUE(config.users.empty());
  EXPECT_TRUE(config.metrics.empty());
  EXPECT_TRUE(config.grpc.addresses.empty());
  EXPECT_FALSE(config.faults.enabled);
}

// What is shown, taken at its word, also is what holds where nothing is said.
TEST(ConfigExampleTest, TheDaemonTakesEachLineThatIsShown) {
  const std::regex shown(R"re((^|\n)#(?=\[\[|[a-z_0-9]+ = ))re");
  const std::string text = std::regex_replace(Shipped(), shown, "$1");
  Config config;
  const absl::Status status = ReadToml(text, kFile, config);
  ASSERT_TRUE(status.ok()) << status.message();
  const Config defaults;
  EXPECT_EQ(config.limits, defaults.limits);
  EXPECT_EQ(config.user_limits, defaults.user_limits);
  EXPECT_EQ(config.server_limits.sessions, defaults.server_limits.sessions);
  EXPECT_EQ(config.server_limits.strangers, defaults.server_limits.strangers);
  EXPECT_EQ(config.scheduling.hang, defaults.scheduling.hang);
  EXPECT_EQ(config.scheduling.starvation_bound,
            defaults.scheduling.starvation_bound);
  EXPECT_EQ(config.scheduling.fence_timeout, defaults.scheduling.fence_timeout);
  EXPECT_EQ(config.cache_bytes, defaults.cache_bytes);
  EXPECT_EQ(config.isolate, defaults.isolate);
  EXPECT_EQ(config.log_level, defaults.log_level);
  EXPECT_EQ(config.socket_mode, defaults.socket_mode);
  EXPECT_EQ(config.admin_mode, defaults.admin_mode);
  EXPECT_EQ(config.grpc.message_bytes, defaults.grpc.message_bytes);
  EXPECT_EQ(config.grpc.memory, defaults.grpc.memory);
  EXPECT_EQ(config.grpc.connections, defaults.grpc.connections);
  EXPECT_EQ(config.grpc.streams, defaults.grpc.streams);
  EXPECT_EQ(config.grpc.requests, defaults.grpc.requests);
  EXPECT_EQ(config.grpc.keepalive, defaults.grpc.keepalive);
  EXPECT_EQ(config.grpc.unread, defaults.grpc.unread);
  EXPECT_EQ(config.faults.give_up, defaults.faults.give_up);
}

TEST(ConfigExampleTest, EachKeyIsShownAndNoOther) {
  std::set<std::string> known;
  for (const KnownKey& key : KnownKeys()) {
    if (key.kind != KnownKey::Kind::kTable) known.emplace(key.name);
  }
  std::set<std::string> shown;
  std::string table;
  const std::regex header(R"re(#?\[+([a-z_.]+)\]+)re");
  const std::regex entry(R"re((?:#|# or )?([a-z_0-9]+) = .*)re");
  std::istringstream lines(Source());
  for (std::string line; std::getline(lines, line);) {
    std::smatch found;
    if (std::regex_match(line, found, header)) {
      table = std::string(found[1]) + ".";
    } else if (std::regex_match(line, found, entry)) {
      shown.insert(table + std::string(found[1]));
      // Entries for users and groups have the same.
      if (table == "limits.user.") {
        shown.insert("limits.users." + std::string(found[1]));
        shown.insert("limits.groups." + std::string(found[1]));
      }
    }
  }
  EXPECT_THAT(shown, ContainerEq(known));
}

}  // namespace
}  // namespace rknnd
