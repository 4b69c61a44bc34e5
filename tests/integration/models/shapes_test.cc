// Models that list shapes, and models with a batch: by C programs that know
// rknn_api.h and nothing else, through both targets, and over the daemon's
// death.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/integration/harness/files.h"
#include "tests/integration/harness/integration_test.h"

namespace rknnd::integration {
namespace {

const std::vector<int> kSides = {8, 24, 16};

// RKNN_TENSOR_NHWC, and the shape of a row.
std::string ShapeOf(int side) {
  const std::string extent = std::to_string(side);
  return "1 1 " + extent + " " + extent + " 3";
}

class ShapesTest : public IntegrationTest {
 protected:
  int RunShapes(const std::string& target) {
    std::vector<std::string> arguments = {
        ProgramPath("tests/integration_dynamic_shapes"),
        MakeListedConvNet(folder(), kSides).path};
    for (const int side : kSides) {
      arguments.push_back(MakeConvNetOfSide(folder(), side).path);
    }
    return RunProgram(arguments, target);
  }

  int RunBatch(int batch, const std::string& target) {
    return RunProgram(
        {ProgramPath("tests/integration_batch"),
         MakeBatchConvNet(folder(), batch).path, MakeConvNet(folder()).path},
        target);
  }

  // Data for the row of this index, a run, and its answer.
  static testing::AssertionResult RunsRight(ClientProcess& client,
                                            const TestModel& model, size_t row,
                                            const std::string& context = "c") {
    if (auto set =
            Done(client.Do("inputs " + context + " " + model.inputs[row]));
        !set) {
      return set;
    }
    if (auto run = Done(client.Do("run " + context)); !run) return run;
    return Right(client.Do("compare " + context + " " + model.outputs[row]));
  }
};

TEST_F(ShapesTest, EveryListedShapeAnswersAsItsFixedModel) {
  StartDaemon();
  EXPECT_EQ(RunShapes(daemon().target()), 0);
}

TEST_F(ShapesTest, EveryListedShapeAnswersInTheOwnProcess) {
  EXPECT_EQ(RunShapes(kLocal), 0);
}

TEST_F(ShapesTest, ABatchAnswersAsSoManyRuns) {
  StartDaemon();
  EXPECT_EQ(RunBatch(4, daemon().target()), 0);
}

TEST_F(ShapesTest, ABatchAnswersInTheOwnProcess) {
  EXPECT_EQ(RunBatch(5, kLocal), 0);
}

TEST_F(ShapesTest, TheShapeOutlivesTheDaemon) {
  const TestModel model = MakeListedConvNet(folder(), kSides);
  StartDaemon();
  const auto client = StartClient();
  ASSERT_TRUE(Done(client->Do("init c " + model.path)));
  ASSERT_TRUE(Done(client->Do("shape c " + ShapeOf(8))));
  ASSERT_TRUE(RunsRight(*client, model, 0));
  KillDaemon();
  RestartDaemon();

  ASSERT_TRUE(Done(client->Do("run c")));
  EXPECT_TRUE(Right(client->Do("compare c " + model.outputs[0])));
  ASSERT_TRUE(Done(client->Do("shape c " + ShapeOf(24))));
  EXPECT_TRUE(RunsRight(*client, model, 1));
}

TEST_F(ShapesTest, AShapeChosenWhileTheDaemonIsAwayIsInForceAfterwards) {
  const TestModel model = MakeListedConvNet(folder(), kSides);
  StartDaemon();
  const auto client = StartClient();
  ASSERT_TRUE(Done(client->Do("init c " + model.path)));
  ASSERT_TRUE(Done(client->Do("shape c " + ShapeOf(8))));
  KillDaemon();
  client->Send("shape c " + ShapeOf(16));
  RestartDaemon();

  ASSERT_TRUE(Done(client->Receive()));
  EXPECT_TRUE(RunsRight(*client, model, 2));
}

TEST_F(ShapesTest, MemoryTooSmallForTheNextShapeFailsTheRunAndSaysWhy) {
  const TestModel model = MakeListedConvNet(folder(), kSides);
  StartDaemon();
  const auto client = StartClient();
  ASSERT_TRUE(Done(client->Do("init c " + model.path)));
  ASSERT_TRUE(Done(client->Do("shape c " + ShapeOf(8))));
  ASSERT_TRUE(Done(client->Do("create m c 1000")));
  ASSERT_TRUE(Done(client->Do("bind c m in 0 3")));
  ASSERT_TRUE(Done(client->Do("run c")));

  ASSERT_TRUE(Done(client->Do("shape c " + ShapeOf(24))));

  EXPECT_THAT(client->Do("run c"),
              Fails(RKNN_ERR_FAIL, "does not fit the shape chosen since"));
  ASSERT_TRUE(Done(client->Do("shape c " + ShapeOf(16))));
  ASSERT_TRUE(Done(client->Do("bind c m in 0 3")));
  EXPECT_TRUE(Done(client->Do("run c")));
}

TEST_F(ShapesTest, AnUnlistedShapeIsNamedWithTheListedOnes) {
  const TestModel model = MakeListedConvNet(folder(), kSides);
  StartDaemon();
  const auto client = StartClient();
  ASSERT_TRUE(Done(client->Do("init c " + model.path)));
  EXPECT_THAT(client->Do("run c"),
              Fails(RKNN_ERR_INPUT_INVALID, "lists 3 shapes and none is"));
  EXPECT_THAT(client->Do("shape c " + ShapeOf(9)),
              Fails(RKNN_ERR_INPUT_INVALID,
                    "input 0 'image' of shape 1x9x9x3 (NHWC) is in none of the "
                    "rows"));
}

// The vendor's library refuses this and the next.
TEST_F(ShapesTest, ADuplicateChoosesItsOwnShape) {
  const TestModel model = MakeListedConvNet(folder(), kSides);
  StartDaemon();
  const auto client = StartClient();
  ASSERT_TRUE(Done(client->Do("init c " + model.path)));
  ASSERT_TRUE(Done(client->Do("shape c " + ShapeOf(8))));

  ASSERT_TRUE(Done(client->Do("dup d c")));

  EXPECT_THAT(client->Do("run d"),
              Fails(RKNN_ERR_INPUT_INVALID, "lists 3 shapes and none is"));
  ASSERT_TRUE(Done(client->Do("shape d " + ShapeOf(24))));
  EXPECT_TRUE(RunsRight(*client, model, 1, "d"));
  EXPECT_TRUE(RunsRight(*client, model, 0));
  ASSERT_TRUE(Done(client->Do("destroy c")));
  EXPECT_TRUE(RunsRight(*client, model, 1, "d"));
}

TEST_F(ShapesTest, AModelThatListsShapesSharesItsWeights) {
  const TestModel listed = MakeListedConvNet(folder(), kSides);
  const TestModel fixed = MakeConvNetOfSide(folder(), 16);
  StartDaemon();
  const auto client = StartClient();
  ASSERT_TRUE(Done(client->Do("init c " + listed.path)));

  ASSERT_TRUE(Done(client->Do("share d " + fixed.path + " c")));
  ASSERT_TRUE(Done(client->Do("share e " + listed.path + " c")));

  ASSERT_TRUE(Done(client->Do("inputs d " + listed.inputs[2])));
  ASSERT_TRUE(Done(client->Do("run d")));
  EXPECT_TRUE(Right(client->Do("compare d " + listed.outputs[2])));
  ASSERT_TRUE(Done(client->Do("shape e " + ShapeOf(8))));
  EXPECT_TRUE(RunsRight(*client, listed, 0, "e"));
}

TEST_F(ShapesTest, ASocOfOneCoreSpreadsNoBatch) {
  const TestModel model = MakeBatchConvNet(folder(), 2);
  const auto client = StartClient({{"RKNND_SOC", "rk3566"}}, kLocal);
  ASSERT_TRUE(Done(client->Do("init c " + model.path)));

  EXPECT_THAT(client->Do("batch_cores c 1"),
              Fails(RKNN_ERR_FAIL, "rk3566 has one core"));
  ASSERT_TRUE(Done(client->Do("inputs c" + model.input_list())));
  ASSERT_TRUE(Done(client->Do("run c")));
  EXPECT_TRUE(Right(client->Do("compare c" + model.output_list())));
}

}  // namespace
}  // namespace rknnd::integration
