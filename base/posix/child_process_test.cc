#include "base/posix/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rknnd::base {
namespace {

constexpr Nanoseconds kSoon = 60 * kSecond;

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

TEST(ChildProcessTest, LineThatComesInPiecesIsOne) {
  ChildProcess child = Shell("printf one; read x; printf 'two\\nthree\\n'");
  EXPECT_EQ(child.ReadLine(200 * kMillisecond).error().code,
            Code::kDeadlineExceeded);
  ASSERT_TRUE(child.WriteLine("go on").ok());
  EXPECT_EQ(*child.ReadLine(kSoon), "onetwo");
  EXPECT_EQ(*child.ReadLine(kSoon), "three");
}

TEST(ChildProcessTest, InterruptEndsEveryWait) {
  const UniqueFd interrupt(eventfd(1, EFD_CLOEXEC));
  ChildProcess::Options options;
  options.arguments = {"/bin/sh", "-c", "echo said; read x"};
  options.interrupt_fd = interrupt.get();
  auto child = ChildProcess::Start(options);
  ASSERT_TRUE(child.ok());
  EXPECT_EQ(child->ReadLine(kSoon).error().code, Code::kCancelled);
  EXPECT_EQ(child->Wait(kSoon).error().code, Code::kCancelled);
}

TEST(ChildProcessTest, ChildDiesWithItsParentIfAskedTo) {
  // The parent has to be one that is killed: a copy of this test.
  int pipe_ends[2];
  ASSERT_EQ(pipe2(pipe_ends, O_CLOEXEC), 0);
  const UniqueFd from(pipe_ends[0]);
  UniqueFd to(pipe_ends[1]);
  const pid_t parent = fork();
  ASSERT_GE(parent, 0);
  if (parent == 0) {
    ChildProcess::Options options;
    options.arguments = {"/bin/sleep", "1000"};
    options.dies_with_parent = true;
    auto child = ChildProcess::Start(options);
    const pid_t pid = child.ok() ? child->pid() : -1;
    (void)!write(to.get(), &pid, sizeof pid);
    pause();
    _exit(0);
  }
  to.reset();
  pid_t grandchild = -1;
  ASSERT_EQ(read(from.get(), &grandchild, sizeof grandchild),
            static_cast<ssize_t>(sizeof grandchild));
  ASSERT_GT(grandchild, 0);
  const UniqueFd watched(
      static_cast<int>(syscall(SYS_pidfd_open, grandchild, 0)));
  ASSERT_TRUE(watched.valid());
  kill(parent, SIGKILL);
  waitpid(parent, nullptr, 0);
  pollfd ended = {watched.get(), POLLIN, 0};
  const bool died = poll(&ended, 1, 20'000) == 1;
  EXPECT_TRUE(died);
  if (!died) kill(grandchild, SIGKILL);
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
