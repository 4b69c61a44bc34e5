// The C API as a program meets it: librknnrt.so itself, against a daemon that
// lives in the test. Models, queries, inputs, outputs and flags.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "base/values/half.h"
#include "client/include/rknn_api.h"
#include "client/include/rknn_custom_op.h"
#include "client/include/rknnd.h"
#include "client/rknnrt/api/api_fixture.h"

namespace rknnd::client {
namespace {

using ::testing::HasSubstr;

TEST_F(ApiTest, HandleIsANonZeroNumberOf32Bits) {
  EXPECT_NE(context_, 0U);
  EXPECT_EQ(static_cast<uint64_t>(context_) >> 32, 0U);
  EXPECT_TRUE(
      Daemon().seen().contexts.contains(static_cast<uint32_t>(context_)));
}

TEST_F(ApiTest, ModelIsLoadedByPathWhenSizeIsZero) {
  std::string path = testing::TempDir() + "api_test.onnx";
  std::ofstream(path) << "a model of its own, in a file";
  rknn_context context = 0;
  EXPECT_EQ(rknn_init(&context, path.data(), 0, 0, nullptr), RKNN_SUCC);
  EXPECT_EQ(Daemon().seen().last_upload_name, "api_test.onnx");
  EXPECT_EQ(rknn_destroy(context), RKNN_SUCC);
  unlink(path.c_str());
}

TEST_F(ApiTest, InitSaysWhatIsWrongWithAModel) {
  rknn_context context = 0;
  char path[] = "/nonexistent.onnx";
  EXPECT_EQ(rknn_init(&context, path, 0, 0, nullptr), RKNN_ERR_MODEL_INVALID);
  EXPECT_THAT(rknnd_last_error(), HasSubstr("rknn_init: open model"));
  char bad[] = "bad model";
  EXPECT_EQ(rknn_init(&context, bad, sizeof bad, 0, nullptr),
            RKNN_ERR_MODEL_INVALID);
  EXPECT_THAT(rknnd_last_error(), HasSubstr("this is no model"));
  EXPECT_EQ(rknn_init(&context, nullptr, 0, 0, nullptr),
            RKNN_ERR_MODEL_INVALID);
  EXPECT_EQ(rknn_init(nullptr, bad, sizeof bad, 0, nullptr),
            RKNN_ERR_PARAM_INVALID);
}

TEST_F(ApiTest, DeadAndInventedHandlesAreRefusedEverywhere) {
  const rknn_context dead = Init();
  ASSERT_EQ(rknn_destroy(dead), RKNN_SUCC);
  for (const rknn_context handle :
       {dead, rknn_context{0}, rknn_context{12345678}}) {
    rknn_sdk_version version;
    rknn_output output = {};
    rknn_input input = {};
    rknn_tensor_mem mem = {};
    rknn_tensor_attr attr = {};
    rknn_context in = handle;
    rknn_context out = 0;
    EXPECT_EQ(
        rknn_query(handle, RKNN_QUERY_SDK_VERSION, &version, sizeof version),
        RKNN_ERR_CTX_INVALID);
    EXPECT_EQ(rknn_run(handle, nullptr), RKNN_ERR_CTX_INVALID);
    EXPECT_EQ(rknn_wait(handle, nullptr), RKNN_ERR_CTX_INVALID);
    EXPECT_EQ(rknn_inputs_set(handle, 1, &input), RKNN_ERR_CTX_INVALID);
    EXPECT_EQ(rknn_outputs_get(handle, 1, &output, nullptr),
              RKNN_ERR_CTX_INVALID);
    EXPECT_EQ(rknn_outputs_release(handle, 1, &output), RKNN_ERR_CTX_INVALID);
    EXPECT_EQ(rknn_set_core_mask(handle, RKNN_NPU_CORE_0),
              RKNN_ERR_CTX_INVALID);
    EXPECT_EQ(rknn_set_io_mem(handle, &mem, &attr), RKNN_ERR_CTX_INVALID);
    EXPECT_EQ(rknn_set_internal_mem(handle, &mem), RKNN_ERR_CTX_INVALID);
    EXPECT_EQ(rknn_set_weight_mem(handle, &mem), RKNN_ERR_CTX_INVALID);
    rknnd_token token;
    EXPECT_EQ(rknnd_model_token(handle, &token), RKNN_ERR_CTX_INVALID);
    EXPECT_EQ(rknn_dup_context(&in, &out), RKNN_ERR_CTX_INVALID);
    EXPECT_EQ(rknn_create_mem(handle, 64), nullptr);
    EXPECT_EQ(rknn_destroy(handle), RKNN_ERR_CTX_INVALID);
  }
}

TEST_F(ApiTest, DuplicateOutlivesItsOriginal) {
  rknn_context copy = 0;
  ASSERT_EQ(rknn_dup_context(&context_, &copy), RKNN_SUCC);
  EXPECT_EQ(rknn_destroy(context_), RKNN_SUCC);
  context_ = copy;
  ASSERT_EQ(SetBytes(), RKNN_SUCC);
  EXPECT_EQ(rknn_run(copy, nullptr), RKNN_SUCC) << rknnd_last_error();
}

TEST_F(ApiTest, QueriesAnswerForTheModel) {
  rknn_input_output_num numbers = {};
  EXPECT_EQ(
      rknn_query(context_, RKNN_QUERY_IN_OUT_NUM, &numbers, sizeof numbers), 0);
  EXPECT_EQ(numbers.n_input, 1U);
  EXPECT_EQ(numbers.n_output, 1U);
  const rknn_tensor_attr input = Query(RKNN_QUERY_INPUT_ATTR);
  EXPECT_STREQ(input.name, "in");
  EXPECT_EQ(input.w_stride, 3U);
  EXPECT_EQ(Query(RKNN_QUERY_OUTPUT_ATTR).fmt, RKNN_TENSOR_NCHW);
  EXPECT_STREQ(Query(RKNN_QUERY_NATIVE_INPUT_ATTR).name, "in");
  EXPECT_STREQ(Query(RKNN_QUERY_NATIVE_NC1HWC2_INPUT_ATTR).name, "in");
  EXPECT_STREQ(Query(RKNN_QUERY_NATIVE_NHWC_INPUT_ATTR).name, "in");
  EXPECT_EQ(Query(RKNN_QUERY_NATIVE_OUTPUT_ATTR).fmt, RKNN_TENSOR_NC1HWC2);
  EXPECT_EQ(Query(RKNN_QUERY_NATIVE_NC1HWC2_OUTPUT_ATTR).fmt,
            RKNN_TENSOR_NC1HWC2);
  EXPECT_EQ(Query(RKNN_QUERY_NATIVE_NHWC_OUTPUT_ATTR).fmt, RKNN_TENSOR_NHWC);
  EXPECT_EQ(Query(RKNN_QUERY_CURRENT_INPUT_ATTR).n_elems, kFakeElements);
  rknn_custom_string text;
  EXPECT_EQ(rknn_query(context_, RKNN_QUERY_CUSTOM_STRING, &text, sizeof text),
            0);
  EXPECT_STREQ(text.string, "fake");
  rknn_sdk_version version;
  EXPECT_EQ(
      rknn_query(context_, RKNN_QUERY_SDK_VERSION, &version, sizeof version),
      0);
  EXPECT_STREQ(version.api_version, "2.3.2 (fake)");
  EXPECT_STREQ(version.drv_version, "0.9.8");
}

TEST_F(ApiTest, StructThatIsTooSmallIsLeftAlone) {
  rknn_tensor_attr attr;
  std::memset(&attr, 0xee, sizeof attr);
  const rknn_tensor_attr before = attr;
  for (const uint32_t size : {0U, 4U, 371U, 373U, 375U}) {
    EXPECT_EQ(rknn_query(context_, RKNN_QUERY_INPUT_ATTR, &attr, size),
              RKNN_ERR_PARAM_INVALID);
    EXPECT_EQ(std::memcmp(&attr, &before, sizeof attr), 0) << size;
  }
}

// Programs built before release 1.3.0, whose attributes end before h_stride:
// what lies behind theirs is neither written nor read.
TEST_F(ApiTest, AttributesOfOlderProgramsAreShorter) {
  constexpr uint32_t kOlder = offsetof(rknn_tensor_attr, h_stride);
  const auto query = [](rknn_context context, rknn_query_cmd what) {
    rknn_tensor_attr attr;
    std::memset(&attr, 0xee, sizeof attr);
    attr.index = 0;
    EXPECT_EQ(rknn_query(context, what, &attr, kOlder), RKNN_SUCC)
        << rknnd_last_error();
    return attr;
  };
  const rknn_tensor_attr known = Query(RKNN_QUERY_INPUT_ATTR);
  rknn_tensor_attr in_attr = query(context_, RKNN_QUERY_INPUT_ATTR);
  EXPECT_EQ(in_attr.n_elems, known.n_elems);
  EXPECT_EQ(in_attr.size_with_stride, known.size_with_stride);
  EXPECT_EQ(in_attr.h_stride, 0xeeeeeeeeU);
  in_attr.type = RKNN_TENSOR_UINT8;
  in_attr.pass_through = 0;
  rknn_context copy = 0;
  ASSERT_EQ(rknn_dup_context(&context_, &copy), RKNN_SUCC);
  for (const rknn_context context : {context_, copy}) {
    rknn_tensor_mem* const in = rknn_create_mem(context, 64);
    ASSERT_NE(in, nullptr);
    EXPECT_EQ(rknn_set_io_mem(context, in, &in_attr), RKNN_SUCC)
        << rknnd_last_error();
    EXPECT_EQ(Daemon().seen().last_bind.h_stride, 0U);
    EXPECT_EQ(rknn_run(context, nullptr), RKNN_SUCC) << rknnd_last_error();
    EXPECT_EQ(rknn_destroy_mem(context, in), RKNN_SUCC);
  }
  EXPECT_EQ(rknn_destroy(copy), RKNN_SUCC);
  // A program of today says so by its next query.
  rknn_tensor_attr today = Query(RKNN_QUERY_INPUT_ATTR);
  today.h_stride = 7;
  rknn_tensor_mem* const in = rknn_create_mem(context_, 64);
  ASSERT_NE(in, nullptr);
  EXPECT_EQ(rknn_set_io_mem(context_, in, &today), RKNN_SUCC);
  EXPECT_EQ(Daemon().seen().last_bind.h_stride, 7U);
  EXPECT_EQ(rknn_destroy_mem(context_, in), RKNN_SUCC);
}

TEST_F(ApiTest, MemorySizesOfOlderProgramsAreTwoWords) {
  rknn_mem_size size;
  std::memset(&size, 0xee, sizeof size);
  EXPECT_EQ(rknn_query(context_, RKNN_QUERY_MEM_SIZE, &size, 8), RKNN_SUCC);
  EXPECT_EQ(size.total_weight_size, 100U);
  EXPECT_EQ(size.total_internal_size, 1U);
  EXPECT_EQ(size.total_dma_allocated_size, 0xeeeeeeeeeeeeeeeeU);
}

TEST_F(ApiTest, IndexBeyondTheModelIsAWrongParameter) {
  rknn_tensor_attr attr = {};
  attr.index = 1;
  EXPECT_EQ(rknn_query(context_, RKNN_QUERY_INPUT_ATTR, &attr, sizeof attr),
            RKNN_ERR_PARAM_INVALID);
}

TEST_F(ApiTest, MemorySizesAreNeverZero) {
  rknn_mem_size size = {};
  ASSERT_EQ(rknn_query(context_, RKNN_QUERY_MEM_SIZE, &size, sizeof size), 0);
  EXPECT_EQ(size.total_weight_size, 100U);
  EXPECT_EQ(size.total_internal_size, 1U);
  EXPECT_EQ(size.total_dma_allocated_size, 4096U);
}

TEST_F(ApiTest, PerfDetailAlwaysHasAText) {
  rknn_perf_detail detail = {};
  ASSERT_EQ(
      rknn_query(context_, RKNN_QUERY_PERF_DETAIL, &detail, sizeof detail), 0);
  EXPECT_STREQ(detail.perf_data, "layers\n");
  EXPECT_EQ(detail.data_len, strlen("layers\n"));
}

TEST_F(ApiTest, KernelsAreToldBeforeARun) {
  const rknnd_kernel* kernels = nullptr;
  uint32_t count = 0;
  ASSERT_EQ(rknnd_query_kernels(context_, &kernels, &count), 0);
  ASSERT_EQ(count, 2U);
  EXPECT_STREQ(kernels[0].kernel, "");
  EXPECT_EQ(kernels[0].is_slow, 0U);
  EXPECT_STREQ(kernels[1].name, "Conv:conv");
  EXPECT_STREQ(kernels[1].kernel, "oneDNN ref:any");
  EXPECT_EQ(kernels[1].is_slow, 1U);
  EXPECT_EQ(rknnd_query_kernels(context_, nullptr, &count),
            RKNN_ERR_PARAM_INVALID);
}

TEST_F(ApiTest, DynamicRangeOfAFixedModelFailsQuietly) {
  auto range = std::make_unique<rknn_input_range>();
  testing::internal::CaptureStderr();
  EXPECT_EQ(rknn_query(context_, RKNN_QUERY_INPUT_DYNAMIC_RANGE, range.get(),
                       sizeof *range),
            RKNN_ERR_MODEL_INVALID);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_STREQ(rknnd_last_error(),
               "rknn_query: the model has one fixed shape, not a list of them: "
               "no error where a program asks to find out; option "
               "'dynamic_input' lists shapes (docs/model-options.md)");
}

TEST_F(ApiTest, ErrorsArePrintedWithTheirFunction) {
  testing::internal::CaptureStderr();
  rknn_run(context_, nullptr);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("rknnd: error: rknn_run: input 'in' has no data"));
}

TEST_F(ApiTest, RunWithoutInputsIsAnInputError) {
  EXPECT_EQ(rknn_run(context_, nullptr), RKNN_ERR_INPUT_INVALID);
}

TEST_F(ApiTest, OutputsBeforeTheFirstRunAreAnError) {
  rknn_output output = {};
  EXPECT_EQ(rknn_outputs_get(context_, 1, &output, nullptr), RKNN_ERR_FAIL);
}

TEST_F(ApiTest, GeneralPathGivesFloats) {
  ASSERT_EQ(SetBytes(), RKNN_SUCC) << rknnd_last_error();
  rknn_run_extend run = {};
  ASSERT_EQ(rknn_run(context_, &run), RKNN_SUCC) << rknnd_last_error();
  rknn_output output = {};
  output.want_float = 1;
  rknn_output_extend extend = {};
  ASSERT_EQ(rknn_outputs_get(context_, 1, &output, &extend), RKNN_SUCC)
      << rknnd_last_error();
  ASSERT_EQ(output.size, kFakeElements * sizeof(float));
  EXPECT_EQ(static_cast<float*>(output.buf)[11], 255.0F);
  EXPECT_EQ(run.frame_id, 1U);
  EXPECT_EQ(extend.frame_id, 1U);
  EXPECT_EQ(rknn_outputs_release(context_, 1, &output), RKNN_SUCC);
  EXPECT_EQ(output.buf, nullptr);
  EXPECT_EQ(rknn_outputs_release(context_, 1, &output), RKNN_SUCC);
}

TEST_F(ApiTest, FloatModelGivesHalvesWhenFloatsAreNotWanted) {
  ASSERT_EQ(SetBytes(), RKNN_SUCC);
  ASSERT_EQ(rknn_run(context_, nullptr), RKNN_SUCC);
  rknn_output output = {};
  ASSERT_EQ(rknn_outputs_get(context_, 1, &output, nullptr), RKNN_SUCC);
  ASSERT_EQ(output.size, kFakeElements * sizeof(base::Half));
  base::Half last = 0;
  std::memcpy(&last, static_cast<char*>(output.buf) + 22, sizeof last);
  EXPECT_EQ(base::HalfToFloat(last), 255.0F);
  rknn_outputs_release(context_, 1, &output);
}

TEST_F(ApiTest, PreallocatedOutputIsFilledAndItsSizeWrittenBack) {
  ASSERT_EQ(SetBytes(), RKNN_SUCC);
  ASSERT_EQ(rknn_run(context_, nullptr), RKNN_SUCC);
  std::vector<float> room(kFakeElements + 8);
  rknn_output output = {};
  output.want_float = 1;
  output.is_prealloc = 1;
  output.buf = room.data();
  output.size = static_cast<uint32_t>(room.size() * sizeof(float));
  ASSERT_EQ(rknn_outputs_get(context_, 1, &output, nullptr), RKNN_SUCC);
  EXPECT_EQ(output.size, kFakeElements * sizeof(float));
  EXPECT_EQ(room[11], 255.0F);
  rknn_outputs_release(context_, 1, &output);
  EXPECT_EQ(output.buf, room.data());
}

TEST_F(ApiTest, PreallocatedOutputThatIsTooSmallIsAnOutputError) {
  ASSERT_EQ(SetBytes(), RKNN_SUCC);
  ASSERT_EQ(rknn_run(context_, nullptr), RKNN_SUCC);
  float room = 0;
  rknn_output output = {};
  output.want_float = 1;
  output.is_prealloc = 1;
  output.buf = &room;
  output.size = sizeof room;
  EXPECT_EQ(rknn_outputs_get(context_, 1, &output, nullptr),
            RKNN_ERR_OUTPUT_INVALID);
}

TEST_F(ApiTest, ReleaseFreesNothingItDidNotMake) {
  ASSERT_EQ(SetBytes(), RKNN_SUCC);
  int own = 7;
  rknn_output output = {};
  output.buf = &own;
  EXPECT_EQ(rknn_outputs_release(context_, 1, &output), RKNN_SUCC);
  EXPECT_EQ(own, 7);
}

TEST_F(ApiTest, ResultsThatWereNotReleasedGoWithTheContext) {
  ASSERT_EQ(SetBytes(), RKNN_SUCC);
  ASSERT_EQ(rknn_run(context_, nullptr), RKNN_SUCC);
  rknn_output output = {};
  ASSERT_EQ(rknn_outputs_get(context_, 1, &output, nullptr), RKNN_SUCC);
  // LeakSanitizer has the last word.
}

TEST_F(ApiTest, InputsStaySetAndAreBoundAgainOnlyWhenTheirFormatChanges) {
  ASSERT_EQ(SetBytes(), RKNN_SUCC);
  ASSERT_EQ(rknn_run(context_, nullptr), RKNN_SUCC);
  ASSERT_EQ(rknn_run(context_, nullptr), RKNN_SUCC);
  const uint64_t binds = Daemon().seen().binds;
  ASSERT_EQ(SetBytes(), RKNN_SUCC);
  EXPECT_EQ(Daemon().seen().binds, binds);
  const float floats[kFakeElements] = {0.5F};
  ASSERT_EQ(SetInput(floats, sizeof floats, RKNN_TENSOR_FLOAT32), RKNN_SUCC);
  EXPECT_EQ(Daemon().seen().binds, binds + 1);
  EXPECT_EQ(Daemon().seen().last_bind.type, RKNN_TENSOR_FLOAT32);
}

TEST_F(ApiTest, WrongInputSizesTypesAndIndicesAreInputErrors) {
  EXPECT_EQ(SetInput(bytes_, sizeof bytes_, RKNN_TENSOR_FLOAT32),
            RKNN_ERR_INPUT_INVALID);
  EXPECT_THAT(rknnd_last_error(), HasSubstr("set type=RKNN_TENSOR_UINT8"));
  EXPECT_EQ(SetInput(bytes_, 5, RKNN_TENSOR_UINT8), RKNN_ERR_INPUT_INVALID);
  EXPECT_EQ(SetInput(bytes_, 12, static_cast<rknn_tensor_type>(77)),
            RKNN_ERR_INPUT_INVALID);
  EXPECT_EQ(SetInput(nullptr, 12, RKNN_TENSOR_UINT8), RKNN_ERR_INPUT_INVALID);
  rknn_input input = {};
  input.index = 9;
  EXPECT_EQ(rknn_inputs_set(context_, 1, &input), RKNN_ERR_INPUT_INVALID);
  EXPECT_EQ(rknn_inputs_set(context_, 2, &input), RKNN_ERR_INPUT_INVALID);
  EXPECT_EQ(rknn_inputs_set(context_, 0, &input), RKNN_ERR_INPUT_INVALID);
  EXPECT_EQ(rknn_inputs_set(context_, 1, nullptr), RKNN_ERR_PARAM_INVALID);
}

TEST_F(ApiTest, PerfRunIsTheTimeOnTheCore) {
  rknn_perf_run run = {};
  ASSERT_EQ(rknn_query(context_, RKNN_QUERY_PERF_RUN, &run, sizeof run), 0);
  EXPECT_EQ(run.run_duration, 0);
  ASSERT_EQ(SetBytes(), RKNN_SUCC);
  ASSERT_EQ(rknn_run(context_, nullptr), RKNN_SUCC);
  ASSERT_EQ(rknn_query(context_, RKNN_QUERY_PERF_RUN, &run, sizeof run), 0);
  EXPECT_EQ(run.run_duration, 5);
  rknnd_run_report report = {};
  ASSERT_EQ(rknnd_last_run(context_, &report), RKNN_SUCC);
  EXPECT_EQ(report.total_ns, 7000U);
}

TEST_F(ApiTest, FailedRunHasTheDaemonsReason) {
  ASSERT_EQ(SetBytes(), RKNN_SUCC);
  Daemon().set_runs(FakeDaemon::Runs::kFail);
  EXPECT_EQ(rknn_run(context_, nullptr), RKNN_ERR_FAIL);
  EXPECT_STREQ(rknnd_last_error(), "rknn_run: told to fail");
}

TEST_F(ApiTest, TokenMakesAContextWithTheSameModelAndFlags) {
  const rknn_context original =
      Init(RKNN_FLAG_INTERNAL_ALLOC_OUTSIDE | RKNN_FLAG_PRIOR_LOW);
  rknnd_token token;
  ASSERT_EQ(rknnd_model_token(original, &token), RKNN_SUCC);
  const uint64_t uploads = Daemon().seen().uploads;
  rknn_context made = 0;
  ASSERT_EQ(rknnd_init_from_token(&made, &token), RKNN_SUCC);
  EXPECT_EQ(Daemon().seen().last_flags,
            RKNN_FLAG_INTERNAL_ALLOC_OUTSIDE | RKNN_FLAG_PRIOR_LOW);
  EXPECT_EQ(Daemon().seen().uploads, uploads);
  EXPECT_EQ(rknn_destroy(made), RKNN_SUCC);
  EXPECT_EQ(rknn_destroy(original), RKNN_SUCC);
  EXPECT_EQ(rknnd_init_from_token(nullptr, &token), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(rknnd_init_from_token(&made, nullptr), RKNN_ERR_PARAM_INVALID);
  // All of it used, and no end.
  std::memset(token.text, 'a', sizeof token.text);
  EXPECT_EQ(rknnd_init_from_token(&made, &token), RKNN_ERR_PARAM_INVALID);
}

TEST_F(ApiTest, CoreMasksOfTheHeaderAreTakenAndOthersNot) {
  for (const rknn_core_mask mask :
       {RKNN_NPU_CORE_0, RKNN_NPU_CORE_1, RKNN_NPU_CORE_2, RKNN_NPU_CORE_0_1,
        RKNN_NPU_CORE_0_1_2, RKNN_NPU_CORE_ALL, RKNN_NPU_CORE_AUTO}) {
    EXPECT_EQ(rknn_set_core_mask(context_, mask), RKNN_SUCC) << mask;
    EXPECT_EQ(Daemon().seen().core_masks.at(static_cast<uint32_t>(context_)),
              mask);
  }
  EXPECT_EQ(rknn_set_core_mask(context_, static_cast<rknn_core_mask>(5)),
            RKNN_ERR_PARAM_INVALID);
}

// Each is the daemon's to know; some ask for nothing that it does not do
// anyway.
TEST_F(ApiTest, FlagsOfTheHeaderAreHandedOn) {
  for (const uint32_t flag :
       {RKNN_FLAG_PRIOR_HIGH, RKNN_FLAG_PRIOR_MEDIUM, RKNN_FLAG_PRIOR_LOW,
        RKNN_FLAG_COLLECT_PERF_MASK, RKNN_FLAG_ENABLE_SRAM,
        RKNN_FLAG_EXECUTE_FALLBACK_PRIOR_DEVICE_GPU,
        RKNN_FLAG_DISABLE_PROC_HIGH_PRIORITY,
        RKNN_FLAG_DISABLE_FLUSH_INPUT_MEM_CACHE,
        RKNN_FLAG_DISABLE_FLUSH_OUTPUT_MEM_CACHE}) {
    const rknn_context context = Init(flag);
    EXPECT_EQ(Daemon().seen().last_flags, flag);
    EXPECT_EQ(rknn_destroy(context), RKNN_SUCC);
  }
}

TEST_F(ApiTest, InfoOnlyContextDoesNotRun) {
  const rknn_context info = Init(RKNN_FLAG_COLLECT_MODEL_INFO_ONLY);
  EXPECT_LT(rknn_run(info, nullptr), 0);
  EXPECT_THAT(rknnd_last_error(), HasSubstr("COLLECT_MODEL_INFO_ONLY"));
  rknn_destroy(info);
}

TEST_F(ApiTest, CustomOperatorsThatAreNoneAreRefused) {
  EXPECT_LT(rknn_register_custom_ops(context_, nullptr, 0), 0);
  rknn_custom_op_attr attr;
  attr.n_elems = 3;
  rknn_custom_op_get_op_attr(nullptr, "axis", &attr);
  EXPECT_EQ(attr.n_elems, 0U);
  EXPECT_EQ(attr.data, nullptr);
}

}  // namespace
}  // namespace rknnd::client
