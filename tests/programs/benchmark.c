/* A benchmark loop: prints versions, attributes, the time of each run and of
 * all of them, and the best five values.
 *
 *   benchmark MODEL [LOOPS [CORE_MASK]] */

#include <time.h>

#include "tests/programs/sample.h"

static double now_us(void) {
  struct timespec time;
  timespec_get(&time, TIME_UTC);
  return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

static void print_best(const float* values, uint32_t count) {
  uint32_t best[5];
  uint32_t n = 0, i, at;
  for (i = 0; i < count; ++i) {
    for (at = n; at > 0 && values[best[at - 1]] < values[i]; --at) {
      if (at < 5) best[at] = best[at - 1];
    }
    if (at < 5) best[at] = i;
    if (n < 5) ++n;
  }
  for (i = 0; i < n; ++i) {
    printf("  %u: %f\n", best[i], (double)values[best[i]]);
  }
}

int main(int argc, char** argv) {
  const int loops = argc > 2 ? atoi(argv[2]) : 10;
  rknn_context ctx = 0;
  rknn_sdk_version version;
  rknn_input_output_num num;
  rknn_mem_size memory;
  rknn_perf_detail detail;
  rknn_input* inputs;
  rknn_output* outputs;
  float** first;
  double total = 0;
  uint32_t i;
  int loop;
  EXPECT(argc > 1);

  CHECK(rknn_init(&ctx, argv[1], 0, RKNN_FLAG_COLLECT_PERF_MASK, NULL));
  CHECK(rknn_query(ctx, RKNN_QUERY_SDK_VERSION, &version, sizeof version));
  printf("rknn_api/rknnrt version: %s, driver version: %s\n",
         version.api_version, version.drv_version);
  CHECK(rknn_query(ctx, RKNN_QUERY_MEM_SIZE, &memory, sizeof memory));
  printf("total weight size: %u, total internal size: %u\n",
         memory.total_weight_size, memory.total_internal_size);
  EXPECT(memory.total_weight_size > 0 && memory.total_internal_size > 0);
  if (argc > 3) CHECK(rknn_set_core_mask(ctx, (rknn_core_mask)atoi(argv[3])));

  CHECK(rknn_query(ctx, RKNN_QUERY_IN_OUT_NUM, &num, sizeof num));
  inputs = calloc(num.n_input, sizeof *inputs);
  outputs = calloc(num.n_output, sizeof *outputs);
  first = calloc(num.n_output, sizeof *first);
  EXPECT(inputs != NULL && outputs != NULL && first != NULL);
  for (i = 0; i < num.n_input; ++i) {
    const rknn_tensor_attr attr = get_attr(ctx, RKNN_QUERY_INPUT_ATTR, i);
    dump_attr(&attr);
    inputs[i].index = i;
    inputs[i].type = RKNN_TENSOR_UINT8;
    inputs[i].fmt = RKNN_TENSOR_NHWC;
    inputs[i].size = attr.n_elems;
    inputs[i].buf = malloc(attr.n_elems);
    EXPECT(inputs[i].buf != NULL);
    fill_picture(inputs[i].buf, attr.n_elems, i);
  }
  CHECK(rknn_inputs_set(ctx, num.n_input, inputs));
  for (i = 0; i < num.n_input; ++i) free(inputs[i].buf);
  for (loop = 0; loop < loops; ++loop) {
    const double begin = now_us();
    rknn_perf_run run;
    double elapsed;
    CHECK(rknn_run(ctx, NULL));
    elapsed = now_us() - begin;
    total += elapsed;
    CHECK(rknn_query(ctx, RKNN_QUERY_PERF_RUN, &run, sizeof run));
    EXPECT(run.run_duration >= 0);
    printf("%4d: elapse time = %.2fus, on the NPU %ldus\n", loop, elapsed,
           (long)run.run_duration);
    /* The array is not cleared between the rounds. */
    for (i = 0; i < num.n_output; ++i) {
      outputs[i].want_float = 1;
      outputs[i].is_prealloc = 0;
      outputs[i].index = i;
    }
    CHECK(rknn_outputs_get(ctx, num.n_output, outputs, NULL));
    for (i = 0; i < num.n_output; ++i) {
      if (loop == 0) {
        first[i] = malloc(outputs[i].size);
        EXPECT(first[i] != NULL);
        memcpy(first[i], outputs[i].buf, outputs[i].size);
        print_best(outputs[i].buf, outputs[i].size / sizeof(float));
      }
      EXPECT(memcmp(first[i], outputs[i].buf, outputs[i].size) == 0);
    }
    CHECK(rknn_outputs_release(ctx, num.n_output, outputs));
  }
  printf("avg time: %.2fus\n", total / loops);
  CHECK(rknn_query(ctx, RKNN_QUERY_PERF_DETAIL, &detail, sizeof detail));
  EXPECT(detail.perf_data != NULL && strlen(detail.perf_data) > 0);
  printf("%s\n", detail.perf_data);
  for (i = 0; i < num.n_output; ++i) free(first[i]);
  free(first);
  free(outputs);
  free(inputs);
  CHECK(rknn_destroy(ctx));
  return 0;
}
