// Faults on demand, from rknnctl to the client that meets them: it sees the
// stated error or a late answer, its neighbour nothing, and clearing heals.

#include "tests/integration/harness/faults.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "base/posix/clock.h"
#include "tests/integration/harness/integration_test.h"

namespace rknnd::integration {
namespace {

using driver::Fault;
using driver::FaultKind;
using testing::HasSubstr;

constexpr char kModel[] = "conv_net";  // the victim's

class FaultsTest : public IntegrationTest {
 protected:
  // A daemon that can be told to fail, a neighbour, and a victim with bound
  // memory of its own.
  void Start(const FaultOptions& faults = {}, const std::string& flags = "0") {
    StartDaemon(WithFaults(folder(), faults));
    StartNeighbour();
    model_ = MakeConvNet(folder());
    victim_ = StartClient();
    ASSERT_TRUE(Done(victim_->Do("init v " + model_.path + " " + flags)));
    ASSERT_TRUE(Done(victim_->Do("bind_all v")));
    ASSERT_TRUE(Done(victim_->Do("fill v.in0" + model_.input_list())));
  }

  uint64_t Set(const Fault& fault) {
    return SetFault(folder(), daemon().target(), fault);
  }
  void Clear(uint64_t id = 0) { ClearFault(folder(), daemon().target(), id); }
  RknnctlResult Ctl(const std::vector<std::string>& arguments) {
    return RunFault(folder(), daemon().target(), arguments);
  }
  nlohmann::json List() {
    return AskRknnctl(folder(), daemon().target(), {"fault", "list"});
  }

  testing::AssertionResult VictimRunsRight() {
    if (auto run = Done(victim_->Do("run v")); !run) return run;
    return Right(victim_->Do("compare_mem v.out0" + model_.output_list()));
  }

  TestModel model_;
  std::unique_ptr<ClientProcess> victim_;
};

// ---- asking for them --------------------------------------------------------

TEST_F(FaultsTest, WithoutTheOptionAreRefusedWithTheWayToGetThem) {
  StartDaemon();
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"list"}, {"set", "hang"}, {"clear", "all"}}) {
    const RknnctlResult result = Ctl(arguments);
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.err, HasSubstr("rknnd --faults"));
  }
}

TEST_F(FaultsTest, AreNotForOrdinaryClients) {
  StartDaemon(WithFaults(folder()));
  RawClient client(daemon().socket());
  client.SayHello();
  wire::Fault fault{};
  wire::SetText(fault.kind, "hang");
  fault.every = 1;
  const auto answer = client.Ask(wire::Verb::kSetFault, fault);
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code, base::Code::kPermissionDenied);
}

TEST_F(FaultsTest, WrongValuesAreAnsweredWithTheFieldsName) {
  StartDaemon({.more = {"--faults"}});
  const auto complaint = [this](const std::vector<std::string>& arguments,
                                int exit_code) {
    const RknnctlResult result = Ctl(arguments);
    EXPECT_EQ(result.exit_code, exit_code) << result.err;
    return result.err;
  };
  EXPECT_THAT(complaint({"set", "hangs"}, 1), HasSubstr("'kind' is 'hangs'"));
  EXPECT_THAT(complaint({"set", "hang", "--core", "3"}, 1),
              HasSubstr("'core' is 3, the device has cores 0 to 2"));
  EXPECT_THAT(complaint({"set", "hang", "--every", "0"}, 1),
              HasSubstr("'every' is 0"));
  EXPECT_THAT(complaint({"set", "slow"}, 1), HasSubstr("'ms' or 'factor'"));
  EXPECT_THAT(complaint({"set", "dead-core", "--times", "1"}, 1),
              HasSubstr("'times' means nothing"));
  EXPECT_THAT(complaint({"set", "hang", "--core", "one"}, 2),
              HasSubstr("--core"));
  EXPECT_THAT(complaint({"set"}, 2), HasSubstr("KIND"));
  EXPECT_THAT(complaint({"clear", "everything"}, 2), HasSubstr("everything"));
  EXPECT_THAT(complaint({"clear", "9"}, 1), HasSubstr("fault 9 is not set"));
  EXPECT_TRUE(List().empty());
}

TEST_F(FaultsTest, InForceAreShownByStatusListAndLog) {
  Start({.preset = {{.kind = FaultKind::kDeadCore, .core = 2}}});
  const uint64_t id =
      Set({.kind = FaultKind::kWrongStatus, .model = kModel, .times = 1});
  EXPECT_FALSE(Done(victim_->Do("run v")));
  const nlohmann::json list = List();
  ASSERT_EQ(list.size(), 2U);
  EXPECT_EQ(list[0]["kind"], "dead-core");
  EXPECT_EQ(list[0]["core"], 2);
  EXPECT_EQ(list[1]["id"], id);
  EXPECT_EQ(list[1]["model"], kModel);
  EXPECT_EQ(list[1]["fired"], 1);
  EXPECT_EQ(AskRknnctl(folder(), daemon().target(), {"status"})["faults"], 2);
  EXPECT_THAT(daemon().log(),
              HasSubstr("warning: FAULT ON DEMAND 2 is set: wrong-status"));
  Clear();
  EXPECT_TRUE(List().empty());
  EXPECT_THAT(daemon().log(), HasSubstr("FAULT ON DEMAND 2 is cleared"));
}

// ---- jobs -------------------------------------------------------------------

TEST_F(FaultsTest, SlowJobIsLateAndRight) {
  Start();
  Set({.kind = FaultKind::kSlow, .model = kModel, .ms = 200});
  const base::MonotonicClock clock;
  const base::Nanoseconds before = clock.Now();
  EXPECT_TRUE(VictimRunsRight());
  EXPECT_GE(clock.Now() - before, 200 * base::kMillisecond);
  EXPECT_TRUE(NeighbourIsWell());
}

TEST_F(FaultsTest, HangingJobHoldsNobodyElseAndGoesOnWhenCleared) {
  Start({.give_up = 0});
  Set({.kind = FaultKind::kHang, .model = kModel});
  ASSERT_TRUE(Done(victim_->Do("start run v")));
  ASSERT_TRUE(SeesJobRunning());
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(NeighbourIsWell());
  EXPECT_EQ(Status().jobs_running, 1U);
  Clear();
  EXPECT_TRUE(Done(victim_->Do("finish")));
  EXPECT_TRUE(Right(victim_->Do("compare_mem v.out0" + model_.output_list())));
  EXPECT_TRUE(VictimRunsRight());
}

TEST_F(FaultsTest, HungJobFailsWhenTheDriverGivesUpAndTheNextRuns) {
  Start({.preset = {{.kind = FaultKind::kHang, .model = kModel, .times = 1}},
         .give_up = 300 * base::kMillisecond});
  EXPECT_THAT(victim_->Do("run v"),
              Fails(RKNN_ERR_TIMEOUT, "the driver gave up and reset the NPU"));
  EXPECT_TRUE(VictimRunsRight());
  EXPECT_TRUE(NeighbourIsWell());
}

TEST_F(FaultsTest, ClientOfAHungJobIsAnsweredByTheDaemonAtItsTimeout) {
  Start({.give_up = 0});
  Set({.kind = FaultKind::kHang, .model = kModel});
  const base::MonotonicClock clock;
  const base::Nanoseconds before = clock.Now();
  // Not the client's own, last resort.
  EXPECT_THAT(victim_->Do("run v 100"),
              Fails(RKNN_ERR_TIMEOUT, "its timeout is 100 ms"));
  EXPECT_GE(clock.Now() - before, 100 * base::kMillisecond);
  EXPECT_TRUE(NeighbourIsWell());
  // Behind it in its context; that one waits, and is answered in time too.
  EXPECT_THAT(victim_->Do("run v 100"),
              Fails(RKNN_ERR_TIMEOUT,
                    "ms for its core, its timeout is 100 ms: it was not run"));
  EXPECT_EQ(Status().jobs_running, 1U);
  EXPECT_EQ(Status().jobs_queued, 0U);
  Clear();
  EXPECT_TRUE(VictimRunsRight());
}

TEST_F(FaultsTest,
       ClientOfAHungJobWithoutALimitIsAnsweredWhenTheDaemonGivesUp) {
  Start({.give_up = 0, .hang = 200 * base::kMillisecond});
  Set({.kind = FaultKind::kHang, .model = kModel, .times = 1});
  EXPECT_THAT(victim_->Do("run v"), Fails(RKNN_ERR_TIMEOUT, "hangs"));
  EXPECT_TRUE(NeighbourIsWell());
  EXPECT_EQ(Status().jobs_hung, 1U);
  EXPECT_EQ(Status().jobs_running, 1U);
  EXPECT_TRUE(Eventually([this] {
    return daemon().log().find("did not finish on core") != std::string::npos;
  }));
  Clear();
  EXPECT_TRUE(VictimRunsRight());
  EXPECT_TRUE(Eventually([this] {
    return daemon().log().find("can be used again") != std::string::npos;
  }));
  EXPECT_EQ(Status().jobs_running, 0U);
  EXPECT_TRUE(NeighbourIsWell());
}

TEST_F(FaultsTest, InnocentFrameThatAResetTookAlongIsLateAndRight) {
  Start({.give_up = 300 * base::kMillisecond});
  const TestModel other = MakeOtherConvNet(folder());
  const auto hung = StartClient();
  ASSERT_TRUE(Done(hung->Do("init h " + other.path)));
  ASSERT_TRUE(Done(hung->Do("inputs h" + other.input_list())));
  // The victim is slow enough to be there when the driver resets the NPU.
  Set({.kind = FaultKind::kSlow, .model = kModel, .times = 1, .ms = 2000});
  ASSERT_TRUE(Done(victim_->Do("start run v")));
  ASSERT_TRUE(SeesJobRunning());
  Set({.kind = FaultKind::kHang, .model = "other_conv_net", .times = 1});
  EXPECT_THAT(hung->Do("run h"), Fails(RKNN_ERR_TIMEOUT, "gave up"));
  EXPECT_TRUE(Done(victim_->Do("finish")));
  EXPECT_TRUE(Right(victim_->Do("compare_mem v.out0" + model_.output_list())));
}

TEST_F(FaultsTest, ClientThatDiesUnderAHangLeavesNothing) {
  Start({.give_up = 0});
  const uint64_t id = Set({.kind = FaultKind::kHang, .model = kModel});
  ASSERT_TRUE(Done(victim_->Do("start run v")));
  ASSERT_TRUE(SeesJobRunning());
  victim_->Kill();
  EXPECT_TRUE(NeighbourIsWell());
  Clear(id);
  EXPECT_TRUE(OnlyNeighbourIsLeft());
  EXPECT_TRUE(NeighbourIsWell());
}

TEST_F(FaultsTest, WrongStatusIsAnErrorAndTheNextJobRuns) {
  Start();
  Set({.kind = FaultKind::kWrongStatus,
       .model = kModel,
       .times = 1,
       .status = 0x2a});
  EXPECT_THAT(victim_->Do("run v"), Fails(RKNN_ERR_FAIL, "status 0x2a"));
  EXPECT_TRUE(VictimRunsRight());
  EXPECT_TRUE(NeighbourIsWell());
}

TEST_F(FaultsTest, DeadCoreFailsWhoInsistsOnIt) {
  Start();
  Set({.kind = FaultKind::kDeadCore, .core = 2});
  ASSERT_TRUE(Done(victim_->Do("mask v 4")));
  EXPECT_THAT(victim_->Do("run v"), Fails(RKNN_ERR_FAIL, "does not answer"));
  ASSERT_TRUE(Done(victim_->Do("mask v 2")));
  EXPECT_TRUE(VictimRunsRight());
  Clear();
  ASSERT_TRUE(Done(victim_->Do("mask v 4")));
  EXPECT_TRUE(VictimRunsRight());
}

TEST_F(FaultsTest, CrashedDeviceThatComesBackIsALateFrame) {
  Start();
  Set({.kind = FaultKind::kCrash, .model = kModel, .times = 1, .ms = 300});
  EXPECT_TRUE(VictimRunsRight());
  EXPECT_TRUE(NeighbourIsWell());
  EXPECT_EQ(List()[0]["fired"], 1);
}

TEST_F(FaultsTest, CrashedDeviceThatStaysAwayIsAnErrorAtTheTimeout) {
  Start();
  Set({.kind = FaultKind::kCrash, .model = kModel, .times = 1});
  EXPECT_THAT(victim_->Do("run v 100"),
              Fails(RKNN_ERR_DEVICE_UNAVAILABLE, "device"));
  Clear();
  EXPECT_TRUE(VictimRunsRight());
  EXPECT_TRUE(NeighbourIsWell());
}

// ---- the clock --------------------------------------------------------------

TEST_F(FaultsTest, ThrottledPacedJobTakesLonger) {
  StartDaemon({.more = {"--faults", "--pace", "on"}});
  const TestModel model = MakeConvNet(folder());
  const auto client = StartClient();
  ASSERT_TRUE(Done(client->Do("init c " + model.path)));
  ASSERT_TRUE(Done(client->Do("inputs c" + model.input_list())));
  ASSERT_TRUE(Done(client->Do("run c")));
  const auto npu_us = [this] {
    uint64_t sum = 0;
    for (const auto& session :
         Ask(rknnd_v1_ReportKind_REPORT_SESSIONS).sessions) {
      sum += session.npu_us;
    }
    return sum;
  };
  const uint64_t before = npu_us();
  Set({.kind = FaultKind::kThrottle, .factor = 1000});
  ASSERT_TRUE(Done(client->Do("run c")));
  // Some thousand cycles at 1 MHz: it sleeps so long, whatever this machine.
  EXPECT_GE(npu_us() - before, 1000U);
  EXPECT_TRUE(Right(client->Do("compare c" + model.output_list())));
}

TEST_F(FaultsTest, ThrottleWithoutPaceIsRefused) {
  StartDaemon({.more = {"--faults"}});
  EXPECT_THAT(Ctl({"set", "throttle", "--factor", "2"}).err,
              HasSubstr("start rknnd with --pace on"));
}

// ---- memory -----------------------------------------------------------------

TEST_F(FaultsTest, OutOfMemoryRefusesMemoryAndModels) {
  Start();
  Set({.kind = FaultKind::kOutOfMemory});
  EXPECT_FALSE(Done(victim_->Do("create m v 65536")));
  const TestModel other = MakeChain(folder());
  EXPECT_THAT(victim_->Do("init o " + other.path),
              Fails(RKNN_ERR_MALLOC_FAIL, "no memory left"));
  EXPECT_TRUE(VictimRunsRight());
  EXPECT_TRUE(NeighbourIsWell());
  Clear();
  EXPECT_TRUE(Done(victim_->Do("create m v 65536")));
  EXPECT_TRUE(Done(victim_->Do("init o " + other.path)));
}

TEST_F(FaultsTest, IncoherentCacheShowsAMissingSync) {
  // RKNN_FLAG_DISABLE_FLUSH_INPUT_MEM_CACHE: the program syncs by itself.
  Start({}, "0x4000");
  ASSERT_TRUE(VictimRunsRight());
  Set({.kind = FaultKind::kIncoherent});
  // Other inputs, written without a word: the device computes with the old.
  for (int offset = 0; offset < 64; ++offset) {
    ASSERT_TRUE(
        Done(victim_->Do("poke v.in0 " + std::to_string(offset) + " 0")));
  }
  EXPECT_TRUE(VictimRunsRight());
  // fill ends with rknn_mem_sync.
  ASSERT_TRUE(Done(victim_->Do("fill v.in0" + model_.input_list())));
  EXPECT_TRUE(VictimRunsRight());
  EXPECT_TRUE(NeighbourIsWell());
  ASSERT_TRUE(Done(victim_->Do("poke v.in0 3 0x40")));
  Clear();
  ASSERT_TRUE(Done(victim_->Do("run v")));
  EXPECT_FALSE(Right(victim_->Do("compare_mem v.out0" + model_.output_list())));
}

TEST_F(FaultsTest, CopyingProgramsNeedNoSync) {
  Start();
  Set({.kind = FaultKind::kIncoherent});
  const auto client = StartClient();
  ASSERT_TRUE(Done(client->Do("init c " + model_.path)));
  ASSERT_TRUE(Done(client->Do("inputs c" + model_.input_list())));
  ASSERT_TRUE(Done(client->Do("run c")));
  EXPECT_TRUE(Right(client->Do("compare c" + model_.output_list())));
}

// ---- the end of the daemon --------------------------------------------------

TEST_F(FaultsTest, DaemonAskedTwiceEndsUnderAHang) {
  Start({.give_up = 0});
  Set({.kind = FaultKind::kHang, .model = kModel});
  ASSERT_TRUE(Done(victim_->Do("start run v")));
  ASSERT_TRUE(SeesJobRunning());
  daemon().AskToEnd();
  ASSERT_TRUE(Eventually([this] {
    return daemon().log().find("jobs that run end first") != std::string::npos;
  }));
  EXPECT_EQ(EndDaemon(), 0);
  // The next daemon has no faults set: the frame is late, and right.
  RestartDaemon();
  EXPECT_TRUE(Done(victim_->Do("finish")));
  EXPECT_TRUE(Right(victim_->Do("compare_mem v.out0" + model_.output_list())));
}

}  // namespace
}  // namespace rknnd::integration
