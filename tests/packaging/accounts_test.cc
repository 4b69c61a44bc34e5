// Tests of the daemon's user and folders, as systemd's tools make them, in a
// root of the test's own.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "tests/integration/harness/files.h"
#include "tests/packaging/staging.h"

namespace rknnd::packaging {
namespace {

using integration::FindProgram;
using integration::ReadText;
using testing::Contains;
using testing::ContainsRegex;
using testing::Not;
using testing::StartsWith;

class AccountsTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* program : {"systemd-sysusers", "systemd-tmpfiles"}) {
      if (FindProgram(program).empty()) {
        GTEST_SKIP() << program << " is not installed (package systemd)";
      }
    }
    const Ended made = MakeUsers();
    ASSERT_EQ(made.code, 0) << made.errors;
  }
  [[nodiscard]] Ended MakeUsers() const {
    return staging_.Run({"systemd-sysusers", "--root=ROOT", "rknnd.conf"});
  }
  [[nodiscard]] std::string Groups() const {
    return ReadText(staging_.Path("/etc/group"));
  }

  const Staging staging_;
};

TEST_F(AccountsTest, TheDaemonsUserCannotLogIn) {
  EXPECT_THAT(
      ReadText(staging_.Path("/etc/passwd")),
      ContainsRegex("rknnd:x:[0-9]+:[0-9]+:[^:]*:[^:]*:/[a-z/]*nologin"));
}

TEST_F(AccountsTest, DevicesComeByTheGroupsTheyHave) {
  for (const char* group : {"render", "video", "kvm"}) {
    EXPECT_THAT(Groups(),
                ContainsRegex(std::string(group) + ":x:[0-9]+:rknnd"));
  }
}

// Whoever is put in it may use the NPU, and nothing else.
TEST_F(AccountsTest, TheClientsGroupIsOfNoOther) {
  EXPECT_THAT(Lines(Groups()), Contains(StartsWith("rknnd:x:")));
  for (const std::string& line : Lines(Source("udev/60-rknnd.rules"))) {
    EXPECT_THAT(line, Not(ContainsRegex("GROUP=\"rknnd\"")));
  }
}

TEST_F(AccountsTest, MakingThemAgainChangesNothing) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can read its shadow file";
  const std::string before = Groups();
  EXPECT_EQ(MakeUsers().code, 0);
  EXPECT_EQ(Groups(), before);
}

TEST_F(AccountsTest, TheSocketsFolderIsRootsAndOpenToAll) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give folders away";
  const Ended made = staging_.Run(
      {"systemd-tmpfiles", "--root=ROOT", "--create", "rknnd.conf"});
  ASSERT_EQ(made.code, 0) << made.errors;
  struct stat folder {};
  ASSERT_EQ(stat(staging_.Path("/run/rknnd").c_str(), &folder), 0);
  EXPECT_EQ(folder.st_uid, 0U);
  EXPECT_EQ(folder.st_mode & 07777U, 0755U);
}

}  // namespace
}  // namespace rknnd::packaging
