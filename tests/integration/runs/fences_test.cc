// Fences between processes: a run of one program waits for that of another,
// with a daemon between them, and none of them waits in a thread.

#include <gtest/gtest.h>

#include <string>

#include "tests/integration/harness/files.h"
#include "tests/integration/harness/integration_test.h"

namespace rknnd::integration {
namespace {

class FencesTest : public IntegrationTest {
 protected:
  void SetUp() override {
    StartDaemon();
    StartNeighbour();
    model_ = MakeConvNet(folder());
  }
  int Pair(const std::string& what) {
    return RunProgram(
        {ProgramPath("tests/integration_fence_pair"), model_.path, what},
        daemon().target());
  }

  TestModel model_;
};

TEST_F(FencesTest, RunOfOneProgramFollowsThatOfAnother) {
  EXPECT_EQ(Pair("chain"), 0);
  EXPECT_TRUE(OnlyNeighbourIsLeft());
  EXPECT_TRUE(NeighbourIsWell());
}

TEST_F(FencesTest, DeathOfTheFirstProgramFailsTheRunOfTheSecondAndNoMore) {
  EXPECT_EQ(Pair("kill"), 0);
  EXPECT_TRUE(OnlyNeighbourIsLeft());
  EXPECT_TRUE(NeighbourIsWell());
}

TEST_F(FencesTest, CancelledRunLetsTheNextOneGo) {
  EXPECT_EQ(Pair("cancel"), 0);
  EXPECT_TRUE(NeighbourIsWell());
}

}  // namespace
}  // namespace rknnd::integration
