// Runs that are submitted: rknnd_submit, rknnd_wait, rknnd_cancel, and the sets
// of bindings they name.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "client/rknnrt/api/run_api_fixture.h"

namespace rknnd::client {
namespace {

using ::testing::HasSubstr;

class SubmitApiTest : public RunApiFixture {};

TEST_F(SubmitApiTest, SubmittedRunsAreWaitedForOldestFirst) {
  const rknn_context context = Ready();
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(rknnd_submit(context, nullptr, nullptr), RKNN_SUCC);
  }
  for (uint64_t i = 1; i <= 3; ++i) {
    rknnd_completion completion;
    ASSERT_EQ(rknnd_wait(context, 0, -1, &completion, sizeof completion),
              RKNN_SUCC);
    EXPECT_EQ(completion.frame_id, i);
    EXPECT_EQ(completion.context, context);
    EXPECT_EQ(completion.queue_ns, 1000U);
    EXPECT_EQ(completion.run_ns, 5000U);
    EXPECT_EQ(completion.total_ns, 7000U);
    EXPECT_EQ(completion.core, 1U);
  }
  EXPECT_EQ(rknnd_wait(context, 0, -1, nullptr, 0), RKNND_ERR_EMPTY);
  EXPECT_EQ(rknnd_wait(context, 3, -1, nullptr, 0), RKNN_ERR_PARAM_INVALID);
}

TEST_F(SubmitApiTest, WaitLooksAndGivesUpInTime) {
  const rknn_context context = Ready();
  Hold();
  rknnd_run_options options = Options();
  options.frame_id = 4711;
  uint64_t frame = 0;
  ASSERT_EQ(rknnd_submit(context, &options, &frame), RKNN_SUCC);
  EXPECT_EQ(frame, 4711U);
  rknnd_completion completion;
  EXPECT_EQ(rknnd_wait(context, frame, 0, &completion, sizeof completion),
            RKNN_ERR_TIMEOUT);
  EXPECT_EQ(completion.frame_id, 0U);
  EXPECT_EQ(rknnd_wait(context, frame, 10, nullptr, 0), RKNN_ERR_TIMEOUT);
  AwaitRuns(1);
  Daemon().Release(1);
  EXPECT_EQ(rknnd_wait(context, frame, -1, nullptr, 0), RKNN_SUCC);
}

TEST_F(SubmitApiTest, CancelledRunsSaySo) {
  const rknn_context context = Ready();
  Hold();
  ASSERT_EQ(rknnd_submit(context, nullptr, nullptr), RKNN_SUCC);
  ASSERT_EQ(rknnd_submit(context, nullptr, nullptr), RKNN_SUCC);
  uint32_t cancelled = 99;
  ASSERT_EQ(rknnd_cancel(context, 2, &cancelled), RKNN_SUCC);
  EXPECT_EQ(cancelled, 1U);
  rknnd_completion completion;
  EXPECT_EQ(rknnd_wait(context, 2, -1, &completion, sizeof completion),
            RKNND_ERR_CANCELLED);
  EXPECT_EQ(completion.code, RKNND_ERR_CANCELLED);
  ASSERT_EQ(rknnd_cancel(context, 0, nullptr), RKNN_SUCC);
  EXPECT_EQ(rknnd_wait(context, 1, -1, nullptr, 0), RKNND_ERR_CANCELLED);
  EXPECT_EQ(rknnd_cancel(12345, 0, &cancelled), RKNN_ERR_CTX_INVALID);
}

TEST_F(SubmitApiTest, DestroyEndsWhatIsOnItsWay) {
  const rknn_context context = Ready();
  Hold();
  ASSERT_EQ(rknnd_submit(context, nullptr, nullptr), RKNN_SUCC);
  rknnd_run_options options = Queued(this);
  ASSERT_EQ(rknnd_submit(context, &options, nullptr), RKNN_SUCC);
  AwaitRuns(2);
  ASSERT_EQ(rknn_destroy(context), RKNN_SUCC);
  contexts_.clear();
  rknnd_completion completion;
  ASSERT_TRUE(Next(&completion));
  EXPECT_EQ(completion.code, RKNND_ERR_CANCELLED);
  EXPECT_EQ(completion.context, context);
  EXPECT_EQ(completion.user, this);
  EXPECT_EQ(rknnd_wait(context, 1, 0, nullptr, 0), RKNN_ERR_CTX_INVALID);
}

TEST_F(SubmitApiTest, SetsOfBindingsKeepFramesApart) {
  const rknn_context context = Ready();
  rknn_tensor_attr attr = {};
  ASSERT_EQ(rknn_query(context, RKNN_QUERY_INPUT_ATTR, &attr, sizeof attr),
            RKNN_SUCC);
  attr.type = RKNN_TENSOR_FLOAT32;
  rknn_tensor_attr out = {};
  ASSERT_EQ(rknn_query(context, RKNN_QUERY_OUTPUT_ATTR, &out, sizeof out),
            RKNN_SUCC);
  out.type = RKNN_TENSOR_FLOAT32;
  std::vector<rknn_tensor_mem*> memories;
  for (uint32_t set = 0; set < 3; ++set) {
    for (rknn_tensor_attr* side : {&attr, &out}) {
      rknn_tensor_mem* memory = rknn_create_mem(context, 4 * kFakeElements);
      ASSERT_NE(memory, nullptr);
      memories.push_back(memory);
      ASSERT_EQ(rknnd_set_io_mem(context, set, memory, side), RKNN_SUCC)
          << rknnd_last_error();
    }
    *static_cast<float*>(memories[2 * set]->virt_addr) =
        static_cast<float>(set + 10);
  }
  rknnd_run_options options = Options();
  for (options.set = 0; options.set < 3; ++options.set) {
    ASSERT_EQ(rknnd_submit(context, &options, nullptr), RKNN_SUCC);
  }
  for (uint32_t set = 0; set < 3; ++set) {
    rknnd_completion completion;
    ASSERT_EQ(rknnd_wait(context, 0, -1, &completion, sizeof completion),
              RKNN_SUCC);
    EXPECT_EQ(completion.set, set);
    EXPECT_EQ(*static_cast<float*>(memories[2 * set + 1]->virt_addr),
              static_cast<float>(set + 10));
  }
  EXPECT_EQ(rknnd_set_io_mem(context, RKNND_SETS, memories[0], &attr),
            RKNN_ERR_PARAM_INVALID);
  EXPECT_THAT(rknnd_last_error(), HasSubstr("set 8 does not exist"));
  for (rknn_tensor_mem* memory : memories) rknn_destroy_mem(context, memory);
}

TEST_F(SubmitApiTest, RunsKeepWhatWasBoundWhenTheyWereSubmitted) {
  const rknn_context context = Ready();
  Hold();
  ASSERT_EQ(rknnd_submit(context, nullptr, nullptr), RKNN_SUCC);
  // The daemon has taken the entry when it hears of the next request.
  ASSERT_EQ(rknn_set_core_mask(context, RKNN_NPU_CORE_1), RKNN_SUCC);
  EXPECT_EQ(Daemon().seen().runs, base_ + 1);
}

TEST_F(SubmitApiTest, WrongOptionsAreRefusedInWords) {
  const rknn_context context = Ready();
  const auto refused = [&](rknnd_run_options options, const char* why) {
    EXPECT_EQ(rknnd_submit(context, &options, nullptr), RKNN_ERR_PARAM_INVALID);
    EXPECT_THAT(rknnd_last_error(), HasSubstr(why));
  };
  rknnd_run_options options = {};
  refused(options, "size is 0, not sizeof(rknnd_run_options)");
  options = Options();
  options.size = 1U << 30;
  refused(options, "size is 1073741824");
  options = Options();
  options.flags = 8;
  refused(options, "flags 8 has bits");
  options = Options();
  options.flags = RKNND_RUN_SHARED;
  refused(options, "RKNND_RUN_SHARED needs the frame_id");
  options = Options();
  options.reserved[3] = 1;
  refused(options, "reserved is not 0");
  options = Options();
  options.timeout_ms = -5;
  refused(options, "timeout_ms -5 is negative");
  options = Options();
  options.set = RKNND_SETS;
  refused(options, "set 8 does not exist");
  options = Options();
  options.use_fence_in = 1;
  options.fence_in = -1;
  refused(options, "fence_in -1 is no descriptor");
  options.fence_in = 1000000;
  EXPECT_LT(rknnd_submit(context, &options, nullptr), 0);
  options = Options();
  options.queue = 99;
  refused(options, "queue 99 does not exist");
  options = Options();
  options.callback = [](const rknnd_completion*) {};
  refused(options, "a callback needs a queue");
  EXPECT_EQ(rknnd_submit(context, nullptr, nullptr), RKNN_SUCC);
}

TEST_F(SubmitApiTest, ShorterAndLongerStructsWork) {
  const rknn_context context = Ready();
  rknnd_run_options options = Options();
  options.frame_id = 31;
  options.size = 16;  // flags and frame_id
  options.set = 77;   // not its own
  uint64_t frame = 0;
  ASSERT_EQ(rknnd_submit(context, &options, &frame), RKNN_SUCC)
      << rknnd_last_error();
  EXPECT_EQ(frame, 31U);
  struct Longer {
    rknnd_run_options known;
    uint64_t more[4];
  } longer = {};
  longer.known.size = sizeof longer;
  ASSERT_EQ(rknnd_submit(context, &longer.known, nullptr), RKNN_SUCC);
  longer.more[2] = 1;
  EXPECT_EQ(rknnd_submit(context, &longer.known, nullptr),
            RKNN_ERR_PARAM_INVALID);
  EXPECT_THAT(rknnd_last_error(), HasSubstr("newer rknnd.h"));
  rknnd_completion completion;
  std::memset(&completion, 0x5a, sizeof completion);
  ASSERT_EQ(rknnd_wait(context, 31, -1, &completion, 16), RKNN_SUCC);
  EXPECT_EQ(completion.frame_id, 31U);
  EXPECT_EQ(completion.code, 0x5a5a5a5a);
}

TEST_F(SubmitApiTest, RunThatWasNeverMadeRunnableIsRefusedAtSubmission) {
  const rknn_context context = Init();
  EXPECT_EQ(rknnd_submit(context, nullptr, nullptr), RKNN_ERR_INPUT_INVALID);
  EXPECT_THAT(rknnd_last_error(), HasSubstr("'in' has no data"));
  EXPECT_EQ(rknnd_wait(context, 0, 0, nullptr, 0), RKNND_ERR_EMPTY);
}

}  // namespace
}  // namespace rknnd::client
