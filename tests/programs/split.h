/* The operator cstSplit: of x, what is above attribute "limit", and what is
 * left. */

#ifndef TESTS_PROGRAMS_SPLIT_H_
#define TESTS_PROGRAMS_SPLIT_H_

#include "rknn_custom_op.h"

static inline float* data_of(rknn_custom_op_tensor* tensor) {
  return (float*)((char*)tensor->mem.virt_addr + tensor->mem.offset);
}

static inline int compute_split(rknn_custom_op_context* op_ctx,
                                rknn_custom_op_tensor* inputs,
                                uint32_t n_inputs,
                                rknn_custom_op_tensor* outputs,
                                uint32_t n_outputs) {
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

#endif /* TESTS_PROGRAMS_SPLIT_H_ */
