#include "base/posix/child_process.h"

#include <csignal>
#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rknnd::base {
namespace {

constexpr Nanoseconds kSoon = 20 * kSecond;

ChildProcess Shell(const std::string& script) {
  auto child = ChildProcess::Start({.arguments = {"/bin/sh", "-c", script},
                                    .environment = {},
                                    .error_file = ""});
  EXPECT_TRUE(child.ok());
  return *std::move(child);
}

TEST(ChildProcessTest, SpeaksByLines) {
  ChildProcess child = Shell("read x; echo \"<$x>\"; echo last");
  ASSERT_TRUE(child.WriteLine("hello").ok());
  EXPECT_EQ(*child.ReadLine(kSoon), "<hello>");
  EXPECT_EQ(*child.ReadAll(kSoon), "last\n");
}

TEST(ChildProcessTest, EndOfOutputIsUnavailable) {
  ChildProcess child = Shell("true");
  EXPECT_EQ(child.ReadLine(kSoon).error().code, Code::kUnavailable);
}

TEST(ChildProcessTest, SilenceIsBounded) {
  ChildProcess child = Shell("read x");
  EXPECT_EQ(child.ReadLine(kMillisecond).error().code, Code::kDeadlineExceeded);
}

TEST(ChildProcessTest, WritingToADeadProgramIsAnErrorAndNoSignal) {
  ChildProcess child = Shell("exec 0</dev/null; echo closed; read x");
  ASSERT_EQ(*child.ReadLine(kSoon), "closed");
  EXPECT_FALSE(child.WriteLine("anyone?").ok());
}

TEST(ChildProcessTest, WaitGivesExitCodeOrSignal) {
  EXPECT_EQ(*Shell("exit 3").Wait(kSoon), 3);
  ChildProcess child = Shell("read x");
  child.Signal(SIGKILL);
  EXPECT_EQ(*child.Wait(kSoon), 128 + SIGKILL);
}

TEST(ChildProcessTest, EnvironmentIsReplacedAndTakenAway) {
  ::setenv("RKNND_TEST_GONE", "1", 1);
  auto child = ChildProcess::Start(
      {.arguments = {"/bin/sh", "-c",
                     "echo \"${RKNND_TEST_GONE-none} $RKNND_TEST_NEW\""},
       .environment = {{"RKNND_TEST_GONE", ""}, {"RKNND_TEST_NEW", "new"}},
       .error_file = ""});
  ASSERT_TRUE(child.ok());
  EXPECT_EQ(*child->ReadLine(kSoon), "none new");
}

TEST(TemporaryFolderTest, GoesWithItsContents) {
  std::string path;
  {
    auto folder = TemporaryFolder::Make();
    ASSERT_TRUE(folder.ok());
    path = folder->path();
    std::filesystem::create_directories(path + "/a/b");
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace rknnd::base
