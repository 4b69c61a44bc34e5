// Operators that a program implements itself, for nodes of a model that the NPU
// does not know. Order: rknn_init (which succeeds although the operator is not
// known yet), rknn_register_custom_ops, then queries and runs. All callbacks
// run in the calling process, on the thread of the call that causes them.
// Names, values and layouts: vendor API release 2.3.2; written independently.

#ifndef _RKNN_CUSTOM_OP_H
#define _RKNN_CUSTOM_OP_H

#include <stdint.h>

#include "rknn_api.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

// Returned by an `init` callback: use the built-in operator, if there is one.
#define RKNN_WARNING_SKIP_CUSTOM_OP_COMPUTE -14

#define RKNN_CUSTOM_OP_MAX_STR_LEN 64    // no struct uses it
#define RKNN_CUSTOM_OP_MAX_VALUE_LEN 32  // no struct uses it

// Marks the entry point of an operator in a shared library of its own.
#define RKNN_CUSTOM_OP_EXPORT __attribute__((visibility("default")))

// The library's own (so spelt).
#ifdef __arm__
typedef uint32_t rknn_custom_op_interal_context;
#else
typedef uint64_t rknn_custom_op_interal_context;
#endif

// Where an operator computes.
typedef enum _rknn_target_type {
  RKNN_TARGET_TYPE_CPU = 1,
  RKNN_TARGET_TYPE_GPU = 2,  // through OpenCL

  RKNN_TARGET_TYPE_MAX = 3  // one past the last
} rknn_target_type;

// OpenCL objects of an operator on the GPU: cl_context, cl_command_queue and
// cl_kernel. The library's.
typedef struct _rknn_gpu_op_context {
  void* cl_context;
  void* cl_command_queue;
  void* cl_kernel;
} rknn_gpu_op_context;

// One node of a model that an operator computes; the same from init to destroy.
typedef struct _rknn_custom_op_context {
  rknn_target_type target;
  rknn_custom_op_interal_context internal_ctx;  // the library's
  rknn_gpu_op_context gpu_ctx;                  // for RKNN_TARGET_TYPE_GPU
  void* priv_data;                              // the operator's
} rknn_custom_op_context;

// An input or output of a callback. The data begins at mem.virt_addr +
// mem.offset: float32, dense, in the model's axis order (NCHW for 4-D).
typedef struct _rknn_custom_op_tensor {
  rknn_tensor_attr attr;
  rknn_tensor_mem mem;
} rknn_custom_op_tensor;

// One attribute of a node. The data is the library's and lives as long as the
// callback. Integers are INT64, reals FLOAT32.
typedef struct _rknn_custom_op_attr {
  char name[RKNN_MAX_NAME_LEN];
  rknn_tensor_type dtype;
  uint32_t n_elems;  // 0: the node has no such attribute
  void* data;
} rknn_custom_op_attr;

// An operator. Callbacks return 0, or an error that fails the call they run in.
typedef struct _rknn_custom_op {
  uint32_t version;  // 1
  rknn_target_type target;
  char op_type[RKNN_MAX_NAME_LEN];  // as the model names it

  // For RKNN_TARGET_TYPE_GPU: the kernel's name; its text of cl_source_size
  // bytes, or with size 0 the absolute path of a file with it; build options.
  char cl_kernel_name[RKNN_MAX_NAME_LEN];
  char* cl_kernel_source;
  uint64_t cl_source_size;
  char cl_build_options[RKNN_MAX_NAME_LEN];

  // Once, when the operator is registered. May be NULL.
  int (*init)(rknn_custom_op_context* op_ctx, rknn_custom_op_tensor* inputs,
              uint32_t n_inputs, rknn_custom_op_tensor* outputs,
              uint32_t n_outputs);
  // In each run, before compute. May be NULL.
  int (*prepare)(rknn_custom_op_context* op_ctx, rknn_custom_op_tensor* inputs,
                 uint32_t n_inputs, rknn_custom_op_tensor* outputs,
                 uint32_t n_outputs);
  // In each run: reads the inputs, writes the outputs.
  int (*compute)(rknn_custom_op_context* op_ctx, rknn_custom_op_tensor* inputs,
                 uint32_t n_inputs, rknn_custom_op_tensor* outputs,
                 uint32_t n_outputs);
  // Never called. NULL.
  int (*compute_native)(rknn_custom_op_context* op_ctx,
                        rknn_custom_op_tensor* inputs, uint32_t n_inputs,
                        rknn_custom_op_tensor* outputs, uint32_t n_outputs);
  // Once, in rknn_destroy. May be NULL.
  int (*destroy)(rknn_custom_op_context* op_ctx);
} rknn_custom_op;

// The entry point of an operator's shared library: `get_rknn_custom_op`, which
// returns a static struct and takes nothing.
#ifdef __cplusplus
typedef rknn_custom_op* (*get_custom_op_func)();
#else
typedef rknn_custom_op* (*get_custom_op_func)(void);
#endif

// Attaches `custom_op_num` operators to a context. The structs are copied; what
// they point to stays the caller's until rknn_destroy.
int rknn_register_custom_ops(rknn_context ctx, rknn_custom_op* op,
                             uint32_t custom_op_num);

// Reads one attribute of a node, within a callback. For a name that the node
// does not have op_attr gets n_elems 0 and data NULL.
void rknn_custom_op_get_op_attr(rknn_custom_op_context* op_ctx,
                                const char* attr_name,
                                rknn_custom_op_attr* op_attr);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif

#endif  // _RKNN_CUSTOM_OP_H
