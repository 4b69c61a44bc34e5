// Jobs that take minutes of every core, by programs that mean no good or know
// no better: they end with their program, at a reset and with the daemon.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/integration/harness/files.h"
#include "tests/integration/harness/integration_test.h"

namespace rknnd::integration {
namespace {

class LongRunsTest : public IntegrationTest {
 protected:
  void StartPatientDaemon() {
    StartDaemon(
        {.more = {"--config", WriteFile(folder() + "/patient.toml",
                                        "[scheduler]\nlongest_run = 3600\n")}});
  }
  // By a job of minutes each.
  void HoldAllCores() {
    const TestModel model = MakeEndless(folder());
    for (const char* mask : {"1", "2", "4"}) {
      clients_.push_back(StartClient());
      ClientProcess& client = *clients_.back();
      ASSERT_TRUE(Done(client.Do("init long " + model.path)));
      ASSERT_TRUE(Done(client.Do("bind_all long")));
      ASSERT_TRUE(Done(client.Do(std::string("mask long ") + mask)));
      ASSERT_TRUE(Done(client.Do("start run long")));
    }
    ASSERT_TRUE(Eventually([this] { return Status().jobs_running == 3; }));
  }

  std::vector<std::unique_ptr<ClientProcess>> clients_;
};

TEST_F(LongRunsTest, CoresAreFreeOnceTheirProgramsAreDead) {
  StartPatientDaemon();
  StartNeighbour();
  HoldAllCores();
  for (const auto& client : clients_) client->Kill();
  EXPECT_TRUE(NeighbourIsWell());
  EXPECT_TRUE(OnlyNeighbourIsLeft());
}

TEST_F(LongRunsTest, DaemonEndsInOrderBesideThem) {
  StartPatientDaemon();
  HoldAllCores();
  EXPECT_EQ(EndDaemon(), 0);
  // They wait for the next daemon.
  for (const auto& client : clients_) client->Kill();
}

TEST_F(LongRunsTest, AreRefusedWhereNothingElseIsSaid) {
  StartDaemon();
  const TestModel model = MakeEndless(folder());
  const auto client = StartClient();
  ASSERT_TRUE(Done(client->Do("init long " + model.path)));
  ASSERT_TRUE(Done(client->Do("bind_all long")));
  const Reply reply = client->Do("run long");
  EXPECT_LT(reply.code, 0);
  EXPECT_THAT(reply.text,
              testing::AllOf(testing::HasSubstr("endless"),
                             testing::HasSubstr("scheduler.longest_run")));
}

}  // namespace
}  // namespace rknnd::integration
