/* An operator of the program's with two outputs, registered in the plainest
 * way: op_type, version, target and compute are set, the rest is zero.
 *
 *   custom_operator MODEL
 *
 * MODEL takes x, 1x2x3x4, and gives r = Relu(high) and s = low + x, where high
 * and low are what its operator cstSplit gives of x: what is above attribute
 * "limit", and what is left. */

#include "rknn_custom_op.h"
#include "tests/programs/sample.h"

#define COUNT 24

static float* data_of(rknn_custom_op_tensor* tensor) {
  return (float*)((char*)tensor->mem.virt_addr + tensor->mem.offset);
}

static int compute_split(rknn_custom_op_context* op_ctx,
                         rknn_custom_op_tensor* inputs, uint32_t n_inputs,
                         rknn_custom_op_tensor* outputs, uint32_t n_outputs) {
  rknn_custom_op_attr limit;
  const float* const x = data_of(&inputs[0]);
  float* const high = data_of(&outputs[0]);
  float* const low = data_of(&outputs[1]);
  uint32_t i;
  if (n_inputs != 1 || n_outputs != 2) return -1;
  rknn_custom_op_get_op_attr(op_ctx, "limit", &limit);
  if (limit.n_elems != 1 || limit.dtype != RKNN_TENSOR_FLOAT32) return -1;
  for (i = 0; i < inputs[0].attr.n_elems; ++i) {
    high[i] = x[i] - *(float*)limit.data;
    low[i] = x[i] - (high[i] > 0 ? high[i] : 0);
  }
  return 0;
}

int main(int argc, char** argv) {
  rknn_context ctx;
  rknn_input input;
  rknn_output outputs[2];
  float x[COUNT];
  int i, round;
  EXPECT(argc == 2);
  CHECK(rknn_init(&ctx, argv[1], 0, 0, NULL));
  {
    /* Gone after the call. */
    rknn_custom_op op;
    memset(&op, 0, sizeof op);
    strncpy(op.op_type, "cstSplit", sizeof op.op_type - 1);
    op.version = 1;
    op.target = RKNN_TARGET_TYPE_CPU;
    op.compute = compute_split;
    CHECK(rknn_register_custom_ops(ctx, &op, 1));
    memset(&op, 0xee, sizeof op);
  }
  for (round = 0; round < 3; ++round) {
    for (i = 0; i < COUNT; ++i) x[i] = (float)(i - 8 + round) * 0.5f;
    memset(&input, 0, sizeof input);
    input.buf = x;
    input.size = sizeof x;
    input.type = RKNN_TENSOR_FLOAT32;
    input.fmt = RKNN_TENSOR_NCHW;
    CHECK(rknn_inputs_set(ctx, 1, &input));
    CHECK(rknn_run(ctx, NULL));
    memset(outputs, 0, sizeof outputs);
    outputs[0].want_float = outputs[1].want_float = 1;
    outputs[1].index = 1;
    CHECK(rknn_outputs_get(ctx, 2, outputs, NULL));
    for (i = 0; i < COUNT; ++i) {
      const float high = x[i] - 1.5f;
      const float relu = high > 0 ? high : 0;
      EXPECT(((float*)outputs[0].buf)[i] == relu);
      EXPECT(((float*)outputs[1].buf)[i] == x[i] - relu + x[i]);
    }
    CHECK(rknn_outputs_release(ctx, 2, outputs));
  }
  CHECK(rknn_destroy(ctx));
  printf("custom operator: both outputs are right\n");
  return 0;
}
