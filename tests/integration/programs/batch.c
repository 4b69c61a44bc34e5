/* A model with a batch: C99, rknn_api.h and libc.
 *
 *   batch MODEL SINGLE
 *
 * MODEL is SINGLE, a network of one image input, with option rknn_batch_size.
 * Its answers must be those of so many single runs, bit for bit, on however
 * many cores. Exits as vendor_style.c. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rknn_api.h"
#include "tests/integration/programs/expect.h"

static rknn_tensor_attr attribute(rknn_context context, rknn_query_cmd what) {
  rknn_tensor_attr attr;
  memset(&attr, 0, sizeof attr);
  MUST(rknn_query(context, what, &attr, sizeof attr));
  return attr;
}

/* Pixels in, floats out, which are added to `answer`. */
static uint32_t infer(rknn_context context, uint8_t* bytes, uint32_t size,
                      float* answer) {
  rknn_input input;
  rknn_output output;
  memset(&input, 0, sizeof input);
  input.buf = bytes;
  input.size = size;
  input.type = RKNN_TENSOR_UINT8;
  input.fmt = RKNN_TENSOR_NHWC;
  MUST(rknn_inputs_set(context, 1, &input));
  MUST(rknn_run(context, NULL));
  memset(&output, 0, sizeof output);
  output.want_float = 1;
  MUST(rknn_outputs_get(context, 1, &output, NULL));
  memcpy(answer, output.buf, output.size);
  MUST(rknn_outputs_release(context, 1, &output));
  return output.size / (uint32_t)sizeof(float);
}

/* The same through memory that is bound. */
static void infer_bound(rknn_context context, const uint8_t* bytes,
                        float* answer) {
  rknn_tensor_attr in = attribute(context, RKNN_QUERY_INPUT_ATTR);
  rknn_tensor_attr out = attribute(context, RKNN_QUERY_OUTPUT_ATTR);
  rknn_tensor_mem* input = rknn_create_mem(context, in.size_with_stride);
  rknn_tensor_mem* output =
      rknn_create_mem(context, out.n_elems * (uint32_t)sizeof(float));
  memcpy(input->virt_addr, bytes, in.n_elems);
  in.type = RKNN_TENSOR_UINT8;
  out.type = RKNN_TENSOR_FLOAT32;
  MUST(rknn_set_io_mem(context, input, &in));
  MUST(rknn_set_io_mem(context, output, &out));
  MUST(rknn_run(context, NULL));
  memcpy(answer, output->virt_addr, out.n_elems * sizeof(float));
  MUST(rknn_destroy_mem(context, input));
  MUST(rknn_destroy_mem(context, output));
}

int main(int argc, char** argv) {
  rknn_context batch = 0, single = 0;
  rknn_tensor_attr in, out, one_in, one_out;
  uint32_t i, n;
  uint8_t* bytes;
  float *wanted, *got;
  int cores;
  if (argc != 3) return 2;
  MUST(rknn_init(&batch, argv[1], 0, 0, NULL));
  MUST(rknn_init(&single, argv[2], 0, 0, NULL));
  in = attribute(batch, RKNN_QUERY_INPUT_ATTR);
  out = attribute(batch, RKNN_QUERY_OUTPUT_ATTR);
  one_in = attribute(single, RKNN_QUERY_INPUT_ATTR);
  one_out = attribute(single, RKNN_QUERY_OUTPUT_ATTR);
  n = in.dims[0];
  EXPECT(n > 1);
  EXPECT(out.dims[0] == n);
  EXPECT(in.n_elems == n * one_in.n_elems);
  EXPECT(in.size == n * one_in.size);
  EXPECT(out.n_elems == n * one_out.n_elems);
  EXPECT(out.size == n * one_out.size);
  EXPECT(memcmp(in.dims + 1, one_in.dims + 1, 3 * sizeof *in.dims) == 0);

  bytes = malloc(in.n_elems);
  for (i = 0; i < in.n_elems; ++i)
    bytes[i] = (uint8_t)((i * 37 + i / 11) % 241);
  wanted = malloc(out.n_elems * sizeof *wanted);
  got = malloc(out.n_elems * sizeof *got);
  for (i = 0; i < n; ++i) {
    EXPECT(infer(single, bytes + i * one_in.n_elems, one_in.n_elems,
                 wanted + i * one_out.n_elems) == one_out.n_elems);
  }
  EXPECT(infer(batch, bytes, in.n_elems, got) == out.n_elems);
  EXPECT(memcmp(got, wanted, out.n_elems * sizeof *got) == 0);

  /* As many cores as an RK3588 has, and back to one. */
  for (cores = 3; cores >= 1; --cores) {
    MUST(rknn_set_batch_core_num(batch, cores));
    memset(got, 0, out.n_elems * sizeof *got);
    infer(batch, bytes, in.n_elems, got);
    EXPECT(memcmp(got, wanted, out.n_elems * sizeof *got) == 0);
  }
  infer_bound(batch, bytes, got);
  EXPECT(memcmp(got, wanted, out.n_elems * sizeof *got) == 0);

  EXPECT(rknn_set_batch_core_num(batch, 4) == RKNN_ERR_PARAM_INVALID);
  EXPECT(rknn_set_batch_core_num(batch, 0) == RKNN_ERR_PARAM_INVALID);
  EXPECT(rknn_set_batch_core_num(batch, -1) == RKNN_ERR_PARAM_INVALID);
  EXPECT(rknn_set_batch_core_num(single, 2) == RKNN_ERR_FAIL);

  MUST(rknn_destroy(batch));
  MUST(rknn_destroy(single));
  free(bytes);
  free(wanted);
  free(got);
  return faults == 0 ? 0 : 1;
}
