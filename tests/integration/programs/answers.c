/* A program as application writers have it: C99, nothing but rknn_api.h and
 * libc. Runs a model on stored inputs and compares with stored outputs.
 *
 *   answers MODEL copy|bound fp32|fp16|int32 nchw|nhwc TOLERANCE INPUT... :
 *           OUTPUT...
 *
 * copy: rknn_inputs_set and rknn_outputs_get; bound: rknn_create_mem and
 * rknn_set_io_mem. The type is that of the program's tensors (int32: of its
 * inputs, its outputs are fp32), the layout that of the input files; files are
 * float32 or float16 by their size, inputs int32 where so said. Prints the
 * largest error of each output; exits with 0 when each is at most TOLERANCE
 * times the largest stored value, with 1 when not, 2 when a call failed, 3 on
 * bad usage. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rknn_api.h"

#define MAX_TENSORS 16

static void fail(const char* what, int code) {
  fprintf(stderr, "answers: %s: %d\n", what, code);
  exit(2);
}

static void check(int code, const char* what) {
  if (code != RKNN_SUCC) fail(what, code);
}

/* ---- numbers ------------------------------------------------------------- */

static float half_to_float(uint16_t half) {
  uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
  uint32_t exponent = (half >> 10) & 0x1fu;
  uint32_t fraction = half & 0x3ffu;
  uint32_t bits;
  float value;
  if (exponent == 0) {
    /* fraction * 2^-24, exact in a float */
    value = (float)fraction / 16777216.0f;
    return sign ? -value : value;
  }
  if (exponent == 31) {
    bits = sign | 0x7f800000u | (fraction << 13);
  } else {
    bits = sign | ((exponent + 112) << 23) | (fraction << 13);
  }
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* To nearest, ties to even. */
static uint16_t float_to_half(float value) {
  uint32_t bits, sign, magnitude, shift, kept, rest, middle;
  memcpy(&bits, &value, sizeof bits);
  sign = (bits >> 16) & 0x8000u;
  magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return (uint16_t)(sign | 0x7e00u);
  if (magnitude >= 0x477ff000u) return (uint16_t)(sign | 0x7c00u);
  if (magnitude < 0x33000000u) return (uint16_t)sign;
  if (magnitude < 0x38800000u) { /* subnormal as a half */
    shift = 126 - (magnitude >> 23);
    kept = (magnitude & 0x7fffffu) | 0x800000u;
  } else {
    shift = 13;
    kept = magnitude - 0x38000000u;
  }
  rest = kept & ((1u << shift) - 1);
  middle = 1u << (shift - 1);
  kept >>= shift;
  if (rest > middle || (rest == middle && (kept & 1u))) ++kept;
  return (uint16_t)(sign | kept);
}

/* ---- files ----------------------------------------------------------------
 */

/* The `count` numbers of a file of float32 or float16, or of int32. */
static float* read_tensor(const char* path, uint32_t count,
                          rknn_tensor_type type) {
  FILE* file = fopen(path, "rb");
  size_t room = (size_t)count * 4 + 1;
  unsigned char* bytes = malloc(room);
  float* values = malloc((size_t)count * sizeof *values);
  size_t size;
  uint32_t i;
  if (file == NULL || bytes == NULL || values == NULL) fail(path, 0);
  size = fread(bytes, 1, room, file);
  fclose(file);
  if (size == (size_t)count * 4 && type == RKNN_TENSOR_INT32) {
    for (i = 0; i < count; ++i) {
      int32_t number;
      memcpy(&number, bytes + (size_t)i * 4, sizeof number);
      values[i] = (float)number;
    }
  } else if (size == (size_t)count * 4) {
    memcpy(values, bytes, size);
  } else if (size == (size_t)count * 2) {
    for (i = 0; i < count; ++i) {
      uint16_t half;
      memcpy(&half, bytes + (size_t)i * 2, sizeof half);
      values[i] = half_to_float(half);
    }
  } else {
    fail(path, (int)size);
  }
  free(bytes);
  return values;
}

/* ---- tensors --------------------------------------------------------------
 */

static uint32_t bytes_of(uint32_t count, rknn_tensor_type type) {
  return count * (type == RKNN_TENSOR_FLOAT16 ? 2u : 4u);
}

static void store(void* memory, uint32_t at, float value,
                  rknn_tensor_type type) {
  if (type == RKNN_TENSOR_FLOAT32) {
    memcpy((char*)memory + (size_t)at * 4, &value, 4);
  } else if (type == RKNN_TENSOR_INT32) {
    int32_t number = (int32_t)value;
    memcpy((char*)memory + (size_t)at * 4, &number, 4);
  } else {
    uint16_t half = float_to_half(value);
    memcpy((char*)memory + (size_t)at * 2, &half, 2);
  }
}

static float load(const void* memory, uint32_t at, rknn_tensor_type type) {
  if (type == RKNN_TENSOR_FLOAT32) {
    float value;
    memcpy(&value, (const char*)memory + (size_t)at * 4, 4);
    return value;
  } else {
    uint16_t half;
    memcpy(&half, (const char*)memory + (size_t)at * 2, 2);
    return half_to_float(half);
  }
}

/* From a stored NCHW tensor into the order of an NHWC attribute. */
static void store_nhwc(void* memory, const float* values,
                       const rknn_tensor_attr* attr, rknn_tensor_type type) {
  uint32_t height = attr->dims[1], width = attr->dims[2];
  uint32_t channels = attr->dims[3];
  uint32_t pitch = attr->w_stride == 0 ? width : attr->w_stride;
  uint32_t n, c, y, x;
  for (n = 0; n < attr->dims[0]; ++n) {
    for (c = 0; c < channels; ++c) {
      for (y = 0; y < height; ++y) {
        for (x = 0; x < width; ++x) {
          uint32_t to = ((n * height + y) * pitch + x) * channels + c;
          uint32_t from = ((n * channels + c) * height + y) * width + x;
          store(memory, to, values[from], type);
        }
      }
    }
  }
}

static int compare(uint32_t index, const void* memory, rknn_tensor_type type,
                   const float* wanted, uint32_t count, double tolerance) {
  double error = 0, largest = 0;
  uint32_t i;
  for (i = 0; i < count; ++i) {
    double got = load(memory, i, type);
    double difference = got - wanted[i];
    double size = wanted[i] < 0 ? -wanted[i] : wanted[i];
    if (difference < 0) difference = -difference;
    if (size > largest) largest = size;
    /* Written so that a NaN counts. */
    if (!(difference <= error)) error = difference;
  }
  printf("output %u: error %g, largest %g\n", (unsigned)index, error, largest);
  return error <= tolerance * largest;
}

/* ---- the two ways ----------------------------------------------------------
 */

struct model {
  rknn_context context;
  rknn_input_output_num number;
  rknn_tensor_attr inputs[MAX_TENSORS], outputs[MAX_TENSORS];
  float* given[MAX_TENSORS];
  float* wanted[MAX_TENSORS];
  rknn_tensor_type input_type, output_type;
  rknn_tensor_format layout; /* of what is given */
  double tolerance;
};

static int run_copy(struct model* m) {
  rknn_input inputs[MAX_TENSORS];
  rknn_output outputs[MAX_TENSORS];
  int good = 1;
  uint32_t i, k;
  memset(inputs, 0, sizeof inputs);
  memset(outputs, 0, sizeof outputs);
  for (i = 0; i < m->number.n_input; ++i) {
    uint32_t count = m->inputs[i].n_elems;
    void* bytes = malloc(bytes_of(count, m->input_type));
    if (bytes == NULL) fail("malloc", 0);
    for (k = 0; k < count; ++k) store(bytes, k, m->given[i][k], m->input_type);
    inputs[i].index = i;
    inputs[i].type = m->input_type;
    inputs[i].fmt = m->layout;
    inputs[i].buf = bytes;
    inputs[i].size = bytes_of(count, m->input_type);
  }
  check(rknn_inputs_set(m->context, m->number.n_input, inputs),
        "rknn_inputs_set");
  /* The data was taken at the call. */
  for (i = 0; i < m->number.n_input; ++i) {
    memset(inputs[i].buf, 0x5a, inputs[i].size);
    free(inputs[i].buf);
  }
  check(rknn_run(m->context, NULL), "rknn_run");
  for (i = 0; i < m->number.n_output; ++i) {
    outputs[i].index = i;
    outputs[i].want_float = m->output_type == RKNN_TENSOR_FLOAT32;
  }
  check(rknn_outputs_get(m->context, m->number.n_output, outputs, NULL),
        "rknn_outputs_get");
  for (i = 0; i < m->number.n_output; ++i) {
    uint32_t count = m->outputs[i].n_elems;
    if (outputs[i].size != bytes_of(count, m->output_type)) {
      fail("size", (int)i);
    }
    good &= compare(i, outputs[i].buf, m->output_type, m->wanted[i], count,
                    m->tolerance);
  }
  check(rknn_outputs_release(m->context, m->number.n_output, outputs),
        "rknn_outputs_release");
  return good;
}

static rknn_tensor_mem* bind(struct model* m, rknn_tensor_attr attr,
                             rknn_tensor_type type) {
  uint32_t size = bytes_of(attr.n_elems, type);
  rknn_tensor_mem* mem;
  if (attr.size_with_stride > size) size = attr.size_with_stride;
  mem = rknn_create_mem(m->context, size);
  if (mem == NULL) fail("rknn_create_mem", 0);
  attr.type = type;
  check(rknn_set_io_mem(m->context, mem, &attr), "rknn_set_io_mem");
  return mem;
}

static int run_bound(struct model* m) {
  rknn_tensor_mem* inputs[MAX_TENSORS];
  rknn_tensor_mem* outputs[MAX_TENSORS];
  int good = 1;
  uint32_t i, k;
  for (i = 0; i < m->number.n_input; ++i) {
    const rknn_tensor_attr* attr = &m->inputs[i];
    inputs[i] = bind(m, *attr, m->input_type);
    if (attr->fmt == RKNN_TENSOR_NHWC && m->layout == RKNN_TENSOR_NCHW) {
      store_nhwc(inputs[i]->virt_addr, m->given[i], attr, m->input_type);
    } else {
      for (k = 0; k < attr->n_elems; ++k) {
        store(inputs[i]->virt_addr, k, m->given[i][k], m->input_type);
      }
    }
  }
  for (i = 0; i < m->number.n_output; ++i) {
    outputs[i] = bind(m, m->outputs[i], m->output_type);
  }
  check(rknn_run(m->context, NULL), "rknn_run");
  for (i = 0; i < m->number.n_output; ++i) {
    check(rknn_mem_sync(m->context, outputs[i], RKNN_MEMORY_SYNC_FROM_DEVICE),
          "rknn_mem_sync");
    good &= compare(i, outputs[i]->virt_addr, m->output_type, m->wanted[i],
                    m->outputs[i].n_elems, m->tolerance);
  }
  for (i = 0; i < m->number.n_input; ++i) {
    check(rknn_destroy_mem(m->context, inputs[i]), "rknn_destroy_mem");
  }
  for (i = 0; i < m->number.n_output; ++i) {
    check(rknn_destroy_mem(m->context, outputs[i]), "rknn_destroy_mem");
  }
  return good;
}

static void query(struct model* m, rknn_query_cmd what, uint32_t count,
                  rknn_tensor_attr* attrs) {
  uint32_t i;
  for (i = 0; i < count; ++i) {
    memset(&attrs[i], 0, sizeof attrs[i]);
    attrs[i].index = i;
    check(rknn_query(m->context, what, &attrs[i], sizeof attrs[i]),
          "rknn_query");
  }
}

int main(int argc, char** argv) {
  static struct model m;
  int good, at = 6;
  uint32_t i;
  if (argc < 9) return 3;
  m.output_type =
      strcmp(argv[3], "fp16") == 0 ? RKNN_TENSOR_FLOAT16 : RKNN_TENSOR_FLOAT32;
  m.input_type =
      strcmp(argv[3], "int32") == 0 ? RKNN_TENSOR_INT32 : m.output_type;
  m.layout = strcmp(argv[4], "nhwc") == 0 ? RKNN_TENSOR_NHWC : RKNN_TENSOR_NCHW;
  m.tolerance = atof(argv[5]);
  check(rknn_init(&m.context, argv[1], 0, 0, NULL), "rknn_init");
  check(
      rknn_query(m.context, RKNN_QUERY_IN_OUT_NUM, &m.number, sizeof m.number),
      "rknn_query");
  if (m.number.n_input > MAX_TENSORS || m.number.n_output > MAX_TENSORS ||
      (uint32_t)argc != 7 + m.number.n_input + m.number.n_output) {
    return 3;
  }
  query(&m, RKNN_QUERY_INPUT_ATTR, m.number.n_input, m.inputs);
  query(&m, RKNN_QUERY_OUTPUT_ATTR, m.number.n_output, m.outputs);
  for (i = 0; i < m.number.n_input; ++i) {
    m.given[i] = read_tensor(argv[at++], m.inputs[i].n_elems, m.input_type);
  }
  ++at; /* the colon */
  for (i = 0; i < m.number.n_output; ++i) {
    m.wanted[i] = read_tensor(argv[at++], m.outputs[i].n_elems, m.output_type);
  }
  good = strcmp(argv[2], "bound") == 0 ? run_bound(&m) : run_copy(&m);
  check(rknn_destroy(m.context), "rknn_destroy");
  for (i = 0; i < MAX_TENSORS; ++i) {
    free(m.given[i]);
    free(m.wanted[i]);
  }
  return good ? 0 : 1;
}
