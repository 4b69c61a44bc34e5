/* A program built years ago: the layouts are those of rknn_api.h before release
 * 1.3.0 and of rknn_matmul_api.h of release 1.5.2, written down here; nothing
 * of today's headers is included. Behind each struct lie bytes that are neither
 * read nor written.
 *
 *   older_header MODEL
 *
 * MODEL has one picture of three channels as its input. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/programs/check.h"

#ifdef __arm__
typedef uint32_t rknn_context;
#else
typedef uint64_t rknn_context;
#endif

typedef struct {
  uint32_t index;
  uint32_t n_dims;
  uint32_t dims[16];
  char name[256];
  uint32_t n_elems;
  uint32_t size;
  int32_t fmt;
  int32_t type;
  int32_t qnt_type;
  int8_t fl;
  int32_t zp;
  float scale;
  uint32_t stride;
  uint32_t size_with_stride;
  uint8_t pass_through;
} rknn_tensor_attr;

typedef struct {
  uint32_t total_weight_size;
  uint32_t total_internal_size;
} rknn_mem_size;

typedef struct {
  void* virt_addr;
  uint64_t phys_addr;
  int32_t fd;
  int32_t offset;
  uint32_t size;
  uint32_t flags;
  void* priv_data;
} rknn_tensor_mem;

typedef struct {
  uint32_t index;
  void* buf;
  uint32_t size;
  uint8_t pass_through;
  int32_t type;
  int32_t fmt;
} rknn_input;

typedef struct {
  uint8_t want_float;
  uint8_t is_prealloc;
  uint32_t index;
  void* buf;
  uint32_t size;
} rknn_output;

typedef struct {
  uint64_t frame_id;
  int32_t non_block;
  int32_t timeout_ms;
} rknn_run_extend;

typedef struct {
  char name[256];
  uint32_t n_dims;
  uint32_t dims[16];
  uint32_t size;
  int32_t type;
} rknn_matmul_tensor_attr;

typedef struct {
  int32_t M, K, N;
  int32_t type;          /* an rknn_tensor_type: 2 is int8 */
  int32_t native_layout; /* of B */
  int32_t perf_layout;   /* of A and C */
} rknn_matmul_info;

enum { INPUT_ATTR = 1, OUTPUT_ATTR = 2, MEM_SIZE = 6 };
enum { FLOAT32 = 0, INT8 = 2, UINT8 = 3, NHWC = 1 };

int rknn_init(rknn_context*, void*, uint32_t, uint32_t, void*);
int rknn_destroy(rknn_context);
int rknn_query(rknn_context, int, void*, uint32_t);
int rknn_inputs_set(rknn_context, uint32_t, rknn_input[]);
int rknn_run(rknn_context, rknn_run_extend*);
int rknn_outputs_get(rknn_context, uint32_t, rknn_output[], void*);
int rknn_outputs_release(rknn_context, uint32_t, rknn_output[]);
rknn_tensor_mem* rknn_create_mem(rknn_context, uint32_t);
int rknn_destroy_mem(rknn_context, rknn_tensor_mem*);
int rknn_set_io_mem(rknn_context, rknn_tensor_mem*, rknn_tensor_attr*);
int rknn_matmul_create(rknn_context*, rknn_matmul_info*,
                       rknn_matmul_tensor_attr[3]);
int rknn_matmul_set_io_mem(rknn_context, rknn_tensor_mem*,
                           rknn_matmul_tensor_attr*);
int rknn_matmul_run(rknn_context);
int rknn_matmul_destroy(rknn_context);

/* A struct alone on the heap, so that a sanitizer sees what touches more. */
static void* alone(size_t size) {
  void* const bytes = malloc(size);
  EXPECT(bytes != NULL);
  memset(bytes, 0xee, size);
  return bytes;
}

static rknn_tensor_attr* query(rknn_context ctx, int command) {
  rknn_tensor_attr* const attr = alone(sizeof *attr);
  attr->index = 0;
  EXPECT(rknn_query(ctx, command, attr, sizeof *attr) == 0);
  return attr;
}

static void run_model(const char* path) {
  rknn_context ctx = 0;
  rknn_mem_size* const size = alone(sizeof *size);
  rknn_run_extend* const extend = alone(sizeof *extend);
  rknn_tensor_attr *in, *out;
  rknn_tensor_mem *in_mem, *out_mem;
  rknn_input input;
  rknn_output output;
  uint8_t* picture;
  uint32_t i;
  EXPECT(rknn_init(&ctx, (void*)path, 0, 0, NULL) == 0);
  EXPECT(rknn_query(ctx, MEM_SIZE, size, sizeof *size) == 0);
  EXPECT(size->total_weight_size > 0 && size->total_internal_size > 0);
  in = query(ctx, INPUT_ATTR);
  out = query(ctx, OUTPUT_ATTR);
  EXPECT(in->n_dims == 4 && in->dims[3] == 3);
  picture = malloc(in->n_elems);
  EXPECT(picture != NULL);
  for (i = 0; i < in->n_elems; ++i) picture[i] = (uint8_t)(i * 31 % 251);

  memset(&input, 0, sizeof input);
  input.buf = picture;
  input.size = in->n_elems;
  input.type = UINT8;
  input.fmt = NHWC;
  EXPECT(rknn_inputs_set(ctx, 1, &input) == 0);
  memset(extend, 0, sizeof *extend);
  EXPECT(rknn_run(ctx, extend) == 0);
  memset(&output, 0, sizeof output);
  output.want_float = 1;
  EXPECT(rknn_outputs_get(ctx, 1, &output, NULL) == 0);
  EXPECT(output.size == out->n_elems * sizeof(float));

  in->type = UINT8;
  in->fmt = NHWC;
  in->pass_through = 0;
  out->type = FLOAT32;
  in_mem = rknn_create_mem(ctx, in->size_with_stride);
  out_mem = rknn_create_mem(ctx, output.size);
  EXPECT(in_mem != NULL && out_mem != NULL);
  EXPECT(rknn_set_io_mem(ctx, in_mem, in) == 0);
  EXPECT(rknn_set_io_mem(ctx, out_mem, out) == 0);
  memcpy(in_mem->virt_addr, picture, in->n_elems);
  EXPECT(rknn_run(ctx, NULL) == 0);
  EXPECT(memcmp(out_mem->virt_addr, output.buf, output.size) == 0);

  EXPECT(rknn_outputs_release(ctx, 1, &output) == 0);
  EXPECT(rknn_destroy_mem(ctx, in_mem) == 0);
  EXPECT(rknn_destroy_mem(ctx, out_mem) == 0);
  EXPECT(rknn_destroy(ctx) == 0);
  free(picture);
  free(in);
  free(out);
  free(extend);
  free(size);
}

static void run_product(void) {
  rknn_context ctx = 0;
  rknn_matmul_info* const info = alone(sizeof *info);
  rknn_matmul_tensor_attr* const attrs = alone(3 * sizeof *attrs);
  rknn_tensor_mem* mem[3];
  int i;
  info->M = 1;
  info->K = 32;
  info->N = 32;
  info->type = INT8;
  info->native_layout = 0;
  info->perf_layout = 0;
  EXPECT(rknn_matmul_create(&ctx, info, attrs) == 0);
  for (i = 0; i < 3; ++i) {
    mem[i] = rknn_create_mem(ctx, attrs[i].size);
    EXPECT(mem[i] != NULL);
    memset(mem[i]->virt_addr, 2, attrs[i].size);
    EXPECT(rknn_matmul_set_io_mem(ctx, mem[i], &attrs[i]) == 0);
  }
  EXPECT(rknn_matmul_run(ctx) == 0);
  for (i = 0; i < 32; ++i) EXPECT(((int32_t*)mem[2]->virt_addr)[i] == 32 * 4);
  for (i = 0; i < 3; ++i) EXPECT(rknn_destroy_mem(ctx, mem[i]) == 0);
  EXPECT(rknn_matmul_destroy(ctx) == 0);
  free(attrs);
  free(info);
}

int main(int argc, char** argv) {
  EXPECT(argc == 2 && sizeof(rknn_tensor_attr) == 372);
  run_model(argv[1]);
  run_product();
  printf("older header: model and product are right\n");
  return 0;
}
