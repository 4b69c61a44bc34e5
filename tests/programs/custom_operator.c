/* An operator of the program's with two outputs, registered in the plainest
 * way: op_type, version, target and compute are set, the rest is zero.
 *
 *   custom_operator MODEL          registers it
 *   custom_operator MODEL plug-in  leaves it to a plug-in (split_plugin.c)
 *
 * MODEL takes x, 1x2x3x4, and gives r = Relu(high) and s = low + x, where high
 * and low are what its operator cstSplit gives of x: what is above attribute
 * "limit", and what is left. */

#include "tests/programs/sample.h"
#include "tests/programs/split.h"

#define COUNT 24

int main(int argc, char** argv) {
  rknn_context ctx;
  rknn_input input;
  rknn_output outputs[2];
  float x[COUNT];
  int i, round;
  EXPECT(argc == 2 || argc == 3);
  CHECK(rknn_init(&ctx, argv[1], 0, 0, NULL));
  if (argc == 2) {
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
