/* A program that looks after CPU caches by itself, or forgets to: C99, nothing
 * but rknn_api.h and libc. Gives y = Relu(x) three frames in the same memory.
 *
 *   cache_care MODEL FLAGS HABIT
 *
 * FLAGS: of rknn_init, in hexadecimal. HABIT:
 *   careful       rknn_mem_sync before and after each run
 *   both          the same with RKNN_MEMORY_SYNC_BIDIRECTIONAL, context 0
 *   forgets-in    none before
 *   forgets-out   none after
 *   forgets-all   neither
 *   brought       careful, with memory that it brought itself
 *   brought-forgets  brought, and neither
 *   copies        rknn_inputs_set and rknn_outputs_get
 *
 * Prints "frame N right" or "frame N wrong". Exits with the number of wrong
 * frames, 10 when a call failed. */

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rknn_api.h"

#define NUMBERS 16
#define BYTES (NUMBERS * (uint32_t)sizeof(float))
#define FRAMES 3

static void check(int good, const char* what) {
  if (good) return;
  fprintf(stderr, "cache_care: %s\n", what);
  exit(10);
}

static rknn_tensor_mem* make_memory(rknn_context context, int brought) {
  rknn_tensor_mem* memory;
  int fd;
  if (!brought) {
    memory = rknn_create_mem(context, BYTES);
    check(memory != NULL, "rknn_create_mem");
    return memory;
  }
  fd = memfd_create("brought", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  check(fd >= 0 && ftruncate(fd, 4096) == 0 &&
            fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0,
        "memfd_create");
  memory = rknn_create_mem_from_fd(context, fd, NULL, BYTES, 0);
  check(memory != NULL, "rknn_create_mem_from_fd");
  return memory;
}

static void bind_memory(rknn_context context, rknn_tensor_mem* memory,
                        rknn_query_cmd query) {
  rknn_tensor_attr attr;
  memset(&attr, 0, sizeof attr);
  check(rknn_query(context, query, &attr, sizeof attr) == RKNN_SUCC,
        "rknn_query");
  attr.type = RKNN_TENSOR_FLOAT32;
  check(rknn_set_io_mem(context, memory, &attr) == RKNN_SUCC,
        "rknn_set_io_mem");
}

static float value_of(int frame, int i) {
  return (float)(100 * (frame + 1) + i);
}

/* What the network makes of a frame of positive numbers is the frame. */
static int is_right(const float* answer, int frame) {
  int i;
  for (i = 0; i < NUMBERS; ++i) {
    if (answer[i] != value_of(frame, i)) return 0;
  }
  return 1;
}

static int run_copied(rknn_context context, int frame) {
  float pixels[NUMBERS], answer[NUMBERS];
  rknn_input input;
  rknn_output output;
  int i;
  for (i = 0; i < NUMBERS; ++i) pixels[i] = value_of(frame, i);
  memset(&input, 0, sizeof input);
  input.buf = pixels;
  input.size = BYTES;
  input.type = RKNN_TENSOR_FLOAT32;
  input.fmt = RKNN_TENSOR_UNDEFINED;
  memset(&output, 0, sizeof output);
  output.want_float = 1;
  output.is_prealloc = 1;
  output.buf = answer;
  output.size = BYTES;
  check(rknn_inputs_set(context, 1, &input) == RKNN_SUCC, "rknn_inputs_set");
  check(rknn_run(context, NULL) == RKNN_SUCC, "rknn_run");
  check(rknn_outputs_get(context, 1, &output, NULL) == RKNN_SUCC,
        "rknn_outputs_get");
  check(rknn_outputs_release(context, 1, &output) == RKNN_SUCC,
        "rknn_outputs_release");
  return is_right(answer, frame);
}

int main(int argc, char** argv) {
  rknn_context context = 0;
  rknn_tensor_mem *in = NULL, *out = NULL;
  int syncs_in, syncs_out, both, brought, copies, frame, i, wrong = 0;
  check(argc == 4, "usage: cache_care MODEL FLAGS HABIT");
  both = strcmp(argv[3], "both") == 0;
  brought = strncmp(argv[3], "brought", 7) == 0;
  copies = strcmp(argv[3], "copies") == 0;
  syncs_in = strcmp(argv[3], "forgets-in") != 0 &&
             strcmp(argv[3], "forgets-all") != 0 &&
             strcmp(argv[3], "brought-forgets") != 0;
  syncs_out = strcmp(argv[3], "forgets-out") != 0 &&
              strcmp(argv[3], "forgets-all") != 0 &&
              strcmp(argv[3], "brought-forgets") != 0;

  check(rknn_init(&context, argv[1], 0, (uint32_t)strtoul(argv[2], NULL, 16),
                  NULL) == RKNN_SUCC,
        "rknn_init");
  if (!copies) {
    in = make_memory(context, brought);
    out = make_memory(context, brought);
    bind_memory(context, in, RKNN_QUERY_INPUT_ATTR);
    bind_memory(context, out, RKNN_QUERY_OUTPUT_ATTR);
  }
  for (frame = 0; frame < FRAMES; ++frame) {
    int right;
    if (copies) {
      right = run_copied(context, frame);
    } else {
      float* pixels = (float*)in->virt_addr;
      for (i = 0; i < NUMBERS; ++i) pixels[i] = value_of(frame, i);
      if (syncs_in) {
        check(rknn_mem_sync(both ? 0 : context, in,
                            both ? RKNN_MEMORY_SYNC_BIDIRECTIONAL
                                 : RKNN_MEMORY_SYNC_TO_DEVICE) == RKNN_SUCC,
              "rknn_mem_sync to the device");
      }
      check(rknn_run(context, NULL) == RKNN_SUCC, "rknn_run");
      if (syncs_out) {
        check(rknn_mem_sync(both ? 0 : context, out,
                            both ? RKNN_MEMORY_SYNC_BIDIRECTIONAL
                                 : RKNN_MEMORY_SYNC_FROM_DEVICE) == RKNN_SUCC,
              "rknn_mem_sync from the device");
      }
      right = is_right((const float*)out->virt_addr, frame);
    }
    printf("frame %d %s\n", frame, right ? "right" : "wrong");
    wrong += !right;
  }
  if (!copies) {
    check(rknn_destroy_mem(context, in) == RKNN_SUCC &&
              rknn_destroy_mem(context, out) == RKNN_SUCC,
          "rknn_destroy_mem");
  }
  check(rknn_destroy(context) == RKNN_SUCC, "rknn_destroy");
  return wrong;
}
