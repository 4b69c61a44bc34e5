// Keys that had other names once: old files are still read.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "daemon/config/config.h"
#include "daemon/config/known.h"

namespace rknnd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(RenamedKeyTest, OldNameIsReadAndTheNewOneTold) {
  Config config;
  const absl::Status status =
      ReadToml("grace = 1\n[limits]\nstrangers = 3\n", "f", config);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(config.server_limits.pending_connections, 3U);
  EXPECT_THAT(config.warnings,
              ElementsAre("'f' line 3: key 'limits.strangers' is now called "
                          "'limits.pending_connections': the old name still "
                          "works, rename it"));
}

TEST(RenamedKeyTest, NewNameIsReadInSilence) {
  Config config;
  ASSERT_TRUE(
      ReadToml("[limits]\npending_connections = 3\n", "f", config).ok());
  EXPECT_EQ(config.server_limits.pending_connections, 3U);
  EXPECT_THAT(config.warnings, IsEmpty());
}

TEST(RenamedKeyTest, BothNamesAreAnError) {
  Config config;
  EXPECT_EQ(ReadToml("[limits]\nstrangers = 3\npending_connections = 4\n", "f",
                     config)
                .message(),
            "'f' line 3: key 'limits.pending_connections' is given twice: line "
            "2 has it by its other name, 'limits.strangers'; keep "
            "'limits.pending_connections' alone");
  EXPECT_THAT(
      std::string(ReadToml("[limits]\npending_connections = 4\nstrangers = 4\n",
                           "f", config)
                      .message()),
      HasSubstr("'f' line 3: key 'limits.strangers' is given twice"));
}

TEST(RenamedKeyTest, WrongValueIsNamedAsItStandsInTheFile) {
  Config config;
  EXPECT_EQ(ReadToml("[limits]\nstrangers = 0\n", "f", config).message(),
            "'f' line 2: key 'limits.strangers' is 0, must be at least 1");
}

// Whatever has an older name: it is read, and is not offered to anybody.
TEST(RenamedKeyTest, EachOlderNameIsRead) {
  bool any = false;
  for (const KnownKey& key : KnownKeys()) {
    for (const std::string& older : key.older) {
      any = true;
      ASSERT_FALSE(key.list) << "name its list here";
      const std::string table(TableOf(older));
      const std::string value = key.initial.empty() ? key.example : key.initial;
      Config config;
      const absl::Status status = ReadToml(
          (table.empty() ? ""
                         : "[" + table.substr(0, table.size() - 1) + "]\n") +
              older.substr(table.size()) + " = " + value,
          "f", config);
      EXPECT_TRUE(status.ok()) << status;
      EXPECT_THAT(config.warnings, ElementsAre(HasSubstr(key.name)));
    }
  }
  EXPECT_TRUE(any);
}

}  // namespace
}  // namespace rknnd
