/* See flow.h. */

#include "examples/memory/flow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rknnd.h"

void fail(const char* what) {
  fprintf(stderr, "%s\n", what);
  exit(1);
}

void check(int code, const char* what) {
  if (code == RKNN_SUCC) return;
  fprintf(stderr, "%s: %d: %s\n", what, code, rknnd_last_error());
  exit(1);
}

void* check_made(void* made, const char* what) {
  if (made == NULL) check(RKNN_ERR_FAIL, what);
  return made;
}

rknn_tensor_attr picture_attr(rknn_context context) {
  rknn_tensor_attr attr;
  memset(&attr, 0, sizeof attr);
  check(rknn_query(context, RKNN_QUERY_INPUT_ATTR, &attr, sizeof attr),
        "input 0");
  /* Pixels: mean, scale and quantisation are the NPU's part then. */
  attr.type = RKNN_TENSOR_UINT8;
  attr.fmt = RKNN_TENSOR_NHWC;
  return attr;
}

rknn_tensor_attr answer_attr(rknn_context context, uint32_t output) {
  rknn_tensor_attr attr;
  memset(&attr, 0, sizeof attr);
  attr.index = output;
  /* As the NPU writes it: nothing is converted. */
  check(rknn_query(context, RKNN_QUERY_NATIVE_OUTPUT_ATTR, &attr, sizeof attr),
        "an output");
  return attr;
}

void bind_tensors(rknn_context context, struct tensors* tensors) {
  rknn_input_output_num number;
  check(rknn_query(context, RKNN_QUERY_IN_OUT_NUM, &number, sizeof number),
        "how many tensors");
  if (number.n_input != 1 || 1 + number.n_output > kMostTensors) {
    fail("no network of one picture and a few answers");
  }
  tensors->outputs = number.n_output;
  for (uint32_t i = 0; i < 1 + number.n_output; ++i) {
    rknn_tensor_attr attr =
        i == 0 ? picture_attr(context) : answer_attr(context, i - 1);
    rknn_tensor_mem* mem = check_made(
        rknn_create_mem(context, attr.size_with_stride), "rknn_create_mem");
    check(rknn_set_io_mem(context, mem, &attr), "rknn_set_io_mem");
    tensors->mem[i] = mem;
    tensors->bytes[i] = attr.size_with_stride;
  }
}

void free_tensors(rknn_context context, struct tensors* tensors) {
  for (uint32_t i = 0; i < 1 + tensors->outputs; ++i) {
    check(rknn_destroy_mem(context, tensors->mem[i]), "rknn_destroy_mem");
  }
}

/* Where a memory's bytes are: virt_addr is the start of its descriptor. */
static uint8_t* bytes_of(const rknn_tensor_mem* mem) {
  return (uint8_t*)mem->virt_addr + mem->offset;
}

static void draw_picture(void* to, uint32_t bytes) {
  uint8_t* pixel = to;
  uint32_t state = 1;
  for (uint32_t i = 0; i < bytes; ++i) {
    state = state * 1664525 + 1013904223;
    pixel[i] = (uint8_t)(state >> 24);
  }
}

uint64_t run_once(rknn_context context, const struct tensors* tensors) {
  draw_picture(bytes_of(tensors->mem[0]), tensors->bytes[0]);
  return answer_of_run(context, tensors);
}

uint64_t answer_of_run(rknn_context context, const struct tensors* tensors) {
  check(rknn_run(context, NULL), "rknn_run");
  return answers_of(tensors);
}

uint64_t answers_of(const struct tensors* tensors) {
  uint64_t number = 0xcbf29ce484222325;
  for (uint32_t i = 1; i < 1 + tensors->outputs; ++i) {
    const uint8_t* byte = bytes_of(tensors->mem[i]);
    for (uint32_t k = 0; k < tensors->bytes[i]; ++k) {
      number = (number ^ byte[k]) * 0x100000001b3;
    }
  }
  return number;
}

rknn_mem_size memory_of(rknn_context context) {
  rknn_mem_size size;
  check(rknn_query(context, RKNN_QUERY_MEM_SIZE, &size, sizeof size),
        "RKNN_QUERY_MEM_SIZE");
  return size;
}
