// Who had how much of the NPU, as operators are told: what rknnctl says of
// cores, sessions, models and contexts adds up, whatever became of the jobs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/integration/harness/faults.h"
#include "tests/integration/harness/integration_test.h"
#include "tests/integration/harness/rknnctl.h"

namespace rknnd::integration {
namespace {

using nlohmann::json;

class AttributionTest : public IntegrationTest {
 protected:
  json Ctl(const std::vector<std::string>& arguments) {
    return AskRknnctl(folder(), daemon().target(), arguments);
  }
  static uint64_t Sum(const json& list, const char* field) {
    uint64_t sum = 0;
    for (const json& item : list) sum += item[field].get<uint64_t>();
    return sum;
  }
  // Each number is cut to whole microseconds.
  void ExpectThatAllAddsUp() {
    const uint64_t cores = Sum(Ctl({"status"})["core_use"], "busy_us");
    EXPECT_GT(cores, 0U);
    for (const char* verb : {"sessions", "models", "contexts"}) {
      EXPECT_NEAR(static_cast<double>(Sum(Ctl({verb}), "npu_us")),
                  static_cast<double>(cores), 10)
          << verb;
    }
    const uint64_t jobs = Ctl({"status"})["jobs"]["done"];
    const uint64_t queue = Sum(Ctl({"sessions"}), "queue_us");
    for (const char* verb : {"sessions", "models", "contexts"}) {
      EXPECT_EQ(Sum(Ctl({verb}), "jobs"), jobs) << verb;
      EXPECT_NEAR(static_cast<double>(Sum(Ctl({verb}), "queue_us")),
                  static_cast<double>(queue), 10)
          << verb;
    }
  }
  std::unique_ptr<ClientProcess> StartWith(const TestModel& model,
                                           const std::string& mask) {
    auto client = StartClient();
    EXPECT_TRUE(Done(client->Do("init a " + model.path + " 0")));
    EXPECT_TRUE(Done(client->Do("init b " + model.path + " 0")));
    EXPECT_TRUE(Done(client->Do("mask b " + mask)));
    EXPECT_TRUE(Done(client->Do("bind_all a")));
    EXPECT_TRUE(Done(client->Do("bind_all b")));
    return client;
  }
};

TEST_F(AttributionTest, TimesOfSessionsModelsContextsAndCoresAddUp) {
  StartDaemon();
  const auto conv = StartWith(MakeConvNet(folder()), "7");  // b: a gang
  const auto chain = StartWith(MakeConvChain(folder()), "2");
  for (int i = 0; i < 10; ++i) {
    for (const auto* client : {&conv, &chain}) {
      ASSERT_TRUE(Done((*client)->Do("run a")));
      ASSERT_TRUE(Done((*client)->Do("run b")));
    }
  }

  ExpectThatAllAddsUp();
  const json sessions = Ctl({"sessions"});
  ASSERT_EQ(sessions.size(), 2U);
  EXPECT_EQ(sessions[0]["jobs"], 20);
  EXPECT_GT(sessions[0]["latency_us"]["p50"], 0);
  EXPECT_LE(sessions[0]["latency_us"]["p50"], sessions[0]["latency_us"]["p99"]);
  for (const json& model : Ctl({"models"})) EXPECT_GT(model["run_us"], 0);
}

TEST_F(AttributionTest, TimeOfJobsThatFailedOrHungIsSomebodysToo) {
  StartDaemon(WithFaults(folder(), {.give_up = base::kSecond}));
  const auto client = StartWith(MakeConvNet(folder()), "2");
  ASSERT_TRUE(Done(client->Do("run a")));
  SetFault(folder(), daemon().target(),
           {.kind = driver::FaultKind::kWrongStatus, .times = 1});
  EXPECT_FALSE(Done(client->Do("run a")));
  SetFault(folder(), daemon().target(),
           {.kind = driver::FaultKind::kHang, .times = 1});
  EXPECT_FALSE(Done(client->Do("run b")));
  ASSERT_TRUE(Done(client->Do("run b")));

  ExpectThatAllAddsUp();
  // It had its core until the driver gave up.
  EXPECT_GE(Ctl({"sessions"})[0]["npu_us"], 1'000'000);
}

TEST_F(AttributionTest, CoreTellsWhoHadItLast) {
  StartDaemon();
  const auto client = StartWith(MakeConvNet(folder()), "2");
  ASSERT_TRUE(Done(client->Do("run b")));

  const json cores = Ctl({"status"})["core_use"];

  EXPECT_EQ(cores[1]["model"], "conv_net.onnx");
  EXPECT_EQ(cores[1]["session"], Ctl({"sessions"})[0]["id"]);
  EXPECT_EQ(cores[2]["session"], 0);
}

}  // namespace
}  // namespace rknnd::integration
