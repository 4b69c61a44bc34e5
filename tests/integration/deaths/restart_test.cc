// A daemon that is away for a while, that is being started, or stopped, or
// replaced under load: what a program sees, and for how long it waits.

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/posix/socket.h"
#include "tests/integration/harness/files.h"
#include "tests/integration/harness/integration_test.h"
#include "tests/integration/harness/session_relay.h"

namespace rknnd::integration {
namespace {

class RestartTest : public IntegrationTest {
 protected:
  void SetUp() override { model_ = MakeConvNet(folder()); }

  // A client that has run once.
  void StartWith(const Environment& environment = {}) {
    StartDaemon();
    client_ = StartClient(environment);
    ASSERT_TRUE(Done(client_->Do("init c " + model_.path)));
    ASSERT_TRUE(Done(client_->Do("bind_all c")));
    ASSERT_TRUE(Done(client_->Do("fill c.in0" + model_.input_list())));
    ASSERT_TRUE(RunsRight());
  }

  testing::AssertionResult RunsRight() {
    if (auto run = Done(client_->Do("run c")); !run) return run;
    return Right(client_->Do("compare_mem c.out0" + model_.output_list()));
  }

  void StopDaemon() { daemon().Stand(); }

  // The first call of a client, begun while the daemon is not there.
  void BeginInit(const std::string& target) {
    client_ = StartClient({}, target);
    ASSERT_TRUE(Done(client_->Do("start init c " + model_.path)));
  }
  testing::AssertionResult InitEndsWell() {
    return EndsWell(client_->Do("finish"));
  }
  testing::AssertionResult EndsWell(const Reply& init) {
    if (auto end = Done(init); !end) return end;
    if (auto set = Done(client_->Do("inputs c" + model_.input_list())); !set) {
      return set;
    }
    if (auto run = Done(client_->Do("run c")); !run) return run;
    return Right(client_->Do("compare c" + model_.output_list()));
  }

  TestModel model_;
  std::unique_ptr<ClientProcess> client_;
};

// ---- away -------------------------------------------------------------------

TEST_F(RestartTest, LongerThanIsWaitedForIsAnErrorThatSaysWhatToDo) {
  StartWith({{"RKNND_RESTART_WAIT", "1"}});
  KillDaemon();
  const Reply reply = client_->Do("run c");
  EXPECT_THAT(reply, Fails(RKNN_ERR_DEVICE_UNAVAILABLE, daemon().socket()));
  EXPECT_THAT(reply.text, testing::HasSubstr("systemctl status rknnd"));
  EXPECT_THAT(reply.text, testing::HasSubstr("journalctl -u rknnd"));
  EXPECT_THAT(reply.text, testing::HasSubstr("RKNND_RESTART_WAIT"));
  // From then on each call looks once.
  EXPECT_THAT(client_->Do("create m c 4096"),
              Fails(RKNN_ERR_FAIL, daemon().socket()));
  RestartDaemon();
  EXPECT_TRUE(RunsRight());
}

TEST_F(RestartTest, ClientThatDoesNotWaitFailsAtOnceAndRecovers) {
  StartWith({{"RKNND_RESTART_WAIT", "0"}});
  KillDaemon();
  EXPECT_THAT(client_->Do("run c"),
              Fails(RKNN_ERR_DEVICE_UNAVAILABLE, daemon().socket()));
  RestartDaemon();
  EXPECT_TRUE(RunsRight());
}

TEST_F(RestartTest, WaitThatIsNoNumberIsNamed) {
  StartDaemon();
  client_ = StartClient({{"RKNND_RESTART_WAIT", "soon"}});
  EXPECT_THAT(client_->Do("init c " + model_.path),
              Fails(RKNN_ERR_PARAM_INVALID, "RKNND_RESTART_WAIT 'soon'"));
}

TEST_F(RestartTest, ClientThatStartsBesideAKilledDaemonsSocketWaitsForTheNext) {
  StartDaemon();
  // It waits for 2 s, which the next daemon may take on a busy machine.
  constexpr int kTries = 5;
  for (int i = 1;; ++i) {
    KillDaemon();
    ASSERT_TRUE(std::filesystem::exists(daemon().socket()));
    BeginInit(daemon().target());
    RestartDaemon();
    const Reply init = client_->Do("finish");
    if (i < kTries && init.text.find("is not running") != std::string::npos) {
      continue;
    }
    ASSERT_TRUE(EndsWell(init));
    return;
  }
}

TEST_F(RestartTest, SocketThatNobodyComesBackToIsAnError) {
  StartDaemon();
  KillDaemon();
  BeginInit(daemon().target());
  EXPECT_THAT(client_->Do("finish"),
              Fails(RKNN_ERR_DEVICE_UNAVAILABLE, "rknnd is not running at"));
}

TEST_F(RestartTest, FolderThatComesBackIsFoundAgain) {
  StartWith();
  ASSERT_EQ(EndDaemon(), 0);
  ASSERT_FALSE(std::filesystem::exists(daemon().socket()));
  ASSERT_TRUE(Done(client_->Do("start run c")));
  RestartDaemon();
  EXPECT_TRUE(Done(client_->Do("finish")));
}

// ---- being started ----------------------------------------------------------

TEST_F(RestartTest, DaemonThatHasNotAcceptedYetIsWaitedFor) {
  StartDaemon();
  const std::string path = folder() + "/relay.sock";
  SessionRelay relay(path, daemon().socket());
  relay.SetAccepting(false);
  BeginInit("unix:" + path);
  ASSERT_TRUE(relay.HasWaiting(60'000));
  relay.SetAccepting(true);
  EXPECT_TRUE(InitEndsWell());
}

TEST_F(RestartTest, DaemonThatDiesBeforeItAcceptsIsWaitedFor) {
  StartDaemon();
  ASSERT_EQ(EndDaemon(), 0);
  auto listener = base::ListenUnix(daemon().socket(), 0600);
  ASSERT_TRUE(listener.ok()) << listener.error().message;
  BeginInit(daemon().target());
  pollfd wait = {listener->get(), POLLIN, 0};
  ASSERT_EQ(poll(&wait, 1, 60'000), 1);
  listener->reset();
  RestartDaemon();
  EXPECT_TRUE(InitEndsWell());
}

TEST_F(RestartTest, DaemonThatDiesInItsAnswerToHelloIsWaitedFor) {
  StartDaemon();
  ASSERT_EQ(EndDaemon(), 0);
  auto listener = base::ListenUnix(daemon().socket(), 0600);
  ASSERT_TRUE(listener.ok()) << listener.error().message;
  BeginInit(daemon().target());
  pollfd wait = {listener->get(), POLLIN, 0};
  ASSERT_EQ(poll(&wait, 1, 60'000), 1);
  auto session = base::Accept(listener->get());
  ASSERT_TRUE(session.ok());
  wait = {session->get(), POLLIN, 0};
  ASSERT_EQ(poll(&wait, 1, 60'000), 1);
  listener->reset();
  session->reset();
  RestartDaemon();
  EXPECT_TRUE(InitEndsWell());
}

// ---- stopped ----------------------------------------------------------------

TEST_F(RestartTest, StoppedDaemonIsATimeoutAndThenGoesOn) {
  StartWith();
  ASSERT_NO_FATAL_FAILURE(StopDaemon());
  EXPECT_THAT(client_->Do("run c 200"), Fails(RKNN_ERR_TIMEOUT, "rknnd"));
  daemon().GoOn();
  EXPECT_TRUE(RunsRight());
}

TEST_F(RestartTest, StoppedDaemonThatIsReplacedIsALateFrame) {
  StartWith();
  ASSERT_NO_FATAL_FAILURE(StopDaemon());
  ASSERT_TRUE(Done(client_->Do("start run c")));
  KillDaemon();
  RestartDaemon();
  EXPECT_TRUE(Done(client_->Do("finish")));
  EXPECT_TRUE(Right(client_->Do("compare_mem c.out0" + model_.output_list())));
}

// ---- at the crash itself ----------------------------------------------------

TEST_F(RestartTest, ModelGivenAsBytesOutlivesADaemonThatHadNotKeptItYet) {
  StartDaemon({.cache_dir = folder() + "/cache"});
  client_ = StartClient();
  ASSERT_TRUE(Done(client_->Do("init_bytes c " + model_.path)));
  KillDaemon();
  // As if it had died before it wrote them.
  std::filesystem::remove_all(folder() + "/cache");
  RestartDaemon();
  ASSERT_TRUE(Done(client_->Do("inputs c" + model_.input_list())));
  ASSERT_TRUE(Done(client_->Do("run c")));
  EXPECT_TRUE(Right(client_->Do("compare c" + model_.output_list())));
}

// ---- under load -------------------------------------------------------------

struct Work {
  const char* way;
  std::vector<std::string> models;
};

class RestartLoadTest : public IntegrationTest {
 protected:
  void StartAll() {
    const std::string chain = MakeChain(folder()).path;
    const std::string relu = MakeRelu(folder()).path;
    const std::vector<Work> all = {
        {"bound", {relu}},
        {"copy", {relu}},
        {"duplicate", {chain}},
        {"fences", {relu}},
        {"internal", {chain}},
        {"queue", {relu}},
        {"rebound", {relu}},
        {"stream", {chain}},
        {"weights",
         {MakeResolution(folder(), 40).path,
          MakeResolution(folder(), 24, /*with_weights=*/false).path,
          MakeResolution(folder(), 24).path}}};
    for (const Work& work : all) {
      base::ChildProcess::Options options;
      options.arguments = {ProgramPath("tests/integration_restart_load"),
                           work.way};
      options.arguments.insert(options.arguments.end(), work.models.begin(),
                               work.models.end());
      options.environment = {{"RKNND_TARGET", daemon().target()}};
      options.error_file = folder() + "/" + work.way + ".log";
      auto process = base::ChildProcess::Start(options);
      ASSERT_TRUE(process.ok()) << process.error().message;
      at_work_.emplace(work.way, *std::move(process));
    }
    for (auto& [way, process] : at_work_) {
      const auto line = process.ReadLine(kPatience);
      ASSERT_TRUE(line.ok() && *line == "ready")
          << way << ": " << (line.ok() ? *line : line.error().message);
    }
  }

  // All are back in this life of the daemon and at work: a call that sees five
  // of them die is given up.
  bool SeesAllAtWork() {
    constexpr uint32_t kContexts = 12;
    return Eventually([this] {
      const wire::Report report = Ask(rknnd_v1_ReportKind_REPORT_SESSIONS);
      uint32_t contexts = 0;
      size_t at_work = 0;
      for (const auto& session : report.sessions) {
        contexts += session.contexts;
        if (session.jobs > 0) ++at_work;
      }
      return contexts >= kContexts && at_work >= at_work_.size();
    });
  }

  // Every one has gone on to its end with right answers.
  void ExpectAllWell() {
    for (auto& [way, process] : at_work_) {
      EXPECT_TRUE(process.WriteLine("end").ok()) << way;
    }
    for (auto& [way, process] : at_work_) {
      const auto said = process.ReadAll(kPatience);
      const auto code = process.Wait(kPatience);
      EXPECT_TRUE(code.ok() && *code == 0)
          << way << ": " << (said.ok() ? *said : said.error().message)
          << ReadText(folder() + "/" + way + ".log");
      // Frames, the longest time between two and the median, in microseconds.
      if (said.ok()) std::printf("%-10s %s", way.c_str(), said->c_str());
    }
    EXPECT_TRUE(OnlyNeighbourIsLeft());
  }

  std::map<std::string, base::ChildProcess> at_work_;
};

TEST_F(RestartLoadTest, KilledDaemonCostsNoFrame) {
  StartDaemon();
  StartAll();
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(SeesAllAtWork());
    KillDaemon();
    RestartDaemon();
  }
  ExpectAllWell();
}

TEST_F(RestartLoadTest, UpgradedDaemonCostsNoFrame) {
  StartDaemon();
  StartAll();
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(SeesAllAtWork());
    ASSERT_EQ(EndDaemon(), 0);
    RestartDaemon();
  }
  ExpectAllWell();
}

TEST_F(RestartLoadTest, DaemonKilledAsItStartsCostsNoFrame) {
  StartDaemon();
  StartAll();
  ASSERT_TRUE(SeesAllAtWork());
  for (int i = 0; i < 4; ++i) {
    // It answers, and the sessions are being made again.
    KillDaemon();
    RestartDaemon();
  }
  ASSERT_TRUE(SeesAllAtWork());
  ExpectAllWell();
}

}  // namespace
}  // namespace rknnd::integration
