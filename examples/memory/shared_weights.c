/* One network for pictures of two sizes, with one copy of the weights (guide
 * 9.5): the follower's file comes without them (remove_weight=True at
 * conversion) and takes the owner's.
 *
 *   shared_weights OWNER FOLLOWER WHOLE
 *
 * WHOLE is the follower's network with its weights in it: what its answer must
 * be. */

#include <stdio.h>
#include <string.h>

#include "examples/memory/flow.h"
#include "rknnd.h"

static uint64_t answer_of(rknn_context context) {
  struct tensors tensors;
  bind_tensors(context, &tensors);
  const uint64_t answer = run_once(context, &tensors);
  free_tensors(context, &tensors);
  return answer;
}

static uint64_t weights_held(rknn_context context) {
  rknnd_memory memory;
  check(rknnd_query_memory(context, &memory, sizeof memory), "memory");
  return memory.weight;
}

int main(int argc, char** argv) {
  if (argc != 4) fail("usage: shared_weights OWNER FOLLOWER WHOLE");
  rknn_context context_a = 0, context_b = 0, whole = 0;
  check(rknn_init(&context_a, argv[1], 0, 0, NULL), "rknn_init of the owner");
  const uint64_t alone = weights_held(context_a);

  /* Only ctx counts for this flag; the guide's own example leaves the other
   * fields as they happen to be. */
  rknn_init_extend extend;
  memset(&extend, 0, sizeof extend);
  extend.ctx = context_a;
  check(rknn_init(&context_b, argv[2], 0, RKNN_FLAG_SHARE_WEIGHT_MEM, &extend),
        "rknn_init of the follower");
  const uint64_t both = weights_held(context_a);
  printf("weights of the owner alone: %llu bytes; with the follower: %llu\n",
         (unsigned long long)alone, (unsigned long long)both);

  /* The owner's context may go first: what it owned stays with those who use
   * it. */
  answer_of(context_a);
  check(rknn_destroy(context_a), "rknn_destroy");
  const uint64_t got = answer_of(context_b);

  check(rknn_init(&whole, argv[3], 0, 0, NULL), "rknn_init of the whole one");
  const int same = got == answer_of(whole);
  printf("the follower's answer is %s\n", same ? "the same" : "another");
  check(rknn_destroy(whole), "rknn_destroy");
  check(rknn_destroy(context_b), "rknn_destroy");
  /* A follower's own small tables are not weights that can be shared. */
  return same && both - alone < alone / 4 ? 0 : 1;
}
