// Streams that are planned: asked for by programs and by rknnctl, kept as long
// as their contexts, refused with the reason.

#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <string>

#include "tests/integration/harness/integration_test.h"
#include "tests/integration/harness/rknnctl.h"

namespace rknnd::integration {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// What a client is told: "yes 30.000 0.100 reason".
struct Told {
  char fits[8] = "";
  float most = 0, load = 0;
  std::string reason;
};

class AdmissionTest : public IntegrationTest {
 protected:
  void SetUp() override {
    StartDaemon();
    model_ = MakeConvNet(folder());
  }

  // A client whose context `a` may use core 0 only, and whose model was run.
  std::unique_ptr<ClientProcess> StartCamera() {
    auto client = StartClient();
    EXPECT_TRUE(Done(client->Do("init a " + model_.path)));
    EXPECT_TRUE(Done(client->Do("mask a 1")));
    EXPECT_TRUE(Done(client->Do("bind_all a")));
    EXPECT_TRUE(Done(client->Do("run a")));
    return client;
  }
  static Told Admit(ClientProcess& client, float rate, bool reserve = false) {
    const Reply reply = client.Do("admit a " + std::to_string(rate) +
                                  (reserve ? " reserve" : ""));
    EXPECT_TRUE(Done(reply));
    Told told;
    int end = 0;
    std::sscanf(reply.text.c_str(), "%7s %f %f %n", told.fits, &told.most,
                &told.load, &end);
    told.reason = reply.text.substr(static_cast<size_t>(end));
    return told;
  }
  RknnctlResult Ask(std::vector<std::string> arguments,
                    const std::string& target) {
    arguments.insert(arguments.begin(),
                     {"--target", target, "--json", "admit", model_.path});
    return RunRknnctl(folder(), arguments);
  }

  TestModel model_;
};

TEST_F(AdmissionTest, RoomIsKeptUntilItsProcessIsKilled) {
  auto first = StartCamera();
  auto second = StartCamera();
  const float most = Admit(*first, 1).most;
  ASSERT_GT(most, 1);
  // Two thirds of the core; what it takes is measured and does not change
  // while nobody runs.
  EXPECT_STREQ(Admit(*first, most * 2 / 3, true).fits, "yes");
  const Told no = Admit(*second, most / 2);
  EXPECT_STREQ(no.fits, "no");
  EXPECT_NEAR(no.most, most / 3, most / 100);
  EXPECT_NEAR(no.load, 0.6, 0.01);
  EXPECT_THAT(no.reason, HasSubstr("1 stream of model '"));
  EXPECT_THAT(no.reason, HasSubstr("takes 60 % of core 0"));
  const wire::Report contexts =
      IntegrationTest::Ask(rknnd_v1_ReportKind_REPORT_CONTEXTS);
  uint64_t kept = 0;
  for (const auto& context : contexts.contexts) kept += context.rate_mhz;
  EXPECT_NEAR(static_cast<double>(kept), most * 2 / 3 * 1e3, most * 10);

  first->Kill();
  EXPECT_TRUE(Eventually(
      [&] { return std::string(Admit(*second, most / 2).fits) == "yes"; }));
}

TEST_F(AdmissionTest, RoomIsAskedForAgainAfterTheDaemonsDeath) {
  auto client = StartCamera();
  EXPECT_STREQ(Admit(*client, 1, true).fits, "yes");
  KillDaemon();
  RestartDaemon();
  ASSERT_TRUE(Done(client->Do("run a")));
  const wire::Report contexts =
      IntegrationTest::Ask(rknnd_v1_ReportKind_REPORT_CONTEXTS);
  ASSERT_EQ(contexts.contexts.size(), 1U);
  EXPECT_EQ(contexts.contexts[0].rate_mhz, 1000U);
}

TEST_F(AdmissionTest, RknnctlMeasuresAndAnswersByItsExitCode) {
  const RknnctlResult yes =
      Ask({"--rate", "1", "--streams", "3"}, daemon().target());
  EXPECT_EQ(yes.exit_code, 0) << yes.err << yes.out;
  const json fits = json::parse(yes.out, nullptr, false);
  ASSERT_TRUE(fits.is_object()) << yes.out;
  EXPECT_EQ(fits["fits"], true);
  EXPECT_EQ(fits["measured"], true);
  EXPECT_EQ(fits["streams"], 3);
  EXPECT_GT(fits["run_us"], 0);

  const RknnctlResult no = Ask({"--rate", "1000000"}, daemon().target());
  EXPECT_EQ(no.exit_code, 1);
  const json refused = json::parse(no.out, nullptr, false);
  ASSERT_TRUE(refused.is_object()) << no.out;
  EXPECT_EQ(refused["fits"], false);
  EXPECT_GT(refused["most"], 1);
  EXPECT_LT(refused["most"], 1'000'000);
  EXPECT_FALSE(refused["reason"].get<std::string>().empty());
  // It kept nothing, and left nothing.
  EXPECT_EQ(Status().admitted_ppm, 0U);
}

TEST_F(AdmissionTest, LocalTargetPlansToo) {
  const RknnctlResult yes = Ask({"--rate", "1"}, kLocal);
  EXPECT_EQ(yes.exit_code, 0) << yes.err << yes.out;
}

TEST_F(AdmissionTest, WrongArgumentsAreRefused) {
  auto client = StartCamera();
  EXPECT_THAT(client->Do("admit a -1"),
              Fails(RKNN_ERR_PARAM_INVALID, "no number of frames a second"));
  EXPECT_THAT(client->Do("admit a nan"),
              Fails(RKNN_ERR_PARAM_INVALID, "no number of frames a second"));
  EXPECT_THAT(client->Do("admit nobody 1"), Fails(RKNN_ERR_CTX_INVALID, ""));
  EXPECT_EQ(Ask({"--rate", "0"}, daemon().target()).exit_code, 2);
  EXPECT_EQ(
      Ask({"--rate", "1", "--priority", "top"}, daemon().target()).exit_code,
      2);
  EXPECT_EQ(Ask({}, daemon().target()).exit_code, 2);
}

}  // namespace
}  // namespace rknnd::integration
