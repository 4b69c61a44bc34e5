/* A model of two inputs of different shape, whose two outputs are fetched into
 * arrays of the program's with every index left at 0.
 *
 *   multiple_inputs MODEL
 *
 * MODEL takes a, 1x6, and b, 1x4, and gives 2 * a and b + 1. */

#include "tests/programs/sample.h"

int main(int argc, char** argv) {
  float a[6], b[4], twice[6], more[4];
  rknn_context ctx;
  rknn_input_output_num num;
  rknn_input inputs[2];
  rknn_output outputs[2];
  int i;
  EXPECT(argc == 2);
  ctx = open_model(argv[1], 0);
  CHECK(rknn_query(ctx, RKNN_QUERY_IN_OUT_NUM, &num, sizeof num));
  EXPECT(num.n_input == 2 && num.n_output == 2);
  for (i = 0; i < 6; ++i) a[i] = (float)i - 2.5f;
  for (i = 0; i < 4; ++i) b[i] = (float)i * 3.0f;
  memset(inputs, 0, sizeof inputs);
  inputs[0].index = 0;
  inputs[0].buf = a;
  inputs[0].size = sizeof a;
  inputs[1].index = 1;
  inputs[1].buf = b;
  inputs[1].size = sizeof b;
  for (i = 0; i < 2; ++i) {
    inputs[i].type = RKNN_TENSOR_FLOAT32;
    inputs[i].fmt = RKNN_TENSOR_UNDEFINED;
  }
  CHECK(rknn_inputs_set(ctx, 2, inputs));
  /* What was set is taken: the arrays may be used for something else. */
  memset(b, 0, sizeof b);
  CHECK(rknn_run(ctx, NULL));
  memset(outputs, 0, sizeof outputs);
  for (i = 0; i < 2; ++i) {
    outputs[i].want_float = 1;
    outputs[i].is_prealloc = 1;
  }
  outputs[0].buf = twice;
  outputs[0].size = sizeof twice;
  outputs[1].buf = more;
  outputs[1].size = sizeof more;
  CHECK(rknn_outputs_get(ctx, 2, outputs, NULL));
  for (i = 0; i < 6; ++i) EXPECT(twice[i] == 2 * a[i]);
  for (i = 0; i < 4; ++i) EXPECT(more[i] == (float)i * 3.0f + 1.0f);
  EXPECT(outputs[0].size == sizeof twice && outputs[1].size == sizeof more);
  CHECK(rknn_outputs_release(ctx, 2, outputs));
  CHECK(rknn_destroy(ctx));
  printf("multiple inputs: both outputs are right\n");
  return 0;
}
