/* Two networks, one behind the other, without a thread that waits in between:
 * the first run is begun when a "camera" says that its frame is there
 * (RKNN_FLAG_FENCE_IN_OUTSIDE), and says itself when it has ended
 * (RKNN_FLAG_FENCE_OUT_OUTSIDE); the second one is begun by that. On a board
 * the first descriptor is a camera's or an RGA's sync_file, and the last one
 * goes to a display; here the camera is an eventfd.
 *
 *   fence_chain MODEL */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "examples/memory/flow.h"
#include "rknnd.h"

enum { kPatience = 60 * 1000 }; /* milliseconds; of a loaded machine */

/* Whether the descriptor can be read within so many milliseconds. */
static int signalled(int fd, int milliseconds) {
  struct pollfd look = {fd, POLLIN, 0};
  return poll(&look, 1, milliseconds) == 1 && (look.revents & POLLIN) != 0;
}

/* Begins a run that waits for `after`; a descriptor that says when it ended. */
static int begin(rknn_context context, int after) {
  rknn_run_extend extend;
  memset(&extend, 0, sizeof extend);
  extend.non_block = 1;
  extend.fence_fd = after;
  check(rknn_run(context, &extend), "rknn_run");
  return extend.fence_fd;
}

int main(int argc, char** argv) {
  if (argc != 2) fail("usage: fence_chain MODEL");
  const uint32_t flags =
      RKNN_FLAG_FENCE_IN_OUTSIDE | RKNN_FLAG_FENCE_OUT_OUTSIDE;
  rknn_context first = 0, second = 0, plain = 0;
  struct tensors first_tensors, second_tensors, plain_tensors;
  check(rknn_init(&first, argv[1], 0, flags, NULL), "rknn_init");
  check(rknn_init(&second, argv[1], 0, flags, NULL), "rknn_init");
  check(rknn_init(&plain, argv[1], 0, 0, NULL), "rknn_init");
  bind_tensors(first, &first_tensors);
  bind_tensors(second, &second_tensors);
  bind_tensors(plain, &plain_tensors);
  /* What both should find. */
  const uint64_t expected = run_once(plain, &plain_tensors);
  for (uint32_t i = 0; i < 2; ++i) {
    struct tensors* tensors = i == 0 ? &first_tensors : &second_tensors;
    memcpy(tensors->mem[0]->virt_addr, plain_tensors.mem[0]->virt_addr,
           plain_tensors.bytes[0]);
  }

  const int camera = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (camera < 0) fail("eventfd");
  const int in_between = begin(first, camera);
  const int done = begin(second, in_between);

  /* Neither has begun: the frame is not there yet. */
  const int early = signalled(in_between, 0) || signalled(done, 0);
  const uint64_t one = 1;
  if (write(camera, &one, sizeof one) != sizeof one) fail("the camera");
  const int ended = signalled(done, kPatience);
  /* The first ended before the second could begin. */
  const int in_order = signalled(in_between, 0);
  check(rknn_wait(first, NULL), "rknn_wait");
  check(rknn_wait(second, NULL), "rknn_wait");

  const int equal = answers_of(&first_tensors) == expected &&
                    answers_of(&second_tensors) == expected;
  printf("begun %s the frame was there, ended %s, %s answers\n",
         early ? "before" : "when",
         ended && in_order ? "in order" : "out of order",
         equal ? "good" : "wrong");

  close(camera);
  close(in_between);
  close(done);
  free_tensors(first, &first_tensors);
  free_tensors(second, &second_tensors);
  free_tensors(plain, &plain_tensors);
  check(rknn_destroy(first), "rknn_destroy");
  check(rknn_destroy(second), "rknn_destroy");
  check(rknn_destroy(plain), "rknn_destroy");
  return !early && ended && in_order && equal ? 0 : 1;
}
