/* What the programs of this folder share, in the manner of the vendor's
 * examples: C99, rknn_api.h and libc. A call that fails ends the program with
 * 2; a wrong answer is printed on the error stream and ends it with 1. */

#ifndef TESTS_PROGRAMS_SAMPLE_H_
#define TESTS_PROGRAMS_SAMPLE_H_

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rknn_api.h"
#include "tests/programs/check.h"

#define CHECK(call)                                           \
  do {                                                        \
    int check_ret = (call);                                   \
    if (check_ret < 0) {                                      \
      fprintf(stderr, "%s fail! ret=%d\n", #call, check_ret); \
      exit(2);                                                \
    }                                                         \
  } while (0)

/* All of a file; to be freed. */
static inline unsigned char* load_file(const char* path, uint32_t* size) {
  FILE* const file = fopen(path, "rb");
  unsigned char* data;
  EXPECT(file != NULL);
  EXPECT(fseek(file, 0, SEEK_END) == 0);
  *size = (uint32_t)ftell(file);
  rewind(file);
  data = malloc(*size);
  EXPECT(data != NULL && fread(data, 1, *size, file) == *size);
  fclose(file);
  return data;
}

/* The context of a model given as bytes, which are freed at once. */
static inline rknn_context open_model(const char* path, uint32_t flags) {
  rknn_context ctx; /* uninitialised, as programs have it */
  uint32_t size = 0;
  unsigned char* const model = load_file(path, &size);
  CHECK(rknn_init(&ctx, model, size, flags, NULL));
  free(model);
  return ctx;
}

static inline rknn_tensor_attr get_attr(rknn_context ctx, rknn_query_cmd cmd,
                                        uint32_t index) {
  rknn_tensor_attr attr;
  memset(&attr, 0, sizeof attr);
  attr.index = index;
  CHECK(rknn_query(ctx, cmd, &attr, sizeof attr));
  return attr;
}

static inline void dump_attr(const rknn_tensor_attr* attr) {
  printf(
      "  index=%u, name=%s, n_dims=%u, dims=[%u, %u, %u, %u], n_elems=%u, "
      "size=%u, fmt=%s, type=%s, qnt_type=%s, zp=%d, scale=%f\n",
      attr->index, attr->name, attr->n_dims, attr->dims[0], attr->dims[1],
      attr->dims[2], attr->dims[3], attr->n_elems, attr->size,
      get_format_string(attr->fmt), get_type_string(attr->type),
      get_qnt_type_string(attr->qnt_type), attr->zp, (double)attr->scale);
}

static inline void fill_picture(uint8_t* bytes, uint32_t count, uint32_t seed) {
  uint32_t i;
  for (i = 0; i < count; ++i)
    bytes[i] = (uint8_t)((i * 31 + i / 7 + seed) % 251);
}

/* Runs a picture of one byte a value through a model of one input with copies;
 * its first output as floats, to be freed. */
static inline float* infer(rknn_context ctx, const uint8_t* picture,
                           uint32_t size, uint32_t* count) {
  rknn_input input;
  rknn_output output;
  float* result;
  memset(&input, 0, sizeof input);
  input.type = RKNN_TENSOR_UINT8;
  input.fmt = RKNN_TENSOR_NHWC;
  input.size = size;
  input.buf = (void*)picture;
  CHECK(rknn_inputs_set(ctx, 1, &input));
  CHECK(rknn_run(ctx, NULL));
  memset(&output, 0, sizeof output);
  output.want_float = 1;
  CHECK(rknn_outputs_get(ctx, 1, &output, NULL));
  *count = output.size / (uint32_t)sizeof(float);
  result = malloc(output.size);
  EXPECT(result != NULL);
  memcpy(result, output.buf, output.size);
  CHECK(rknn_outputs_release(ctx, 1, &output));
  return result;
}

#endif /* TESTS_PROGRAMS_SAMPLE_H_ */
