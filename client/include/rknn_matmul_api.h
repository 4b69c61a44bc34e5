// Matrix products on the NPU, C = A x B, without a model: A is M x K, B is
// K x N, C is M x N. Called by application programs (language models mostly);
// threads and return codes as in rknn_api.h. What each SoC multiplies and how
// numbers are rounded: docs/matmul.md.
// Names, values and layouts: vendor API release 2.3.2; written independently.

#ifndef _RKNN_MATMUL_API_H
#define _RKNN_MATMUL_API_H

#ifdef __cplusplus
extern "C" {
#endif

#include "rknn_api.h"

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

// A context of one product. rknn_create_mem and the other memory calls take it
// too; it is ended by rknn_matmul_destroy.
typedef rknn_context rknn_matmul_ctx;

// How B's (or A's and C's) integers stand for real numbers.
typedef enum _rknn_matmul_quant_type {
  RKNN_QUANT_TYPE_PER_LAYER_SYM = 0,     // one scale
  RKNN_QUANT_TYPE_PER_LAYER_ASYM = 1,    // one scale, one zero point
  RKNN_QUANT_TYPE_PER_CHANNEL_SYM = 2,   // N scales
  RKNN_QUANT_TYPE_PER_CHANNEL_ASYM = 3,  // N scales, N zero points
  RKNN_QUANT_TYPE_PER_GROUP_SYM = 4,     // one scale per group_size rows of K
  RKNN_QUANT_TYPE_PER_GROUP_ASYM = 5     // and column; with zero points
} rknn_matmul_quant_type;

// Element types, A_MM_B_TO_C. 13 and 14 are not used.
typedef enum _rknn_matmul_type {
  RKNN_FLOAT16_MM_FLOAT16_TO_FLOAT32 = 1,
  RKNN_INT8_MM_INT8_TO_INT32 = 2,  // plain sums, no scale applied
  RKNN_INT8_MM_INT8_TO_INT8 = 3,   // quantised again by C's scale
  RKNN_FLOAT16_MM_FLOAT16_TO_FLOAT16 = 4,
  RKNN_FLOAT16_MM_INT8_TO_FLOAT32 = 5,
  RKNN_FLOAT16_MM_INT8_TO_FLOAT16 = 6,
  RKNN_FLOAT16_MM_INT4_TO_FLOAT32 = 7,
  RKNN_FLOAT16_MM_INT4_TO_FLOAT16 = 8,
  RKNN_INT8_MM_INT8_TO_FLOAT32 = 9,
  RKNN_INT4_MM_INT4_TO_INT16 = 10,  // plain sums
  RKNN_INT8_MM_INT4_TO_INT32 = 11,  // plain sums
  RKNN_FLOAT16_MM_INT4_TO_BFLOAT16 = 12,
  RKNN_INT8_MM_INT4_TO_FLOAT16 = 15
} rknn_matmul_type;

// How a matrix lies in memory.
typedef enum {
  RKNN_MM_LAYOUT_NORM = 0,    // row by row
  RKNN_MM_LAYOUT_NATIVE = 1,  // in blocks, as the NPU reads and writes it
  RKNN_MM_LAYOUT_TP_NORM = 2  // B only: row by row of its transpose, N x K
} rknn_matmul_layout;

// Scales and zero points of one matrix. The arrays are the program's.
typedef struct _rknn_quant_params {
  char name[RKNN_MAX_NAME_LEN];  // of the matrix, from rknn_matmul_io_attr
  float* scale;
  int32_t scale_len;  // 1, N or N * K / group_size
  int32_t* zp;        // NULL: no zero points
  int32_t zp_len;
} rknn_quant_params;

// One matrix: dims has two entries for NORM and TP_NORM, three for a native A
// (K/subK, M, subK) or C (N/subN, M, subN), four for a native B (N/subN,
// K/subK, subN, subK).
typedef struct _rknn_matmul_tensor_attr {
  char name[RKNN_MAX_NAME_LEN];
  uint32_t n_dims;
  uint32_t dims[RKNN_MAX_DIMS];
  uint32_t size;  // bytes to allocate
  rknn_tensor_type type;
} rknn_matmul_tensor_attr;

// The three matrices of a context.
typedef struct _rknn_matmul_io_attr {
  rknn_matmul_tensor_attr A;
  rknn_matmul_tensor_attr B;
  rknn_matmul_tensor_attr C;
} rknn_matmul_io_attr;

// One shape of a context that lists several.
typedef struct _rknn_matmul_shape {
  int32_t M;
  int32_t K;
  int32_t N;
} rknn_matmul_shape;

// What rknn_matmul_create shall make. Zero what is not used.
typedef struct rknn_matmul_info_t {
  int32_t M;
  int32_t K;  // a multiple that the chip and the type of A set
  int32_t N;  // likewise for B
  rknn_matmul_type type;
  int16_t B_layout;         // rknn_matmul_layout
  int16_t B_quant_type;     // rknn_matmul_quant_type
  int16_t AC_layout;        // rknn_matmul_layout, NORM or NATIVE, for A and C
  int16_t AC_quant_type;    // rknn_matmul_quant_type, PER_LAYER only
  int32_t iommu_domain_id;  // which address space of 4 GiB; 0 unless full
  int16_t group_size;       // rows of K that share a scale (PER_GROUP)
  int8_t reserved[34];
} rknn_matmul_info;

// Makes a context for one shape and fills io_attr, before there is any memory.
// Fails for a type or a K, N that the chip does not multiply.
int rknn_matmul_create(rknn_matmul_ctx* ctx, rknn_matmul_info* info,
                       rknn_matmul_io_attr* io_attr);

// The same for a list of shapes, of which one is current at a time; M, K, N of
// `info` are not read. io_attrs has shape_num entries too and is filled.
int rknn_matmul_create_dynamic_shape(rknn_matmul_ctx* ctx,
                                     rknn_matmul_info* info, int shape_num,
                                     rknn_matmul_shape dynamic_shapes[],
                                     rknn_matmul_io_attr io_attrs[]);

// Binds memory to A, B or C, told by attr's name, until bound anew. The memory
// may be filled before or after; it is read, in the layout of the context, when
// a run begins.
int rknn_matmul_set_io_mem(rknn_matmul_ctx ctx, rknn_tensor_mem* mem,
                           rknn_matmul_tensor_attr* attr);

// Chooses the cores for the runs that follow.
int rknn_matmul_set_core_mask(rknn_matmul_ctx context,
                              rknn_core_mask core_mask);

// Sets the scales and zero points of the matrix that `params` names; they are
// copied. Without it: scale 1, zero point 0. Scales are above 0; of B there are
// as many as B_quant_type says, and zero points only where it ends in _ASYM.
int rknn_matmul_set_quant_params(rknn_matmul_ctx context,
                                 rknn_quant_params* params);

// Reads back B's scales after normalisation and the factor taken out of them
// (INT8 to INT32, B per channel). The factor times A's scale is C's scale.
int rknn_matmul_get_quant_params(rknn_matmul_ctx ctx, rknn_quant_params* params,
                                 float* scale);

// Makes one of the listed shapes current. Before rknn_matmul_set_io_mem; A and
// C are bound anew afterwards.
int rknn_matmul_set_dynamic_shape(rknn_matmul_ctx ctx,
                                  rknn_matmul_shape* shape);

// Multiplies, and waits for it.
int rknn_matmul_run(rknn_matmul_ctx ctx);

// Ends the context. Its memory is the program's to destroy.
int rknn_matmul_destroy(rknn_matmul_ctx ctx);

// Puts B (K x N, row by row) into the native layout for info->type. B_output
// has io_attr.B.size bytes. Needs no context; both buffers are the caller's.
int rknn_B_normal_layout_to_native_layout(void* B_input, void* B_output, int K,
                                          int N, rknn_matmul_info* info);

// The enumerator's name. In this header only. "UNKNOW" for other values and, as
// the vendor's has it, for RKNN_INT8_MM_INT4_TO_FLOAT16.
static inline const char* get_matmul_type_string(rknn_matmul_type type) {
  switch (type) {
    case RKNN_FLOAT16_MM_FLOAT16_TO_FLOAT32:
      return "RKNN_FLOAT16_MM_FLOAT16_TO_FLOAT32";
    case RKNN_INT8_MM_INT8_TO_INT32:
      return "RKNN_INT8_MM_INT8_TO_INT32";
    case RKNN_INT8_MM_INT8_TO_INT8:
      return "RKNN_INT8_MM_INT8_TO_INT8";
    case RKNN_FLOAT16_MM_FLOAT16_TO_FLOAT16:
      return "RKNN_FLOAT16_MM_FLOAT16_TO_FLOAT16";
    case RKNN_FLOAT16_MM_INT8_TO_FLOAT32:
      return "RKNN_FLOAT16_MM_INT8_TO_FLOAT32";
    case RKNN_FLOAT16_MM_INT8_TO_FLOAT16:
      return "RKNN_FLOAT16_MM_INT8_TO_FLOAT16";
    case RKNN_FLOAT16_MM_INT4_TO_FLOAT32:
      return "RKNN_FLOAT16_MM_INT4_TO_FLOAT32";
    case RKNN_FLOAT16_MM_INT4_TO_FLOAT16:
      return "RKNN_FLOAT16_MM_INT4_TO_FLOAT16";
    case RKNN_INT8_MM_INT8_TO_FLOAT32:
      return "RKNN_INT8_MM_INT8_TO_FLOAT32";
    case RKNN_INT4_MM_INT4_TO_INT16:
      return "RKNN_INT4_MM_INT4_TO_INT16";
    case RKNN_INT8_MM_INT4_TO_INT32:
      return "RKNN_INT8_MM_INT4_TO_INT32";
    case RKNN_FLOAT16_MM_INT4_TO_BFLOAT16:
      return "RKNN_FLOAT16_MM_INT4_TO_BFLOAT16";
    default:
      return "UNKNOW";
  }
}

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif

#endif  // _RKNN_MATMUL_API_H
