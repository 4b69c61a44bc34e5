/* Intermediates in the NPU's SRAM (guide 5.7): what a context takes, what is
 * left for others, and two contexts that take turns in one window of it.
 *
 *   sram MODEL */

#include <stdio.h>

#include "examples/memory/flow.h"

static uint64_t answer_of(rknn_context context) {
  struct tensors tensors;
  bind_tensors(context, &tensors);
  const uint64_t answer = run_once(context, &tensors);
  free_tensors(context, &tensors);
  return answer;
}

int main(int argc, char** argv) {
  if (argc != 2) fail("usage: sram MODEL");
  rknn_context plain = 0;
  check(rknn_init(&plain, argv[1], 0, 0, NULL), "rknn_init");
  const uint64_t wanted = answer_of(plain);
  const rknn_mem_size at_first = memory_of(plain);
  printf("SRAM: %u bytes, %u free\n", at_first.total_sram_size,
         at_first.free_sram_size);
  if (at_first.total_sram_size == 0) fail("this NPU has no SRAM");

  /* A context's own pages: as many as its network has use for, of what is
   * free. RKNN_LOG_LEVEL=3 prints which tensor of which layer lies in them. */
  rknn_context own = 0;
  check(rknn_init(&own, argv[1], 0, RKNN_FLAG_ENABLE_SRAM, NULL), "rknn_init");
  int same = answer_of(own) == wanted;
  const rknn_mem_size with_own = memory_of(own);
  const uint32_t taken = at_first.free_sram_size - with_own.free_sram_size;
  printf("one context took %u bytes; its answer is %s\n", taken,
         same ? "the same" : "another");
  check(rknn_destroy(own), "rknn_destroy");

  /* Pages that contexts share, those of one core taking turns: the second one
   * costs no more, where the vendor's runtime leaves the flag without effect.
   * (`rknnctl mem --sram` draws who has which page.) */
  rknn_context first = 0, second = 0;
  const uint32_t shared = RKNN_FLAG_ENABLE_SRAM | RKNN_FLAG_SHARE_SRAM;
  check(rknn_init(&first, argv[1], 0, shared, NULL), "rknn_init");
  check(rknn_set_core_mask(first, RKNN_NPU_CORE_0), "rknn_set_core_mask");
  const uint32_t after_first = memory_of(first).free_sram_size;
  check(rknn_init(&second, argv[1], 0, shared, NULL), "rknn_init");
  check(rknn_set_core_mask(second, RKNN_NPU_CORE_0), "rknn_set_core_mask");
  const uint32_t after_second = memory_of(second).free_sram_size;
  same = same && answer_of(first) == wanted && answer_of(second) == wanted;
  printf("two that share: %u bytes free with one, %u with both; answers %s\n",
         after_first, after_second, same ? "the same" : "others");

  check(rknn_destroy(first), "rknn_destroy");
  check(rknn_destroy(second), "rknn_destroy");
  const uint32_t at_last = memory_of(plain).free_sram_size;
  check(rknn_destroy(plain), "rknn_destroy");
  return same && taken > 0 && after_second == after_first &&
                 at_last == at_first.free_sram_size
             ? 0
             : 1;
}
