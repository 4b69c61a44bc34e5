/* Operators that a program computes itself, as programs for the vendor's
 * library write them: C99, rknn_custom_op.h and libc.
 *
 *   custom_ops run MODEL      registers, runs, and compares
 *   custom_ops bound MODEL    the same through memory that is bound
 *   custom_ops again MODEL N  runs N times, a line "run" after each
 *   custom_ops without MODEL  runs without: an error that names the operator
 *   custom_ops override MODEL Relu is the program's: x * x
 *   custom_ops decline MODEL  init leaves Relu to the library
 *   custom_ops flat MODEL TYPE  a compiled model: x, 1x3x4x5, gives Relu(x)
 * and, through an operator TYPE that twice as much comes out of, x + 1, as 1x60
 *   custom_ops die MODEL      ends inside of a callback, with 3
 *   custom_ops wrong MODEL    what must be refused
 *   custom_ops residual MODEL X Y P Q
 *                             another model: cstDualResidual, whose p is
 *                             x * alpha - y and whose q is y * alpha - x, of
 *                             files of floats (X and Y with a header of NumPy,
 *                             NHWC; P and Q without, NCHW)
 *
 * MODEL takes x, 1x3x4x5, and gives y and q:
 *   a = Relu(x); p, q = cstDual(a, x); r = cstNeg(q); y = (p + a) * r
 * cstDual has alpha 0.5, axes 1 2 3 and name "dual": p = a + alpha * x and
 * q = x - a. Exits with 0 when all was right. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rknn_api.h"
#include "rknn_custom_op.h"
#include "tests/integration/programs/expect.h"

#define COUNT 60

static int inits, prepares, computes, destroys;
static int fails_at; /* the compute that is to fail; 0: none */
static rknn_context current;

static float* data_of(const rknn_custom_op_tensor* tensor) {
  return (float*)((char*)tensor->mem.virt_addr + tensor->mem.offset);
}

static void expect_tensor(const rknn_custom_op_tensor* tensor) {
  EXPECT(tensor->attr.n_dims == 4 && tensor->attr.n_elems == COUNT);
  EXPECT(tensor->attr.dims[1] == 3 && tensor->attr.dims[3] == 5);
  EXPECT(tensor->attr.type == RKNN_TENSOR_FLOAT32);
  EXPECT(tensor->attr.fmt == RKNN_TENSOR_NCHW);
  EXPECT(tensor->mem.virt_addr != NULL && tensor->mem.fd > 0);
  EXPECT(tensor->mem.size >= COUNT * sizeof(float));
}

static int init_any(rknn_custom_op_context* op, rknn_custom_op_tensor* inputs,
                    uint32_t n_inputs, rknn_custom_op_tensor* outputs,
                    uint32_t n_outputs) {
  (void)inputs;
  (void)outputs;
  EXPECT(n_inputs > 0 && n_outputs > 0);
  EXPECT(op->target == RKNN_TARGET_TYPE_CPU && op->priv_data == NULL);
  op->priv_data = malloc(1);
  ++inits;
  return 0;
}

static int prepare_any(rknn_custom_op_context* op,
                       rknn_custom_op_tensor* inputs, uint32_t n_inputs,
                       rknn_custom_op_tensor* outputs, uint32_t n_outputs) {
  (void)inputs;
  (void)n_inputs;
  (void)outputs;
  (void)n_outputs;
  EXPECT(op->priv_data != NULL);
  ++prepares;
  return 0;
}

static int destroy_any(rknn_custom_op_context* op) {
  free(op->priv_data);
  ++destroys;
  return 0;
}

static int dual(rknn_custom_op_context* op, rknn_custom_op_tensor* inputs,
                uint32_t n_inputs, rknn_custom_op_tensor* outputs,
                uint32_t n_outputs) {
  rknn_custom_op_attr alpha, axes, name, none;
  EXPECT(n_inputs == 2 && n_outputs == 2);
  for (int i = 0; i < 2; ++i) {
    expect_tensor(&inputs[i]);
    expect_tensor(&outputs[i]);
  }
  memset(&none, 0x55, sizeof none);
  rknn_custom_op_get_op_attr(op, "alpha", &alpha);
  rknn_custom_op_get_op_attr(op, "axes", &axes);
  rknn_custom_op_get_op_attr(op, "name", &name);
  rknn_custom_op_get_op_attr(op, "beta", &none);
  EXPECT(alpha.n_elems == 1 && alpha.dtype == RKNN_TENSOR_FLOAT32);
  EXPECT(strcmp(alpha.name, "alpha") == 0);
  EXPECT(axes.n_elems == 3 && axes.dtype == RKNN_TENSOR_INT64);
  EXPECT(((int64_t*)axes.data)[2] == 3);
  EXPECT(name.n_elems == 4 && name.dtype == RKNN_TENSOR_UINT8);
  EXPECT(memcmp(name.data, "dual", 4) == 0);
  EXPECT(none.n_elems == 0 && none.data == NULL);
  const float* a = data_of(&inputs[0]);
  const float* x = data_of(&inputs[1]);
  for (int i = 0; i < COUNT; ++i) {
    data_of(&outputs[0])[i] = a[i] + *(float*)alpha.data * x[i];
    data_of(&outputs[1])[i] = x[i] - a[i];
  }
  return ++computes == fails_at ? -7 : 0;
}

static int negate(rknn_custom_op_context* op, rknn_custom_op_tensor* inputs,
                  uint32_t n_inputs, rknn_custom_op_tensor* outputs,
                  uint32_t n_outputs) {
  (void)op;
  EXPECT(n_inputs == 1 && n_outputs == 1);
  expect_tensor(&inputs[0]);
  for (int i = 0; i < COUNT; ++i) {
    data_of(&outputs[0])[i] = -data_of(&inputs[0])[i];
  }
  ++computes;
  return 0;
}

static int square(rknn_custom_op_context* op, rknn_custom_op_tensor* inputs,
                  uint32_t n_inputs, rknn_custom_op_tensor* outputs,
                  uint32_t n_outputs) {
  (void)op;
  EXPECT(n_inputs == 1 && n_outputs == 1);
  for (int i = 0; i < COUNT; ++i) {
    data_of(&outputs[0])[i] = data_of(&inputs[0])[i] * data_of(&inputs[0])[i];
  }
  return 0;
}

static int dies(rknn_custom_op_context* op, rknn_custom_op_tensor* inputs,
                uint32_t n_inputs, rknn_custom_op_tensor* outputs,
                uint32_t n_outputs) {
  (void)op;
  (void)inputs;
  (void)n_inputs;
  (void)outputs;
  (void)n_outputs;
  _exit(3);
}

static int calls_back(rknn_custom_op_context* op, rknn_custom_op_tensor* inputs,
                      uint32_t n_inputs, rknn_custom_op_tensor* outputs,
                      uint32_t n_outputs) {
  rknn_input_output_num num;
  EXPECT(rknn_query(current, RKNN_QUERY_IN_OUT_NUM, &num, sizeof num) == 0);
  rknn_perf_detail detail;
  EXPECT(rknn_query(current, RKNN_QUERY_PERF_DETAIL, &detail, sizeof detail) ==
         0);
  EXPECT(rknn_run(current, NULL) < 0);
  EXPECT(rknn_destroy(current) < 0);
  return negate(op, inputs, n_inputs, outputs, n_outputs);
}

static int declines(rknn_custom_op_context* op, rknn_custom_op_tensor* inputs,
                    uint32_t n_inputs, rknn_custom_op_tensor* outputs,
                    uint32_t n_outputs) {
  (void)op;
  (void)inputs;
  (void)n_inputs;
  (void)outputs;
  (void)n_outputs;
  return RKNN_WARNING_SKIP_CUSTOM_OP_COMPUTE;
}

static rknn_custom_op operator_of(
    const char* type,
    int (*compute)(rknn_custom_op_context*, rknn_custom_op_tensor*, uint32_t,
                   rknn_custom_op_tensor*, uint32_t)) {
  rknn_custom_op op;
  memset(&op, 0, sizeof op);
  op.version = 1;
  op.target = RKNN_TARGET_TYPE_CPU;
  strcpy(op.op_type, type);
  op.compute = compute;
  return op;
}

static void register_both(rknn_context context) {
  /* Gone when it has been called. */
  rknn_custom_op ops[2];
  ops[0] = operator_of("cstDual", dual);
  ops[0].init = init_any;
  ops[0].prepare = prepare_any;
  ops[0].destroy = destroy_any;
  ops[1] = operator_of("cstNeg", negate);
  MUST(rknn_register_custom_ops(context, ops, 2));
  memset(ops, 0x55, sizeof ops);
}

static float x_at(int i, int turn) { return (float)(i % 7 - 3 + turn) * 0.5f; }

static void compare(const float* y, const float* q, int turn, int squares) {
  for (int i = 0; i < COUNT; ++i) {
    const float x = x_at(i, turn);
    const float a = squares ? x * x : x > 0 ? x : 0;
    const float want = (a + 0.5f * x + a) * -(x - a);
    const float off = y[i] - want;
    EXPECT(off < 0.01f && off > -0.01f);
    EXPECT(q[i] - (x - a) < 0.01f && q[i] - (x - a) > -0.01f);
  }
}

static int infer(rknn_context context, int turn, int squares) {
  float x[COUNT];
  rknn_input input;
  rknn_output outputs[2];
  for (int i = 0; i < COUNT; ++i) x[i] = x_at(i, turn);
  memset(&input, 0, sizeof input);
  input.buf = x;
  input.size = sizeof x;
  input.type = RKNN_TENSOR_FLOAT32;
  input.fmt = RKNN_TENSOR_NCHW;
  MUST(rknn_inputs_set(context, 1, &input));
  const int code = rknn_run(context, NULL);
  if (code != 0) return code;
  memset(outputs, 0, sizeof outputs);
  outputs[0].want_float = outputs[1].want_float = 1;
  outputs[1].index = 1;
  MUST(rknn_outputs_get(context, 2, outputs, NULL));
  EXPECT(outputs[0].size == COUNT * sizeof(float));
  EXPECT(outputs[1].size == COUNT * sizeof(float));
  compare(outputs[0].buf, outputs[1].buf, turn, squares);
  MUST(rknn_outputs_release(context, 2, outputs));
  return 0;
}

static void infer_bound(rknn_context context) {
  rknn_tensor_attr attrs[3];
  rknn_tensor_mem* memory[3];
  memset(attrs, 0, sizeof attrs);
  attrs[2].index = 1;
  MUST(rknn_query(context, RKNN_QUERY_INPUT_ATTR, &attrs[0], sizeof attrs[0]));
  MUST(rknn_query(context, RKNN_QUERY_OUTPUT_ATTR, &attrs[1], sizeof attrs[1]));
  MUST(rknn_query(context, RKNN_QUERY_OUTPUT_ATTR, &attrs[2], sizeof attrs[2]));
  for (int i = 0; i < 3; ++i) {
    EXPECT(attrs[i].n_elems == COUNT);
    attrs[i].type = RKNN_TENSOR_FLOAT32;
    attrs[i].fmt = RKNN_TENSOR_NCHW;
    memory[i] = rknn_create_mem(context, 4 * COUNT * (uint32_t)sizeof(float));
    MUST(rknn_set_io_mem(context, memory[i], &attrs[i]));
  }
  for (int turn = 0; turn < 3; ++turn) {
    for (int i = 0; i < COUNT; ++i) {
      ((float*)memory[0]->virt_addr)[i] = x_at(i, turn);
    }
    MUST(rknn_run(context, NULL));
    compare(memory[1]->virt_addr, memory[2]->virt_addr, turn, 0);
  }
  for (int i = 0; i < 3; ++i) MUST(rknn_destroy_mem(context, memory[i]));
}

static void wrong(rknn_context context) {
  rknn_custom_op op = operator_of("cstNeg", negate);
  EXPECT(rknn_register_custom_ops(context, NULL, 1) < 0);
  EXPECT(rknn_register_custom_ops(context, &op, 0) < 0);
  EXPECT(rknn_register_custom_ops(0, &op, 1) < 0);
  op.compute = NULL;
  EXPECT(rknn_register_custom_ops(context, &op, 1) < 0);
  op = operator_of("", negate);
  EXPECT(rknn_register_custom_ops(context, &op, 1) < 0);
  op = operator_of("a,b", negate);
  EXPECT(rknn_register_custom_ops(context, &op, 1) < 0);
  memset(op.op_type, 'x', sizeof op.op_type);
  EXPECT(rknn_register_custom_ops(context, &op, 1) < 0);
  op = operator_of("cstNeg", negate);
  op.target = RKNN_TARGET_TYPE_GPU; /* without a kernel */
  EXPECT(rknn_register_custom_ops(context, &op, 1) < 0);
  op.target = (rknn_target_type)77;
  EXPECT(rknn_register_custom_ops(context, &op, 1) < 0);
  rknn_custom_op twice[2];
  twice[0] = twice[1] = operator_of("cstNeg", negate);
  EXPECT(rknn_register_custom_ops(context, twice, 2) < 0);
  twice[0].init = declines; /* nobody else has it */
  EXPECT(rknn_register_custom_ops(context, twice, 1) < 0);
  rknn_custom_op_attr attr;
  rknn_custom_op_context stale;
  memset(&stale, 0x55, sizeof stale);
  memset(&attr, 0x55, sizeof attr);
  rknn_custom_op_get_op_attr(&stale, "alpha", &attr);
  EXPECT(attr.n_elems == 0 && attr.data == NULL);
  rknn_custom_op_get_op_attr(NULL, "alpha", &attr);
  rknn_custom_op_get_op_attr(&stale, NULL, &attr);
  rknn_custom_op_get_op_attr(&stale, "alpha", NULL);

  /* One after the other; the second one once more is too much. */
  op = operator_of("cstDual", dual);
  MUST(rknn_register_custom_ops(context, &op, 1));
  EXPECT(infer(context, 0, 0) < 0);
  op = operator_of("cstNeg", calls_back);
  MUST(rknn_register_custom_ops(context, &op, 1));
  EXPECT(rknn_register_custom_ops(context, &op, 1) < 0);
  EXPECT(infer(context, 1, 0) == 0);
  /* A callback that fails costs its run. */
  fails_at = computes + 1;
  EXPECT(infer(context, 0, 0) < 0);
  EXPECT(infer(context, 2, 0) == 0);
}

static int residual(rknn_custom_op_context* op, rknn_custom_op_tensor* inputs,
                    uint32_t n_inputs, rknn_custom_op_tensor* outputs,
                    uint32_t n_outputs) {
  rknn_custom_op_attr alpha;
  rknn_custom_op_get_op_attr(op, "alpha", &alpha);
  EXPECT(n_inputs == 2 && n_outputs == 2 && alpha.n_elems == 1);
  EXPECT(alpha.dtype == RKNN_TENSOR_FLOAT32);
  const float by = *(float*)alpha.data;
  for (uint32_t i = 0; i < inputs[0].attr.n_elems; ++i) {
    const float x = data_of(&inputs[0])[i], y = data_of(&inputs[1])[i];
    data_of(&outputs[0])[i] = x * by - y;
    data_of(&outputs[1])[i] = y * by - x;
  }
  return 0;
}

static int twice_as_much(rknn_custom_op_context* op,
                         rknn_custom_op_tensor* inputs, uint32_t n_inputs,
                         rknn_custom_op_tensor* outputs, uint32_t n_outputs) {
  (void)op;
  EXPECT(n_inputs == 1 && n_outputs == 1);
  EXPECT(inputs[0].attr.n_dims == 4 && outputs[0].attr.n_dims == 2);
  EXPECT(outputs[0].attr.dims[1] == COUNT);
  for (int i = 0; i < COUNT; ++i) {
    data_of(&outputs[0])[i] = 2 * data_of(&inputs[0])[i];
  }
  return 0;
}

static void run_flat(rknn_context context, const char* type) {
  float x[COUNT];
  rknn_custom_op op = operator_of(type, twice_as_much);
  rknn_input input;
  rknn_output outputs[2];
  MUST(rknn_register_custom_ops(context, &op, 1));
  for (int mask = 1; mask < 8; mask = 2 * mask + 1) {
    MUST(rknn_set_core_mask(context, (rknn_core_mask)mask));
    for (int i = 0; i < COUNT; ++i) x[i] = (float)(i - 30);
    memset(&input, 0, sizeof input);
    memset(outputs, 0, sizeof outputs);
    input.buf = x;
    input.size = sizeof x;
    input.type = RKNN_TENSOR_FLOAT32;
    input.fmt = RKNN_TENSOR_NCHW;
    outputs[0].want_float = outputs[1].want_float = 1;
    outputs[1].index = 1;
    MUST(rknn_inputs_set(context, 1, &input));
    MUST(rknn_run(context, NULL));
    MUST(rknn_outputs_get(context, 2, outputs, NULL));
    for (int i = 0; i < COUNT; ++i) {
      EXPECT(((float*)outputs[0].buf)[i] == (x[i] > 0 ? x[i] : 0));
      EXPECT(((float*)outputs[1].buf)[i] == 2 * (x[i] + 1));
    }
    MUST(rknn_outputs_release(context, 2, outputs));
  }
}

static float* read_floats(const char* path, size_t count) {
  FILE* file = fopen(path, "rb");
  float* numbers = malloc(count * sizeof *numbers);
  if (file == NULL || numbers == NULL) exit(2);
  fseek(file, -(long)(count * sizeof *numbers), SEEK_END);
  if (fread(numbers, sizeof *numbers, count, file) != count) exit(2);
  fclose(file);
  return numbers;
}

static void run_residual(rknn_context context, char** files) {
  enum { kCount = 300 };
  rknn_custom_op op = operator_of("cstDualResidual", residual);
  rknn_input inputs[2];
  rknn_output outputs[2];
  MUST(rknn_register_custom_ops(context, &op, 1));
  memset(inputs, 0, sizeof inputs);
  memset(outputs, 0, sizeof outputs);
  for (uint32_t i = 0; i < 2; ++i) {
    inputs[i].index = outputs[i].index = i;
    inputs[i].buf = read_floats(files[i], kCount);
    inputs[i].size = kCount * sizeof(float);
    inputs[i].type = RKNN_TENSOR_FLOAT32;
    inputs[i].fmt = RKNN_TENSOR_NHWC;
    outputs[i].want_float = 1;
  }
  MUST(rknn_inputs_set(context, 2, inputs));
  MUST(rknn_run(context, NULL));
  MUST(rknn_outputs_get(context, 2, outputs, NULL));
  for (uint32_t i = 0; i < 2; ++i) {
    float* want = read_floats(files[2 + i], kCount);
    EXPECT(outputs[i].size == kCount * sizeof(float));
    for (int j = 0; j < kCount; ++j) {
      const float off = ((float*)outputs[i].buf)[j] - want[j];
      EXPECT(off < 0.0011f && off > -0.0011f);
    }
    free(want);
    free(inputs[i].buf);
  }
  MUST(rknn_outputs_release(context, 2, outputs));
}

/* Layers of each part, and each operator. */
static void expect_times(rknn_context context) {
  rknn_perf_detail detail;
  MUST(rknn_query(context, RKNN_QUERY_PERF_DETAIL, &detail, sizeof detail));
  EXPECT(strstr(detail.perf_data, "Part 1 of 3") != NULL);
  EXPECT(strstr(detail.perf_data, "Relu") != NULL);
  EXPECT(strstr(detail.perf_data, "'cstDual' of node 'dual'") != NULL);
  EXPECT(strstr(detail.perf_data, "'cstNeg' of node 'negate'") != NULL);
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  rknn_context context = 0;
  MUST(rknn_init(&context, argv[2], 0, RKNN_FLAG_COLLECT_PERF_MASK, NULL));
  current = context;
  if (strcmp(argv[1], "without") == 0) {
    EXPECT(infer(context, 0, 0) < 0);
  } else if (strcmp(argv[1], "flat") == 0 && argc == 4) {
    run_flat(context, argv[3]);
  } else if (strcmp(argv[1], "residual") == 0 && argc == 7) {
    run_residual(context, argv + 3);
  } else if (strcmp(argv[1], "wrong") == 0) {
    wrong(context);
  } else if (strcmp(argv[1], "override") == 0) {
    rknn_custom_op op = operator_of("Relu", square);
    MUST(rknn_register_custom_ops(context, &op, 1));
    register_both(context);
    EXPECT(infer(context, 0, 1) == 0);
  } else if (strcmp(argv[1], "die") == 0) {
    rknn_custom_op op = operator_of("cstDual", dies);
    MUST(rknn_register_custom_ops(context, &op, 1));
    infer(context, 0, 0);
  } else if (strcmp(argv[1], "decline") == 0) {
    rknn_custom_op op = operator_of("Relu", square);
    op.init = declines;
    MUST(rknn_register_custom_ops(context, &op, 1));
    register_both(context);
    EXPECT(infer(context, 0, 0) == 0);
  } else {
    register_both(context);
    EXPECT(inits == 1);
    /* A duplicate has none of them, until it registers its own. */
    rknn_context twin = 0;
    MUST(rknn_dup_context(&context, &twin));
    EXPECT(infer(twin, 0, 0) < 0);
    register_both(twin);
    EXPECT(inits == 2 && infer(twin, 0, 0) == 0);
    MUST(rknn_destroy(twin));
    EXPECT(destroys == 1);
    inits = destroys = prepares = computes = 0;
    ++inits;
    if (strcmp(argv[1], "bound") == 0) {
      infer_bound(context);
    } else {
      const int times = argc > 3 ? atoi(argv[3]) : 3;
      MUST(rknn_set_core_mask(context, RKNN_NPU_CORE_1));
      for (int turn = 0; turn < times; ++turn) {
        EXPECT(infer(context, turn, 0) == 0);
        if (argc <= 3) continue;
        printf("run\n");
        fflush(stdout);
        if (turn + 1 < times && getchar() == EOF) return 2;
      }
      EXPECT(prepares == times && computes == 2 * times);
      expect_times(context);
    }
  }
  EXPECT(destroys == 0 || strcmp(argv[1], "wrong") == 0);
  MUST(rknn_destroy(context));
  EXPECT(destroys == inits);
  return faults == 0 ? 0 : 1;
}
