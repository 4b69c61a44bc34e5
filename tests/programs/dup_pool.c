/* A pool of threads, each with a duplicate of one context that is destroyed
 * before they begin; and a duplicate made and destroyed for every inference.
 *
 *   dup_pool MODEL [THREADS] */

#include <pthread.h>

#include "tests/programs/sample.h"

enum { MOST_THREADS = 16, RUNS = 20 };

struct worker {
  pthread_t thread;
  rknn_context ctx;
  const uint8_t* picture;
  uint32_t size;
  const float* expected;
};

static void* work(void* argument) {
  const struct worker* const self = argument;
  int run;
  for (run = 0; run < RUNS; ++run) {
    rknn_context once, ctx = self->ctx;
    uint32_t count = 0;
    float* got = infer(ctx, self->picture, self->size, &count);
    EXPECT(memcmp(got, self->expected, count * sizeof(float)) == 0);
    free(got);
    CHECK(rknn_dup_context(&ctx, &once));
    got = infer(once, self->picture, self->size, &count);
    EXPECT(memcmp(got, self->expected, count * sizeof(float)) == 0);
    free(got);
    CHECK(rknn_destroy(once));
  }
  return NULL;
}

int main(int argc, char** argv) {
  static struct worker workers[MOST_THREADS];
  const int threads = argc > 2 ? atoi(argv[2]) : 6;
  rknn_context original;
  rknn_tensor_attr in;
  uint8_t* picture;
  float* expected;
  uint32_t count = 0;
  int i;
  EXPECT(argc > 1 && threads > 0 && threads <= MOST_THREADS);
  original = open_model(argv[1], 0);
  in = get_attr(original, RKNN_QUERY_INPUT_ATTR, 0);
  picture = malloc(in.n_elems);
  EXPECT(picture != NULL);
  fill_picture(picture, in.n_elems, 3);
  expected = infer(original, picture, in.n_elems, &count);
  for (i = 0; i < threads; ++i) {
    const rknn_core_mask cores[] = {RKNN_NPU_CORE_0, RKNN_NPU_CORE_1,
                                    RKNN_NPU_CORE_2};
    CHECK(rknn_dup_context(&original, &workers[i].ctx));
    CHECK(rknn_set_core_mask(workers[i].ctx, cores[i % 3]));
    workers[i].picture = picture;
    workers[i].size = in.n_elems;
    workers[i].expected = expected;
  }
  CHECK(rknn_destroy(original));
  for (i = 0; i < threads; ++i) {
    EXPECT(pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0);
  }
  for (i = 0; i < threads; ++i) {
    EXPECT(pthread_join(workers[i].thread, NULL) == 0);
    CHECK(rknn_destroy(workers[i].ctx));
  }
  free(expected);
  free(picture);
  printf("pool: %d threads of %d runs\n", threads, 2 * RUNS);
  return 0;
}
