// Runs that are not waited for, end to end: a program in C against a daemon,
// which may die under them.

#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "tests/integration/harness/files.h"
#include "tests/integration/harness/integration_test.h"

namespace rknnd::integration {
namespace {

class AsyncTest : public IntegrationTest,
                  public testing::WithParamInterface<std::string> {
 protected:
  int Run(const std::vector<std::string>& arguments,
          const std::string& target) {
    std::vector<std::string> all = {
        ProgramPath("tests/integration_async_runs")};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return RunProgram(all, target);
  }
  std::string Target() {
    if (GetParam() == kLocal) return kLocal;
    StartDaemon();
    return daemon().target();
  }
};

TEST_P(AsyncTest, FlagGivesEachRunsOutputsToTheNextOne) {
  const std::string target = Target();
  EXPECT_EQ(Run({"async", MakeRelu(folder()).path}, target), 0);
}

TEST_P(AsyncTest, NonBlockingRunsAreWaitedForAndFetched) {
  const std::string target = Target();
  EXPECT_EQ(Run({"non_block", MakeRelu(folder()).path}, target), 0);
}

TEST_P(AsyncTest, FencesChainTheRunsOfTwoContexts) {
  const std::string target = Target();
  EXPECT_EQ(Run({"chain", MakeRelu(folder()).path}, target), 0);
}

TEST_P(AsyncTest, TenCamerasRunOnOneThread) {
  const std::string target = Target();
  EXPECT_EQ(Run({"queue", MakeRelu(folder()).path, "200"}, target), 0);
}

INSTANTIATE_TEST_SUITE_P(Targets, AsyncTest, testing::Values("unix", kLocal),
                         [](const auto& test) {
                           return test.param == kLocal ? "Local" : "Daemon";
                         });

class AsyncDeathTest : public AsyncTest {
 protected:
  // While a program does that, the daemon goes and comes back `times`.
  int RunOverDeaths(const std::vector<std::string>& arguments, int times,
                    bool in_order) {
    StartDaemon();
    int code = -1;
    std::thread program([&] { code = Run(arguments, daemon().target()); });
    for (int i = 0; i < times; ++i) {
      EXPECT_TRUE(Eventually([this] { return Status().jobs_done >= 30; }));
      if (in_order) {
        EXPECT_EQ(EndDaemon(), 0);
      } else {
        KillDaemon();
      }
      RestartDaemon();
    }
    program.join();
    return code;
  }
};

TEST_F(AsyncDeathTest, KilledDaemonGivesLateCompletionsAndLosesNone) {
  EXPECT_EQ(
      RunOverDeaths({"queue", MakeSlow(folder(), 1).path, "60"}, 3, false), 0);
}

TEST_F(AsyncDeathTest, UpgradedDaemonGivesLateCompletionsAndLosesNone) {
  EXPECT_EQ(RunOverDeaths({"queue", MakeSlow(folder(), 1).path, "60"}, 3, true),
            0);
}

TEST_F(AsyncDeathTest, AsynchronousFlagOutlivesAKilledDaemon) {
  EXPECT_EQ(RunOverDeaths({"async", MakeSlow(folder(), 2).path}, 1, false), 0);
}

TEST_F(AsyncDeathTest, RunsKeepTheirMemoryOverAKilledDaemon) {
  EXPECT_EQ(
      RunOverDeaths({"rebound", MakeSlow(folder(), 1).path, "300"}, 3, false),
      0);
}

TEST_F(AsyncDeathTest, ProgramThatDoesNotKnowHowHarmsNoNeighbour) {
  StartDaemon();
  StartNeighbour();
  EXPECT_EQ(Run({"bad", MakeRelu(folder()).path}, daemon().target()), 0);
  EXPECT_TRUE(OnlyNeighbourIsLeft());
  EXPECT_TRUE(NeighbourIsWell());
}

}  // namespace
}  // namespace rknnd::integration
