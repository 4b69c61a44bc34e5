// A client dies by SIGKILL, at every point of its life: nothing of it is left,
// and its neighbour does not notice.

#include <gtest/gtest.h>

#include <csignal>
#include <memory>
#include <string>

#include "tests/integration/harness/integration_test.h"

namespace rknnd::integration {
namespace {

class ClientDeathTest : public IntegrationTest {
 protected:
  void SetUp() override {
    StartDaemon();
    StartNeighbour();
    model_ = MakeConvNet(folder());
    victim_ = StartClient();
  }

  // Brings the victim to where it has run once with memory of its own.
  void BringToRun(const TestModel& model) {
    ASSERT_TRUE(Done(victim_->Do("init v " + model.path)));
    ASSERT_TRUE(Done(victim_->Do("bind_all v")));
    ASSERT_TRUE(Done(victim_->Do("fill v.in0" + model.input_list())));
    ASSERT_TRUE(Done(victim_->Do("run v")));
  }

  void KillAndLook() {
    victim_->Kill();
    EXPECT_TRUE(NeighbourIsWell());
    EXPECT_TRUE(OnlyNeighbourIsLeft());
    EXPECT_TRUE(NeighbourIsWell());
  }

  TestModel model_;
  std::unique_ptr<ClientProcess> victim_;
};

TEST_F(ClientDeathTest, AfterInitLeavesNothing) {
  ASSERT_TRUE(Done(victim_->Do("init v " + model_.path)));
  KillAndLook();
}

TEST_F(ClientDeathTest, DuringInitLeavesNothing) {
  const TestModel heavy = MakeHeavy(folder());
  ASSERT_TRUE(Done(victim_->Do("start init v " + heavy.path)));
  // The upload is with the loader, or over.
  ASSERT_TRUE(Eventually([this] {
    const wire::Report status = Status();
    return status.memory.other > 0 || status.context_count > 1;
  }));
  KillAndLook();
}

TEST_F(ClientDeathTest, AfterMemoryIsMadeLeavesNothing) {
  ASSERT_TRUE(Done(victim_->Do("init v " + model_.path)));
  ASSERT_TRUE(Done(victim_->Do("create m v 1000000")));
  ASSERT_TRUE(Done(victim_->Do("import i v sealed 65536 65536 0")));
  EXPECT_EQ(Held(), Holding(2, 2, 4));
  KillAndLook();
}

TEST_F(ClientDeathTest, AfterMemoryIsBoundLeavesNothing) {
  ASSERT_TRUE(Done(victim_->Do("init v " + model_.path)));
  ASSERT_TRUE(Done(victim_->Do("bind_all v")));
  KillAndLook();
}

TEST_F(ClientDeathTest, BetweenTwoRunsLeavesNothing) {
  BringToRun(model_);
  KillAndLook();
}

TEST_F(ClientDeathTest, WhileItsJobRunsLeavesNothing) {
  const TestModel slow = MakeSlow(folder());
  BringToRun(slow);
  ASSERT_TRUE(Done(victim_->Do("start run v")));
  ASSERT_TRUE(SeesJobRunning());
  KillAndLook();
}

TEST_F(ClientDeathTest, WhileItsJobsAreQueuedLeavesNothing) {
  const TestModel slow = MakeSlow(folder());
  // Three threads on one core: two of them wait.
  ASSERT_TRUE(Done(
      victim_->Do("start storm " + slow.path + " 6 1000" + slow.input_list())));
  ASSERT_TRUE(Eventually([this] { return Status().jobs_queued > 0; }));
  KillAndLook();
  EXPECT_EQ(Status().jobs_queued, 0U);
}

TEST_F(ClientDeathTest, WithAChildThatHoldsItsSocketOpenLeavesNothing) {
  BringToRun(model_);
  const Reply child = victim_->Do("fork_idle");
  ASSERT_TRUE(Done(child));
  KillAndLook();
  kill(std::stoi(child.text), SIGKILL);
}

TEST_F(ClientDeathTest, AHundredTimesLeavesNoDescriptorAndNoThread) {
  // Before anything of a victim's is closed, for which there may be more.
  const size_t threads = daemon().threads();
  BringToRun(model_);
  victim_->Kill();
  ASSERT_TRUE(OnlyNeighbourIsLeft());
  const size_t fds = daemon().open_fds();

  for (int i = 0; i < 100; ++i) {
    victim_ = StartClient();
    ASSERT_TRUE(Done(victim_->Do("init v " + model_.path)));
    // Each at another instruction.
    victim_->Send("bind_all v");
    victim_->Send("fill v.in0" + model_.input_list());
    if (i % 2 == 0) {
      victim_->Send("storm " + model_.path + " 2 1000000" +
                    model_.input_list());
    }
    victim_->Kill();
  }

  EXPECT_TRUE(OnlyNeighbourIsLeft());
  // Those of the first victim may have been closed after they were counted.
  EXPECT_TRUE(Eventually([&] { return daemon().open_fds() <= fds; }));
  // Of the first ones some may have been there for a moment only.
  EXPECT_TRUE(Eventually([&] { return daemon().threads() <= threads; }))
      << daemon().threads() << ", not " << threads;
  EXPECT_TRUE(NeighbourIsWell());
}

}  // namespace
}  // namespace rknnd::integration
