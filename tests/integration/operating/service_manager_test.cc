// rknnd under a service manager: what it says to it, the sockets it is passed,
// the watchdog that is fed only while all gets on, and what outlives the daemon
// in the manager's fd store.

#include "tests/integration/harness/service_manager.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/posix/child_process.h"
#include "base/posix/memfd.h"
#include "base/posix/socket.h"
#include "base/values/sha256.h"
#include "tests/integration/harness/faults.h"
#include "tests/integration/harness/files.h"
#include "tests/integration/harness/integration_test.h"
#include "tests/integration/harness/patience.h"
#include "tests/integration/harness/rknnctl.h"

namespace rknnd::integration {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr char kFed[] = "WATCHDOG=1";
constexpr base::Nanoseconds kWatchdog = 400 * base::kMillisecond;

class ServiceManagerTest : public testing::Test {
 protected:
  ServiceManagerTest()
      : folder_(*base::TemporaryFolder::Make()), model_(MakeRelu(folder())) {}

  [[nodiscard]] const std::string& folder() const { return folder_.path(); }

  void Make(ServiceManager::Options options = {}) {
    manager_ = std::make_unique<ServiceManager>(folder(), std::move(options));
  }
  ServiceManager& manager() { return *manager_; }
  std::unique_ptr<ClientProcess> Client(const std::string& target = "") {
    return std::make_unique<ClientProcess>(
        ClientProcess::Options{target.empty() ? manager().target() : target,
                               folder() + "/client.log",
                               {}});
  }
  // It has a context, and right answers from it.
  void ExpectServed(ClientProcess& client) {
    ASSERT_TRUE(Done(client.Do("inputs c" + model_.input_list())));
    ASSERT_TRUE(Done(client.Do("run c")));
    EXPECT_TRUE(Right(client.Do("compare c" + model_.output_list())));
  }
  // The model as a daemon without any of its bytes is asked for it.
  base::Expected<wire::Frame> CreateByHash(RawClient& client) {
    const std::string bytes = ReadText(model_.path);
    const base::Sha256Digest hash =
        base::Sha256Of(std::as_bytes(std::span(bytes)));
    wire::CreateContext create{};
    create.context = 1;
    std::copy(hash.begin(), hash.end(), std::begin(create.model));
    return client.Ask(wire::Verb::kCreateContext, create);
  }

  base::TemporaryFolder folder_;
  TestModel model_;
  std::unique_ptr<ServiceManager> manager_;
};

TEST_F(ServiceManagerTest, IsToldWhenItIsReadyAndWhenItStops) {
  Make();
  manager().Launch();
  EXPECT_THAT(manager().AwaitSaid("READY=1"), HasSubstr("STATUS=rknnd"));
  const auto client = Client();
  ASSERT_TRUE(Done(client->Do("init c " + model_.path)));
  ExpectServed(*client);
  manager().Signal(SIGTERM);
  EXPECT_NE(manager().AwaitSaid("STOPPING=1"), "");
  EXPECT_EQ(manager().WaitForEnd(), 0);
}

TEST_F(ServiceManagerTest, SecondSignalWaitsForNoQueue) {
  const FaultOptions faults{.give_up = 0, .hang = 600 * base::kSecond};
  Make({.arguments = WithFaults(folder(), faults).more});
  manager().Start();
  const auto client = Client();
  ASSERT_TRUE(Done(client->Do("init c " + model_.path)));
  ASSERT_TRUE(Done(client->Do("inputs c" + model_.input_list())));
  // A job that would not end as long as the fault lasts.
  SetFault(folder(), manager().target(),
           {.kind = driver::FaultKind::kHang, .times = 1});
  client->Send("run c");
  ASSERT_TRUE(Eventually([this] {
    return AskRknnctl(folder(), manager().target(),
                      {"status"})["jobs"]["running"] == 1;
  }));
  manager().Signal(SIGTERM);
  EXPECT_NE(manager().AwaitSaid("STOPPING=1"), "");
  manager().Signal(SIGTERM);
  EXPECT_NE(manager().AwaitSaid("STOPPING=1"), "");
  EXPECT_EQ(manager().WaitForEnd(), 0);
  EXPECT_THAT(manager().log(), HasSubstr("signal 15 again"));
  // Its job is run by the next daemon.
  manager().Start();
  EXPECT_TRUE(Done(client->Receive()));
  EXPECT_TRUE(Right(client->Do("compare c" + model_.output_list())));
}

TEST_F(ServiceManagerTest, WithoutWatchdogNobodyIsFed) {
  Make();
  manager().Start();
  const auto client = Client();
  ASSERT_TRUE(Done(client->Do("init c " + model_.path)));
  ExpectServed(*client);
  EXPECT_EQ(manager().CountSaid(kFed), 0U);
}

// Neither a service manager that does not listen nor a log that nobody reads
// holds up programs.
TEST_F(ServiceManagerTest, ServiceManagerThatDoesNotListenHoldsUpNobody) {
  Make();
  manager().Start();
  // All that it has room for.
  const base::UniqueFd full(
      ::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = folder() + "/notify";
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  while (sendto(full.get(), "X=1", 3, 0,
                reinterpret_cast<const sockaddr*>(&address),
                sizeof address) > 0) {
  }
  ASSERT_EQ(errno, EAGAIN);

  const auto client = Client();
  ASSERT_TRUE(Done(client->Do("init c " + model_.path)));
  ExpectServed(*client);
  for (int i = 0; i < 3; ++i) manager().Signal(SIGHUP);
  ExpectServed(*client);
  EXPECT_EQ(client->Exit(), 0);
  EXPECT_EQ(manager().Stop(), 0);
}

// Else the daemon's own files would have the numbers of stderr and the like,
// and be sent lines of its log.
TEST_F(ServiceManagerTest, StreamsThatAreClosedAreNoFilesOfTheDaemons) {
  const std::string socket = folder() + "/session.sock";
  base::ChildProcess::Options options;
  options.arguments = {"/bin/sh",
                       "-c",
                       "exec \"$@\" <&- >&- 2>&-",
                       "sh",
                       ProgramPath("rknnd"),
                       "--socket",
                       socket,
                       "--device",
                       "soft",
                       "--cache-dir",
                       ""};
  auto daemon = base::ChildProcess::Start(options);
  ASSERT_TRUE(daemon.ok()) << daemon.error().message;
  ASSERT_TRUE(base::WaitForServer(socket, *daemon, kPatience));
  for (const char* stream : {"0", "1", "2"}) {
    EXPECT_EQ(std::filesystem::read_symlink(
                  "/proc/" + std::to_string(daemon->pid()) + "/fd/" + stream),
              "/dev/null");
  }
  daemon->Signal(SIGTERM);
  const auto code = daemon->Wait(kPatience);
  ASSERT_TRUE(code.ok()) << code.error().message;
  EXPECT_EQ(*code, 0);
}

// ---- sockets ----------------------------------------------------------------

TEST_F(ServiceManagerTest, ServesSocketsOfUnitsEachForItsOwnPeople) {
  Make({.arguments = {"--faults"}});
  const std::string session = folder() + "/units.sock";
  const std::string admin = folder() + "/operators";
  manager().AddSocket("rknnd.socket", *base::ListenUnix(session, 0660));
  manager().AddSocket("rknnd-admin.socket", *base::ListenUnix(admin, 0600));
  manager().Start();
  EXPECT_FALSE(std::filesystem::exists(manager().socket()));

  const auto client = Client("unix:" + session);
  ASSERT_TRUE(Done(client->Do("init c " + model_.path)));
  ExpectServed(*client);
  const auto set_fault = [](const std::string& socket) {
    RawClient raw(socket);
    raw.SayHello();
    wire::Fault fault{};
    wire::SetText(fault.kind, "slow");
    fault.every = 1;
    fault.ms = 1;
    const auto answer = raw.Ask(wire::Verb::kSetFault, fault);
    return answer.ok() ? base::Code::kOk : answer.error().code;
  };
  EXPECT_EQ(set_fault(admin), base::Code::kOk);
  EXPECT_EQ(set_fault(session), base::Code::kPermissionDenied);
  EXPECT_EQ(client->Exit(), 0);
  EXPECT_EQ(manager().Stop(), 0);
  EXPECT_TRUE(std::filesystem::exists(session)) << "it is the unit's";
}

TEST_F(ServiceManagerTest, UnitsSocketsOutliveTheDaemonAndLoseNoConnect) {
  Make();
  const std::string session = folder() + "/units.sock";
  manager().AddSocket("rknnd.socket", *base::ListenUnix(session, 0660));
  manager().Start();
  manager().Kill();
  // Accepted by nobody yet.
  const auto client = Client("unix:" + session);
  client->Send("init c " + model_.path);
  manager().Start();
  EXPECT_TRUE(Done(client->Receive()));
  ExpectServed(*client);
}

TEST_F(ServiceManagerTest, OwnSocketsAreKeptWhereThereAreNoneOfUnits) {
  Make();
  manager().Start();
  EXPECT_EQ(manager().stored("session-socket-"), 1U);
  EXPECT_EQ(manager().stored("admin-socket-"), 1U);
  struct stat before {};
  ASSERT_EQ(lstat(manager().socket().c_str(), &before), 0);
  manager().Kill();
  // Waits where the next daemon takes it up.
  auto meanwhile = base::ConnectUnix(manager().socket());
  ASSERT_TRUE(meanwhile.ok()) << meanwhile.error().message;
  manager().Start();
  struct stat after {};
  ASSERT_EQ(lstat(manager().socket().c_str(), &after), 0);
  EXPECT_EQ(before.st_ino, after.st_ino);
  const auto client = Client();
  ASSERT_TRUE(Done(client->Do("init c " + model_.path)));
  ExpectServed(*client);

  // As at an upgrade.
  EXPECT_EQ(manager().Stop(), 0);
  manager().CountSaid("");
  EXPECT_EQ(manager().stored("session-socket-"), 1U);
  EXPECT_TRUE(base::ConnectUnix(manager().socket()).ok());
  manager().Start();
  ExpectServed(*client);
}

TEST_F(ServiceManagerTest, WhatItDoesNotKnowIsClosedWithAWarning) {
  Make();
  manager().store()["leftover"] = *base::MakeMemfd("leftover", 10);
  manager().Start();
  manager().CountSaid("");
  EXPECT_EQ(manager().store().count("leftover"), 0U);
  EXPECT_THAT(manager().log(), HasSubstr("'leftover'"));
}

TEST_F(ServiceManagerTest, UnitsSocketOfTheWrongKindIsAnErrorThatNamesIt) {
  Make();
  manager().AddSocket("rknnd.socket",
                      *base::ListenUnix(folder() + "/stream.sock", 0660,
                                        base::UnixKind::kStream));
  manager().Launch();
  EXPECT_EQ(manager().WaitForEnd(), 1);
  EXPECT_THAT(manager().log(), HasSubstr("ListenSequentialPacket="));
}

// ---- models -----------------------------------------------------------------

TEST_F(ServiceManagerTest, ModelsOutliveAKillWithoutDiskAndWithoutTheirClient) {
  Make();
  manager().Start();
  {
    const auto client = Client();
    ASSERT_TRUE(Done(client->Do("init c " + model_.path)));
    ExpectServed(*client);
    client->Kill();
  }
  manager().CountSaid("");
  ASSERT_EQ(manager().stored("model-"), 1U);
  ASSERT_EQ(manager().stored("about-"), 1U);

  for (int restart = 0; restart < 3; ++restart) {
    manager().Kill();
    manager().Start();
    RawClient client(manager().socket());
    client.SayHello();
    const auto created = CreateByHash(client);
    EXPECT_TRUE(created.ok()) << created.error().message;
  }
  // And its client, which comes back with nothing but a hash, is served.
  const auto client = Client();
  ASSERT_TRUE(Done(client->Do("init c " + model_.path)));
  ExpectServed(*client);
}

TEST_F(ServiceManagerTest, ClientGoesOnOverAKillWithoutNoticing) {
  Make();
  manager().Start();
  const auto client = Client();
  ASSERT_TRUE(Done(client->Do("init c " + model_.path)));
  for (int restart = 0; restart < 3; ++restart) {
    ExpectServed(*client);
    manager().CountSaid("");
    manager().Kill();
    manager().Start();
  }
  ExpectServed(*client);
}

TEST_F(ServiceManagerTest, BytesThatAreNotTheModelsAreNotTaken) {
  Make();
  manager().Start();
  auto client = Client();
  ASSERT_TRUE(Done(client->Do("init c " + model_.path)));
  client->Kill();
  manager().CountSaid("");
  ASSERT_EQ(manager().stored("model-"), 1U);
  manager().Kill();
  const std::string other = ReadText(MakeConvNet(folder()).path);
  for (auto& [name, fd] : manager().store()) {
    if (name.rfind("model-", 0) != 0) continue;
    fd = *base::MakeImmutableMemfd("other", std::as_bytes(std::span(other)));
  }
  manager().Start();
  RawClient raw(manager().socket());
  raw.SayHello();
  const auto created = CreateByHash(raw);
  ASSERT_FALSE(created.ok());
  EXPECT_EQ(created.error().code, base::Code::kNotFound);
  manager().CountSaid("");
  EXPECT_EQ(manager().stored("model-"), 0U);
  // Sent again, it is kept again.
  client = Client();
  ASSERT_TRUE(Done(client->Do("init c " + model_.path)));
  ExpectServed(*client);
  manager().CountSaid("");
  EXPECT_EQ(manager().stored("model-"), 1U);
}

TEST_F(ServiceManagerTest, ModelThatHasGoneIsKeptNoLonger) {
  const std::string config = WriteFile(folder() + "/rknnd.toml", "grace = 0\n");
  Make({.arguments = {"--config", config}});
  manager().Start();
  const auto client = Client();
  ASSERT_TRUE(Done(client->Do("init c " + model_.path)));
  EXPECT_NE(manager().AwaitSaid("FDSTORE=1\nFDNAME=about-"), "");
  EXPECT_EQ(manager().stored("model-"), 1U);
  ASSERT_TRUE(Done(client->Do("destroy c")));
  EXPECT_NE(manager().AwaitSaid("FDSTOREREMOVE=1\nFDNAME=about-"), "");
  EXPECT_EQ(manager().stored("model-"), 0U);
}

// ---- reload -----------------------------------------------------------------

TEST_F(ServiceManagerTest, ReloadIsAnnouncedAndABadFileChangesNothing) {
  const std::string config =
      WriteFile(folder() + "/rknnd.toml", "log_level = 1\n");
  Make({.arguments = {"--config", config}});
  manager().Start();
  manager().Signal(SIGHUP);
  EXPECT_THAT(manager().AwaitSaid("RELOADING=1"), HasSubstr("MONOTONIC_USEC="));
  EXPECT_NE(manager().AwaitSaid("READY=1"), "");

  WriteFile(config, "log_levle = 3\n");
  manager().Signal(SIGHUP);
  EXPECT_NE(manager().AwaitSaid("RELOADING=1"), "");
  EXPECT_NE(manager().AwaitSaid("READY=1"), "");
  EXPECT_THAT(manager().log(), HasSubstr("log_levle"));
  EXPECT_THAT(manager().log(), HasSubstr("stays in force"));
  const auto client = Client();
  ASSERT_TRUE(Done(client->Do("init c " + model_.path)));
  ExpectServed(*client);
}

TEST_F(ServiceManagerTest, WrongConfigurationEndsWithACodeOfItsOwn) {
  const std::string config =
      WriteFile(folder() + "/rknnd.toml", "log_levle = 3\n");
  Make({.arguments = {"--config", config}});
  manager().Launch();
  // EX_CONFIG: RestartPreventExitStatus= in the unit.
  EXPECT_EQ(manager().WaitForEnd(), 78);
  // What it would find out only when it listens.
  WriteFile(config, "[metrics]\nlisten = \"nowhere\"\n");
  manager().Launch();
  EXPECT_EQ(manager().WaitForEnd(), 78);
  WriteFile(config, "[service]\nuser = \"no such user\"\n");
  manager().Launch();
  EXPECT_EQ(manager().WaitForEnd(), 78);
}

// ---- watchdog ---------------------------------------------------------------

class WatchdogFeedTest : public ServiceManagerTest {
 protected:
  void SetUp() override {
    const FaultOptions faults{.give_up = 0, .hang = 200 * base::kMillisecond};
    Make({.arguments = WithFaults(folder(), faults).more,
          .watchdog = kWatchdog});
    manager().Start();
  }
  void AwaitFed(int times) {
    for (int i = 0; i < times; ++i) EXPECT_NE(manager().AwaitSaid(kFed), "");
  }
  // Nobody is fed in so much time that a service manager would have acted.
  void ExpectNotFed() {
    manager().CountSaid("");
    usleep(static_cast<useconds_t>(2 * kWatchdog / base::kMicrosecond));
    EXPECT_EQ(manager().CountSaid(kFed), 0U);
  }
  // False, and the test skipped, where this machine has no ptrace for us.
  bool Stop(const std::string& name,
            std::vector<std::unique_ptr<StoppedThread>>& stopped) {
    const std::vector<pid_t> threads = manager().ThreadsNamed(name);
    EXPECT_THAT(threads, Not(IsEmpty())) << name;
    for (const pid_t thread : threads) {
      // One that has just answered is stopped at its work otherwise.
      EXPECT_TRUE(Eventually([&] { return manager().Sleeps(thread); }));
      stopped.push_back(std::make_unique<StoppedThread>(thread));
      if (!stopped.back()->problem().empty()) return false;
    }
    return true;
  }
};

TEST_F(WatchdogFeedTest, IsFedTwiceInItsTimeIdleOrBusy) {
  AwaitFed(3);
  const auto client = Client();
  ASSERT_TRUE(Done(client->Do("init c " + model_.path)));
  for (int i = 0; i < 3; ++i) {
    ExpectServed(*client);
    AwaitFed(1);
  }
}

TEST_F(WatchdogFeedTest, LoaderThatStandsStillStarvesItUntilItMovesOn) {
  std::vector<std::unique_ptr<StoppedThread>> stopped;
  if (!Stop("rknnd-loader", stopped)) GTEST_SKIP() << stopped[0]->problem();
  // Without work it may stand for ever.
  AwaitFed(4);
  const auto client = Client();
  client->Send("init c " + model_.path);
  EXPECT_THAT(manager().AwaitSaid("STATUS="),
              HasSubstr("the loader has stood still"));
  ExpectNotFed();
  stopped.clear();
  AwaitFed(2);
  EXPECT_TRUE(Done(client->Receive()));
  ExpectServed(*client);
  EXPECT_THAT(manager().log(), HasSubstr("fed again"));
}

TEST_F(WatchdogFeedTest, WorkersThatTakeNothingStarveIt) {
  const auto client = Client();
  ASSERT_TRUE(Done(client->Do("init c " + model_.path)));
  ExpectServed(*client);
  std::vector<std::unique_ptr<StoppedThread>> stopped;
  if (!Stop("rknnd-worker", stopped)) {
    GTEST_SKIP() << stopped.back()->problem();
  }
  client->Send("run c");
  EXPECT_THAT(manager().AwaitSaid("STATUS="),
              HasSubstr("an event that no worker takes has stood still"));
  ExpectNotFed();
  stopped.clear();
  AwaitFed(2);
  EXPECT_TRUE(Done(client->Receive()));
}

TEST_F(WatchdogFeedTest, DeviceThatHangsStarvesNobody) {
  const auto client = Client();
  ASSERT_TRUE(Done(client->Do("init c " + model_.path)));
  ASSERT_TRUE(Done(client->Do("inputs c" + model_.input_list())));
  SetFault(folder(), manager().target(),
           {.kind = driver::FaultKind::kHang, .times = 1});
  EXPECT_THAT(client->Do("run c"), Fails(RKNN_ERR_TIMEOUT, "hangs"));
  // The job is answered; its worker is still in the device.
  AwaitFed(8);
  EXPECT_THAT(manager().log(), Not(HasSubstr("stood still")));
  ClearFault(folder(), manager().target());
  ExpectServed(*client);
  AwaitFed(1);
}

// Context switches of all threads, which whoever is woken has.
uint64_t Switches(pid_t pid) {
  uint64_t total = 0;
  for (const auto& task : std::filesystem::directory_iterator(
           "/proc/" + std::to_string(pid) + "/task")) {
    std::ifstream file(task.path() / "status");
    for (std::string line; std::getline(file, line);) {
      if (line.rfind("voluntary_ctxt_switches:", 0) == 0) {
        total += std::stoull(line.substr(24));
      }
    }
  }
  return total;
}

TEST_F(WatchdogFeedTest, IdleDaemonWakesForNothingElse) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer has a thread that wakes by itself";
#endif
  AwaitFed(2);
  // The least of several looks: what came before may end in the first.
  uint64_t more = UINT64_MAX;
  for (int look = 0; look < 3 && more > 1; ++look) {
    manager().CountSaid("");
    const uint64_t before = Switches(manager().pid());
    AwaitFed(8);
    const uint64_t switches = Switches(manager().pid()) - before;
    more = std::min(more, switches > 8 ? switches - 8 : 0);
  }
  EXPECT_LE(more, 1U) << "beside one for each time it is fed";
}

}  // namespace
}  // namespace rknnd::integration
