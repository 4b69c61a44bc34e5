// The matmul API, by a C program that knows its header and nothing else, with
// every chip's types, through both targets, and over the daemon's death.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/integration/harness/client_process.h"
#include "tests/integration/harness/files.h"
#include "tests/integration/harness/integration_test.h"

namespace rknnd::integration {
namespace {

class MatmulTest : public IntegrationTest {
 protected:
  int RunMatmul(const std::string& what, const std::string& target,
                const Environment& more = {}) {
    return RunProgram({ProgramPath("tests/integration_matmul"), what}, target,
                      more);
  }
};

TEST_F(MatmulTest, EveryTypeOfTheRk3588IsRight) {
  StartDaemon();
  EXPECT_EQ(RunMatmul("rk3588", daemon().target()), 0);
  EXPECT_TRUE(OnlyNeighbourIsLeft());
}

TEST_F(MatmulTest, EveryTypeOfTheRk3576IsRight) {
  StartDaemon({.soc = "rk3576"});
  EXPECT_EQ(RunMatmul("rk3576", daemon().target()), 0);
}

TEST_F(MatmulTest, EveryTypeOfTheRk3568IsRight) {
  StartDaemon({.soc = "rk3568"});
  EXPECT_EQ(RunMatmul("rk356x", daemon().target()), 0);
}

TEST_F(MatmulTest, EveryTypeIsRightInTheOwnProcess) {
  EXPECT_EQ(RunMatmul("rk3588", kLocal), 0);
}

TEST_F(MatmulTest, ScalesAndZeroPointsAreUsed) {
  StartDaemon();
  EXPECT_EQ(RunMatmul("scales", daemon().target()), 0);
}

TEST_F(MatmulTest, ListedShapesTakeTurns) {
  StartDaemon();
  EXPECT_EQ(RunMatmul("shapes", daemon().target()), 0);
}

TEST_F(MatmulTest, WhatIsWrongIsRefusedAndNothingIsLost) {
  StartDaemon();
  EXPECT_EQ(RunMatmul("wrong", daemon().target()), 0);
  EXPECT_TRUE(OnlyNeighbourIsLeft());
}

TEST_F(MatmulTest, EveryTypeIsRightAtTheSocsPace) {
  StartDaemon({.more = {"--pace", "on"}});
  EXPECT_EQ(RunMatmul("rk3588", daemon().target()), 0);
}

TEST_F(MatmulTest, AProductOutlivesTheDaemon) {
  StartDaemon();
  EXPECT_EQ(
      RunOverDeaths({ProgramPath("tests/integration_matmul"), "again", "3"}, 3),
      0);
}

#ifdef RKNND_TESTS_TCP
TEST_F(MatmulTest, AnotherMachineMultiplies) {
  StartDaemon({.more = {"--grpc", "127.0.0.1:0", "--grpc-insecure"}});
  const std::string target = "tcp://" + daemon().grpc_address();
  EXPECT_EQ(RunMatmul("rk3588", target), 0);
  EXPECT_EQ(RunMatmul("scales", target), 0);
  EXPECT_EQ(RunMatmul("shapes", target), 0);
}
#endif

}  // namespace
}  // namespace rknnd::integration
