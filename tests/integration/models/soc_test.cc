// What a program can tell of the SoC that the software NPU stands for: how long
// jobs take with pace, and what the small ones' runtime lacks.

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "client/include/rknn_api.h"
#include "tests/integration/harness/integration_test.h"

namespace rknnd::integration {
namespace {

using SocTest = IntegrationTest;

// Start-up of a layer on an RK3568 by the timing model.
constexpr int64_t kLayerNanoseconds = 16'000;
constexpr size_t kLayers = 400;

TEST_F(SocTest, NoPacedJobTakesLessThanOnTheSoc) {
  StartDaemon({.soc = "rk3568", .more = {"--pace", "on"}});
  const TestModel model = MakeTinyLayers(folder(), kLayers);
  const auto client = StartClient();
  ASSERT_TRUE(Done(client->Do("init a " + model.path)));
  ASSERT_TRUE(Done(client->Do("bind_all a")));
  ASSERT_TRUE(Done(client->Do("fill a.in0" + model.input_list())));
  // Also those that follow closely on another.
  for (int job = 0; job < 10; ++job) {
    ASSERT_TRUE(Done(client->Do("run a")));
    const Reply took = client->Do("took a");
    ASSERT_TRUE(Done(took));
    EXPECT_GE(std::stoll(took.text),
              kLayerNanoseconds * static_cast<int64_t>(kLayers));
  }
}

TEST_F(SocTest, PaceChangesNoAnswer) {
  StartDaemon({.more = {"--pace", "on"}});
  const TestModel model = MakeConvNet(folder());
  const auto client = StartClient();
  ASSERT_TRUE(Done(client->Do("init a " + model.path)));
  ASSERT_TRUE(Done(client->Do("inputs a" + model.input_list())));
  ASSERT_TRUE(Done(client->Do("run a")));
  EXPECT_TRUE(Right(client->Do("compare a" + model.output_list()), 1e-3));
}

TEST_F(SocTest, TheLocalTargetIsPacedOnRequest) {
  const TestModel model = MakeTinyLayers(folder(), kLayers);
  const auto client =
      StartClient({{"RKNND_SOC", "rk3568"}, {"RKNND_PACE", "on"}}, kLocal);
  ASSERT_TRUE(Done(client->Do("init a " + model.path)));
  ASSERT_TRUE(Done(client->Do("bind_all a")));
  ASSERT_TRUE(Done(client->Do("run a")));
  const Reply took = client->Do("took a");
  ASSERT_TRUE(Done(took));
  EXPECT_GE(std::stoll(took.text),
            kLayerNanoseconds * static_cast<int64_t>(kLayers));
}

TEST_F(SocTest, AnRv1106HasZeroCopyOnly) {
  StartDaemon({.soc = "rv1106"});
  const TestModel model = MakeConvNet(folder());
  const auto client = StartClient();
  ASSERT_TRUE(Done(client->Do("init a " + model.path)));
  EXPECT_THAT(client->Do("inputs a" + model.input_list()),
              Fails(RKNN_ERR_FAIL, "rv1106 supports rknn_set_io_mem only"));
  EXPECT_THAT(client->Do("dup b a"),
              Fails(RKNN_ERR_FAIL, "rv1106 has no rknn_dup_context"));
  EXPECT_THAT(client->Do("mask a 1"),
              Fails(RKNN_ERR_PARAM_INVALID, "its runtime takes no core mask"));
  // Memory for both sides, the output's as float32.
  EXPECT_THAT(client->Do("bind_all a"),
              Fails(RKNN_ERR_FAIL, "rv1106 has no float32 outputs"));
  EXPECT_THAT(client->Do("run a"), Fails(RKNN_ERR_FAIL, "rknn_set_io_mem"));
  ASSERT_TRUE(Done(client->Do("bind a a.out0 out 0 " +
                              std::to_string(RKNN_TENSOR_FLOAT16))));
  EXPECT_TRUE(Done(client->Do("run a")));
}

TEST_F(SocTest, AnRk3568TakesAnyCoreMask) {
  StartDaemon({.soc = "rk3568"});
  const TestModel model = MakeConvNet(folder());
  const auto client = StartClient();
  ASSERT_TRUE(Done(client->Do("init a " + model.path)));
  ASSERT_TRUE(Done(client->Do("inputs a" + model.input_list())));
  for (const char* mask : {"6", "7", "85"}) {
    ASSERT_TRUE(Done(client->Do("mask a " + std::string(mask))));
    ASSERT_TRUE(Done(client->Do("run a")));
    EXPECT_TRUE(Right(client->Do("compare a" + model.output_list()), 1e-3));
  }
}

}  // namespace
}  // namespace rknnd::integration
