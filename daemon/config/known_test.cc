#include "daemon/config/known.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "daemon/config/changes.h"
#include "daemon/config/config.h"

namespace rknnd {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;

TEST(DidYouMeanTest, NamesTheNearestKey) {
  const struct {
    const char *written, *meant;
  } cases[] = {
      {"sockett", "socket"},
      {"limit", "limits"},
      {"limits.memori", "limits.memory"},
      {"limits.user.wieght", "limits.user.weight"},
      {"limits.users.max_prioritty", "limits.users.max_priority"},
      // A word more.
      {"model_grace", "grace"},
      {"models.grace", "grace"},
      // At another place.
      {"limits.cache_bytes", "models.cache_bytes"},
      {"cache_bytes", "models.cache_bytes"},
      {"limits.user.uid", "limits.users.uid"},
      {"grpc.token", "grpc.tokens"},
      {"loglevel", "log_level"},
  };
  for (const auto& one : cases) {
    EXPECT_EQ(DidYouMean(one.written),
              std::string("; did you mean '") + one.meant + "'?")
        << one.written;
  }
}

TEST(DidYouMeanTest, SaysNothingOfWhatIsFarFromAll) {
  for (const char* far : {"", "x", "quantum_flux", "limits.zzzzzz", "."}) {
    EXPECT_EQ(DidYouMean(far), "") << far;
  }
  EXPECT_EQ(DidYouMean(std::string(1 << 20, 'x')), "");
}

TEST(KnownKeysTest, EachIsThereOnceWithAllThatIsSaidOfIt) {
  std::set<std::string> seen;
  for (const KnownKey& key : KnownKeys()) {
    EXPECT_TRUE(seen.insert(key.name).second) << key.name << " is there twice";
    EXPECT_NE(key.type, "") << key.name;
    EXPECT_THAT(key.help, MatchesRegex("[A-Z0-9`].*[.]")) << key.name;
    EXPECT_FALSE(key.initial.empty() && key.unset.empty())
        << key.name << " has no default: say what holds with Unset()";
    for (const std::string& older : key.older) {
      EXPECT_TRUE(seen.insert(older).second) << older << " is there twice";
    }
  }
}

TEST(KnownKeysTest, DefaultsAreThoseOfTheConfiguration) {
  std::map<std::string, std::string> initial;
  for (const KnownKey& key : KnownKeys()) initial[key.name] = key.initial;
  EXPECT_EQ(initial["grace"], "30");
  EXPECT_EQ(initial["limits.memory"], "4294967296");
  EXPECT_EQ(initial["socket_mode"], "0o660");
  EXPECT_EQ(initial["limits.user.max_priority"], "\"medium\"");
  EXPECT_EQ(initial["scheduler.starvation_bound"], "1");
  EXPECT_EQ(initial["scheduler.spin"], "\"auto\"");
  EXPECT_EQ(initial["faults.give_up_ms"],
            std::to_string(FaultConfig().give_up / base::kMillisecond));
  // One that is said is taken, and changes nothing.
  for (const KnownKey& key : KnownKeys()) {
    if (key.list || key.initial.empty()) continue;
    Config config;
    const std::string table(TableOf(key.name));
    const absl::Status status = ReadToml(
        (table.empty() ? "" : "[" + table.substr(0, table.size() - 1) + "]\n") +
            key.name.substr(table.size()) + " = " + key.initial,
        "f", config);
    EXPECT_TRUE(status.ok()) << status;
    const ConfigChanges changes = CompareConfigs(Config(), config);
    EXPECT_THAT(changes.live, IsEmpty());
    EXPECT_THAT(changes.restart, IsEmpty());
  }
}

// A line that gives `key` a value of a type that no key has.
std::string Misuse(const KnownKey& key) {
  std::string table(TableOf(key.name));
  const std::string line = key.name.substr(table.size()) + " = 2020-01-01\n";
  if (table.empty()) return line;
  table.pop_back();
  return (key.list ? "[[" + table + "]]\n" : "[" + table + "]\n") + line;
}

TEST(KnownKeysTest, EachHasItsType) {
  for (const KnownKey& key : KnownKeys()) {
    Config config;
    const std::string complaint(ReadToml(Misuse(key), "f", config).message());
    EXPECT_THAT(complaint, HasSubstr("key '" + key.name + "' must be "));
    EXPECT_THAT(complaint, Not(HasSubstr("unknown")));
  }
}

}  // namespace
}  // namespace rknnd
