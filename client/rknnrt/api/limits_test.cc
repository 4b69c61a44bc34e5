// What the C API refuses where the SoC's runtime lacks it, as on an RV1106.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "client/include/rknn_api.h"
#include "client/include/rknnd.h"
#include "client/session/fake_daemon.h"

namespace rknnd::client {
namespace {

using ::testing::HasSubstr;

constexpr uint32_t kSmallSoc = rknnd_v1_DeviceLimit_LIMIT_ZERO_COPY_ONLY |
                               rknnd_v1_DeviceLimit_LIMIT_NO_FLOAT32_OUTPUTS |
                               rknnd_v1_DeviceLimit_LIMIT_NO_LAYER_TIMES |
                               rknnd_v1_DeviceLimit_LIMIT_NO_DUP_CONTEXT |
                               rknnd_v1_DeviceLimit_LIMIT_NO_CORE_MASK;

FakeDaemon& Daemon() {
  static FakeDaemon& daemon = *new FakeDaemon(
      testing::TempDir() + "limits_test." + std::to_string(getpid()) + ".sock");
  return daemon;
}

class LimitsTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): before the library is used
    setenv("RKNND_TARGET", ("unix:" + Daemon().path()).c_str(), 1);
    Daemon().set_limits(kSmallSoc);
  }
  static void TearDownTestSuite() { Daemon().Stop(); }

  void SetUp() override {
    char model[] = "network";
    ASSERT_EQ(rknn_init(&context_, model, sizeof model, 0, nullptr), RKNN_SUCC)
        << rknnd_last_error();
  }
  void TearDown() override {
    if (input_ != nullptr) rknn_destroy_mem(context_, input_);
    if (output_ != nullptr) rknn_destroy_mem(context_, output_);
    if (context_ != 0) rknn_destroy(context_);
  }

  rknn_tensor_mem* Allocate(const rknn_tensor_attr& attr) {
    return rknn_create_mem(
        context_, 2 * std::max(attr.size_with_stride, 4 * attr.n_elems));
  }
  int BindInput() {
    rknn_tensor_attr attr = Attr(RKNN_QUERY_INPUT_ATTR);
    input_ = Allocate(attr);
    return rknn_set_io_mem(context_, input_, &attr);
  }
  int BindOutput(rknn_tensor_type type) {
    rknn_tensor_attr attr = Attr(RKNN_QUERY_OUTPUT_ATTR);
    attr.type = type;
    if (output_ == nullptr) output_ = Allocate(attr);
    return rknn_set_io_mem(context_, output_, &attr);
  }
  rknn_tensor_attr Attr(rknn_query_cmd which) {
    rknn_tensor_attr attr = {};
    EXPECT_EQ(rknn_query(context_, which, &attr, sizeof attr), RKNN_SUCC);
    return attr;
  }

  rknn_context context_ = 0;
  rknn_tensor_mem* input_ = nullptr;
  rknn_tensor_mem* output_ = nullptr;
};

TEST_F(LimitsTest, InputsCanOnlyBeBound) {
  uint8_t bytes[kFakeElements] = {};
  rknn_input input = {};
  input.buf = bytes;
  input.size = sizeof bytes;
  input.type = RKNN_TENSOR_UINT8;
  input.fmt = RKNN_TENSOR_NHWC;
  EXPECT_LT(rknn_inputs_set(context_, 1, &input), 0);
  EXPECT_THAT(rknnd_last_error(), HasSubstr("supports rknn_set_io_mem only"));
}

TEST_F(LimitsTest, OutputsCanOnlyBeBound) {
  rknn_output output = {};
  output.want_float = 1;
  EXPECT_LT(rknn_outputs_get(context_, 1, &output, nullptr), 0);
  EXPECT_THAT(rknnd_last_error(), HasSubstr("supports rknn_set_io_mem only"));
}

TEST_F(LimitsTest, RunningWithoutMemoryForTheOutputsSaysWhatIsMissing) {
  ASSERT_EQ(BindInput(), RKNN_SUCC) << rknnd_last_error();
  EXPECT_LT(rknn_run(context_, nullptr), 0);
  EXPECT_THAT(rknnd_last_error(), HasSubstr("supports rknn_set_io_mem only"));
}

TEST_F(LimitsTest, BoundToMemoryOnAllSidesAModelRuns) {
  ASSERT_EQ(BindInput(), RKNN_SUCC) << rknnd_last_error();
  ASSERT_EQ(BindOutput(RKNN_TENSOR_FLOAT16), RKNN_SUCC) << rknnd_last_error();
  EXPECT_EQ(rknn_run(context_, nullptr), RKNN_SUCC) << rknnd_last_error();
}

TEST_F(LimitsTest, OutputsAreNeverFloat32) {
  EXPECT_LT(BindOutput(RKNN_TENSOR_FLOAT32), 0);
  EXPECT_THAT(rknnd_last_error(), HasSubstr("has no float32 outputs"));
  EXPECT_EQ(BindOutput(RKNN_TENSOR_FLOAT16), RKNN_SUCC) << rknnd_last_error();
}

TEST_F(LimitsTest, LayersHaveNoTimes) {
  rknn_perf_detail detail = {};
  EXPECT_EQ(
      rknn_query(context_, RKNN_QUERY_PERF_DETAIL, &detail, sizeof detail),
      RKNN_SUCC);
  EXPECT_EQ(detail.data_len, 0U);
  EXPECT_STREQ(detail.perf_data, "");
}

TEST_F(LimitsTest, ContextsAreNotDuplicated) {
  rknn_context copy = 0;
  EXPECT_LT(rknn_dup_context(&context_, &copy), 0);
  EXPECT_EQ(copy, 0U);
  EXPECT_THAT(rknnd_last_error(),
              HasSubstr("has no rknn_dup_context: call rknn_init again"));
}

}  // namespace
}  // namespace rknnd::client
