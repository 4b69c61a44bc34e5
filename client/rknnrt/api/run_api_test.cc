// Runs as the vendor's API has them: rknn_run's non_block and fences, rknn_wait
// and RKNN_FLAG_ASYNC_MASK.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "client/rknnrt/api/run_api_fixture.h"

namespace rknnd::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RunApiTest : public RunApiFixture {};

// ---- the vendor's non_block and rknn_wait -----------------------------------

TEST_F(RunApiTest, NonBlockingRunReturnsBeforeItsEndAndIsWaitedFor) {
  const rknn_context context = Ready();
  Hold();
  rknn_run_extend extend = {};
  extend.non_block = 1;
  ASSERT_EQ(rknn_run(context, &extend), RKNN_SUCC) << rknnd_last_error();
  EXPECT_EQ(extend.frame_id, 1U);
  AwaitRuns(1);
  extend.timeout_ms = 20;
  EXPECT_EQ(rknn_wait(context, &extend), RKNN_ERR_TIMEOUT);
  EXPECT_THAT(rknnd_last_error(), HasSubstr("frame 1 has not ended yet"));
  Daemon().Release(1);
  extend.timeout_ms = 0;
  EXPECT_EQ(rknn_wait(context, &extend), RKNN_SUCC) << rknnd_last_error();
  EXPECT_EQ(Output(context), 1.0F);
}

// One struct for both, as programs have it: a wait that gave up must not have
// ended the run.
TEST_F(RunApiTest, TimeoutOfANonBlockingRunIsOnlyThatOfItsWait) {
  const rknn_context context = Ready();
  Hold();
  rknn_run_extend extend = {};
  extend.non_block = 1;
  extend.timeout_ms = 1;
  ASSERT_EQ(rknn_run(context, &extend), RKNN_SUCC) << rknnd_last_error();
  AwaitRuns(1);
  EXPECT_EQ(Daemon().seen().last_timeout_ms, 0U);
  EXPECT_EQ(rknn_wait(context, &extend), RKNN_ERR_TIMEOUT);
  EXPECT_EQ(rknn_wait(context, &extend), RKNN_ERR_TIMEOUT);
  Daemon().Release(1);
  extend.timeout_ms = 10000;
  EXPECT_EQ(rknn_wait(context, &extend), RKNN_SUCC) << rknnd_last_error();
  EXPECT_EQ(Output(context), 1.0F);
}

// It may have written half of them, or write them later: they are not those of
// the run before, whose number would be told.
TEST_F(RunApiTest, OutputsOfABlockingRunThatFailedAreNotThoseOfTheOneBefore) {
  const rknn_context context = Ready();
  ASSERT_EQ(rknn_run(context, nullptr), RKNN_SUCC) << rknnd_last_error();
  EXPECT_EQ(Output(context), 1.0F);
  Daemon().set_runs(FakeDaemon::Runs::kFail);
  ASSERT_LT(rknn_run(context, nullptr), 0);
  float value = 0;
  rknn_output output = {};
  output.want_float = 1;
  output.is_prealloc = 1;
  output.buf = &value;
  output.size = sizeof value;
  EXPECT_LT(rknn_outputs_get(context, 1, &output, nullptr), 0);
  EXPECT_THAT(rknnd_last_error(), HasSubstr("told to fail"));
  Daemon().set_runs(FakeDaemon::Runs::kAnswer);
  ASSERT_EQ(rknn_run(context, nullptr), RKNN_SUCC) << rknnd_last_error();
  EXPECT_EQ(Output(context), 1.0F);
}

TEST_F(RunApiTest, WaitWithoutAFrameWaitsForTheLastOne) {
  const rknn_context context = Ready();
  Hold();
  rknn_run_extend extend = {};
  extend.non_block = 1;
  ASSERT_EQ(rknn_run(context, &extend), RKNN_SUCC);
  ASSERT_EQ(rknn_run(context, &extend), RKNN_SUCC);
  EXPECT_EQ(extend.frame_id, 2U);
  AwaitRuns(2);
  Daemon().Release(2);
  rknn_run_extend last = {};
  EXPECT_EQ(rknn_wait(context, &last), RKNN_SUCC);
  EXPECT_EQ(last.frame_id, 2U);
  EXPECT_EQ(rknn_wait(context, nullptr), RKNN_SUCC);
}

TEST_F(RunApiTest, WaitGivesTheRunsOwnError) {
  const rknn_context context = Ready();
  rknn_run_extend extend = {};
  extend.non_block = 1;
  Daemon().set_runs(Runs::kFail);
  ASSERT_EQ(rknn_run(context, &extend), RKNN_SUCC);
  EXPECT_EQ(rknn_wait(context, &extend), RKNN_ERR_FAIL);
  EXPECT_STREQ(rknnd_last_error(), "rknn_wait: told to fail");
  // Told once.
  EXPECT_EQ(rknn_wait(context, &extend), RKNN_SUCC);
}

TEST_F(RunApiTest, WaitAfterABlockingRunReturnsAtOnce) {
  const rknn_context context = Ready();
  EXPECT_EQ(rknn_wait(context, nullptr), RKNN_SUCC);
  rknn_run_extend extend = {};
  ASSERT_EQ(rknn_run(context, &extend), RKNN_SUCC);
  EXPECT_EQ(rknn_wait(context, &extend), RKNN_SUCC);
}

TEST_F(RunApiTest, WaitForAFrameThatNeverWasIsAnError) {
  const rknn_context context = Ready();
  rknn_run_extend extend = {};
  extend.frame_id = 12;
  EXPECT_EQ(rknn_wait(context, &extend), RKNN_ERR_PARAM_INVALID);
  EXPECT_THAT(rknnd_last_error(), HasSubstr("frame 12 was never begun"));
}

TEST_F(RunApiTest, OutputsGetWaitsForANonBlockingRunAndNamesIt) {
  const rknn_context context = Ready();
  ASSERT_EQ(rknn_run(context, nullptr), RKNN_SUCC);
  ASSERT_EQ(SetInput(context, 7), RKNN_SUCC);
  Hold();
  rknn_run_extend extend = {};
  extend.non_block = 1;
  ASSERT_EQ(rknn_run(context, &extend), RKNN_SUCC);
  AwaitRuns(1);
  Daemon().Release(1);
  uint64_t frame = 0;
  EXPECT_EQ(Output(context, &frame), 7.0F);
  EXPECT_EQ(frame, 2U);
}

TEST_F(RunApiTest, OutputsGetGivesTheErrorOfTheRunItWaitedFor) {
  const rknn_context context = Ready();
  Daemon().set_runs(Runs::kFail);
  rknn_run_extend extend = {};
  extend.non_block = 1;
  ASSERT_EQ(rknn_run(context, &extend), RKNN_SUCC);
  EXPECT_EQ(Output(context), -1.0F);
  EXPECT_STREQ(rknnd_last_error(), "rknn_outputs_get: told to fail");
}

TEST_F(RunApiTest, InputsSetWaitsForTheRunThatReadsThem) {
  const rknn_context context = Ready();
  Hold();
  rknn_run_extend extend = {};
  extend.non_block = 1;
  ASSERT_EQ(rknn_run(context, &extend), RKNN_SUCC);
  AwaitRuns(1);
  std::atomic<bool> set{false};
  std::thread setter([&] {
    EXPECT_EQ(SetInput(context, 9), RKNN_SUCC);
    set = true;
  });
  EXPECT_FALSE(set);
  Daemon().Release(1);
  setter.join();
  EXPECT_EQ(Output(context), 1.0F);
}

TEST_F(RunApiTest, LastRunAndCopiesCountRunsThatNobodyWaitedFor) {
  const rknn_context context = Init();
  const float values[kFakeElements] = {};
  rknn_input input = {};
  input.buf = const_cast<float*>(values);
  input.size = sizeof values;
  input.type = RKNN_TENSOR_FLOAT32;
  input.fmt = RKNN_TENSOR_NHWC;
  ASSERT_EQ(rknn_inputs_set(context, 1, &input), RKNN_SUCC);
  ASSERT_EQ(rknnd_submit(context, nullptr, nullptr), RKNN_SUCC);
  ASSERT_EQ(rknnd_wait(context, 1, -1, nullptr, 0), RKNN_SUCC);
  ASSERT_EQ(rknnd_submit(context, nullptr, nullptr), RKNN_SUCC);
  ASSERT_EQ(rknnd_wait(context, 0, -1, nullptr, 0), RKNN_SUCC);
  rknnd_run_report report = {};
  ASSERT_EQ(rknnd_last_run(context, &report), RKNN_SUCC);
  EXPECT_EQ(report.frame_id, 2U);
  EXPECT_EQ(report.run_ns, 5000U);
  rknnd_copy_counters copies = {};
  ASSERT_EQ(rknnd_query_copies(context, &copies, sizeof copies), RKNN_SUCC);
  EXPECT_EQ(copies.to_device_conversion, 2 * sizeof values);
}

// ---- RKNN_FLAG_ASYNC_MASK ---------------------------------------------------

TEST_F(RunApiTest, AsyncFlagGivesThePreviousRunsOutputs) {
  const rknn_context context = Init(RKNN_FLAG_ASYNC_MASK);
  std::vector<float> values;
  std::vector<uint64_t> frames;
  for (uint8_t i = 1; i <= 6; ++i) {
    ASSERT_EQ(SetInput(context, i), RKNN_SUCC) << rknnd_last_error();
    rknn_run_extend extend = {};
    ASSERT_EQ(rknn_run(context, &extend), RKNN_SUCC) << rknnd_last_error();
    EXPECT_EQ(extend.frame_id, i);
    uint64_t frame = 0;
    values.push_back(Output(context, &frame));
    frames.push_back(frame);
  }
  // The first call has no run before it.
  EXPECT_THAT(values, ElementsAre(1, 1, 2, 3, 4, 5));
  EXPECT_THAT(frames, ElementsAre(1, 1, 2, 3, 4, 5));
  // The last one's, once the program has waited for it itself.
  ASSERT_EQ(rknn_wait(context, nullptr), RKNN_SUCC);
  uint64_t frame = 0;
  EXPECT_EQ(Output(context, &frame), 6.0F);
  EXPECT_EQ(frame, 6U);
}

TEST_F(RunApiTest, AsyncRunsDoNotWaitAndInputsOfTheNextAreApart) {
  const rknn_context context = Init(RKNN_FLAG_ASYNC_MASK);
  Hold();
  for (uint8_t i = 1; i <= 2; ++i) {
    ASSERT_EQ(SetInput(context, i), RKNN_SUCC);
    ASSERT_EQ(rknn_run(context, nullptr), RKNN_SUCC);
  }
  AwaitRuns(2);
  // Both are computed only now, from what each was given.
  Daemon().Release(2);
  uint64_t frame = 0;
  EXPECT_EQ(Output(context, &frame), 1.0F);
  EXPECT_EQ(frame, 1U);
  ASSERT_EQ(rknn_wait(context, nullptr), RKNN_SUCC);
  EXPECT_EQ(Output(context, &frame), 2.0F);
}

TEST_F(RunApiTest, ThirdAsyncRunWaitsForTheFirst) {
  const rknn_context context = Init(RKNN_FLAG_ASYNC_MASK);
  Hold();
  ASSERT_EQ(SetInput(context, 1), RKNN_SUCC);
  ASSERT_EQ(rknn_run(context, nullptr), RKNN_SUCC);
  ASSERT_EQ(rknn_run(context, nullptr), RKNN_SUCC);
  AwaitRuns(2);
  rknn_run_extend extend = {};
  extend.timeout_ms = 20;
  EXPECT_EQ(rknn_run(context, &extend), RKNN_ERR_TIMEOUT);
  EXPECT_THAT(rknnd_last_error(), HasSubstr("two runs are on their way"));
  Daemon().Release(1);
  extend.timeout_ms = 0;
  EXPECT_EQ(rknn_run(context, &extend), RKNN_SUCC);
  EXPECT_EQ(extend.frame_id, 3U);
  Daemon().Release(2);
}

TEST_F(RunApiTest, AsyncInputsStaySet) {
  const rknn_context context = Init(RKNN_FLAG_ASYNC_MASK);
  ASSERT_EQ(SetInput(context, 5), RKNN_SUCC);
  for (int i = 0; i < 4; ++i) {
    ASSERT_EQ(rknn_run(context, nullptr), RKNN_SUCC);
    EXPECT_EQ(Output(context), 5.0F);
  }
}

TEST_F(RunApiTest, AsyncFlagBlocksWithTheProgramsMemory) {
  const rknn_context context = Init(RKNN_FLAG_ASYNC_MASK);
  ASSERT_EQ(SetInput(context, 3), RKNN_SUCC);
  rknn_tensor_attr attr = {};
  ASSERT_EQ(rknn_query(context, RKNN_QUERY_OUTPUT_ATTR, &attr, sizeof attr),
            RKNN_SUCC);
  rknn_tensor_mem* memory = rknn_create_mem(context, 4 * kFakeElements);
  ASSERT_NE(memory, nullptr);
  attr.type = RKNN_TENSOR_FLOAT32;
  ASSERT_EQ(rknn_set_io_mem(context, memory, &attr), RKNN_SUCC);
  for (uint8_t i = 1; i <= 3; ++i) {
    ASSERT_EQ(SetInput(context, i), RKNN_SUCC);
    ASSERT_EQ(rknn_run(context, nullptr), RKNN_SUCC);
    EXPECT_EQ(static_cast<float*>(memory->virt_addr)[0], i);
  }
  rknn_destroy_mem(context, memory);
}

TEST_F(RunApiTest, MemoryBoundLateTakesTheBanksPlace) {
  const rknn_context context = Init(RKNN_FLAG_ASYNC_MASK);
  Hold();
  for (uint8_t i = 1; i <= 2; ++i) {
    ASSERT_EQ(SetInput(context, i), RKNN_SUCC);
    ASSERT_EQ(rknn_run(context, nullptr), RKNN_SUCC);
  }
  Daemon().set_runs(Runs::kAnswer);
  Daemon().Release(2);
  rknn_tensor_attr attr = {};
  ASSERT_EQ(rknn_query(context, RKNN_QUERY_INPUT_ATTR, &attr, sizeof attr),
            RKNN_SUCC);
  rknn_tensor_mem* memory = rknn_create_mem(context, 4 * kFakeElements);
  ASSERT_NE(memory, nullptr);
  attr.type = RKNN_TENSOR_FLOAT32;
  ASSERT_EQ(rknn_set_io_mem(context, memory, &attr), RKNN_SUCC);
  std::fill_n(static_cast<float*>(memory->virt_addr), kFakeElements, 42.0F);
  ASSERT_EQ(rknn_run(context, nullptr), RKNN_SUCC) << rknnd_last_error();
  EXPECT_EQ(Output(context), 42.0F);
  rknn_destroy_mem(context, memory);
}

TEST_F(RunApiTest, AsyncRunThatFailsIsToldByOutputsGet) {
  const rknn_context context = Init(RKNN_FLAG_ASYNC_MASK);
  ASSERT_EQ(SetInput(context, 1), RKNN_SUCC);
  Daemon().set_runs(Runs::kFail);
  ASSERT_EQ(rknn_run(context, nullptr), RKNN_SUCC);
  EXPECT_EQ(Output(context), -1.0F);
  EXPECT_STREQ(rknnd_last_error(), "rknn_outputs_get: told to fail");
  ASSERT_EQ(rknn_run(context, nullptr), RKNN_SUCC);
}

TEST_F(RunApiTest, SetsAreTheLibrarysWithTheAsyncFlag) {
  const rknn_context context = Ready(RKNN_FLAG_ASYNC_MASK);
  rknnd_run_options options = Options();
  options.set = 1;
  EXPECT_EQ(rknnd_submit(context, &options, nullptr), RKNN_ERR_PARAM_INVALID);
  EXPECT_THAT(rknnd_last_error(), HasSubstr("RKNN_FLAG_ASYNC_MASK"));
}

// ---- fences -----------------------------------------------------------------

TEST_F(RunApiTest, FenceInIsNamedByTheRunAndGivenBack) {
  const rknn_context context = Ready(RKNN_FLAG_FENCE_IN_OUTSIDE);
  const int fence = eventfd(0, EFD_CLOEXEC);
  rknn_run_extend extend = {};
  extend.fence_fd = fence;
  ASSERT_EQ(rknn_run(context, &extend), RKNN_SUCC) << rknnd_last_error();
  EXPECT_NE(Daemon().seen().last_job.fence_in, 0U);
  EXPECT_EQ(extend.fence_fd, fence);
  ASSERT_EQ(rknn_set_core_mask(context, RKNN_NPU_CORE_0), RKNN_SUCC);
  EXPECT_TRUE(Daemon().seen().open_fences.empty());
  close(fence);
}

TEST_F(RunApiTest, FenceInThatIsMissingIsRefused) {
  const rknn_context context = Ready(RKNN_FLAG_FENCE_IN_OUTSIDE);
  EXPECT_EQ(rknn_run(context, nullptr), RKNN_ERR_PARAM_INVALID);
  EXPECT_THAT(rknnd_last_error(), HasSubstr("extend is NULL"));
  rknn_run_extend extend = {};
  extend.fence_fd = -1;
  EXPECT_EQ(rknn_run(context, &extend), RKNN_ERR_PARAM_INVALID);
  EXPECT_THAT(rknnd_last_error(), HasSubstr("extend->fence_fd"));
}

TEST_F(RunApiTest, FenceOutCanBeReadOnceTheRunHasEnded) {
  const rknn_context context = Ready(RKNN_FLAG_FENCE_OUT_OUTSIDE);
  EXPECT_EQ(rknn_run(context, nullptr), RKNN_ERR_PARAM_INVALID);
  Hold();
  rknn_run_extend extend = {};
  extend.fence_fd = -1;
  ASSERT_EQ(rknn_run(context, &extend), RKNN_SUCC) << rknnd_last_error();
  ASSERT_GE(extend.fence_fd, 0);
  AwaitRuns(1);
  EXPECT_FALSE(CanBeRead(extend.fence_fd));
  Daemon().Release(1);
  EXPECT_TRUE(CanBeRead(extend.fence_fd, kPatience));
  EXPECT_EQ(rknn_wait(context, &extend), RKNN_SUCC);
  close(extend.fence_fd);
}

TEST_F(RunApiTest, BothFencesMakeAChain) {
  const rknn_context context =
      Ready(RKNN_FLAG_FENCE_IN_OUTSIDE | RKNN_FLAG_FENCE_OUT_OUTSIDE);
  const int in = eventfd(1, EFD_CLOEXEC);
  rknn_run_extend extend = {};
  extend.fence_fd = in;
  ASSERT_EQ(rknn_run(context, &extend), RKNN_SUCC);
  EXPECT_NE(extend.fence_fd, in);
  const int first = extend.fence_fd;
  ASSERT_EQ(rknn_run(context, &extend), RKNN_SUCC);
  EXPECT_NE(extend.fence_fd, first);
  EXPECT_EQ(rknn_wait(context, nullptr), RKNN_SUCC);
  for (const int fd : {in, first, extend.fence_fd}) close(fd);
}

TEST_F(RunApiTest, FencesThatAreClosedEarlyHarmNobody) {
  const rknn_context context = Ready(RKNN_FLAG_FENCE_OUT_OUTSIDE);
  Hold();
  rknn_run_extend extend = {};
  ASSERT_EQ(rknn_run(context, &extend), RKNN_SUCC);
  close(extend.fence_fd);
  AwaitRuns(1);
  Daemon().Release(1);
  EXPECT_EQ(rknn_wait(context, &extend), RKNN_SUCC);
}

}  // namespace
}  // namespace rknnd::client
