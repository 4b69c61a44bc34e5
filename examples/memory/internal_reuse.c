/* Two networks that run one after the other on one internal memory, of the
 * larger one's size (guide 9.3, its calls in its order).
 *
 * Runs that share memory never overlap, whatever cores are free. Weights that
 * the program does not bring stay the daemon's.
 *
 *   internal_reuse MODEL_A MODEL_B */

#include <stdio.h>

#include "examples/memory/flow.h"

/* What a network answers with memory of the daemon's. */
static uint64_t answer_of(char* model) {
  rknn_context context = 0;
  struct tensors tensors;
  check(rknn_init(&context, model, 0, 0, NULL), "rknn_init");
  bind_tensors(context, &tensors);
  const uint64_t answer = run_once(context, &tensors);
  free_tensors(context, &tensors);
  check(rknn_destroy(context), "rknn_destroy");
  return answer;
}

int main(int argc, char** argv) {
  if (argc != 3) fail("usage: internal_reuse MODEL_A MODEL_B");
  const uint64_t wanted_a = answer_of(argv[1]);
  const uint64_t wanted_b = answer_of(argv[2]);

  rknn_context ctx_a = 0, ctx_b = 0;
  check(rknn_init(&ctx_a, argv[1], 0, RKNN_FLAG_MEM_ALLOC_OUTSIDE, NULL),
        "rknn_init of A");
  const rknn_mem_size mem_size_a = memory_of(ctx_a);
  check(rknn_init(&ctx_b, argv[2], 0, RKNN_FLAG_MEM_ALLOC_OUTSIDE, NULL),
        "rknn_init of B");
  const rknn_mem_size mem_size_b = memory_of(ctx_b);

  /* One memory for both. */
  const uint32_t size_a = mem_size_a.total_internal_size;
  const uint32_t size_b = mem_size_b.total_internal_size;
  const uint32_t max_internal_size = size_a > size_b ? size_a : size_b;
  rknn_tensor_mem* internal_mem_max =
      check_made(rknn_create_mem(ctx_a, max_internal_size), "internal memory");

  rknn_tensor_mem* internal_mem_a = check_made(
      rknn_create_mem_from_fd(ctx_a, internal_mem_max->fd,
                              internal_mem_max->virt_addr, size_a, 0),
      "A's part of it");
  check(rknn_set_internal_mem(ctx_a, internal_mem_a), "internal memory of A");
  rknn_tensor_mem* internal_mem_b = check_made(
      rknn_create_mem_from_fd(ctx_b, internal_mem_max->fd,
                              internal_mem_max->virt_addr, size_b, 0),
      "B's part of it");
  check(rknn_set_internal_mem(ctx_b, internal_mem_b), "internal memory of B");
  printf("A needs %u bytes, B %u: both have the same %u\n", size_a, size_b,
         max_internal_size);

  struct tensors a, b;
  bind_tensors(ctx_a, &a);
  bind_tensors(ctx_b, &b);
  int same = 1;
  for (int i = 0; i < 3; ++i) {
    same = same && run_once(ctx_a, &a) == wanted_a;
    same = same && run_once(ctx_b, &b) == wanted_b;
  }
  printf("the answers are %s\n", same ? "the same" : "others");

  free_tensors(ctx_a, &a);
  free_tensors(ctx_b, &b);
  check(rknn_destroy_mem(ctx_b, internal_mem_b), "rknn_destroy_mem");
  check(rknn_destroy_mem(ctx_a, internal_mem_a), "rknn_destroy_mem");
  check(rknn_destroy_mem(ctx_a, internal_mem_max), "rknn_destroy_mem");
  check(rknn_destroy(ctx_b), "rknn_destroy");
  check(rknn_destroy(ctx_a), "rknn_destroy");
  return same ? 0 : 1;
}
