/* One network, several threads (guide 9.4): rknn_dup_context gives each thread
 * a context of its own. Weights exist once and internal memory once for each
 * core of the NPU, whatever the number of threads. A duplicate may itself be
 * duplicated, and outlives what it was made of.
 *
 *   dup_threads MODEL */

#include <pthread.h>
#include <stdio.h>

#include "examples/memory/flow.h"
#include "rknnd.h"

enum { kThreads = 4, kRuns = 3 };

struct worker {
  pthread_t thread;
  rknn_context context;
  uint64_t wanted;
  int same;
};

static void* work(void* argument) {
  struct worker* worker = argument;
  struct tensors tensors;
  bind_tensors(worker->context, &tensors);
  worker->same = 1;
  for (int i = 0; i < kRuns; ++i) {
    worker->same =
        worker->same && run_once(worker->context, &tensors) == worker->wanted;
  }
  free_tensors(worker->context, &tensors);
  check(rknn_destroy(worker->context), "rknn_destroy");
  return NULL;
}

int main(int argc, char** argv) {
  if (argc != 2) fail("usage: dup_threads MODEL");
  rknn_context original = 0;
  struct tensors tensors;
  check(rknn_init(&original, argv[1], 0, 0, NULL), "rknn_init");
  bind_tensors(original, &tensors);
  const uint64_t wanted = run_once(original, &tensors);
  free_tensors(original, &tensors);
  rknnd_memory alone, all;
  check(rknnd_query_memory(original, &alone, sizeof alone), "memory");

  /* Each a duplicate of the one before. */
  struct worker workers[kThreads];
  rknn_context last = original;
  for (int i = 0; i < kThreads; ++i) {
    check(rknn_dup_context(&last, &workers[i].context), "rknn_dup_context");
    workers[i].wanted = wanted;
    last = workers[i].context;
  }
  check(rknnd_query_memory(original, &all, sizeof all), "memory");
  check(rknn_destroy(original), "rknn_destroy");

  int same = 1;
  for (int i = 0; i < kThreads; ++i) {
    if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0) {
      fail("no thread");
    }
  }
  for (int i = 0; i < kThreads; ++i) {
    pthread_join(workers[i].thread, NULL);
    same = same && workers[i].same;
  }
  const unsigned long long more =
      all.weight + all.internal - alone.weight - alone.internal;
  printf(
      "%d more contexts cost %llu bytes of weights and internal memory; "
      "their answers are %s\n",
      kThreads, more, same ? "the same" : "others");
  return same && more == 0 ? 0 : 1;
}
