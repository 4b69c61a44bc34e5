// Cores that are lent to a command: by the real rknnctl, which may be killed,
// and a daemon that may be, too.

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/posix/child_process.h"
#include "base/posix/unique_fd.h"
#include "tests/integration/harness/files.h"
#include "tests/integration/harness/integration_test.h"
#include "tests/integration/harness/rknnctl.h"

namespace rknnd::integration {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;

class LeaseTest : public IntegrationTest {
 protected:
  void SetUp() override {
    StartDaemon();
    model_ = MakeConvNet(folder());
    client_ = StartClient();
    for (const char* name : {"any", "zero"}) {
      ASSERT_TRUE(
          Done(client_->Do(std::string("init ") + name + " " + model_.path)));
      ASSERT_TRUE(Done(client_->Do(std::string("bind_all ") + name)));
    }
    ASSERT_TRUE(Done(client_->Do("mask zero 1")));
  }

  // rknnctl with a command that says when it runs and ends when told to.
  base::ChildProcess StartLease(
      const std::string& cores,
      const std::string& script = "echo here $$; read word; exit $word") {
    base::ChildProcess::Options options;
    options.arguments = {ProgramPath("rknnctl"),
                         "--target",
                         daemon().target(),
                         "lease",
                         "--cores",
                         cores,
                         "--",
                         "/bin/sh",
                         "-c",
                         script};
    options.environment = {{"RKNND_TARGET", ""}};
    options.error_file = errors();
    auto process = base::ChildProcess::Start(options);
    EXPECT_TRUE(process.ok());
    auto line = process->ReadLine(kPatience);
    EXPECT_TRUE(line.ok()) << ReadText(errors());
    if (line.ok()) {
      EXPECT_THAT(*line, HasSubstr("here"));
      command_ = static_cast<pid_t>(std::atoi(line->c_str() + 5));
    }
    return *std::move(process);
  }
  [[nodiscard]] std::string errors() const { return folder() + "/lease.err"; }
  std::string LentTo(size_t core) {
    return Status().core_reports.at(core).lent_to;
  }
  RknnctlResult Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"--target", daemon().target()});
    return RunRknnctl(folder(), arguments);
  }

  TestModel model_;
  std::unique_ptr<ClientProcess> client_;
  pid_t command_ = 0;
};

TEST_F(LeaseTest, JobsAreKeptOffTheCoreWhileTheCommandRuns) {
  base::ChildProcess lease = StartLease("0");
  EXPECT_THAT(LentTo(0), HasSubstr("/bin/sh -c"));
  EXPECT_THAT(LentTo(1), IsEmpty());
  EXPECT_THAT(client_->Do("run zero"), Fails(RKNN_ERR_DEVICE_UNAVAILABLE,
                                             "core 0 is lent to '/bin/sh -c"));
  for (int run = 0; run < 8; ++run) {
    ASSERT_TRUE(Done(client_->Do("run any")));
    EXPECT_NE(client_->Do("report any").text, "core 0");
  }
  ASSERT_TRUE(lease.WriteLine("7").ok());
  const auto code = lease.Wait(kPatience);
  ASSERT_TRUE(code.ok());
  EXPECT_EQ(*code, 7);
  EXPECT_TRUE(Eventually([&] { return LentTo(0).empty(); }));
  EXPECT_TRUE(Done(client_->Do("run zero")));
}

TEST_F(LeaseTest, KilledRknnctlGivesTheCoreBackAndItsCommandEnds) {
  base::ChildProcess lease = StartLease("0-1");
  EXPECT_THAT(LentTo(1), HasSubstr("/bin/sh"));
  const base::UniqueFd command(
      static_cast<int>(syscall(SYS_pidfd_open, command_, 0)));
  ASSERT_TRUE(command.valid());
  lease.Signal(SIGKILL);
  ASSERT_TRUE(lease.Wait(kPatience).ok());
  EXPECT_TRUE(
      Eventually([&] { return LentTo(0).empty() && LentTo(1).empty(); }));
  EXPECT_TRUE(Done(client_->Do("run zero")));
  // Readable at its end, also where nobody waits for orphans: in containers.
  pollfd end = {command.get(), POLLIN, 0};
  EXPECT_EQ(poll(&end, 1, kPatience / base::kMillisecond), 1);
}

TEST_F(LeaseTest, SecondLeaseOfACoreIsRefusedWithItsHolder) {
  base::ChildProcess lease = StartLease("0,1");
  const RknnctlResult refused =
      Run({"lease", "--cores", "1-2", "--", "/bin/true"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("core 1 is lent to '/bin/sh -c"));
  EXPECT_THAT(refused.err,
              HasSubstr("(pid " + std::to_string(lease.pid()) + ")"));
  EXPECT_EQ(Run({"lease", "--cores", "2", "--", "/bin/true"}).exit_code, 0);
  ASSERT_TRUE(lease.WriteLine("0").ok());
  ASSERT_TRUE(lease.Wait(kPatience).ok());
}

TEST_F(LeaseTest, AllCoresMayBeLent) {
  base::ChildProcess lease = StartLease("0-2");
  EXPECT_THAT(client_->Do("run any"),
              Fails(RKNN_ERR_DEVICE_UNAVAILABLE, "cores 0 to 2 are lent to"));
  ASSERT_TRUE(lease.WriteLine("0").ok());
  ASSERT_TRUE(lease.Wait(kPatience).ok());
  EXPECT_TRUE(Eventually([&] { return LentTo(2).empty(); }));
  EXPECT_TRUE(Done(client_->Do("run any")));
}

TEST_F(LeaseTest, NewDaemonIsAskedAgain) {
  base::ChildProcess lease = StartLease("0");
  KillDaemon();
  RestartDaemon();
  EXPECT_TRUE(Eventually([&] { return !LentTo(0).empty(); }));
  EXPECT_THAT(ReadText(errors()), HasSubstr("rknnd has gone"));
  ASSERT_TRUE(lease.WriteLine("3").ok());
  const auto code = lease.Wait(kPatience);
  ASSERT_TRUE(code.ok());
  EXPECT_EQ(*code, 3);
}

TEST_F(LeaseTest, SignalsReachTheCommand) {
  base::ChildProcess lease =
      StartLease("0", "trap 'exit 9' USR1; echo here $$; read word");
  lease.Signal(SIGUSR1);
  auto code = lease.Wait(kPatience);
  ASSERT_TRUE(code.ok());
  EXPECT_EQ(*code, 9);
  lease = StartLease("0");
  lease.Signal(SIGTERM);
  code = lease.Wait(kPatience);
  ASSERT_TRUE(code.ok());
  EXPECT_EQ(*code, 128 + SIGTERM);
}

TEST_F(LeaseTest, ExitCodesAreTheCommands) {
  EXPECT_EQ(Run({"lease", "--cores", "0", "--", "/bin/false"}).exit_code, 1);
  EXPECT_EQ(Run({"lease", "--cores", "0", "--", "no-such-program"}).exit_code,
            127);
  EXPECT_EQ(Run({"lease", "--cores", "0", "--", "/etc/passwd"}).exit_code, 126);
  EXPECT_EQ(Run({"lease", "--cores", "9", "--", "/bin/true"}).exit_code, 1);
}

TEST_F(LeaseTest, JsonIsOneDocumentWhateverTheCommandPrints) {
  const RknnctlResult result = Run({"--json", "lease", "--cores", "0,2", "--",
                                    "/bin/sh", "-c", "echo spoken; exit 4"});
  EXPECT_EQ(result.exit_code, 4);
  const json document = json::parse(result.out, nullptr, false);
  ASSERT_TRUE(document.is_object()) << result.out;
  EXPECT_EQ(document["cores"], json::array({0, 2}));
  EXPECT_EQ(document["exit_code"], 4);
  EXPECT_THAT(result.err, HasSubstr("spoken"));
}

TEST_F(LeaseTest, CommandsOwnOptionsAreLeftAlone) {
  const RknnctlResult result =
      Run({"lease", "--cores", "0", "--", "/bin/echo", "--json", "--", "x"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, "--json -- x\n");
}

TEST_F(LeaseTest, WrongUsageIsRefused) {
  for (const char* cores : {"", "x", "0-", "-1", "2-1", "0,,1", "32", "0x1"}) {
    EXPECT_EQ(Run({"lease", "--cores", cores, "--", "/bin/true"}).exit_code, 2)
        << cores;
  }
  EXPECT_EQ(Run({"lease", "--cores", "0"}).exit_code, 2);
  EXPECT_EQ(Run({"lease", "--cores", "0", "--"}).exit_code, 2);
  EXPECT_EQ(Run({"lease", "--", "/bin/true"}).exit_code, 2);
}

}  // namespace
}  // namespace rknnd::integration
