/* What all programs of this folder share, so that each shows its own flow and
 * nothing else: failing with the reason, the detector's inputs and outputs on
 * memory of the NPU, and a picture to compute on. */

#ifndef EXAMPLES_MEMORY_FLOW_H_
#define EXAMPLES_MEMORY_FLOW_H_

#include <stdint.h>

#include "rknn_api.h"

/* Ends the program with rknnd_last_error() unless `code` is RKNN_SUCC. */
void check(int code, const char* what);
/* The same where the answer is a pointer. */
void* check_made(void* made, const char* what);
/* The same with words of one's own. */
void fail(const char* what);

/* Memory bound to all inputs and outputs of a context, made by
 * rknn_create_mem. Input 0 is a picture, as bytes with channels last. */
enum { kMostTensors = 16 };
struct tensors {
  uint32_t outputs;
  rknn_tensor_mem* mem[kMostTensors]; /* the input, then the outputs */
  uint32_t bytes[kMostTensors];       /* of each, in use */
};
void bind_tensors(rknn_context context, struct tensors* tensors);
void free_tensors(rknn_context context, struct tensors* tensors);
/* The attribute that input 0 is bound with, and the one of an output. */
rknn_tensor_attr picture_attr(rknn_context context);
rknn_tensor_attr answer_attr(rknn_context context, uint32_t output);

/* Draws a picture, the same each time, into the input, runs, and gives a number
 * for all outputs together: equal answers, equal numbers. */
uint64_t run_once(rknn_context context, const struct tensors* tensors);
/* The same on what the input holds. */
uint64_t answer_of_run(rknn_context context, const struct tensors* tensors);
/* The same of what the outputs hold. */
uint64_t answers_of(const struct tensors* tensors);

rknn_mem_size memory_of(rknn_context context);

#endif /* EXAMPLES_MEMORY_FLOW_H_ */
