// The verbs about the board against a real daemon: its cores tested, a hung one
// found and reset, its log followed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>

#include "tests/integration/harness/faults.h"
#include "tests/integration/harness/integration_test.h"

namespace rknnd::integration {
namespace {

using base::Code;
using driver::Fault;
using driver::FaultKind;
using testing::HasSubstr;

// As the self-test's model is called.
constexpr char kSelfTest[] = "rknnd self-test";

class DoctorTest : public IntegrationTest {
 protected:
  // By what was looked at; of several the last.
  std::map<std::string, wire::Finding> Examine() {
    std::map<std::string, wire::Finding> findings;
    RawClient client(daemon().socket());
    client.SayHello();
    const auto reply = client.Ask(wire::Verb::kDoctor, wire::Empty{});
    EXPECT_TRUE(reply.ok()) << reply.error().message;
    if (!reply.ok()) return findings;
    const auto report = wire::Decode<wire::DoctorReply>(reply->body);
    EXPECT_TRUE(report.ok());
    if (!report.ok()) return findings;
    for (const wire::Finding& finding : report->findings) {
      findings[finding.check] = finding;
    }
    return findings;
  }
  std::unique_ptr<RawClient> ConnectAdmin() {
    const std::string& socket = daemon().socket();
    auto client = std::make_unique<RawClient>(
        socket.substr(0, socket.rfind('/') + 1) + "admin.sock");
    client->SayHello();
    return client;
  }
  static void ExpectWell(const wire::Finding& core) {
    EXPECT_EQ(core.severity, 0U) << core.text;
    EXPECT_THAT(core.text, HasSubstr("answers rightly"));
  }
};

// ---- doctor -----------------------------------------------------------------

TEST_F(DoctorTest, EachCoreAnswersTheSelfTest) {
  StartDaemon();
  auto findings = Examine();
  for (const char* core : {"core-0", "core-1", "core-2"}) {
    ExpectWell(findings[core]);
  }
  EXPECT_THAT(findings["versions"].text, HasSubstr("session protocol 1"));
  EXPECT_NE(findings.count("driver"), 0U);
  EXPECT_NE(findings.count("heaps"), 0U);
  EXPECT_NE(findings.count("fd-limit"), 0U);
  // Nothing of the test is left; its memory is freed on a thread of its own.
  EXPECT_TRUE(Eventually([this] { return Held() == Holding(0, 0, 0); }))
      << Held();
}

TEST_F(DoctorTest, OneCoreIsTestedWithoutAMask) {
  StartDaemon({.soc = "rk3566"});
  auto findings = Examine();
  ExpectWell(findings["core-0"]);
  EXPECT_EQ(findings.count("core-1"), 0U);
}

TEST_F(DoctorTest, ClientsAtWorkAreNotDisturbed) {
  StartDaemon();
  StartNeighbour();
  auto findings = Examine();
  ExpectWell(findings["core-0"]);
  EXPECT_TRUE(NeighbourIsWell());
}

TEST_F(DoctorTest, CoreThatHangsIsAnErrorAndTheOthersAreTested) {
  StartDaemon(WithFaults(
      folder(),
      {.preset = {{.kind = FaultKind::kHang, .core = 1, .model = kSelfTest}},
       .give_up = 0,
       .hang = 300 * base::kMillisecond}));
  auto findings = Examine();
  ExpectWell(findings["core-0"]);
  EXPECT_EQ(findings["core-1"].severity, 3U);
  EXPECT_THAT(findings["core-1"].text, HasSubstr("job hangs"));
  EXPECT_THAT(findings["core-1"].remedy, HasSubstr("rknnctl reset"));
  ExpectWell(findings["core-2"]);
  ClearFault(folder(), daemon().target());
}

TEST_F(DoctorTest, CoreThatFailsOrAnswersWronglyIsAnError) {
  StartDaemon(WithFaults(folder(),
                         {.preset = {{.kind = FaultKind::kDeadCore, .core = 0},
                                     {.kind = FaultKind::kWrongStatus,
                                      .core = 2,
                                      .model = kSelfTest,
                                      .status = 0}}}));
  auto findings = Examine();
  EXPECT_EQ(findings["core-0"].severity, 3U);
  EXPECT_THAT(findings["core-0"].text, HasSubstr("fails the self-test"));
  EXPECT_THAT(findings["core-0"].remedy, HasSubstr("0.9.6"));
  ExpectWell(findings["core-1"]);
  // It says that all went well, and has written nothing.
  EXPECT_EQ(findings["core-2"].severity, 3U);
  EXPECT_THAT(findings["core-2"].text, HasSubstr("wrong answer"));
}

TEST_F(DoctorTest, CoreThatIsLentIsLeftAlone) {
  StartDaemon();
  const auto tenant = ConnectAdmin();
  wire::LeaseRequest lease{};
  lease.cores = 2;
  wire::SetText(lease.command, "llm");
  ASSERT_TRUE(tenant->Ask(wire::Verb::kLease, lease).ok());
  auto findings = Examine();
  EXPECT_EQ(findings["core-1"].severity, 1U);
  EXPECT_THAT(findings["core-1"].text, HasSubstr("is lent to 'llm"));
  ExpectWell(findings["core-2"]);
}

// ---- reset ------------------------------------------------------------------

TEST_F(DoctorTest, ResetGetsAHungCoreBackAndItsJobRunsAgain) {
  StartDaemon(WithFaults(folder(), {.give_up = 0}));
  StartNeighbour();
  const TestModel model = MakeConvNet(folder());
  const auto victim = StartClient();
  ASSERT_TRUE(Done(victim->Do("init v " + model.path)));
  ASSERT_TRUE(Done(victim->Do("bind_all v")));
  ASSERT_TRUE(Done(victim->Do("fill v.in0" + model.input_list())));
  SetFault(folder(), daemon().target(),
           {.kind = FaultKind::kHang, .model = "conv_net", .times = 1});
  ASSERT_TRUE(Done(victim->Do("start run v")));
  ASSERT_TRUE(SeesJobRunning());

  const auto reset =
      ConnectAdmin()->Ask(wire::Verb::kReset, wire::ResetRequest{});

  ASSERT_TRUE(reset.ok()) << reset.error().message;
  EXPECT_TRUE(Done(victim->Do("finish")));
  EXPECT_TRUE(Right(victim->Do("compare_mem v.out0" + model.output_list())));
  EXPECT_TRUE(NeighbourIsWell());
  EXPECT_EQ(Status().jobs_running, 0U);
}

TEST_F(DoctorTest, IdleNpuIsResetAtOnce) {
  StartDaemon();
  StartNeighbour();
  const auto reset =
      ConnectAdmin()->Ask(wire::Verb::kReset, wire::ResetRequest{});
  EXPECT_TRUE(reset.ok()) << reset.error().message;
  EXPECT_TRUE(NeighbourIsWell());
}

// ---- log --------------------------------------------------------------------

TEST_F(DoctorTest, LogIsFollowedFromItsLastLinesOn) {
  StartDaemon();
  RawClient follower(daemon().socket());
  follower.SayHello();
  ASSERT_TRUE(
      follower.Ask(wire::Verb::kFollowLogs, wire::FollowLogs{2, 100}).ok());
  const auto wait_for = [&](const char* words) {
    for (;;) {
      const auto frame = follower.Receive();
      if (!frame.ok()) return false;
      if (frame->verb != wire::Verb::kLogLine) continue;
      const auto line = wire::Decode<wire::LogLine>(frame->body);
      if (line.ok() &&
          std::string(line->text).find(words) != std::string::npos) {
        return true;
      }
    }
  };
  EXPECT_TRUE(wait_for("serves device 'soft'"));
  // What another client does wrong is a line.
  RawClient other(daemon().socket());
  other.SayHello();
  EXPECT_FALSE(
      other.Ask(wire::Verb::kDestroyContext, wire::DestroyContext{77}).ok());
  EXPECT_TRUE(wait_for("DestroyContext failed"));
}

TEST_F(DoctorTest, LevelOfTheLogIsSetWhileItRuns) {
  StartDaemon();
  const auto admin = ConnectAdmin();
  const auto set = [&](uint32_t level) {
    const auto reply =
        admin->Ask(wire::Verb::kSetLogLevel, wire::SetLogLevel{level});
    EXPECT_TRUE(reply.ok());
    const auto before = wire::Decode<wire::SetLogLevel>(reply->body);
    return before.ok() ? before->level : 99;
  };
  set(0);
  EXPECT_EQ(set(0), 0U);
  EXPECT_FALSE(
      admin->Ask(wire::Verb::kDestroyContext, wire::DestroyContext{78}).ok());
  set(1);
  EXPECT_FALSE(
      admin->Ask(wire::Verb::kDestroyContext, wire::DestroyContext{79}).ok());
  EXPECT_TRUE(Eventually([this] {
    return daemon().log().find("context 79") != std::string::npos;
  }));
  EXPECT_EQ(daemon().log().find("context 78"), std::string::npos);
}

}  // namespace
}  // namespace rknnd::integration
