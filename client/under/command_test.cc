#include "client/under/command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "client/image/temporary_folder.h"

namespace rknnd::client {
namespace {

using base::Code;
using testing::HasSubstr;

class CommandTest : public testing::Test {
 protected:
  std::string Make(const std::string& name, mode_t mode,
                   const std::string& text = "#!/bin/sh\n") {
    const std::string path = folder_.File(name);
    std::filesystem::create_directories(
        std::filesystem::path(path).parent_path());
    std::ofstream(path) << text;
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  }

  TemporaryFolder folder_;
};

TEST_F(CommandTest, IsTheFirstOfItsNameInThePath) {
  const std::string first = Make("a/tool", 0755);
  Make("b/tool", 0755);
  const auto found =
      FindCommand("tool", folder_.path() + "/absent:" + folder_.path() +
                              "/a:" + folder_.path() + "/b");
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(*found, first);
}

TEST_F(CommandTest, WhatCannotBeExecutedDoesNotHideWhatCan) {
  Make("a/tool", 0644);
  const std::string second = Make("b/tool", 0755);
  const auto found =
      FindCommand("tool", folder_.path() + "/a:" + folder_.path() + "/b");
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(*found, second);
}

TEST_F(CommandTest, AbsentOneEndsWith127) {
  const auto found = FindCommand("tool", folder_.path());
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(ExitCodeOf(found.error().code), 127);
  EXPECT_THAT(found.error().message, HasSubstr("'tool' not found"));
  EXPECT_FALSE(FindCommand("", folder_.path()).ok());
  EXPECT_FALSE(FindCommand(folder_.File("tool"), "").ok());
}

// The PATH of another user, after su: such a folder is as none.
TEST_F(CommandTest, FolderThatMayNotBeSearchedHasNothing) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may search each folder";
  Make("closed/tool", 0755);
  ASSERT_EQ(::chmod(folder_.File("closed").c_str(), 0), 0);
  const auto in_path = FindCommand("tool", folder_.File("closed"));
  const auto named = FindCommand(folder_.File("closed/tool"), "");
  ASSERT_EQ(::chmod(folder_.File("closed").c_str(), 0700), 0);
  ASSERT_FALSE(in_path.ok());
  EXPECT_EQ(in_path.error().code, Code::kNotFound);
  ASSERT_FALSE(named.ok());
  EXPECT_EQ(named.error().code, Code::kPermissionDenied);
}

TEST_F(CommandTest, FileThatIsNoProgramEndsWith126) {
  Make("tool", 0644);
  const auto found = FindCommand("tool", folder_.path());
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(ExitCodeOf(found.error().code), 126);
  EXPECT_THAT(found.error().message, HasSubstr(folder_.File("tool")));
  EXPECT_EQ(FindCommand(folder_.path(), "").error().code,
            Code::kPermissionDenied);
}

TEST_F(CommandTest, OwnRightsAreGood) {
  EXPECT_TRUE(CheckCommand(Make("script", 0755)).ok());
  EXPECT_TRUE(CheckCommand("/proc/self/exe").ok());
  // Ours already: nothing changes.
  EXPECT_TRUE(CheckCommand(Make("own", 04755)).ok());
}

TEST_F(CommandTest, RightsOfAnotherUserAreRefusedWithWhatToDo) {
  const std::string path = Make("sudo", 0755);
  if (::getuid() != 0) GTEST_SKIP() << "only root gives files away";
  ASSERT_EQ(::chown(path.c_str(), 12345, 0), 0);
  ASSERT_EQ(::chmod(path.c_str(), 04755), 0);
  const auto checked = CheckCommand(path);
  ASSERT_FALSE(checked.ok());
  EXPECT_EQ(ExitCodeOf(checked.error().code), 126);
  EXPECT_THAT(checked.error().message, HasSubstr("sudo rknnd-run COMMAND"));

  ASSERT_EQ(::chown(path.c_str(), 0, 12345), 0);
  ASSERT_EQ(::chmod(path.c_str(), 02755), 0);
  EXPECT_FALSE(CheckCommand(path).ok());
}

TEST_F(CommandTest, ProgramOfAnotherMachineIsRefused) {
  // The header of a program for a machine that none of ours is.
  std::string header(64, '\0');
  header.replace(0, 6, "\177ELF\1\2");
  header[19] = 2;  // e_machine, big-endian: SPARC
  const auto checked = CheckCommand(Make("alien", 0755, header));
  ASSERT_FALSE(checked.ok());
  EXPECT_THAT(checked.error().message, HasSubstr("another machine"));
  // Shorter than a header: whatever it is, the loader will tell.
  EXPECT_TRUE(CheckCommand(Make("short", 0755, "\177ELF")).ok());
}

}  // namespace
}  // namespace rknnd::client
