/* What programs written for the vendor's library take for granted, asked in
 * their way: C99, rknn_api.h and libc.
 *
 *   vendor_style MODEL
 *
 * MODEL has one 1x3xHxW float input and, first, a 4-D float output. Each line
 * printed is a broken expectation; exits with 0 when there is none, with 2 when
 * a call failed that never fails. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rknn_api.h"
#include "tests/integration/programs/expect.h"

static rknn_tensor_attr attribute(rknn_context context, rknn_query_cmd what,
                                  uint32_t index) {
  rknn_tensor_attr attr;
  /* Programs do not always clear what they pass. */
  memset(&attr, 0xff, sizeof attr);
  attr.index = index;
  MUST(rknn_query(context, what, &attr, sizeof attr));
  return attr;
}

static void check_input(rknn_context context) {
  rknn_tensor_attr in = attribute(context, RKNN_QUERY_INPUT_ATTR, 0);
  uint32_t i;
  EXPECT(in.index == 0);
  EXPECT(in.n_dims == 4);
  EXPECT(in.fmt == RKNN_TENSOR_NHWC);
  EXPECT(in.dims[0] == 1);
  EXPECT(in.dims[3] == 3);
  for (i = in.n_dims; i < RKNN_MAX_DIMS; ++i) EXPECT(in.dims[i] == 0);
  EXPECT(in.n_elems == in.dims[1] * in.dims[2] * 3);
  EXPECT(in.type == RKNN_TENSOR_FLOAT16);
  EXPECT(in.size == in.n_elems * 2);
  EXPECT(in.size_with_stride >= in.size);
  /* Compared with the width before rows are copied. */
  EXPECT(in.w_stride == in.dims[2]);
  EXPECT(in.qnt_type == RKNN_TENSOR_QNT_AFFINE_ASYMMETRIC);
  EXPECT(in.zp == 0);
  EXPECT(in.scale == 1.0f);
  EXPECT(memchr(in.name, 0, sizeof in.name) != NULL);
  EXPECT(strcmp(get_format_string(in.fmt), "NHWC") == 0);
  EXPECT(strcmp(get_type_string(in.type), "FP16") == 0);
  EXPECT(strcmp(get_qnt_type_string(in.qnt_type), "AFFINE") == 0);
}

static void check_output(rknn_context context) {
  rknn_tensor_attr out = attribute(context, RKNN_QUERY_OUTPUT_ATTR, 0);
  rknn_tensor_attr native =
      attribute(context, RKNN_QUERY_NATIVE_OUTPUT_ATTR, 0);
  EXPECT(out.n_dims == 4);
  EXPECT(out.fmt == RKNN_TENSOR_NCHW);
  EXPECT(out.type == RKNN_TENSOR_FLOAT16);
  EXPECT(out.w_stride == 0);
  EXPECT(out.n_elems == out.dims[0] * out.dims[1] * out.dims[2] * out.dims[3]);
  EXPECT(out.size == out.n_elems * 2);
  EXPECT(out.size_with_stride >= out.size);
  /* Channels in blocks of eight halves on an RK3588. */
  EXPECT(native.fmt == RKNN_TENSOR_NC1HWC2);
  EXPECT(native.n_dims == 5);
  EXPECT(native.dims[4] == 8);
  EXPECT(native.dims[1] == (out.dims[1] + 7) / 8);
  EXPECT(native.size == 2 * native.dims[0] * native.dims[1] * native.dims[2] *
                            native.dims[3] * native.dims[4]);
}

static void check_queries(rknn_context context) {
  static rknn_input_range range;
  rknn_input_output_num number;
  rknn_sdk_version version;
  rknn_mem_size size;
  rknn_custom_string custom;
  rknn_tensor_attr attr;
  unsigned major, minor, patch;
  memset(&attr, 0, sizeof attr);
  memset(&range, 0, sizeof range);
  memset(&size, 0xff, sizeof size);
  memset(&custom, 0xff, sizeof custom);
  memset(&version, 0xff, sizeof version);
  MUST(rknn_query(context, RKNN_QUERY_IN_OUT_NUM, &number, sizeof number));
  EXPECT(number.n_input == 1);
  EXPECT(number.n_output >= 1);
  MUST(rknn_query(context, RKNN_QUERY_SDK_VERSION, &version, sizeof version));
  EXPECT(sscanf(version.api_version, "%u.%u.%u (", &major, &minor, &patch) ==
         3);
  EXPECT(memchr(version.drv_version, 0, sizeof version.drv_version) != NULL);
  EXPECT(version.drv_version[0] >= '0' && version.drv_version[0] <= '9');
  MUST(rknn_query(context, RKNN_QUERY_MEM_SIZE, &size, sizeof size));
  EXPECT(size.total_weight_size >= 1);
  EXPECT(size.total_internal_size >= 1);
  EXPECT(size.total_dma_allocated_size >= size.total_weight_size);
  EXPECT(size.free_sram_size <= size.total_sram_size);
  MUST(rknn_query(context, RKNN_QUERY_CUSTOM_STRING, &custom, sizeof custom));
  EXPECT(custom.string[0] == 0);
  /* How programs learn that a model has one shape. */
  EXPECT(rknn_query(context, RKNN_QUERY_INPUT_DYNAMIC_RANGE, &range,
                    sizeof range) != RKNN_SUCC);
  /* A struct of no header there was: nothing is written. */
  EXPECT(rknn_query(context, RKNN_QUERY_INPUT_ATTR, &attr, 370) ==
         RKNN_ERR_PARAM_INVALID);
  EXPECT(attr.n_elems == 0);
  attr.index = 1;
  EXPECT(rknn_query(context, RKNN_QUERY_INPUT_ATTR, &attr, sizeof attr) ==
         RKNN_ERR_PARAM_INVALID);
  EXPECT(rknn_query(0, RKNN_QUERY_SDK_VERSION, &version, sizeof version) ==
         RKNN_ERR_CTX_INVALID);
}

/* The report that programs print after a run, whatever they asked for. */
static void check_perf(rknn_context context) {
  rknn_perf_run run;
  rknn_perf_detail detail;
  memset(&detail, 0, sizeof detail);
  run.run_duration = -1;
  MUST(rknn_query(context, RKNN_QUERY_PERF_RUN, &run, sizeof run));
  EXPECT(run.run_duration >= 0);
  MUST(rknn_query(context, RKNN_QUERY_PERF_DETAIL, &detail, sizeof detail));
  EXPECT(detail.perf_data != NULL);
  EXPECT(detail.perf_data != NULL &&
         strlen(detail.perf_data) == detail.data_len);
  EXPECT(detail.data_len > 0);
}

/* Runs on pixels and gives the first output as floats. */
static float* infer(rknn_context context, uint32_t* count) {
  rknn_tensor_attr in = attribute(context, RKNN_QUERY_INPUT_ATTR, 0);
  rknn_input_output_num number;
  rknn_output outputs[8];
  rknn_input input;
  uint8_t* pixels = malloc(in.n_elems);
  float* result;
  uint32_t i;
  MUST(rknn_query(context, RKNN_QUERY_IN_OUT_NUM, &number, sizeof number));
  if (pixels == NULL || number.n_output > 8) exit(2);
  for (i = 0; i < in.n_elems; ++i) pixels[i] = (uint8_t)(i % 251);
  memset(&input, 0, sizeof input);
  input.type = RKNN_TENSOR_UINT8;
  input.fmt = RKNN_TENSOR_NHWC;
  input.size = in.n_elems;
  input.buf = pixels;
  MUST(rknn_inputs_set(context, 1, &input));
  free(pixels);
  MUST(rknn_run(context, NULL));
  EXPECT(rknn_wait(context, NULL) == RKNN_SUCC);
  memset(outputs, 0, sizeof outputs);
  for (i = 0; i < number.n_output; ++i) {
    /* index stays 0: some programs read by position */
    outputs[i].want_float = 1;
  }
  /* Some release before the first get. */
  EXPECT(rknn_outputs_release(context, number.n_output, outputs) == RKNN_SUCC);
  MUST(rknn_outputs_get(context, number.n_output, outputs, NULL));
  *count = outputs[0].size / 4;
  result = malloc(outputs[0].size);
  if (result == NULL) exit(2);
  memcpy(result, outputs[0].buf, outputs[0].size);
  EXPECT(rknn_outputs_release(context, number.n_output, outputs) == RKNN_SUCC);
  EXPECT(outputs[0].buf == NULL);
  EXPECT(rknn_outputs_release(context, number.n_output, outputs) == RKNN_SUCC);
  return result;
}

/* A duplicate is a whole context, also without its original. */
static void check_duplicate(rknn_context context) {
  rknn_context copy = 0;
  uint32_t before_count = 0, after_count = 0;
  float* before = infer(context, &before_count);
  float* after;
  MUST(rknn_dup_context(&context, &copy));
  EXPECT(copy != 0);
  EXPECT(copy != context);
  MUST(rknn_destroy(context));
  EXPECT(rknn_run(context, NULL) == RKNN_ERR_CTX_INVALID);
  MUST(rknn_set_core_mask(copy, RKNN_NPU_CORE_1));
  after = infer(copy, &after_count);
  EXPECT(before_count == after_count);
  EXPECT(before_count != 0);
  EXPECT(memcmp(before, after, before_count * sizeof *before) == 0);
  MUST(rknn_destroy(copy));
  EXPECT(rknn_destroy(copy) == RKNN_ERR_CTX_INVALID);
  free(before);
  free(after);
}

/* Sizes first, then the real thing. */
static void check_info_only(char* model) {
  rknn_context context = 0;
  rknn_mem_size size;
  MUST(rknn_init(&context, model, 0, RKNN_FLAG_COLLECT_MODEL_INFO_ONLY, NULL));
  MUST(rknn_query(context, RKNN_QUERY_MEM_SIZE, &size, sizeof size));
  EXPECT(rknn_run(context, NULL) != RKNN_SUCC);
  MUST(rknn_destroy(context));
}

static void check_perf_flag(char* model) {
  rknn_context context = 0;
  uint32_t count = 0;
  rknn_perf_detail detail;
  MUST(rknn_init(&context, model, 0, RKNN_FLAG_COLLECT_PERF_MASK, NULL));
  free(infer(context, &count));
  MUST(rknn_query(context, RKNN_QUERY_PERF_DETAIL, &detail, sizeof detail));
  EXPECT(strstr(detail.perf_data, "Conv") != NULL);
  MUST(rknn_destroy(context));
}

static void check_memory(rknn_context context) {
  rknn_tensor_mem* mem = rknn_create_mem(context, 1000);
  rknn_tensor_mem* again;
  if (mem == NULL) exit(2);
  EXPECT(mem->size == 1000);
  EXPECT(mem->offset == 0);
  EXPECT(mem->fd > 0);
  EXPECT(mem->virt_addr != NULL);
  memset(mem->virt_addr, 7, mem->size);
  /* Imported by its fd, and used after its maker is gone. */
  again = rknn_create_mem_from_fd(context, mem->fd, mem->virt_addr, 500, 100);
  if (again == NULL) exit(2);
  EXPECT(again->offset == 100);
  EXPECT(again->size == 500);
  EXPECT(rknn_destroy_mem(context, again) == RKNN_SUCC);
  EXPECT(rknn_destroy_mem(context, mem) == RKNN_SUCC);
  mem = rknn_create_mem2(0, 4096, RKNN_MEM_FLAG_ALLOC_NO_CONTEXT);
  EXPECT(mem != NULL);
  EXPECT(rknn_destroy_mem(0, mem) == RKNN_SUCC);
}

int main(int argc, char** argv) {
  rknn_context context;
  uint32_t count = 0;
  if (argc != 2) return 2;
  check_info_only(argv[1]);
  check_perf_flag(argv[1]);
  memset(&context, 0xff, sizeof context); /* written only */
  MUST(rknn_init(&context, argv[1], 0, 0, NULL));
  check_input(context);
  check_output(context);
  check_queries(context);
  check_memory(context);
  free(infer(context, &count));
  check_perf(context);
  check_duplicate(context);
  return faults == 0 ? 0 : 1;
}
