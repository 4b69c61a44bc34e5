/* A model that lists shapes, used as programs for the vendor's library do it:
 * C99, rknn_api.h and libc.
 *
 *   dynamic_shapes MODEL FIXED...
 *
 * MODEL has one image input and lists shapes; each FIXED is the same network
 * for one of them. Every listed shape must answer as its fixed model, bit for
 * bit, with copied data and with bound memory. Exits as vendor_style.c. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rknn_api.h"
#include "tests/integration/programs/expect.h"

enum { MAX_FIXED = 8 };
static rknn_context fixed[MAX_FIXED];
static int fixed_count = 0;
static rknn_input_range range;

static rknn_tensor_attr attribute(rknn_context context, rknn_query_cmd what) {
  rknn_tensor_attr attr;
  memset(&attr, 0, sizeof attr);
  MUST(rknn_query(context, what, &attr, sizeof attr));
  return attr;
}

static int same_dims(const uint32_t* a, const uint32_t* b, uint32_t count) {
  return memcmp(a, b, count * sizeof *a) == 0;
}

static void* pixels(uint32_t count) {
  uint8_t* bytes = malloc(count);
  uint32_t i;
  for (i = 0; i < count; ++i) bytes[i] = (uint8_t)((i * 31 + i / 7) % 251);
  return bytes;
}

/* Runs with copies; the first output as floats, to be freed. */
static float* infer(rknn_context context, const void* bytes, uint32_t size,
                    uint32_t* count) {
  rknn_input input;
  rknn_output output;
  float* answer;
  memset(&input, 0, sizeof input);
  input.buf = (void*)bytes;
  input.size = size;
  input.type = RKNN_TENSOR_UINT8;
  input.fmt = RKNN_TENSOR_NHWC;
  MUST(rknn_inputs_set(context, 1, &input));
  MUST(rknn_run(context, NULL));
  memset(&output, 0, sizeof output);
  output.want_float = 1;
  MUST(rknn_outputs_get(context, 1, &output, NULL));
  *count = output.size / (uint32_t)sizeof(float);
  answer = malloc(output.size);
  memcpy(answer, output.buf, output.size);
  MUST(rknn_outputs_release(context, 1, &output));
  return answer;
}

/* What the fixed model of that shape answers. */
static float* right_answer(const rknn_tensor_attr* input, const void* bytes,
                           uint32_t* count) {
  int i;
  for (i = 0; i < fixed_count; ++i) {
    rknn_tensor_attr own = attribute(fixed[i], RKNN_QUERY_INPUT_ATTR);
    if (same_dims(own.dims, input->dims, input->n_dims)) {
      return infer(fixed[i], bytes, input->n_elems, count);
    }
  }
  fprintf(stderr, "no fixed model has the shape\n");
  exit(2);
}

static void choose(rknn_context context, const uint32_t* dims,
                   rknn_tensor_format format) {
  rknn_tensor_attr attr = attribute(context, RKNN_QUERY_INPUT_ATTR);
  memcpy(attr.dims, dims, sizeof attr.dims);
  attr.fmt = format;
  MUST(rknn_set_input_shapes(context, 1, &attr));
}

static void check_before(rknn_context context) {
  rknn_tensor_attr input = attribute(context, RKNN_QUERY_INPUT_ATTR);
  rknn_tensor_attr attr = input;
  uint32_t row, i, largest = 0;
  rknn_input_output_num number;
  MUST(rknn_query(context, RKNN_QUERY_IN_OUT_NUM, &number, sizeof number));
  EXPECT(number.n_input == 1 && number.n_output == 1);
  MUST(rknn_query(context, RKNN_QUERY_INPUT_DYNAMIC_RANGE, &range,
                  sizeof range));
  EXPECT(range.shape_number == (uint32_t)fixed_count);
  EXPECT(range.n_dims == 4);
  EXPECT(range.fmt == RKNN_TENSOR_NHWC);
  EXPECT(strcmp(range.name, input.name) == 0);
  for (row = 0; row < range.shape_number; ++row) {
    uint32_t elements = 1;
    for (i = 0; i < range.n_dims; ++i) elements *= range.dyn_range[row][i];
    if (elements > largest) largest = elements;
    for (; i < RKNN_MAX_DIMS; ++i) EXPECT(range.dyn_range[row][i] == 0);
  }
  EXPECT(input.n_elems == largest);
  range.index = 1;
  EXPECT(rknn_query(context, RKNN_QUERY_INPUT_DYNAMIC_RANGE, &range,
                    sizeof range) == RKNN_ERR_PARAM_INVALID);
  range.index = 0;
  EXPECT(rknn_query(context, RKNN_QUERY_INPUT_DYNAMIC_RANGE, &range, 4096) ==
         RKNN_ERR_PARAM_INVALID);
  /* No shape is chosen: nothing is current, and nothing runs. */
  EXPECT(rknn_query(context, RKNN_QUERY_CURRENT_INPUT_ATTR, &attr,
                    sizeof attr) != RKNN_SUCC);
  EXPECT(rknn_run(context, NULL) != RKNN_SUCC);
  /* Shapes that are not listed. */
  attr = input;
  attr.dims[1] += 1;
  EXPECT(rknn_set_input_shapes(context, 1, &attr) == RKNN_ERR_INPUT_INVALID);
  attr = input;
  attr.n_dims = 3;
  EXPECT(rknn_set_input_shapes(context, 1, &attr) == RKNN_ERR_INPUT_INVALID);
  attr = input;
  attr.n_dims = 99;
  EXPECT(rknn_set_input_shapes(context, 1, &attr) == RKNN_ERR_INPUT_INVALID);
  attr = input;
  attr.index = 1;
  EXPECT(rknn_set_input_shapes(context, 1, &attr) == RKNN_ERR_INPUT_INVALID);
  EXPECT(rknn_set_input_shapes(context, 2, &attr) == RKNN_ERR_INPUT_INVALID);
  EXPECT(rknn_set_input_shapes(context, 0, &attr) == RKNN_ERR_INPUT_INVALID);
  EXPECT(rknn_set_input_shapes(context, 1, NULL) == RKNN_ERR_PARAM_INVALID);
}

static void check_current(rknn_context context, uint32_t row) {
  rknn_tensor_attr in = attribute(context, RKNN_QUERY_CURRENT_INPUT_ATTR);
  rknn_tensor_attr out = attribute(context, RKNN_QUERY_CURRENT_OUTPUT_ATTR);
  rknn_tensor_attr native_in =
      attribute(context, RKNN_QUERY_CURRENT_NATIVE_INPUT_ATTR);
  rknn_tensor_attr native_out =
      attribute(context, RKNN_QUERY_CURRENT_NATIVE_OUTPUT_ATTR);
  EXPECT(in.n_dims == range.n_dims);
  EXPECT(same_dims(in.dims, range.dyn_range[row], RKNN_MAX_DIMS));
  EXPECT(in.w_stride == in.dims[2]);
  EXPECT(out.dims[2] == in.dims[1] && out.dims[3] == in.dims[2]);
  EXPECT(native_in.dims[1] == in.dims[1]);
  EXPECT(native_out.fmt == RKNN_TENSOR_NC1HWC2);
  EXPECT(native_out.dims[2] == in.dims[1] && native_out.dims[3] == in.dims[2]);
}

static void check_copied(rknn_context context, uint32_t row) {
  rknn_tensor_attr in;
  rknn_output output;
  uint32_t got_count, wanted_count;
  float *got, *wanted;
  void* bytes;
  memset(&output, 0, sizeof output);
  choose(context, range.dyn_range[row], RKNN_TENSOR_NHWC);
  check_current(context, row);
  /* What came before was of another shape. */
  EXPECT(rknn_run(context, NULL) == RKNN_ERR_INPUT_INVALID);
  EXPECT(rknn_outputs_get(context, 1, &output, NULL) != RKNN_SUCC);
  in = attribute(context, RKNN_QUERY_CURRENT_INPUT_ATTR);
  bytes = pixels(in.n_elems);
  wanted = right_answer(&in, bytes, &wanted_count);
  got = infer(context, bytes, in.n_elems, &got_count);
  EXPECT(got_count == wanted_count);
  EXPECT(got_count == wanted_count &&
         memcmp(got, wanted, got_count * sizeof *got) == 0);
  /* Chosen again, it is no change. */
  choose(context, range.dyn_range[row], RKNN_TENSOR_NHWC);
  MUST(rknn_run(context, NULL));
  free(got);
  free(wanted);
  free(bytes);
}

/* Memory for the largest shape, bound again for each. */
static void check_bound(rknn_context context) {
  rknn_tensor_attr in = attribute(context, RKNN_QUERY_INPUT_ATTR);
  rknn_tensor_attr out = attribute(context, RKNN_QUERY_OUTPUT_ATTR);
  rknn_tensor_mem* input = rknn_create_mem(context, in.size_with_stride);
  rknn_tensor_mem* output =
      rknn_create_mem(context, out.n_elems * (uint32_t)sizeof(float));
  uint32_t row;
  for (row = 0; row < range.shape_number; ++row) {
    const uint32_t* d = range.dyn_range[row];
    uint32_t dims[RKNN_MAX_DIMS] = {0};
    uint32_t count;
    void* bytes;
    float* wanted;
    dims[0] = d[0];
    dims[1] = d[3];
    dims[2] = d[1];
    dims[3] = d[2];
    choose(context, dims, RKNN_TENSOR_NCHW);
    in = attribute(context, RKNN_QUERY_CURRENT_INPUT_ATTR);
    out = attribute(context, RKNN_QUERY_CURRENT_OUTPUT_ATTR);
    bytes = pixels(in.n_elems);
    memcpy(input->virt_addr, bytes, in.n_elems);
    in.type = RKNN_TENSOR_UINT8;
    out.type = RKNN_TENSOR_FLOAT32;
    MUST(rknn_set_io_mem(context, input, &in));
    MUST(rknn_set_io_mem(context, output, &out));
    MUST(rknn_run(context, NULL));
    wanted = right_answer(&in, bytes, &count);
    EXPECT(count == out.n_elems);
    EXPECT(memcmp(output->virt_addr, wanted, count * sizeof *wanted) == 0);
    free(wanted);
    free(bytes);
  }
  MUST(rknn_destroy_mem(context, input));
  MUST(rknn_destroy_mem(context, output));
}

int main(int argc, char** argv) {
  rknn_context context = 0, second = 0;
  rknn_tensor_attr attr;
  uint32_t row;
  if (argc < 3 || argc - 2 > MAX_FIXED) return 2;
  for (; fixed_count < argc - 2; ++fixed_count) {
    MUST(rknn_init(&fixed[fixed_count], argv[fixed_count + 2], 0, 0, NULL));
  }
  MUST(rknn_init(&context, argv[1], 0, 0, NULL));
  check_before(context);
  for (row = 0; row < range.shape_number; ++row) check_copied(context, row);
  for (row = range.shape_number - 1; row-- > 0;) check_copied(context, row);

  /* A second context of the same model, with a shape of its own. */
  MUST(rknn_dup_context(&context, &second));
  EXPECT(rknn_run(second, NULL) != RKNN_SUCC);
  check_bound(second);
  MUST(rknn_destroy(second));

  /* The old call for one input. */
  attr = attribute(context, RKNN_QUERY_INPUT_ATTR);
  MUST(rknn_set_input_shape(context, &attr));
  attr.dims[2] += 1;
  EXPECT(rknn_set_input_shape(context, &attr) == RKNN_ERR_INPUT_INVALID);

  /* A fixed model has no list, and no other shape. */
  EXPECT(rknn_query(fixed[0], RKNN_QUERY_INPUT_DYNAMIC_RANGE, &range,
                    sizeof range) != RKNN_SUCC);
  attr = attribute(fixed[0], RKNN_QUERY_CURRENT_INPUT_ATTR);
  MUST(rknn_set_input_shapes(fixed[0], 1, &attr));
  attr.dims[1] += 1;
  EXPECT(rknn_set_input_shapes(fixed[0], 1, &attr) == RKNN_ERR_INPUT_INVALID);

  MUST(rknn_destroy(context));
  while (fixed_count-- > 0) MUST(rknn_destroy(fixed[fixed_count]));
  return faults == 0 ? 0 : 1;
}
