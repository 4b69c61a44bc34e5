// The daemon dies or is ended, at every point: clients see a late frame and
// the right answer, or, when it stays away, why.

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/integration/harness/integration_test.h"

namespace rknnd::integration {
namespace {

class DaemonDeathTest : public IntegrationTest {
 protected:
  void SetUp() override {
    model_ = MakeConvNet(folder());
    slow_ = MakeSlow(folder());
  }

  // A client with one context and bound memory that has its inputs.
  void StartWith(const TestModel& model, const std::string& init,
                 const DaemonOptions& options = {}) {
    StartDaemon(options);
    client_ = StartClient();
    ASSERT_TRUE(Done(client_->Do(init + " c " + model.path)));
    ASSERT_TRUE(Done(client_->Do("bind_all c")));
    ASSERT_TRUE(Done(client_->Do("fill c.in0" + model.input_list())));
  }

  testing::AssertionResult RunsRight(const TestModel& model) {
    if (auto run = Done(client_->Do("run c")); !run) return run;
    return Right(client_->Do("compare_mem c.out0" + model.output_list()));
  }

  // Kills the daemon under a job and starts it again.
  void RestartUnderAJob() {
    ASSERT_TRUE(Done(client_->Do("start run c")));
    ASSERT_TRUE(SeesJobRunning());
    KillDaemon();
    RestartDaemon();
    ASSERT_TRUE(Done(client_->Do("finish")));
    EXPECT_TRUE(Right(client_->Do("compare_mem c.out0" + slow_.output_list())));
  }

  // Processes at work in threads, each run with its answer checked.
  void StartStorm() {
    const TestModel model = MakeSlow(folder(), 8);
    for (int i = 0; i < 3; ++i) {
      storm_.push_back(StartClient());
      storm_.back()->Send("storm " + model.path + " 2 40" + model.input_list());
    }
  }
  bool SeesJobsDone() {
    constexpr uint64_t kSome = 10;  // of 240
    return Eventually([this] { return Status().jobs_done >= kSome; });
  }
  void ExpectTheSameAnswersOfAll() {
    std::set<std::string> hashes;
    for (const auto& client : storm_) {
      const Reply reply = client->Receive();
      EXPECT_TRUE(Done(reply));
      hashes.insert(reply.text);
    }
    EXPECT_EQ(hashes.size(), 1U);
  }

  TestModel model_, slow_;
  std::vector<std::unique_ptr<ClientProcess>> storm_;
  std::unique_ptr<ClientProcess> client_;
};

TEST_F(DaemonDeathTest, BeforeTheFirstRunIsNotNoticed) {
  StartWith(model_, "init");
  KillDaemon();
  RestartDaemon();
  EXPECT_TRUE(RunsRight(model_));
}

TEST_F(DaemonDeathTest, BetweenRunsIsNotNoticed) {
  StartWith(model_, "init");
  ASSERT_TRUE(RunsRight(model_));
  for (int i = 0; i < 3; ++i) {
    KillDaemon();
    RestartDaemon();
    EXPECT_TRUE(RunsRight(model_));
  }
  EXPECT_EQ(Held(), Holding(1, 1, 2));
}

TEST_F(DaemonDeathTest, WithInputsThatWereSetByCopyIsNotNoticed) {
  StartDaemon();
  client_ = StartClient();
  ASSERT_TRUE(Done(client_->Do("init c " + model_.path)));
  ASSERT_TRUE(Done(client_->Do("inputs c" + model_.input_list())));
  ASSERT_TRUE(Done(client_->Do("mask c 2")));
  KillDaemon();
  RestartDaemon();
  ASSERT_TRUE(Done(client_->Do("run c")));
  EXPECT_EQ(client_->Do("report c").text, "core 1");
  EXPECT_TRUE(Right(client_->Do("compare c" + model_.output_list())));
}

TEST_F(DaemonDeathTest, UnderAJobGivesALateFrame) {
  StartWith(slow_, "init");
  RestartUnderAJob();
}

TEST_F(DaemonDeathTest, UnderAJobOfAModelGivenAsBytesGivesALateFrame) {
  StartWith(slow_, "init_bytes");
  RestartUnderAJob();
}

TEST_F(DaemonDeathTest, ModelGivenAsBytesComesFromTheCache) {
  StartWith(slow_, "init_bytes", {.cache_dir = folder() + "/cache"});
  // The daemon writes it after it has answered.
  ASSERT_TRUE(Eventually([this] {
    for (const auto& file :
         std::filesystem::directory_iterator(folder() + "/cache")) {
      if (file.path().extension() == ".model") return true;
    }
    return false;
  }));
  RestartUnderAJob();
}

TEST_F(DaemonDeathTest, DuringAnotherClientsInitIsNotNoticedByEither) {
  StartWith(model_, "init");
  const TestModel heavy = MakeHeavy(folder());
  const auto second = StartClient();
  ASSERT_TRUE(Done(second->Do("start init h " + heavy.path)));
  ASSERT_TRUE(Eventually([this] {
    const wire::Report status = Status();
    return status.memory.other > 0 || status.context_count > 1;
  }));
  KillDaemon();
  RestartDaemon();
  EXPECT_TRUE(RunsRight(model_));
  ASSERT_TRUE(Done(second->Do("finish")));
  ASSERT_TRUE(Done(second->Do("inputs h" + heavy.input_list())));
  ASSERT_TRUE(Done(second->Do("run h")));
  EXPECT_TRUE(Right(second->Do("compare h" + heavy.output_list())));
}

TEST_F(DaemonDeathTest, ThreadsOfManyProcessesSurviveOneAfterAnother) {
  StartDaemon();
  StartStorm();
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(SeesJobsDone());
    KillDaemon();
    RestartDaemon();
  }
  ExpectTheSameAnswersOfAll();
}

TEST_F(DaemonDeathTest, CallsWhileItIsAwayWaitForIt) {
  StartWith(model_, "init");
  KillDaemon();
  ASSERT_TRUE(Done(client_->Do("start create m c 4096")));
  RestartDaemon();
  EXPECT_TRUE(Done(client_->Do("finish")));
  EXPECT_TRUE(RunsRight(model_));
}

TEST_F(DaemonDeathTest, ModelFileThatChangedMeanwhileIsAClearError) {
  StartWith(model_, "init");
  ASSERT_TRUE(RunsRight(model_));
  KillDaemon();
  std::filesystem::copy_file(slow_.path, model_.path,
                             std::filesystem::copy_options::overwrite_existing);
  RestartDaemon();
  EXPECT_THAT(client_->Do("run c"),
              Fails(RKNN_ERR_FAIL, "is not what it was when it was loaded"));
}

TEST_F(DaemonDeathTest, OneThatStaysAwayIsAnErrorAtTheLimitOfTheRun) {
  StartWith(model_, "init");
  KillDaemon();
  EXPECT_THAT(client_->Do("run c 500"),
              Fails(RKNN_ERR_TIMEOUT, daemon().socket()));
  // And again: nothing is spoilt by it.
  EXPECT_THAT(client_->Do("run c 100"),
              Fails(RKNN_ERR_TIMEOUT, daemon().socket()));
  RestartDaemon();
  EXPECT_TRUE(RunsRight(model_));
}

TEST_F(DaemonDeathTest, OneThatWasNeverThereIsNamedAtOnce) {
  const std::string socket = folder() + "/none.sock";
  client_ = StartClient({}, "unix:" + socket);
  EXPECT_THAT(
      client_->Do("init c " + model_.path),
      Fails(RKNN_ERR_DEVICE_UNAVAILABLE, "rknnd is not running at " + socket));
}

TEST_F(DaemonDeathTest, TargetsThatMeanNothingAreNamed) {
  client_ = StartClient({}, "/run/rknnd.sock");
  EXPECT_THAT(client_->Do("init c " + model_.path),
              Fails(RKNN_ERR_PARAM_INVALID, "'/run/rknnd.sock' is none of"));
}

// ---- an orderly end ---------------------------------------------------------

TEST_F(DaemonDeathTest, SigtermLetsARunningJobEnd) {
  StartWith(slow_, "init");
  ASSERT_TRUE(Done(client_->Do("start run c")));
  ASSERT_TRUE(SeesJobRunning());
  daemon().AskToEnd();
  EXPECT_TRUE(Done(client_->Do("finish")));
  EXPECT_TRUE(Right(client_->Do("compare_mem c.out0" + slow_.output_list())));
  EXPECT_EQ(daemon().WaitForEnd(), 0);
  EXPECT_FALSE(std::filesystem::exists(daemon().socket()));
  EXPECT_FALSE(std::filesystem::exists(folder() + "/admin.sock"));
}

TEST_F(DaemonDeathTest, ClientsOutliveAnUpgrade) {
  StartWith(model_, "init");
  ASSERT_TRUE(RunsRight(model_));
  ASSERT_EQ(EndDaemon(), 0);
  RestartDaemon();
  EXPECT_TRUE(RunsRight(model_));
}

TEST_F(DaemonDeathTest, ClientsAtWorkOutliveAnUpgrade) {
  StartDaemon();
  StartStorm();
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(SeesJobsDone());
    ASSERT_EQ(EndDaemon(), 0);
    RestartDaemon();
  }
  ExpectTheSameAnswersOfAll();
}

}  // namespace
}  // namespace rknnd::integration
