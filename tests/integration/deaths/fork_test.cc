// A program forks with contexts open: what the child inherits is its parent's,
// and it is told so.

#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/integration/harness/files.h"
#include "tests/integration/harness/integration_test.h"

namespace rknnd::integration {
namespace {

class ForkTest : public IntegrationTest,
                 public testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override {
    StartDaemon();
    model_ = MakeConvNet(folder());
    client_ = StartClient({}, GetParam() == kLocal ? kLocal : "");
    ASSERT_TRUE(Done(client_->Do("init p " + model_.path)));
    ASSERT_TRUE(Done(client_->Do("bind_all p")));
    ASSERT_TRUE(Done(client_->Do("fill p.in0" + model_.input_list())));
    ASSERT_TRUE(Done(client_->Do("run p")));
  }

  TestModel model_;
  std::unique_ptr<ClientProcess> client_;
};

TEST_P(ForkTest, ChildsCallsFailClearly) {
  ASSERT_TRUE(Done(client_->Do("fork")));
  EXPECT_THAT(client_->Do("run p"), Fails(RKNN_ERR_CTX_INVALID, "fork"));
  EXPECT_THAT(client_->Do("create m p 4096"), Fails(RKNN_ERR_FAIL, "fork"));
  EXPECT_THAT(client_->Do("bind p p.in0 in 0"),
              Fails(RKNN_ERR_CTX_INVALID, "fork"));
  EXPECT_THAT(client_->Do("destroy_mem p p.in0"),
              Fails(RKNN_ERR_PARAM_INVALID, "fork"));
  EXPECT_THAT(client_->Do("destroy p"), Fails(RKNN_ERR_CTX_INVALID, "fork"));
  ASSERT_TRUE(Done(client_->Do("exit")));
}

TEST_P(ForkTest, ParentGoesOnBesideIt) {
  ASSERT_TRUE(Done(client_->Do("fork")));
  EXPECT_THAT(client_->Do("run p"), Fails(RKNN_ERR_CTX_INVALID, "fork"));
  ASSERT_TRUE(Done(client_->Do("exit")));
  ASSERT_TRUE(Done(client_->Do("run p")));
  EXPECT_TRUE(Right(client_->Do("compare_mem p.out0" + model_.output_list())));
  EXPECT_TRUE(Done(client_->Do("destroy p")));
}

TEST_P(ForkTest, ChildMakesASessionOfItsOwnOrIsToldWhyNot) {
  ASSERT_TRUE(Done(client_->Do("fork")));
  const Reply init = client_->Do("init c " + model_.path);
  if (GetParam() == kLocal) {
    // The daemon inside its parent had threads; they are not here.
    EXPECT_THAT(init, Fails(RKNN_ERR_DEVICE_UNAVAILABLE, "fork"));
  } else {
    ASSERT_TRUE(Done(init));
    ASSERT_TRUE(Done(client_->Do("inputs c" + model_.input_list())));
    ASSERT_TRUE(Done(client_->Do("run c")));
    EXPECT_TRUE(Right(client_->Do("compare c" + model_.output_list())));
    EXPECT_EQ(Held(), Holding(2, 2, 4));
  }
  ASSERT_TRUE(Done(client_->Do("exit")));
  EXPECT_TRUE(Done(client_->Do("run p")));
}

std::string ForkName(const testing::TestParamInfo<std::string>& tested) {
  return tested.param.substr(0, tested.param.find(':'));
}

INSTANTIATE_TEST_SUITE_P(, ForkTest, testing::Values("unix", kLocal), ForkName);

// ---- programs of their own --------------------------------------------------

class ForkWaysTest : public IntegrationTest {
 protected:
  void SetUp() override {
    StartDaemon();
    model_ = MakeRelu(folder()).path;
  }
  int Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(),
                     ProgramPath("tests/integration_fork_ways"));
    return RunProgram(arguments, daemon().target());
  }

  std::string model_;
};

TEST_F(ForkWaysTest, ChildrenOfAThreadWhileOthersRunHaveSessionsOfTheirOwn) {
  EXPECT_EQ(Run({"threads", model_, "30"}), 0);
  EXPECT_TRUE(OnlyNeighbourIsLeft());
}

TEST_F(ForkWaysTest, ForksWhileTheDaemonComesAndGoesAreNotNoticed) {
  std::atomic<bool> ended{false};
  int code = -1;
  std::thread program([&] {
    code = Run({"threads", model_, "60"});
    ended = true;
  });
  for (int deaths = 0; deaths < 6 && !ended; ++deaths) {
    EXPECT_TRUE(Eventually([&] { return ended || Status().jobs_done >= 20; }));
    KillDaemon();
    RestartDaemon();
  }
  program.join();
  EXPECT_EQ(code, 0);
  EXPECT_TRUE(OnlyNeighbourIsLeft());
}

TEST_F(ForkWaysTest, ProgramThatBecomesADaemonKeepsItsOwnFiles) {
  EXPECT_EQ(Run({"daemon", model_}), 0);
  EXPECT_TRUE(OnlyNeighbourIsLeft());
}

TEST_F(ForkWaysTest, ProgramsThatAreStartedInheritNothing) {
  EXPECT_EQ(Run({"exec", model_}), 0);
  EXPECT_TRUE(OnlyNeighbourIsLeft());
}

TEST_F(ForkWaysTest, ChildThatNeverCallsKeepsNoSessionOfItsParent) {
  const auto client = StartClient();
  ASSERT_TRUE(Done(client->Do("init p " + model_)));
  ASSERT_TRUE(Done(client->Do("bind_all p")));
  const Reply child = client->Do("fork_idle");
  ASSERT_TRUE(Done(child));
  // It gives up the session's ring, and its sockets with that, as it begins.
  const std::string maps = "/proc/" + child.text + "/maps";
  EXPECT_TRUE(Eventually([&] {
    return ReadText(maps).find("rknnd-ring") == std::string::npos;
  })) << ReadText(maps);
  kill(std::stoi(child.text), SIGKILL);
}

}  // namespace
}  // namespace rknnd::integration
