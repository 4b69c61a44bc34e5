/* Runs that are not waited for, as an application uses them: C99, the public
 * headers and libc.
 *
 *   async_runs async|non_block|chain|bad MODEL
 *   async_runs queue|rebound MODEL FRAMES
 *
 * MODEL has one input and one output of as many numbers. Each line printed is a
 * broken expectation; exits with 0 when there is none, with 2 when a call
 * failed that never fails. */

#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rknn_api.h"
#include "rknnd.h"
#include "tests/integration/programs/expect.h"

enum { kPatience = 60000 /* ms */, kCameras = 10, kSets = 2, kKinds = 7 };

static const char* model;
static rknn_tensor_attr in_attr, out_attr;
static float* answers[kKinds]; /* of each kind of frame */

static int readable(int fd, int timeout_ms) {
  struct pollfd entry;
  entry.fd = fd;
  entry.events = POLLIN;
  entry.revents = 0;
  return poll(&entry, 1, timeout_ms) == 1;
}

static rknn_context open_context(uint32_t flags) {
  rknn_context context = 0;
  MUST(rknn_init(&context, (void*)model, 0, flags, NULL));
  return context;
}

/* Frames of a kind are alike, those of another are not. */
static void fill(float* to, unsigned kind) {
  uint32_t i;
  for (i = 0; i < in_attr.n_elems; ++i) {
    to[i] = (float)((int)((i * 7 + kind * 13) % 31) - 11) / 16.0f;
  }
}

static int set_frame(rknn_context context, unsigned kind) {
  rknn_input input;
  int code;
  float* values = malloc(in_attr.n_elems * sizeof *values);
  fill(values, kind);
  memset(&input, 0, sizeof input);
  input.buf = values;
  input.size = (uint32_t)(in_attr.n_elems * sizeof *values);
  input.type = RKNN_TENSOR_FLOAT32;
  input.fmt = in_attr.fmt;
  code = rknn_inputs_set(context, 1, &input);
  /* Taken at the call. */
  memset(values, 0, in_attr.n_elems * sizeof *values);
  free(values);
  return code;
}

static int is_answer(const float* values, unsigned kind) {
  return memcmp(values, answers[kind], out_attr.n_elems * sizeof *values) == 0;
}

/* The kind of frame that the outputs are of, -1: of none. */
static int outputs_kind(rknn_context context, uint64_t* frame) {
  rknn_output output;
  rknn_output_extend extend;
  int kind;
  memset(&output, 0, sizeof output);
  memset(&extend, 0, sizeof extend);
  output.want_float = 1;
  MUST(rknn_outputs_get(context, 1, &output, &extend));
  for (kind = kKinds - 1; kind >= 0; --kind) {
    if (is_answer(output.buf, (unsigned)kind)) break;
  }
  *frame = extend.frame_id;
  MUST(rknn_outputs_release(context, 1, &output));
  return kind;
}

static void learn_answers(void) {
  rknn_context context = open_context(0);
  unsigned kind;
  memset(&in_attr, 0, sizeof in_attr);
  memset(&out_attr, 0, sizeof out_attr);
  MUST(rknn_query(context, RKNN_QUERY_INPUT_ATTR, &in_attr, sizeof in_attr));
  MUST(rknn_query(context, RKNN_QUERY_OUTPUT_ATTR, &out_attr, sizeof out_attr));
  for (kind = 0; kind < kKinds; ++kind) {
    rknn_output output;
    memset(&output, 0, sizeof output);
    output.want_float = 1;
    MUST(set_frame(context, kind));
    MUST(rknn_run(context, NULL));
    MUST(rknn_outputs_get(context, 1, &output, NULL));
    answers[kind] = malloc(output.size);
    memcpy(answers[kind], output.buf, output.size);
    MUST(rknn_outputs_release(context, 1, &output));
  }
  EXPECT(!is_answer(answers[0], 1));
  MUST(rknn_destroy(context));
}

static rknn_tensor_mem* make_memory(rknn_context context, uint32_t elements) {
  rknn_tensor_mem* memory =
      rknn_create_mem(context, (uint32_t)(elements * sizeof(float)));
  if (memory == NULL) exit(2);
  return memory;
}

static void bind_floats(rknn_context context, uint32_t set,
                        rknn_tensor_mem* memory, rknn_tensor_attr attr) {
  attr.type = RKNN_TENSOR_FLOAT32;
  MUST(rknnd_set_io_mem(context, set, memory, &attr));
}

/* ---- the vendor's flag ----------------------------------------------------
 */

static void check_async(void) {
  rknn_context context = open_context(RKNN_FLAG_ASYNC_MASK);
  uint64_t frame = 0;
  unsigned i;
  for (i = 1; i <= 40; ++i) {
    rknn_run_extend extend;
    int kind;
    memset(&extend, 0, sizeof extend);
    MUST(set_frame(context, i % kKinds));
    MUST(rknn_run(context, &extend));
    EXPECT(extend.frame_id == i);
    kind = outputs_kind(context, &frame);
    EXPECT(frame == (i == 1 ? 1 : i - 1));
    EXPECT(kind == (int)(frame % kKinds));
  }
  /* Several runs ahead of the outputs; the third waits. */
  for (i = 41; i <= 50; ++i) {
    MUST(set_frame(context, i % kKinds));
    MUST(rknn_run(context, NULL));
  }
  EXPECT(outputs_kind(context, &frame) == 49 % kKinds);
  EXPECT(frame == 49);
  MUST(rknn_wait(context, NULL));
  EXPECT(outputs_kind(context, &frame) == 50 % kKinds);
  MUST(rknn_destroy(context));
}

static void check_non_block(void) {
  rknn_context context = open_context(0);
  rknn_run_extend extend;
  uint64_t frame = 0;
  unsigned i;
  for (i = 1; i <= 20; ++i) {
    memset(&extend, 0, sizeof extend);
    extend.non_block = 1;
    MUST(set_frame(context, i % kKinds));
    MUST(rknn_run(context, &extend));
    EXPECT(extend.frame_id == i);
    if (i % 2 == 0) MUST(rknn_wait(context, &extend));
    EXPECT(outputs_kind(context, &frame) == (int)(i % kKinds));
    EXPECT(frame == i);
  }
  /* In flight when the context goes. */
  extend.non_block = 1;
  MUST(rknn_run(context, &extend));
  MUST(rknn_destroy(context));
}

/* ---- fences: b reads what a writes ----------------------------------------
 */

static void check_chain(void) {
  const uint32_t flags =
      RKNN_FLAG_FENCE_IN_OUTSIDE | RKNN_FLAG_FENCE_OUT_OUTSIDE;
  rknn_context a = open_context(flags), b = open_context(flags);
  rknn_tensor_mem* first = make_memory(a, in_attr.n_elems);
  rknn_tensor_mem* middle = make_memory(a, out_attr.n_elems);
  rknn_tensor_mem* last = make_memory(b, out_attr.n_elems);
  float* expected = malloc(out_attr.n_elems * sizeof *expected);
  unsigned i;
  EXPECT(in_attr.n_elems == out_attr.n_elems);
  bind_floats(a, 0, first, in_attr);
  bind_floats(a, 0, middle, out_attr);
  bind_floats(b, 0, middle, in_attr);
  bind_floats(b, 0, last, out_attr);
  for (i = 0; i < 20; ++i) {
    int camera = eventfd(0, EFD_CLOEXEC);
    uint64_t one = 1;
    rknn_run_extend run_a, run_b;
    memset(&run_a, 0, sizeof run_a);
    run_a.fence_fd = camera;
    MUST(rknn_run(a, &run_a));
    run_b = run_a; /* its fence is what b waits for */
    MUST(rknn_run(b, &run_b));
    EXPECT(run_a.fence_fd != camera && run_b.fence_fd != run_a.fence_fd);
    /* Nothing begins before the camera says so. */
    EXPECT(!readable(run_a.fence_fd, 0));
    EXPECT(!readable(run_b.fence_fd, 0));
    fill(first->virt_addr, i % kKinds);
    memset(last->virt_addr, 0xff, last->size);
    if (write(camera, &one, sizeof one) != sizeof one) exit(2);
    EXPECT(readable(run_b.fence_fd, kPatience));
    EXPECT(readable(run_a.fence_fd, 0));
    MUST(rknn_wait(b, &run_b));
    MUST(rknn_wait(a, &run_a));
    EXPECT(is_answer(middle->virt_addr, i % kKinds));
    close(camera);
    close(run_a.fence_fd);
    close(run_b.fence_fd);
  }
  /* What b computed of the last one: a of a. */
  {
    rknn_context plain = open_context(0);
    rknn_input input;
    rknn_output output;
    memset(&input, 0, sizeof input);
    memset(&output, 0, sizeof output);
    input.buf = middle->virt_addr;
    input.size = (uint32_t)(in_attr.n_elems * sizeof(float));
    input.type = RKNN_TENSOR_FLOAT32;
    input.fmt = in_attr.fmt;
    MUST(rknn_inputs_set(plain, 1, &input));
    MUST(rknn_run(plain, NULL));
    output.want_float = 1;
    MUST(rknn_outputs_get(plain, 1, &output, NULL));
    EXPECT(memcmp(output.buf, last->virt_addr, last->size) == 0);
    MUST(rknn_outputs_release(plain, 1, &output));
    MUST(rknn_destroy(plain));
  }
  free(expected);
  MUST(rknn_destroy_mem(a, first));
  MUST(rknn_destroy_mem(a, middle));
  MUST(rknn_destroy_mem(b, last));
  MUST(rknn_destroy(a));
  MUST(rknn_destroy(b));
}

/* ---- ten cameras, one thread ----------------------------------------------
 */

struct camera {
  rknn_context context;
  rknn_tensor_mem *in[kSets], *out[kSets];
  unsigned submitted, ended, most;
  rknnd_queue queue;
};

static void next_frame(struct camera* camera, uint32_t set) {
  rknnd_run_options options;
  if (camera->submitted == camera->most) return;
  fill(camera->in[set]->virt_addr, camera->submitted % kKinds);
  memset(&options, 0, sizeof options);
  options.size = sizeof options;
  options.set = set;
  options.queue = camera->queue;
  options.user = camera;
  MUST(rknnd_submit(camera->context, &options, NULL));
  ++camera->submitted;
}

static void check_queue(unsigned frames) {
  static struct camera cameras[kCameras];
  const unsigned all = kCameras * frames;
  unsigned ended = 0, i;
  struct epoll_event event;
  rknnd_queue queue;
  int epoll = epoll_create1(EPOLL_CLOEXEC);
  MUST(rknnd_queue_create(&queue));
  memset(&event, 0, sizeof event);
  event.events = EPOLLIN;
  if (epoll_ctl(epoll, EPOLL_CTL_ADD, rknnd_queue_fd(queue), &event)) exit(2);
  for (i = 0; i < kCameras; ++i) {
    uint32_t set;
    cameras[i].context = open_context(0);
    cameras[i].most = frames;
    cameras[i].queue = queue;
    for (set = 0; set < kSets; ++set) {
      cameras[i].in[set] = make_memory(cameras[i].context, in_attr.n_elems);
      cameras[i].out[set] = make_memory(cameras[i].context, out_attr.n_elems);
      bind_floats(cameras[i].context, set, cameras[i].in[set], in_attr);
      bind_floats(cameras[i].context, set, cameras[i].out[set], out_attr);
    }
    for (set = 0; set < kSets; ++set) next_frame(&cameras[i], set);
  }
  while (ended < all) {
    rknnd_completion completion;
    if (epoll_wait(epoll, &event, 1, kPatience) <= 0) {
      printf("nothing came for a minute, after %u\n", ended);
      exit(1);
    }
    for (;;) {
      struct camera* camera;
      int code = rknnd_queue_next(queue, &completion, sizeof completion);
      if (code == RKNND_ERR_EMPTY) break;
      MUST(code);
      camera = completion.user;
      EXPECT(completion.code == RKNN_SUCC);
      EXPECT(completion.context == camera->context);
      EXPECT(completion.frame_id == camera->ended + 1);
      EXPECT(completion.set == camera->ended % kSets);
      EXPECT(completion.drops == 0);
      EXPECT(completion.total_ns >= completion.run_ns);
      EXPECT(is_answer(camera->out[completion.set]->virt_addr,
                       camera->ended % kKinds));
      ++camera->ended;
      ++ended;
      next_frame(camera, completion.set);
    }
  }
  /* It may be readable for a moment longer, but does not stay so. */
  while (readable(rknnd_queue_fd(queue), 0)) {
    rknnd_completion none;
    EXPECT(rknnd_queue_next(queue, &none, sizeof none) == RKNND_ERR_EMPTY);
  }
  for (i = 0; i < kCameras; ++i) {
    uint32_t set;
    EXPECT(cameras[i].ended == frames);
    MUST(rknn_destroy(cameras[i].context));
    for (set = 0; set < kSets; ++set) {
      MUST(rknn_destroy_mem(0, cameras[i].in[set]));
      MUST(rknn_destroy_mem(0, cameras[i].out[set]));
    }
  }
  MUST(rknnd_queue_destroy(queue));
  close(epoll);
}

/* ---- programs that do not know how ----------------------------------------
 */

static void check_bad(void) {
  rknn_context context = open_context(0);
  rknn_context fenced = open_context(RKNN_FLAG_FENCE_IN_OUTSIDE);
  rknn_run_extend extend;
  rknnd_run_options options;
  rknnd_completion completion;
  rknnd_queue queue, other;
  int ends[2], i, code = RKNN_SUCC, status = 0;
  MUST(rknnd_queue_create(&queue));
  MUST(rknnd_queue_create(&other));
  MUST(set_frame(context, 0));
  MUST(set_frame(fenced, 0));

  /* A frame that never was. */
  memset(&extend, 0, sizeof extend);
  extend.frame_id = 99;
  EXPECT(rknn_wait(context, &extend) == RKNN_ERR_PARAM_INVALID);
  EXPECT(rknnd_wait(context, 99, 0, NULL, 0) == RKNN_ERR_PARAM_INVALID);
  EXPECT(rknnd_wait(context, 0, 0, NULL, 0) == RKNND_ERR_EMPTY);

  /* Completions that nobody reads, to the end of the program. */
  memset(&options, 0, sizeof options);
  options.size = sizeof options;
  options.queue = queue;
  for (i = 0; i < 300 && code == RKNN_SUCC; ++i) {
    code = rknnd_submit(context, &options, NULL);
  }
  EXPECT(code == RKNN_SUCC || code == RKNN_ERR_MALLOC_FAIL);

  /* Others of the same process go on. */
  options.queue = other;
  do { /* here or there the runs above may still fill the queue */
    do {
      code = rknnd_submit(context, &options, NULL);
    } while (code == RKNN_ERR_MALLOC_FAIL);
    EXPECT(code == RKNN_SUCC);
    while ((code = rknnd_queue_next(other, &completion, sizeof completion)) ==
           RKNND_ERR_EMPTY) {
      EXPECT(readable(rknnd_queue_fd(other), kPatience));
    }
    EXPECT(code == RKNN_SUCC);
  } while (completion.code == RKNN_ERR_MALLOC_FAIL);
  EXPECT(completion.code == RKNN_SUCC);

  /* A queue that goes with runs on their way. */
  MUST(rknnd_submit(context, &options, NULL));
  MUST(rknnd_submit(context, &options, NULL));
  MUST(rknnd_queue_destroy(other));
  EXPECT(rknnd_queue_destroy(other) == RKNN_ERR_PARAM_INVALID);
  MUST(rknn_run(context, NULL));

  /* A fence whose other end closes, and one that is no fence. */
  if (pipe2(ends, O_CLOEXEC) != 0) exit(2);
  memset(&extend, 0, sizeof extend);
  extend.fence_fd = ends[0];
  extend.non_block = 1;
  MUST(rknn_run(fenced, &extend));
  close(ends[0]);
  close(ends[1]);
  EXPECT(rknn_wait(fenced, &extend) < 0);
  extend.fence_fd = STDOUT_FILENO + 1000;
  EXPECT(rknn_run(fenced, &extend) < 0);
  extend.fence_fd = -1;
  EXPECT(rknn_run(fenced, &extend) == RKNN_ERR_PARAM_INVALID);

  /* A child has none of it, and ends without harm. */
  if (fork() == 0) {
    int wrong = 0;
    wrong |= rknnd_queue_next(queue, &completion, sizeof completion) !=
             RKNN_ERR_PARAM_INVALID;
    wrong |= rknnd_submit(context, NULL, NULL) != RKNN_ERR_CTX_INVALID;
    exit(wrong);
  }
  wait(&status);
  EXPECT(status == 0);
  MUST(rknn_run(context, NULL));
  /* And the process ends with the rest on its way. */
  options.queue = queue;
  rknnd_submit(context, &options, NULL);
}

/* ---- memory that is bound anew while runs are on their way ----------------
 */

static void check_rebound(unsigned frames) {
  enum { kSlots = 3 };
  rknn_context context = open_context(0);
  rknn_tensor_mem *in[kSlots], *out[kSlots];
  uint64_t number[kSlots];
  unsigned i;
  for (i = 0; i < kSlots; ++i) {
    in[i] = make_memory(context, in_attr.n_elems);
    out[i] = make_memory(context, out_attr.n_elems);
  }
  for (i = 0; i < frames + kSlots; ++i) {
    const unsigned slot = i % kSlots;
    rknn_run_extend extend;
    memset(&extend, 0, sizeof extend);
    if (i >= kSlots) {
      extend.frame_id = number[slot];
      MUST(rknn_wait(context, &extend));
      EXPECT(is_answer(out[slot]->virt_addr, (i - kSlots) % kKinds));
    }
    if (i >= frames) continue;
    fill(in[slot]->virt_addr, i % kKinds);
    memset(out[slot]->virt_addr, 0xee, out[slot]->size);
    bind_floats(context, 0, in[slot], in_attr);
    bind_floats(context, 0, out[slot], out_attr);
    extend.non_block = 1;
    extend.frame_id = 0;
    MUST(rknn_run(context, &extend));
    number[slot] = extend.frame_id;
  }
  for (i = 0; i < kSlots; ++i) {
    MUST(rknn_destroy_mem(context, in[i]));
    MUST(rknn_destroy_mem(context, out[i]));
  }
  MUST(rknn_destroy(context));
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  model = argv[2];
  learn_answers();
  if (strcmp(argv[1], "async") == 0) {
    check_async();
  } else if (strcmp(argv[1], "non_block") == 0) {
    check_non_block();
  } else if (strcmp(argv[1], "chain") == 0) {
    check_chain();
  } else if (strcmp(argv[1], "queue") == 0 && argc > 3) {
    check_queue((unsigned)atoi(argv[3]));
  } else if (strcmp(argv[1], "rebound") == 0 && argc > 3) {
    check_rebound((unsigned)atoi(argv[3]));
  } else if (strcmp(argv[1], "bad") == 0) {
    check_bad();
  } else {
    return 2;
  }
  return faults != 0;
}
