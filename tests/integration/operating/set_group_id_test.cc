// A program with rights of its own (set-group-ID here) that somebody without
// them starts: the libraries in it do not do what his environment says. Skipped
// where there is no root to make such a program, or the kernel gives it no
// rights.

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "base/posix/child_process.h"
#include "base/posix/socket.h"
#include "tests/integration/harness/files.h"
#include "tests/integration/harness/integration_test.h"

namespace rknnd::integration {
namespace {

constexpr gid_t kAnotherGroup = 65534;

class SetGroupIdTest : public IntegrationTest {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root";
    struct statvfs system {};
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ||
        statvfs(folder().c_str(), &system) != 0 ||
        (system.f_flag & (ST_NOSUID | ST_NOEXEC)) != 0) {
      GTEST_SKIP() << "programs get no rights of their own in " << folder();
    }
    std::filesystem::copy_file(base::ProgramFolder() + "/integration_runner",
                               program_);
  }

  // Whether the program, told to by its environment, connects to a socket that
  // is not the daemon's.
  bool FollowsItsEnvironment() {
    const std::string path = folder() + "/trap";
    std::filesystem::remove(path);
    const auto trap = base::ListenUnix(path, 0666);
    EXPECT_TRUE(trap.ok());
    base::ChildProcess::Options options;
    options.arguments = {program_};
    options.environment = {{"RKNND_TARGET", "unix:" + path}};
    options.error_file = folder() + "/log";
    options.interrupt_fd = trap->get();  // readable once somebody connects
    auto child = base::ChildProcess::Start(options);
    EXPECT_TRUE(child.ok());
    EXPECT_TRUE(child->WriteLine("init_bytes a " + model_).ok());
    // Either it connects, or the command is answered.
    const auto answer = child->ReadLine(kPatience);
    const bool connected =
        !answer.ok() && answer.error().code == base::Code::kCancelled;
    EXPECT_TRUE(connected || answer.ok()) << answer.error().message;
    return connected;
  }

  // Whether it is one, only a daemon tells.
  const std::string model_ = WriteFile(folder() + "/model", "no model");
  const std::string program_ = folder() + "/program";
};

TEST_F(SetGroupIdTest, TargetIsNotTheStarters) {
  EXPECT_TRUE(FollowsItsEnvironment()) << "as an ordinary program";
  ASSERT_EQ(chown(program_.c_str(), 0, kAnotherGroup), 0);
  ASSERT_EQ(chmod(program_.c_str(), 02755), 0);
  EXPECT_FALSE(FollowsItsEnvironment()) << "as a set-group-ID program";
}

}  // namespace
}  // namespace rknnd::integration
