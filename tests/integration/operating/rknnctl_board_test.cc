// rknnctl's verbs that look after a board, with a real daemon: over its socket
// and, where this build has gRPC, over TCP.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/posix/child_process.h"
#include "tests/integration/harness/faults.h"
#include "tests/integration/harness/files.h"
#include "tests/integration/harness/integration_test.h"
#include "tests/integration/harness/rknnctl.h"

namespace rknnd::integration {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

enum class Way { kUnix, kTcp };

class RknnctlBoardTest : public IntegrationTest,
                         public testing::WithParamInterface<Way> {
 protected:
  void Start(DaemonOptions options = {}) {
    if (GetParam() == Way::kTcp) {
      // Operators' verbs over plain text, which is loopback's here.
      options.more.insert(options.more.end(),
                          {"--grpc", "127.0.0.1:0", "--grpc-insecure"});
    }
    StartDaemon(std::move(options));
    target_ = GetParam() == Way::kUnix ? daemon().target()
                                       : "tcp://" + daemon().grpc_address();
    model_ = MakeConvNet(folder());
  }

  // Without those that the daemon keeps for its own share sockets.
  json OfOthers(const json& sessions) {
    json others = json::array();
    for (const json& session : sessions) {
      if (session["pid"] != daemon().pid()) others.push_back(session);
    }
    return others;
  }

  json Ask(const std::vector<std::string>& arguments) {
    return AskRknnctl(folder(), target_, arguments);
  }
  RknnctlResult Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"--target", target_});
    return RunRknnctl(folder(), arguments);
  }

  std::string target_;
  TestModel model_;
};

TEST_P(RknnctlBoardTest, DoctorSaysWhatBothSidesFound) {
  Start();
  const RknnctlResult result = Run({"--json", "doctor"});
  const json answer = json::parse(result.out, nullptr, false);
  ASSERT_TRUE(answer.is_object()) << result.out << result.err;
  std::set<std::string> checks;
  for (const json& finding : answer["findings"]) {
    checks.insert(finding["check"].get<std::string>());
    EXPECT_NE(finding["text"], "");
    if (finding["severity"] == "error" || finding["severity"] == "warning") {
      EXPECT_NE(finding["remedy"], "") << finding;
    }
  }
  EXPECT_THAT(checks, testing::IsSupersetOf(
                          {"daemon", "client-versions", "client-library"}));
  // The daemon's own.
  EXPECT_GE(checks.size(), 6U) << answer;
  EXPECT_EQ(result.exit_code, answer["worst"] == "error" ? 1 : 0);
  EXPECT_EQ(answer["findings"][0]["severity"], answer["worst"]);
}

TEST_P(RknnctlBoardTest, LogsAreTheDaemonsAndItsLevelIsSet) {
  Start();
  const json lines = Ask({"logs", "--recent", "1000", "--level", "3"});
  ASSERT_FALSE(lines.empty());
  // Each is in what the daemon said on stderr.
  const std::string log = daemon().log();
  for (const json& line : lines) {
    EXPECT_THAT(log, HasSubstr(line["text"].get<std::string>()));
  }
  EXPECT_THAT(Ask({"logs", "--recent", "1"}), SizeIs(1));

  const json set = Ask({"logs", "--set-level", "3"});
  EXPECT_EQ(set["level"], 3);
  EXPECT_EQ(Ask({"logs", "--set-level", set["before"].dump()})["before"], 3);
}

TEST_P(RknnctlBoardTest, PushSendsAModelOnceAndItStays) {
  Start();
  const auto size = std::filesystem::file_size(model_.path);

  const json first = Ask({"push", model_.path});
  const json second = Ask({"push", model_.path});

  EXPECT_EQ(first["was_there"], false);
  EXPECT_EQ(first["sent_bytes"], size);
  EXPECT_EQ(second["was_there"], true);
  EXPECT_EQ(second["sent_bytes"], 0);
  EXPECT_EQ(first["sha256"], second["sha256"]);
  const json models = Ask({"models"});
  ASSERT_THAT(models, SizeIs(1));
  EXPECT_EQ(models[0]["sha256"], first["sha256"]);
  EXPECT_EQ(models[0]["contexts"], 0);
  const RknnctlResult wrong = Run({"push", folder() + "/none.onnx"});
  EXPECT_EQ(wrong.exit_code, 1);
  EXPECT_THAT(wrong.err, HasSubstr("none.onnx"));
}

TEST_P(RknnctlBoardTest, PerfMeasuresTheWholeModelToo) {
  Start();
  const json perf = Ask({"perf", model_.path, "--runs", "3", "--fix-freq"});
  EXPECT_GE(perf["layers"].size(), 3U);
  const json& whole = perf["whole"];
  EXPECT_EQ(whole["runs"], 3);
  EXPECT_GT(whole["fps"], 0);
  EXPECT_NEAR(whole["run_us"].get<double>() * 3,
              whole["total_us"].get<double>(), 1);
  ASSERT_TRUE(whole["clocks"].is_array());
  // Here no clock can be set, or it is back as it was.
  if (!whole["fixed"].get<bool>()) {
    EXPECT_NE(whole["why"], "");
  }
}

TEST_P(RknnctlBoardTest, DrainWaitsForTheLastJobAndSaysWhoIsLeft) {
  Start(WithFaults(folder(), {.give_up = 0}));
  auto client = StartClient();
  ASSERT_TRUE(Done(client->Do("init a " + model_.path)));
  ASSERT_TRUE(Done(client->Do("bind_all a")));
  driver::Fault hang;
  hang.kind = driver::FaultKind::kHang;
  SetFault(folder(), daemon().target(), hang);
  client->Send("run a");
  ASSERT_TRUE(SeesJobRunning());

  const RknnctlResult late = Run({"--json", "drain", "--wait", "0.2"});

  EXPECT_EQ(late.exit_code, 1);
  const json left = json::parse(late.out, nullptr, false);
  ASSERT_TRUE(left.is_object()) << late.out << late.err;
  EXPECT_EQ(left["idle"], false);
  std::set<int> pids;
  for (const json& session : left["sessions"]) {
    pids.insert(session["pid"].get<int>());
  }
  EXPECT_TRUE(pids.contains(client->pid())) << left;
  client->Kill();
  KillDaemon();  // which waits for the job that hangs
}

TEST_P(RknnctlBoardTest, DrainedDaemonCanBeLookedAtAndTheDrainUndone) {
  Start();
  const json idle = Ask({"drain"});
  EXPECT_EQ(idle["idle"], true);
  EXPECT_THAT(OfOthers(idle["sessions"]), SizeIs(0));
  EXPECT_EQ(Ask({"status"})["draining"], true);
  EXPECT_EQ(Ask({"drain", "--undo"})["draining"], false);
  EXPECT_EQ(Ask({"status"})["draining"], false);
  EXPECT_EQ(Run({"infer", model_.path}).exit_code, 0);
  const RknnctlResult again = Run({"drain", "--undo"});
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_THAT(again.err, HasSubstr("not draining"));
}

TEST_P(RknnctlBoardTest, ProgramsWaitForTheEndOfADrainForTheirTime) {
  Start();
  auto patient = StartClient({}, target_);
  auto hasty = StartClient({{"RKNND_RESTART_WAIT", "1"}}, target_);
  for (ClientProcess* const client : {patient.get(), hasty.get()}) {
    ASSERT_TRUE(Done(client->Do("init a " + model_.path)));
    ASSERT_TRUE(Done(client->Do("bind_all a")));
    ASSERT_TRUE(Done(client->Do("run a")));
  }
  ASSERT_EQ(Ask({"drain"})["idle"], true);
  auto late = StartClient({}, target_);
  patient->Send("run a");
  late->Send("init a " + model_.path);
  const Reply refused = hasty->Do("run a");
  EXPECT_NE(refused.code, RKNN_SUCC);
  EXPECT_THAT(refused.text, HasSubstr("draining"));
  // The others have waited for as long, and still do.
  ASSERT_EQ(Ask({"drain", "--undo"})["draining"], false);
  EXPECT_TRUE(Done(patient->Receive()));
  EXPECT_TRUE(Done(late->Receive()));
  EXPECT_TRUE(Done(hasty->Do("run a")));
}

TEST_P(RknnctlBoardTest, ResetIsDoneWhereThereIsADeviceToReset) {
  Start({.more = {"--faults"}});
  EXPECT_EQ(Ask({"reset", "--yes"})["reset"], true);
  EXPECT_EQ(Run({"infer", model_.path}).exit_code, 0);
}

TEST_P(RknnctlBoardTest, SessionsSayWhereTheyComeFrom) {
  Start();
  auto client = StartClient({}, target_);
  ASSERT_TRUE(Done(client->Do("init a " + model_.path)));
  const json sessions = OfOthers(Ask({"sessions"}));
  ASSERT_THAT(sessions, SizeIs(1));
  const std::string address = sessions[0]["address"];
  if (GetParam() == Way::kTcp) {
    EXPECT_THAT(address, HasSubstr("127.0.0.1:"));
    EXPECT_THAT(Run({"sessions"}).out, HasSubstr(address));
    EXPECT_THAT(Run({"status"}).out, HasSubstr("remote   " + address));
  } else {
    EXPECT_EQ(address, "");
    EXPECT_THAT(Run({"status"}).out, Not(HasSubstr("remote ")));
  }
}

#ifdef RKNND_TESTS_TCP
const auto kWays = testing::Values(Way::kUnix, Way::kTcp);
#else
const auto kWays = testing::Values(Way::kUnix);
#endif
std::string WayName(const testing::TestParamInfo<Way>& way) {
  return way.param == Way::kTcp ? "Tcp" : "Unix";
}
INSTANTIATE_TEST_SUITE_P(Over, RknnctlBoardTest, kWays, WayName);

}  // namespace
}  // namespace rknnd::integration
