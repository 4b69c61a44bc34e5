/* The operator cstSplit as a plug-in. With SPLIT_PLUGIN_FAILS in the
 * environment it fails, so that a test sees who computes. */

#include <stdlib.h>
#include <string.h>

#include "tests/programs/split.h"

static int compute(rknn_custom_op_context* op_ctx,
                   rknn_custom_op_tensor* inputs, uint32_t n_inputs,
                   rknn_custom_op_tensor* outputs, uint32_t n_outputs) {
  if (getenv("SPLIT_PLUGIN_FAILS") != NULL) return -1;
  return compute_split(op_ctx, inputs, n_inputs, outputs, n_outputs);
}

__attribute__((visibility("default"))) rknn_custom_op* get_rknn_custom_op(
    void) {
  static rknn_custom_op op;
  op.version = 1;
  op.target = RKNN_TARGET_TYPE_CPU;
  strncpy(op.op_type, "cstSplit", sizeof op.op_type - 1);
  op.compute = compute;
  return &op;
}
