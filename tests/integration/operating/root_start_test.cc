// A daemon that root starts by hand and that becomes another user: what is left
// of root in it, and that it serves all the same. Skipped where there is no
// root, or one that may not change its user.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <iterator>
#include <string>

#include "tests/integration/harness/files.h"
#include "tests/integration/harness/integration_test.h"

namespace rknnd::integration {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr char kUser[] = "nobody";

uid_t UserId() { return getpwnam(kUser)->pw_uid; }

bool MayBecomeTheUser() {
  const pid_t child = fork();
  if (child == 0) _exit(setresuid(UserId(), UserId(), UserId()) == 0 ? 0 : 1);
  int status = 1;
  return waitpid(child, &status, 0) == child && status == 0;
}

class RootStartTest : public IntegrationTest {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root";
    if (!MayBecomeTheUser()) {
      GTEST_SKIP() << "this root may not become user '" << kUser << "'";
    }
    // Temporary folders are closed; a daemon's own are not below such.
    ASSERT_EQ(chmod(folder().c_str(), 0755), 0);
    DaemonOptions options;
    options.cache_dir = folder() + "/cache";
    options.more = {
        "--config",
        WriteFile(folder() + "/rknnd.toml",
                  std::string("[service]\nuser = \"") + kUser + "\"\n"),
        "--state-dir", folder() + "/state"};
    StartDaemon(options);
    // It listens before it has become the user, and answers nobody until then.
    Status();
  }
  [[nodiscard]] std::string Proc(const std::string& file) {
    return "/proc/" + std::to_string(daemon().pid()) + "/" + file;
  }
  static uid_t OwnerOf(const std::string& path) {
    struct stat now {};
    return stat(path.c_str(), &now) == 0 ? now.st_uid : 0;
  }
};

TEST_F(RootStartTest, NoThreadKeepsAnythingOfRoot) {
  const std::string uid = std::to_string(UserId());
  size_t threads = 0;
  for (const auto& task : std::filesystem::directory_iterator(Proc("task"))) {
    const std::string status = ReadText(task.path() / "status");
    if (status.empty()) continue;  // it has ended since it was listed
    ++threads;
    EXPECT_THAT(status, HasSubstr("Uid:\t" + uid + "\t" + uid + "\t" + uid +
                                  "\t" + uid + "\n"));
    for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"}) {
      EXPECT_THAT(status,
                  HasSubstr(std::string(set) + ":\t0000000000000000\n"));
    }
    EXPECT_THAT(status, HasSubstr("NoNewPrivs:\t1\n"));
  }
  EXPECT_GT(threads, 1U);
}

TEST_F(RootStartTest, ItServesAndKeepsModelsAsThatUser) {
  const TestModel model = MakeRelu(folder());
  auto client = StartClient();
  EXPECT_TRUE(Done(client->Do("init a " + model.path)));
  EXPECT_TRUE(Done(client->Do("inputs a" + model.input_list())));
  EXPECT_TRUE(Done(client->Do("run a")));
  EXPECT_TRUE(Right(client->Do("compare a" + model.output_list())));
  const auto kept = [this] {
    return std::distance(
        std::filesystem::directory_iterator(folder() + "/cache"), {});
  };
  Eventually([&] { return kept() > 0; });
  EXPECT_GT(kept(), 0);
  for (const auto& file :
       std::filesystem::directory_iterator(folder() + "/cache")) {
    EXPECT_EQ(OwnerOf(file.path()), UserId()) << file.path();
  }
  EXPECT_EQ(OwnerOf(folder() + "/state"), UserId());
}

// As a program sees it: its own session, with its name and user.
// What root may read, the service cannot: --check-config looks as the service.
TEST_F(RootStartTest, ConfigurationIsCheckedAsThatUser) {
  const std::string tokens = folder() + "/tokens";
  const std::string repository = folder() + "/models";
  WriteFile(tokens, "user alice 0123456789abcdef0123456789abcdef\n");
  ASSERT_EQ(chmod(tokens.c_str(), 0600), 0);
  const std::string config =
      WriteFile(folder() + "/checked.toml",
                std::string("[service]\nuser = \"") + kUser +
                    "\"\n[models]\nrepository = \"" + repository +
                    "\"\n[grpc]\nlisten = \"127.0.0.1:0\"\ntokens = \"" +
                    tokens + "\"\n");
  const auto check = [&](int expected) {
    EXPECT_EQ(
        RunProgram({ProgramPath("rknnd"), "--check-config", "--config", config},
                   "", {}, expected),
        expected);
    return ReadText(folder() + "/program.log");
  };
  constexpr int kWrongConfiguration = 78;

  EXPECT_THAT(check(kWrongConfiguration),
              HasSubstr("open folder '" + repository + "': No such file"));
  std::filesystem::create_directory(repository);
  EXPECT_THAT(check(kWrongConfiguration),
              AllOf(HasSubstr("open '" + tokens + "': Permission denied"),
                    HasSubstr("That is what user 'nobody'"),
                    HasSubstr("'chown nobody FILE'")));
  ASSERT_EQ(chown(tokens.c_str(), UserId(), static_cast<gid_t>(-1)), 0);
  check(0);
}

TEST_F(RootStartTest, WhoMayNotHaveTheServicesSocketIsToldOfAnother) {
  const std::string closed = folder() + "/closed/session.sock";
  EXPECT_EQ(RunProgram({"/usr/bin/setpriv", "--reuid", std::to_string(UserId()),
                        "--regid", std::to_string(UserId()), "--clear-groups",
                        ProgramPath("rknnd"), "--socket", closed},
                       "", {{"XDG_RUNTIME_DIR", "/run/user/7"}}, 1),
            1);
  EXPECT_THAT(
      ReadText(folder() + "/program.log"),
      AllOf(HasSubstr("mkdir '" + folder() + "/closed': Permission denied"),
            HasSubstr("'rknnd --socket /run/user/7/rknnd/session.sock'"),
            HasSubstr("RKNND_TARGET=unix:/run/user/7/rknnd/session.sock")));
}

TEST_F(RootStartTest, ItStillKnowsItsClients) {
  auto client = StartClient();
  const TestModel model = MakeRelu(folder());
  EXPECT_TRUE(Done(client->Do("init a " + model.path)));
  bool seen = false;
  for (const auto& session :
       Ask(rknnd_v1_ReportKind_REPORT_SESSIONS).sessions) {
    if (session.pid != client->pid()) continue;
    seen = true;
    EXPECT_EQ(session.uid, geteuid());
    EXPECT_NE(session.comm, "");
  }
  EXPECT_TRUE(seen);
}

}  // namespace
}  // namespace rknnd::integration
