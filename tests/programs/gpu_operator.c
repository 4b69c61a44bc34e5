/* An operator of the program's on a GPU: its kernel adds attribute "bias" to x.
 *
 *   gpu_operator MODEL SOURCE   SOURCE: a file with the kernel
 *   gpu_operator MODEL          the kernel's text is the program's
 *
 * MODEL takes x, 1x8, and gives Relu(cstBias(x)). Exits with 77 where there is
 * no OpenCL, or no device of it. OpenCL's functions are found as programs do
 * that are not linked with it. */

#include <dlfcn.h>

#include "rknn_custom_op.h"
#include "tests/programs/sample.h"

#define COUNT 8

static const char kSource[] =
    "__kernel void add_bias(__global const float* x, __global float* y,\n"
    "                       const float bias) {\n"
    "  const int i = get_global_id(0);\n"
    "  y[i] = x[i] + bias;\n"
    "}\n";

static void* opencl;

static void find(const char* name, void* function) {
  void* const symbol = dlsym(opencl, name);
  EXPECT(symbol != NULL);
  memcpy(function, &symbol, sizeof symbol);
}

static int has_device(void) {
  int32_t (*platforms)(uint32_t, void**, uint32_t*);
  int32_t (*devices)(void*, uint64_t, uint32_t, void**, uint32_t*);
  void* platform[8];
  uint32_t count = 0, found = 0, i;
  if (opencl == NULL) return 0;
  find("clGetPlatformIDs", &platforms);
  find("clGetDeviceIDs", &devices);
  if (platforms(8, platform, &count) != 0) return 0;
  for (i = 0; i < count && i < 8 && found == 0; ++i) {
    /* CL_DEVICE_TYPE_ALL. */
    if (devices(platform[i], 0xffffffff, 0, NULL, &found) != 0) found = 0;
  }
  return found != 0;
}

static void* buffer_of(void* context, const rknn_custom_op_tensor* tensor) {
  void* (*create)(void*, uint64_t, size_t, void*, int32_t*);
  int32_t code = 0;
  void* made;
  find("clCreateBuffer", &create);
  /* CL_MEM_READ_WRITE and CL_MEM_USE_HOST_PTR. */
  made = create(context, 1 | 8, COUNT * sizeof(float),
                (char*)tensor->mem.virt_addr + tensor->mem.offset, &code);
  EXPECT(made != NULL && code == 0);
  return made;
}

static int add_bias(rknn_custom_op_context* op, rknn_custom_op_tensor* inputs,
                    uint32_t n_inputs, rknn_custom_op_tensor* outputs,
                    uint32_t n_outputs) {
  int32_t (*set)(void*, uint32_t, size_t, const void*);
  int32_t (*enqueue)(void*, void*, uint32_t, const size_t*, const size_t*,
                     const size_t*, uint32_t, const void*, void*);
  int32_t (*read)(void*, void*, uint32_t, size_t, size_t, void*, uint32_t,
                  const void*, void*);
  int32_t (*release)(void*);
  rknn_custom_op_attr bias;
  const size_t count = COUNT;
  void *x, *y;
  EXPECT(op->target == RKNN_TARGET_TYPE_GPU);
  EXPECT(n_inputs == 1 && n_outputs == 1);
  find("clSetKernelArg", &set);
  find("clEnqueueNDRangeKernel", &enqueue);
  find("clEnqueueReadBuffer", &read);
  find("clReleaseMemObject", &release);
  rknn_custom_op_get_op_attr(op, "bias", &bias);
  EXPECT(bias.n_elems == 1);
  x = buffer_of(op->gpu_ctx.cl_context, &inputs[0]);
  y = buffer_of(op->gpu_ctx.cl_context, &outputs[0]);
  EXPECT(set(op->gpu_ctx.cl_kernel, 0, sizeof x, &x) == 0);
  EXPECT(set(op->gpu_ctx.cl_kernel, 1, sizeof y, &y) == 0);
  EXPECT(set(op->gpu_ctx.cl_kernel, 2, sizeof(float), bias.data) == 0);
  EXPECT(enqueue(op->gpu_ctx.cl_command_queue, op->gpu_ctx.cl_kernel, 1, NULL,
                 &count, NULL, 0, NULL, NULL) == 0);
  /* Blocks until the kernel has run. */
  EXPECT(read(op->gpu_ctx.cl_command_queue, y, 1, 0, COUNT * sizeof(float),
              (char*)outputs[0].mem.virt_addr + outputs[0].mem.offset, 0, NULL,
              NULL) == 0);
  release(x);
  release(y);
  return 0;
}

int main(int argc, char** argv) {
  rknn_context ctx;
  rknn_custom_op op;
  rknn_input input;
  rknn_output output;
  float x[COUNT];
  int i, code;
  EXPECT(argc == 2 || argc == 3);
  opencl = dlopen("libOpenCL.so.1", RTLD_NOW);
  CHECK(rknn_init(&ctx, argv[1], 0, 0, NULL));
  memset(&op, 0, sizeof op);
  op.version = 1;
  op.target = RKNN_TARGET_TYPE_GPU;
  strncpy(op.op_type, "cstBias", sizeof op.op_type - 1);
  op.compute = add_bias;
  /* Refused, and nothing is lost: no source, one that is none, no kernel. */
  EXPECT(rknn_register_custom_ops(ctx, &op, 1) < 0);
  op.cl_kernel_source = (char*)kSource;
  op.cl_source_size = 20;
  strncpy(op.cl_kernel_name, "add_bias", sizeof op.cl_kernel_name - 1);
  EXPECT(rknn_register_custom_ops(ctx, &op, 1) < 0);
  op.cl_source_size = sizeof kSource - 1;
  strncpy(op.cl_kernel_name, "other", sizeof op.cl_kernel_name - 1);
  EXPECT(rknn_register_custom_ops(ctx, &op, 1) < 0);
  strncpy(op.cl_kernel_name, "add_bias", sizeof op.cl_kernel_name - 1);
  if (argc == 3) {
    op.cl_kernel_source = argv[2];
    op.cl_source_size = 0;
  }
  code = rknn_register_custom_ops(ctx, &op, 1);
  if (code < 0 && !has_device()) {
    CHECK(rknn_destroy(ctx));
    return 77;
  }
  CHECK(code);
  for (i = 0; i < COUNT; ++i) x[i] = (float)i - 4;
  memset(&input, 0, sizeof input);
  input.buf = x;
  input.size = sizeof x;
  input.type = RKNN_TENSOR_FLOAT32;
  input.fmt = RKNN_TENSOR_UNDEFINED;
  CHECK(rknn_inputs_set(ctx, 1, &input));
  CHECK(rknn_run(ctx, NULL));
  memset(&output, 0, sizeof output);
  output.want_float = 1;
  CHECK(rknn_outputs_get(ctx, 1, &output, NULL));
  for (i = 0; i < COUNT; ++i) {
    const float sum = x[i] + 2.5f;
    EXPECT(((float*)output.buf)[i] == (sum > 0 ? sum : 0));
  }
  CHECK(rknn_outputs_release(ctx, 1, &output));
  CHECK(rknn_destroy(ctx));
  printf("gpu operator: the kernel's answers are right\n");
  return 0;
}
