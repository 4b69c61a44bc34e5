#include "daemon/config/changes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "daemon/config/known.h"

namespace rknnd {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Config Read(const std::string& text) {
  Config config;
  const absl::Status status = ReadToml(text, "f", config);
  EXPECT_TRUE(status.ok()) << status;
  return config;
}

TEST(ConfigChangesTest, SameFileChangesNothing) {
  const std::string text =
      "grace = 3\n[limits.user]\nmemory = 4096\n[[limits.users]]\nuid = 5\n"
      "weight = 7\n[grpc]\nlisten = \"unix:/x\"\n[models]\npreload = "
      "[\"/a\"]\n";
  const ConfigChanges changes = CompareConfigs(Read(text), Read(text));
  EXPECT_THAT(changes.live, IsEmpty());
  EXPECT_THAT(changes.restart, IsEmpty());
}

TEST(ConfigChangesTest, WhatWasTheDefaultIsNoChange) {
  const ConfigChanges changes =
      CompareConfigs(Config(), Read("grace = 30\nlog_level = 2\n"));
  EXPECT_THAT(changes.live, IsEmpty());
}

// A file that differs from the defaults in `key` only: with the first of these
// values that the key takes and that is not its default.
Config Changed(const KnownKey& key) {
  static constexpr const char* kValues[] = {
      "1",        "7",           "2000",       "4096",           "100000",
      "2000000",  "true",        "0o600",      "0o666",          "\"\"",
      "\"/x\"",   "\"rk3566\"",  "\"soft\"",   "\"incoherent\"", "\"low\"",
      "\"off\"",  "\"root\"",    "\"nobody\"", "\"hang\"",       "[0]",
      "[\"/a\"]", "[\"memfd\"]", "\"one\"",
  };
  // What an entry of a list must have beside.
  static const std::map<std::string, std::vector<std::string>> kEntries = {
      {"limits.users.", {"uid = 1", "queue = 1"}},
      {"limits.groups.", {"gid = 1", "queue = 1"}},
      {"physical_memory.", {"uid = 1", "begin = 1", "size = 1"}},
      {"faults.preset.", {"kind = \"hang\""}},
  };
  const std::string table(TableOf(key.name));
  const std::string own = key.name.substr(table.size());
  std::string start;
  if (!table.empty()) start = "[" + table.substr(0, table.size() - 1) + "]\n";
  if (key.list) {
    start = "[" + start.substr(0, start.size() - 1) + "]\n";
    for (const std::string& beside : kEntries.at(table)) {
      const bool same =
          beside.starts_with(own + " ") ||
          (beside.find("id = ") == 1 && (own == "user" || own == "group"));
      if (!same) start += beside + "\n";
    }
  }
  for (const char* value : kValues) {
    Config config;
    const std::string text = start + own + " = " + value + "\n";
    if (!ReadToml(text, "f", config).ok()) continue;
    const ConfigChanges changes = CompareConfigs(Config(), config);
    if (!changes.live.empty() || !changes.restart.empty()) return config;
  }
  ADD_FAILURE() << key.name << " takes none of the values of this test";
  return {};
}

TEST(ConfigChangesTest, EveryKeyIsNamedWithWhenItTakesEffect) {
  for (const KnownKey& key : KnownKeys()) {
    const Config after = Changed(key);
    const ConfigChanges changes = CompareConfigs(Config(), after);
    std::string name = key.name;
    if (key.list) name.resize(TableOf(name).size() - 1);
    EXPECT_THAT(key.live ? changes.live : changes.restart, ElementsAre(name));
    EXPECT_THAT(key.live ? changes.restart : changes.live, IsEmpty()) << name;
    // What takes effect is taken over, and nothing else.
    Config running;
    TakeLive(after, running);
    const ConfigChanges left = CompareConfigs(running, after);
    EXPECT_THAT(left.live, IsEmpty()) << name;
    EXPECT_EQ(left.restart, changes.restart) << name;
    EXPECT_EQ(CompareConfigs(Config(), running).restart.size(), 0U) << name;
  }
}

// Each of what users and groups may have, in both of its parts.
TEST(ConfigChangesTest, SharesOfUsersAreComparedToo) {
  for (const std::string entry : {"[[limits.users]]\nuid = 1\nweight = 1",
                                  "[[limits.groups]]\ngid = 1\ncores = [1]"}) {
    const std::string name =
        entry.find("users") == 9 ? "limits.users" : "limits.groups";
    EXPECT_THAT(CompareConfigs(Config(), Read(entry)).live, ElementsAre(name));
  }
}

TEST(ConfigChangesTest, LiveKeysAreThoseThatWereSo) {
  std::set<std::string> live;
  for (const KnownKey& key : KnownKeys()) {
    if (key.live && !key.list) live.insert(key.name);
  }
  EXPECT_TRUE(live.contains("limits.memory"));
  EXPECT_FALSE(live.contains("limits.jobs_per_context"));
  EXPECT_FALSE(live.contains("device"));
  EXPECT_FALSE(live.contains("grpc.listen"));
  EXPECT_TRUE(live.contains("metrics.listen"));
}

}  // namespace
}  // namespace rknnd
