#include "daemon/config/known.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "daemon/config/config.h"

namespace rknnd {
namespace {

using ::testing::HasSubstr;

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

TEST(KnownKeysTest, EachIsThereOnceAndItsTableBeforeIt) {
  std::set<std::string> seen;
  for (const KnownKey& key : KnownKeys()) {
    const std::string name(key.name);
    EXPECT_TRUE(seen.insert(name).second) << name << " is there twice";
    if (const size_t dot = name.rfind('.'); dot != std::string::npos) {
      EXPECT_TRUE(seen.contains(name.substr(0, dot))) << name;
    }
  }
}

// A line that gives `name` a value of a type that no key has.
std::string Misuse(const std::string& name) {
  const size_t dot = name.rfind('.');
  if (dot == std::string::npos) return name + " = 2020-01-01\n";
  const std::string table = name.substr(0, dot);
  const bool list = table == "limits.users" || table == "limits.groups" ||
                    table == "physical_memory" || table == "faults.preset";
  return (list ? "[[" + table + "]]\n" : "[" + table + "]\n") +
         name.substr(dot + 1) + " = 2020-01-01\n";
}

TEST(KnownKeysTest, EachCanBeRead) {
  for (const KnownKey& key : KnownKeys()) {
    Config config;
    const std::string name(key.name);
    const std::string complaint(ReadToml(Misuse(name), "f", config).message());
    EXPECT_THAT(complaint, HasSubstr("key '" + name + "' must be "));
    EXPECT_THAT(complaint, Not(HasSubstr("unknown")));
  }
}

std::string Text(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.is_open()) << path;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(KnownKeysTest, DocumentationHasEachAndSaysWhenItTakesEffect) {
  std::istringstream lines(Text(RKNND_SOURCE_ROOT "/docs/configuration.md"));
  std::set<std::string> live;
  std::set<std::string> restart;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("| `")) continue;
    const std::string name = line.substr(3, line.find('`', 3) - 3);
    if (line.ends_with("| reload |")) live.insert(name);
    if (line.ends_with("| restart |")) restart.insert(name);
  }
  std::set<std::string> known_live;
  std::set<std::string> known_restart;
  for (const KnownKey& key : KnownKeys()) {
    if (key.kind == KnownKey::Kind::kLive) {
      known_live.emplace(key.name);
    } else if (key.kind == KnownKey::Kind::kRestart) {
      known_restart.emplace(key.name);
    }
  }
  EXPECT_EQ(live, known_live);
  EXPECT_EQ(restart, known_restart);
}

}  // namespace
}  // namespace rknnd
