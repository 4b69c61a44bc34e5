// Programs in containers: the socket's folder and the client library are all
// they need, the daemon may be started again under them, and an operator sees
// who they are.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/posix/child_process.h"
#include "base/posix/unique_fd.h"
#include "rknn_api.h"
#include "tests/integration/harness/container.h"
#include "tests/integration/harness/files.h"
#include "tests/integration/harness/integration_test.h"
#include "tests/integration/harness/rknnctl.h"

namespace rknnd::integration {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;

// Nobody that this machine knows.
constexpr unsigned int kStranger = 54321;

class ContainersTest : public IntegrationTest {
 protected:
  ContainersTest() : root_(folder() + "/root") {
    runner_ = ProgramPath("tests/integration_runner");
    for (const char* inside : {"/run/rknnd", "/models"}) {
      fs::create_directories(root_ + inside);
    }
    // The test's folder is its own; a container's user gets as far as the
    // socket's folder.
    fs::permissions(folder(), fs::perms::others_exec, fs::perm_options::add);
  }

  // All containers end before their daemon.
  void TearDown() override { clients_.clear(); }

  // A model inside: its path there.
  std::string AddModel() {
    relu_ = MakeRelu(root_ + "/models");
    return Inside(relu_.path);
  }
  [[nodiscard]] std::string Inside(const std::string& path) const {
    return path.substr(root_.size());
  }
  ClientProcess& Add(std::vector<std::string> command,
                     const Environment& more = {}) {
    ClientProcess::Options options;
    options.command = std::move(command);
    options.environment = more;
    // RKNND_TARGET is not set: the default is right.
    options.log_file =
        folder() + "/container" + std::to_string(clients_.size());
    return *clients_.emplace_back(
        std::make_unique<ClientProcess>(std::move(options)));
  }
  ClientProcess& StartContainer(const std::string& mounted,
                                const std::string& at = "/run/rknnd",
                                const std::vector<std::string>& as = {},
                                const Environment& more = {}) {
    return Add(ContainerCommand({root_, runner_, {{mounted, at}}, as}), more);
  }
  void Init(ClientProcess& client) {
    ASSERT_TRUE(Done(client.Do("init c " + Inside(relu_.path))));
    ASSERT_TRUE(Done(client.Do("inputs c " + Inside(relu_.inputs.at(0)))));
  }
  testing::AssertionResult Runs(ClientProcess& client) {
    const Reply ran = client.Do("run c");
    if (ran.code != RKNN_SUCC) return Done(ran);
    return Right(client.Do("compare c " + Inside(relu_.outputs.at(0))));
  }
  json OnlySession() {
    const json sessions = AskRknnctl(folder(), daemon().target(), {"sessions"});
    EXPECT_EQ(sessions.size(), 1U);
    return sessions.empty() ? json::object() : sessions[0];
  }
  // The socket's folder, as /run/rknnd is on a machine.
  [[nodiscard]] std::string SocketFolder() {
    return fs::path(daemon().socket()).parent_path();
  }

  const std::string root_;
  std::string runner_;
  TestModel relu_;
  std::vector<std::unique_ptr<ClientProcess>> clients_;
};

#define SKIP_WITHOUT_CONTAINERS(...)                      \
  do {                                                    \
    const std::string why = WhyNoContainers(__VA_ARGS__); \
    if (!why.empty()) GTEST_SKIP() << why;                \
  } while (false)

TEST_F(ContainersTest, TheSocketsFolderAndTheLibraryAreEnough) {
  SKIP_WITHOUT_CONTAINERS();
  StartDaemon();
  AddModel();
  MakeMinimalRoot(root_, runner_);
  ClientProcess& client = StartContainer(SocketFolder());
  Init(client);
  EXPECT_TRUE(Runs(client));
  // No device, no file of the host beside what was copied.
  EXPECT_FALSE(fs::exists(root_ + "/dev"));
  EXPECT_FALSE(fs::exists(root_ + "/etc"));
}

TEST_F(ContainersTest, ItsProcessIsShownAsTheHostNumbersIt) {
  SKIP_WITHOUT_CONTAINERS();
  StartDaemon();
  AddModel();
  MakeMinimalRoot(root_, runner_);
  ClientProcess& client = StartContainer(SocketFolder());
  Init(client);
  const json session = OnlySession();
  // There it is process 1 and root.
  EXPECT_EQ(session["pid"], ContainerPid(client.pid()));
  EXPECT_EQ(session["uid"], geteuid());
  EXPECT_EQ(session["comm"], "integration_runner");
}

TEST_F(ContainersTest, TheMountIsForConnectingOnly) {
  SKIP_WITHOUT_CONTAINERS();
  StartDaemon();
  AddModel();
  MakeMinimalRoot(root_, runner_);
  ClientProcess& client = StartContainer(SocketFolder());
  Init(client);
  const std::string inside =
      "/proc/" + std::to_string(ContainerPid(client.pid())) + "/root/run/rknnd";
  if (!fs::exists(inside + "/session.sock")) {
    GTEST_SKIP() << "this machine does not let one look into a container";
  }
  const base::UniqueFd made(open((inside + "/fake.sock").c_str(),
                                 O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  EXPECT_FALSE(made.valid());
  EXPECT_EQ(errno, EROFS);
  EXPECT_NE(unlink((inside + "/session.sock").c_str()), 0);
}

TEST_F(ContainersTest, ADaemonStartedAgainIsFoundInTheFolder) {
  SKIP_WITHOUT_CONTAINERS();
  StartDaemon();
  AddModel();
  MakeMinimalRoot(root_, runner_);
  ClientProcess& client = StartContainer(SocketFolder());
  Init(client);
  ASSERT_TRUE(Runs(client));
  for (const bool killed : {true, false}) {
    if (killed) {
      KillDaemon();
    } else {
      EXPECT_EQ(EndDaemon(), 0);
    }
    client.Send("run c");
    RestartDaemon();
    EXPECT_TRUE(Done(client.Receive()));
    EXPECT_TRUE(Right(client.Do("compare c " + Inside(relu_.outputs.at(0)))));
  }
}

// Why every example mounts the folder.
TEST_F(ContainersTest, ASocketsFileThatIsMountedGoesStale) {
  SKIP_WITHOUT_CONTAINERS();
  StartDaemon();
  AddModel();
  MakeMinimalRoot(root_, runner_);
  std::ofstream(root_ + "/run/rknnd/session.sock") << "";
  ClientProcess& client =
      StartContainer(daemon().socket(), "/run/rknnd/session.sock", {},
                     {{"RKNND_RESTART_WAIT", "1"}});
  Init(client);
  ASSERT_TRUE(Runs(client));
  KillDaemon();
  RestartDaemon();
  const Reply stale = client.Do("run c");
  EXPECT_NE(stale.code, RKNN_SUCC);
  EXPECT_THAT(stale.text, HasSubstr("/run/rknnd/session.sock"));
}

TEST_F(ContainersTest, RootInAContainerIsItsUserOutside) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const std::string stranger = std::to_string(kStranger);
  const std::vector<std::string> as = {"/usr/bin/setpriv", "--reuid",
                                       stranger,           "--regid",
                                       stranger,           "--clear-groups"};
  SKIP_WITHOUT_CONTAINERS(as);
  StartDaemon({.more = {"--config", WriteFile(folder() + "/open.toml",
                                              "socket_mode = 0o666\n")}});
  AddModel();
  MakeMinimalRoot(root_, runner_);
  // Mounts are made by that user.
  ClientProcess& client = StartContainer(SocketFolder(), "/run/rknnd", as);
  Init(client);
  EXPECT_TRUE(Runs(client));
  EXPECT_EQ(OnlySession()["uid"], kStranger);
}

TEST_F(ContainersTest, WhoIsNotInTheGroupIsToldSo) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const std::string stranger = std::to_string(kStranger);
  const std::vector<std::string> as = {"/usr/bin/setpriv", "--reuid",
                                       stranger,           "--regid",
                                       stranger,           "--clear-groups"};
  SKIP_WITHOUT_CONTAINERS(as);
  StartDaemon();  // 0660
  AddModel();
  MakeMinimalRoot(root_, runner_);
  ClientProcess& client = StartContainer(SocketFolder(), "/run/rknnd", as);
  const Reply refused = client.Do("init c " + Inside(relu_.path));
  EXPECT_NE(refused.code, RKNN_SUCC);
  EXPECT_THAT(refused.text, HasSubstr("ermission denied"));
}

// A control group as container engines name them.
class ControlGroup {
 public:
  // In the hierarchy that tells of units; empty where none can be made.
  explicit ControlGroup(const std::string& name) {
    std::istringstream mounts(ReadText("/proc/mounts"));
    for (std::string line; std::getline(mounts, line);) {
      std::istringstream words(line);
      std::string device, point, type, options;
      words >> device >> point >> type >> options;
      // As the daemon: systemd's own hierarchy where there is one, else
      // version 2.
      const bool systemds =
          type == "cgroup" && options.find("name=systemd") != std::string::npos;
      if (systemds || (type == "cgroup2" && parent_.empty())) parent_ = point;
      if (systemds) break;
    }
    if (parent_.empty()) return;
    parent_ += "/rknnd-test-" + std::to_string(getpid());
    std::error_code error;
    fs::create_directories(parent_ + "/" + name, error);
    if (!error) path_ = parent_ + "/" + name;
  }
  ~ControlGroup() {
    if (!path_.empty()) rmdir(path_.c_str());
    if (!parent_.empty()) rmdir(parent_.c_str());
  }
  ControlGroup(const ControlGroup&) = delete;
  ControlGroup& operator=(const ControlGroup&) = delete;

  [[nodiscard]] bool Take(pid_t pid) const {
    if (path_.empty()) return false;
    std::ofstream file(path_ + "/cgroup.procs");
    file << pid << std::endl;
    return file.good();
  }

 private:
  std::string parent_, path_;
};

TEST_F(ContainersTest, ItsContainersNameIsShown) {
  SKIP_WITHOUT_CONTAINERS();
  const std::string id =
      "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
  const ControlGroup group("docker-" + id + ".scope");
  StartDaemon();
  AddModel();
  MakeMinimalRoot(root_, runner_);
  ClientProcess& client = StartContainer(SocketFolder());
  if (!group.Take(ContainerPid(client.pid()))) {
    EXPECT_EQ(client.Exit(), 0);
    GTEST_SKIP() << "control groups cannot be made here";
  }
  Init(client);
  EXPECT_EQ(OnlySession()["container"], id.substr(0, 12));
  EXPECT_EQ(client.Exit(), 0);
}

// ---- a container engine, where there is one ---------------------------------

class PodmanTest : public ContainersTest {
 protected:
  // The command up to the root of the container; empty where podman does not
  // run any here.
  std::vector<std::string> Podman() {
    const std::string podman = FindProgram("podman");
    if (podman.empty()) return {};
    rlimit files{};
    getrlimit(RLIMIT_NOFILE, &files);
    const std::string limit = std::to_string(files.rlim_max);
    for (const std::vector<std::string>& how :
         std::vector<std::vector<std::string>>{
             {}, {"--runtime", "runc", "--cgroup-manager", "cgroupfs"}}) {
      std::vector<std::string> command = {podman,
                                          "--root",
                                          folder() + "/podman",
                                          "--runroot",
                                          folder() + "/podman-run",
                                          "--storage-driver",
                                          "vfs"};
      command.insert(command.end(), how.begin(), how.end());
      // Limits that this process may not raise itself.
      for (const char* word :
           {"run", "--rm", "-i", "--network", "none", "--ulimit"}) {
        command.emplace_back(word);
      }
      command.push_back("nofile=" + limit + ":" + limit);
      command.insert(command.end(), {"--ulimit", "nproc=4096:4096"});
      std::vector<std::string> probe = command;
      // It ends by itself: its stdin is closed.
      probe.insert(probe.end(), {"--rootfs", root_, runner_});
      base::ChildProcess::Options options;
      options.arguments = {"/bin/sh", "-c", "exec \"$@\" < /dev/null", "sh"};
      options.arguments.insert(options.arguments.end(), probe.begin(),
                               probe.end());
      options.error_file = folder() + "/podman.log";
      auto process = base::ChildProcess::Start(options);
      if (!process.ok()) continue;
      const auto code = process->Wait(kPatience);
      if (code.ok() && *code == 0) return command;
    }
    return {};
  }
};

// As docs/containers.md has it.
TEST_F(PodmanTest, RunsAProgramWithTheFolderAlone) {
  // It leaves a process of its own behind, for the user's next container.
  if (geteuid() != 0) GTEST_SKIP() << "rootless podman is not tried";
  for (const char* folder : {"/etc", "/dev", "/sys", "/tmp"}) {
    fs::create_directories(root_ + folder);
  }
  AddModel();
  MakeMinimalRoot(root_, runner_);
  std::vector<std::string> command = Podman();
  if (command.empty()) {
    GTEST_SKIP() << "podman runs no containers here: "
                 << ReadText(folder() + "/podman.log");
  }
  StartDaemon();
  command.insert(command.end(), {"--volume", SocketFolder() + ":/run/rknnd:ro",
                                 "--rootfs", root_, runner_});
  ClientProcess& client = Add(command);
  Init(client);
  EXPECT_TRUE(Runs(client));
  const json session = OnlySession();
  ASSERT_NE(session["pid"], 0);
  // Without a control group of its own it has no name.
  const std::string groups = ReadText(
      "/proc/" + std::to_string(session["pid"].get<int>()) + "/cgroup");
  EXPECT_EQ(session["container"].get<std::string>().size(),
            groups.find("libpod") == std::string::npos ? 0U : 12U)
      << groups;
  KillDaemon();
  client.Send("run c");
  RestartDaemon();
  EXPECT_TRUE(Done(client.Receive()));
  EXPECT_EQ(client.Exit(), 0);
}

}  // namespace
}  // namespace rknnd::integration
