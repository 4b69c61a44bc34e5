/* Weights and internal memory from outside (guide 9.2.2): the program brings
 * all memory of the NPU itself.
 *
 * What that means here: weight memory is filled with the weights when
 * rknn_set_weight_mem returns and is not read again, for the NPU's own copy of
 * them is shared by all contexts of the network, in all processes. Internal
 * memory is really used, by every run, in place of the daemon's. A program that
 * only wants to save memory leaves both flags alone: the daemon has one
 * internal memory for each core, for everybody.
 *
 *   external_model_memory MODEL */

#include <stdio.h>

#include "examples/memory/flow.h"

int main(int argc, char** argv) {
  if (argc != 2) fail("usage: external_model_memory MODEL");

  /* What the answer must be. */
  rknn_context plain = 0;
  struct tensors tensors;
  check(rknn_init(&plain, argv[1], 0, 0, NULL), "rknn_init");
  bind_tensors(plain, &tensors);
  const uint64_t wanted = run_once(plain, &tensors);
  free_tensors(plain, &tensors);
  check(rknn_destroy(plain), "rknn_destroy");

  rknn_context context = 0;
  check(rknn_init(&context, argv[1], 0, RKNN_FLAG_MEM_ALLOC_OUTSIDE, NULL),
        "rknn_init");
  const rknn_mem_size size = memory_of(context);
  printf("weights %u bytes, internal memory %u bytes\n", size.total_weight_size,
         size.total_internal_size);

  /* Any memory of the NPU will do: of rknn_create_mem, or brought by its fd. */
  rknn_tensor_mem* weight = check_made(
      rknn_create_mem(context, size.total_weight_size), "weight memory");
  check(rknn_set_weight_mem(context, weight), "rknn_set_weight_mem");
  rknn_tensor_mem* internal = check_made(
      rknn_create_mem(context, size.total_internal_size), "internal memory");
  check(rknn_set_internal_mem(context, internal), "rknn_set_internal_mem");

  bind_tensors(context, &tensors);
  const int same = run_once(context, &tensors) == wanted;
  const uint8_t* bytes = weight->virt_addr;
  uint32_t filled = 0;
  for (uint32_t i = 0; i < size.total_weight_size; ++i) filled += bytes[i] != 0;
  printf("the weights are there: %s; the answer is %s\n",
         filled > 0 ? "yes" : "no", same ? "the same" : "another");

  free_tensors(context, &tensors);
  check(rknn_destroy_mem(context, weight), "rknn_destroy_mem");
  check(rknn_destroy_mem(context, internal), "rknn_destroy_mem");
  check(rknn_destroy(context), "rknn_destroy");
  return same && filled > 0 ? 0 : 1;
}
