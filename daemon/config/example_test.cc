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

#include "daemon/config/changes.h"
#include "daemon/config/config.h"
#include "daemon/config/known.h"
#include "daemon/config/pages.h"

namespace rknnd {
namespace {

using testing::AnyOfArray;
using testing::ContainerEq;
using testing::Each;

constexpr char kFile[] = "rknnd.toml";

std::string Source() {
  std::ifstream file(RKNND_SOURCE_ROOT "/packaging/rknnd.toml.in");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const absl::StatusOr<std::string> example = ExampleFile(text);
  EXPECT_TRUE(example.ok()) << example.status();
  return example.value_or("");
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
  // What is an example, or the package's own, is no default.
  const ConfigChanges changes = CompareConfigs(Config(), config);
  std::set<std::string> examples;
  for (const KnownKey& key : KnownKeys()) {
    if (key.list) {
      examples.insert(key.name.substr(0, TableOf(key.name).size() - 1));
    } else if (!key.example.empty() || !key.shipped.empty()) {
      examples.insert(key.name);
    }
  }
  EXPECT_THAT(changes.live, Each(AnyOfArray(examples)));
  EXPECT_THAT(changes.restart, Each(AnyOfArray(examples)));
}

TEST(ConfigExampleTest, EachKeyIsShownAndNoOther) {
  std::set<std::string> known;
  for (const KnownKey& key : KnownKeys()) {
    known.insert(key.name);
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
