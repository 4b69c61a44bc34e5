// Jobs that run on several cores at once: the same answers as on one, whoever
// runs beside them, and nothing left when their client dies.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/integration/harness/integration_test.h"
#include "tests/integration/harness/rknnctl.h"

namespace rknnd::integration {
namespace {

using testing::SizeIs;

constexpr char kGang01[] = "3";
constexpr char kGang012[] = "7";
constexpr char kAll[] = "65535";

class GangTest : public IntegrationTest {
 protected:
  // A client with one context "a" of the model and its input.
  std::unique_ptr<ClientProcess> Ready(const TestModel& model,
                                       const std::string& mask,
                                       const std::string& target = "") {
    auto client = StartClient({}, target);
    EXPECT_TRUE(Done(client->Do("init a " + model.path)));
    EXPECT_TRUE(Done(client->Do("inputs a" + model.input_list())));
    EXPECT_TRUE(Done(client->Do("mask a " + mask)));
    return client;
  }
};

TEST_F(GangTest, EveryMaskGivesTheAnswer) {
  StartDaemon();
  const TestModel model = MakeConvChain(folder());
  const auto client = Ready(model, "1");
  for (const std::string mask : {"1", kGang01, kGang012, kAll, "0", "4"}) {
    ASSERT_TRUE(Done(client->Do("mask a " + mask)));
    ASSERT_TRUE(Done(client->Do("run a")));
    EXPECT_TRUE(Right(client->Do("compare a" + model.output_list()), 0))
        << "mask " << mask;
  }
  // A gang is told by its lowest core.
  ASSERT_TRUE(Done(client->Do(std::string("mask a ") + kGang012)));
  ASSERT_TRUE(Done(client->Do("run a")));
  EXPECT_EQ(client->Do("report a").text, "core 0");
}

TEST_F(GangTest, EveryMaskGivesTheAnswerWithoutADaemon) {
  const TestModel model = MakeConvChain(folder());
  const auto client = Ready(model, kGang01, kLocal);
  for (const std::string mask : {kGang01, kAll, "2"}) {
    ASSERT_TRUE(Done(client->Do("mask a " + mask)));
    ASSERT_TRUE(Done(client->Do("run a")));
    EXPECT_TRUE(Right(client->Do("compare a" + model.output_list()), 0));
  }
}

TEST_F(GangTest, GangsAndSingleContextsOfSeveralProcessesRunBesideEachOther) {
  StartDaemon();
  const TestModel model = MakeConvChain(folder());
  std::vector<std::unique_ptr<ClientProcess>> clients;
  for (const std::string mask : {kGang01, "1", kGang012, "0", "4"}) {
    clients.push_back(Ready(model, mask));
  }
  for (int round = 0; round < 30; ++round) {
    for (const auto& client : clients) client->Send("run a");
    for (const auto& client : clients) ASSERT_TRUE(Done(client->Receive()));
  }
  for (const auto& client : clients) {
    EXPECT_TRUE(Right(client->Do("compare a" + model.output_list()), 0));
  }
  const wire::Report status = Status();
  EXPECT_EQ(status.jobs_queued, 0U);
  EXPECT_EQ(status.jobs_done, 150U);
  EXPECT_EQ(status.jobs_failed, 0U);
}

TEST_F(GangTest, ContextsAreReportedWithTheMaskTheyAskedFor) {
  StartDaemon();
  const auto client = Ready(MakeConvChain(folder()), kGang012);
  const auto contexts = AskRknnctl(folder(), daemon().target(), {"contexts"});
  ASSERT_THAT(contexts, SizeIs(1));
  EXPECT_EQ(contexts[0]["core_mask"], 7);
}

TEST_F(GangTest, BenchRunsOnSeveralCores) {
  StartDaemon();
  const TestModel model = MakeConvChain(folder());
  for (const std::string mask : {"0_1", "0_1_2", "all"}) {
    const auto figures = AskRknnctl(
        folder(), daemon().target(),
        {"bench", model.path, "--core-mask", mask, "--seconds", "0.1"});
    EXPECT_FALSE(figures.empty()) << mask;
  }
}

TEST_F(GangTest, DeathOfAGangsClientInTheMiddleOfARunFreesItsCores) {
  StartDaemon();
  StartNeighbour();
  const TestModel slow = MakeConvChain(folder(), 600);
  const auto victim = Ready(slow, kGang012);
  ASSERT_TRUE(Done(victim->Do("start run a")));
  ASSERT_TRUE(SeesJobRunning());
  victim->Kill();
  EXPECT_TRUE(NeighbourIsWell());
  EXPECT_TRUE(OnlyNeighbourIsLeft());
  // Each core works, alone and with the others.
  const TestModel model = MakeConvChain(folder());
  const auto client = Ready(model, "1");
  for (const std::string mask : {"1", "2", "4", kGang012}) {
    ASSERT_TRUE(Done(client->Do("mask a " + mask)));
    ASSERT_TRUE(Done(client->Do("run a")));
    EXPECT_TRUE(Right(client->Do("compare a" + model.output_list()), 0));
  }
}

TEST_F(GangTest, DeathOfAGangsClientWhileItWaitsFreesTheCoresItKept) {
  StartDaemon();
  StartNeighbour();
  const TestModel slow = MakeConvChain(folder(), 600);
  const auto holder = Ready(slow, "1");
  const auto victim = Ready(slow, kGang012);
  ASSERT_TRUE(Done(holder->Do("start run a")));
  ASSERT_TRUE(SeesJobRunning());
  ASSERT_TRUE(Done(victim->Do("start run a")));
  ASSERT_TRUE(Eventually([this] { return Status().jobs_queued > 0; }));
  victim->Kill();
  EXPECT_TRUE(NeighbourIsWell());
  EXPECT_TRUE(Eventually([this] { return Status().jobs_queued == 0; }));
  EXPECT_TRUE(Done(holder->Do("finish")));
}

TEST_F(GangTest, MasksTheSocLacksNameMaskSocAndCore) {
  StartDaemon({.soc = "rk3576"});
  const TestModel model = MakeConvChain(folder());
  const auto client = Ready(model, kGang01);
  ASSERT_TRUE(Done(client->Do("run a")));
  EXPECT_TRUE(Right(client->Do("compare a" + model.output_list()), 0));
  const Reply refused = client->Do(std::string("mask a ") + kGang012);
  EXPECT_THAT(refused, Fails(RKNN_ERR_PARAM_INVALID, "RKNN_NPU_CORE_0_1_2"));
  EXPECT_THAT(refused, Fails(RKNN_ERR_PARAM_INVALID, "rk3576"));
  EXPECT_THAT(refused, Fails(RKNN_ERR_PARAM_INVALID, "core 2"));
  // The last one that was taken holds.
  ASSERT_TRUE(Done(client->Do("run a")));
}

TEST_F(GangTest, Rk356xTakesAnyMask) {
  StartDaemon({.soc = "rk3566"});
  const TestModel model = MakeConvChain(folder());
  const auto client = Ready(model, "1");
  for (const std::string mask : {"0", "1", "2", kGang012, kAll, "5", "77"}) {
    ASSERT_TRUE(Done(client->Do("mask a " + mask))) << mask;
    ASSERT_TRUE(Done(client->Do("run a")));
    EXPECT_TRUE(Right(client->Do("compare a" + model.output_list()), 0));
  }
}

TEST_F(GangTest, Rv1106HasNoCoreMask) {
  StartDaemon({.soc = "rv1106"});
  const TestModel model = MakeConvChain(folder());
  const auto client = StartClient();
  ASSERT_TRUE(Done(client->Do("init a " + model.path)));
  for (const std::string mask : {"0", "1", kGang01}) {
    EXPECT_THAT(client->Do("mask a " + mask),
                Fails(RKNN_ERR_PARAM_INVALID, "rv1106"));
  }
}

}  // namespace
}  // namespace rknnd::integration
