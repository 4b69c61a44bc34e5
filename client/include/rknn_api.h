// The C API of librknnrt.so: load a network, hand it inputs, run it, read its
// outputs. It is called by application programs; rknnd's library answers it by
// way of a daemon or inside the process, as the environment's RKNND_TARGET
// says: unix:PATH, tcp://HOST:PORT or local:. Without it the daemon is looked
// for at /run/rknnd/session.sock, and nowhere else.
//
// Names, values and layouts are those of vendor API release 2.3.2, so that a
// program compiled against either header runs with either library. This file
// was written independently from those facts.
//
// Returns: functions that return int give RKNN_SUCC (0) or a negative
// RKNN_ERR_*, never a positive number; functions that return a pointer give
// NULL on failure. rknnd_last_error() of rknnd.h has the reason in words. What
// this version of rknnd does not support yet fails in the same way and its
// reason says so.
//
// Threads: every function may be called from any thread. One context is used
// by one thread at a time; different contexts, duplicates included, run at the
// same time.

#ifndef _RKNN_API_H
#define _RKNN_API_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

// ---- flags of rknn_init -----------------------------------------------------
// Or-ed together. The lowest two bits are the priority of the context's jobs.

// Jobs run before those of medium and low contexts. The value is 0, so this is
// what a program that asks for nothing gets (an rknnd daemon has a ceiling).
#define RKNN_FLAG_PRIOR_HIGH 0x00000000
// Jobs run before those of low contexts.
#define RKNN_FLAG_PRIOR_MEDIUM 0x00000001
// Jobs run when no other has work.
#define RKNN_FLAG_PRIOR_LOW 0x00000002
// rknn_run returns at once, with at most two on their way, and rknn_outputs_get
// hands out the run before the last one instead of waiting: the first time the
// first run's, and the last run's once rknn_wait was called for it. Only where
// all tensors are in the library's memory; otherwise rknn_run waits.
#define RKNN_FLAG_ASYNC_MASK 0x00000004
// Records the time of each layer, for RKNN_QUERY_PERF_DETAIL.
#define RKNN_FLAG_COLLECT_PERF_MASK 0x00000008
// The program brings the memory of weights, intermediates, inputs and outputs.
#define RKNN_FLAG_MEM_ALLOC_OUTSIDE 0x00000010
// Weights are those of the context in rknn_init_extend.ctx.
#define RKNN_FLAG_SHARE_WEIGHT_MEM 0x00000020
// rknn_run starts once the fence in rknn_run_extend.fence_fd can be read: a
// sync_file, eventfd, pipe, timerfd, end of a socketpair, or accepted Unix
// connection.
#define RKNN_FLAG_FENCE_IN_OUTSIDE 0x00000040
// rknn_run returns at once and puts a descriptor into rknn_run_extend.fence_fd
// that can be read once the run has ended, or when the daemon has died:
// rknn_wait says. The caller closes it. With both flags the one to wait for is
// replaced by it, and stays the caller's.
#define RKNN_FLAG_FENCE_OUT_OUTSIDE 0x00000080
// The context answers questions about sizes and cannot run.
#define RKNN_FLAG_COLLECT_MODEL_INFO_ONLY 0x00000100
// The program brings the memory of intermediates only.
#define RKNN_FLAG_INTERNAL_ALLOC_OUTSIDE 0x00000200
// Operators that the NPU lacks go to a GPU before they go to the CPU.
#define RKNN_FLAG_EXECUTE_FALLBACK_PRIOR_DEVICE_GPU 0x00000400
// Intermediates go into the NPU's SRAM as far as they fit.
#define RKNN_FLAG_ENABLE_SRAM 0x00000800
// That SRAM is shared with other contexts; needs RKNN_FLAG_ENABLE_SRAM.
#define RKNN_FLAG_SHARE_SRAM 0x00001000
// The process keeps its priority; else the vendor's library raises it.
#define RKNN_FLAG_DISABLE_PROC_HIGH_PRIORITY 0x00002000
// rknn_run does not clean the CPU's cache over bound inputs: the program does.
#define RKNN_FLAG_DISABLE_FLUSH_INPUT_MEM_CACHE 0x00004000
// rknn_run does not invalidate the CPU's cache over bound outputs.
#define RKNN_FLAG_DISABLE_FLUSH_OUTPUT_MEM_CACHE 0x00008000
// The model's bytes are in NPU memory already and stay there; no copy is made.
#define RKNN_FLAG_MODEL_BUFFER_ZERO_COPY 0x00010000
// For rknn_create_mem2 alone: the memory belongs to no context.
#define RKNN_MEM_FLAG_ALLOC_NO_CONTEXT 0x00020000

// ---- return codes -----------------------------------------------------------

#define RKNN_SUCC 0                     // done
#define RKNN_ERR_FAIL -1                // failed for a reason without a code
#define RKNN_ERR_TIMEOUT -2             // took longer than it may
#define RKNN_ERR_DEVICE_UNAVAILABLE -3  // no NPU, or no daemon, to be had
#define RKNN_ERR_MALLOC_FAIL -4         // out of memory, or over a limit
#define RKNN_ERR_PARAM_INVALID -5       // an argument is wrong
#define RKNN_ERR_MODEL_INVALID -6       // the model cannot be loaded
#define RKNN_ERR_CTX_INVALID -7         // no such context
#define RKNN_ERR_INPUT_INVALID -8       // an rknn_input is wrong
#define RKNN_ERR_OUTPUT_INVALID -9      // an rknn_output is wrong
#define RKNN_ERR_DEVICE_UNMATCH -10     // library and driver do not fit
// The model was compiled ahead for another device or driver (so spelt).
#define RKNN_ERR_INCOMPATILE_PRE_COMPILE_MODEL -11
// The model's optimisation level is not one of this library (so spelt).
#define RKNN_ERR_INCOMPATILE_OPTIMIZATION_LEVEL_VERSION -12
#define RKNN_ERR_TARGET_PLATFORM_UNMATCH -13  // the model is for another chip

// ---- limits -----------------------------------------------------------------

#define RKNN_MAX_DIMS 16         // entries of every `dims` array
#define RKNN_MAX_NUM_CHANNEL 15  // channels that mean/std values can have
#define RKNN_MAX_NAME_LEN 256    // bytes of a name, its NUL included
#define RKNN_MAX_DYNAMIC_SHAPE_NUM 512  // shapes that one model can list

// ---- scalar types -----------------------------------------------------------

// A context: this process's right to run one model. Not 0 and not a pointer;
// 0 is "no context".
#ifdef __arm__
typedef uint32_t rknn_context;
#else
typedef uint64_t rknn_context;
#endif

// What rknn_query asks for; the struct it fills follows each name. Those that
// fill an rknn_tensor_attr or rknn_input_range read its `index` first.
typedef enum _rknn_query_cmd {
  RKNN_QUERY_IN_OUT_NUM = 0,     // rknn_input_output_num
  RKNN_QUERY_INPUT_ATTR = 1,     // rknn_tensor_attr; the largest shape
  RKNN_QUERY_OUTPUT_ATTR = 2,    // rknn_tensor_attr; the largest shape
  RKNN_QUERY_PERF_DETAIL = 3,    // rknn_perf_detail, after a run
  RKNN_QUERY_PERF_RUN = 4,       // rknn_perf_run, after a run
  RKNN_QUERY_SDK_VERSION = 5,    // rknn_sdk_version
  RKNN_QUERY_MEM_SIZE = 6,       // rknn_mem_size
  RKNN_QUERY_CUSTOM_STRING = 7,  // rknn_custom_string

  // Tensors in the layout and type that the NPU works with: rknn_tensor_attr.
  RKNN_QUERY_NATIVE_INPUT_ATTR = 8,
  RKNN_QUERY_NATIVE_OUTPUT_ATTR = 9,
  RKNN_QUERY_NATIVE_NC1HWC2_INPUT_ATTR = 8,   // the same as 8
  RKNN_QUERY_NATIVE_NC1HWC2_OUTPUT_ATTR = 9,  // the same as 9
  // The same as NHWC, which the NPU can read and write as well.
  RKNN_QUERY_NATIVE_NHWC_INPUT_ATTR = 10,
  RKNN_QUERY_NATIVE_NHWC_OUTPUT_ATTR = 11,

  RKNN_QUERY_DEVICE_MEM_INFO = 12,  // rknn_tensor_mem of the model
  // rknn_input_range. Of a model of one fixed shape MODEL_INVALID, which is how
  // programs learn of it: printed with RKNN_LOG_LEVEL=2 and above only.
  RKNN_QUERY_INPUT_DYNAMIC_RANGE = 13,

  // Tensors at the shape chosen by rknn_set_input_shapes: rknn_tensor_attr.
  RKNN_QUERY_CURRENT_INPUT_ATTR = 14,
  RKNN_QUERY_CURRENT_OUTPUT_ATTR = 15,
  RKNN_QUERY_CURRENT_NATIVE_INPUT_ATTR = 16,
  RKNN_QUERY_CURRENT_NATIVE_OUTPUT_ATTR = 17,

  RKNN_QUERY_CMD_MAX = 18  // one past the last
} rknn_query_cmd;

// The type of a tensor's elements.
typedef enum _rknn_tensor_type {
  RKNN_TENSOR_FLOAT32 = 0,
  RKNN_TENSOR_FLOAT16 = 1,  // IEEE binary16
  RKNN_TENSOR_INT8 = 2,
  RKNN_TENSOR_UINT8 = 3,
  RKNN_TENSOR_INT16 = 4,
  RKNN_TENSOR_UINT16 = 5,
  RKNN_TENSOR_INT32 = 6,
  RKNN_TENSOR_UINT32 = 7,
  RKNN_TENSOR_INT64 = 8,
  RKNN_TENSOR_BOOL = 9,       // one byte each
  RKNN_TENSOR_INT4 = 10,      // two in a byte, the low half first
  RKNN_TENSOR_BFLOAT16 = 11,  // upper half of a float32

  RKNN_TENSOR_TYPE_MAX = 12  // one past the last
} rknn_tensor_type;

// How integers stand for real numbers.
typedef enum _rknn_tensor_qnt_type {
  RKNN_TENSOR_QNT_NONE = 0,               // they stand for themselves
  RKNN_TENSOR_QNT_DFP = 1,                // real = q / 2^fl
  RKNN_TENSOR_QNT_AFFINE_ASYMMETRIC = 2,  // real = (q - zp) * scale

  RKNN_TENSOR_QNT_MAX = 3  // one past the last
} rknn_tensor_qnt_type;

// The order of a tensor's axes in memory, the last one next to each other.
typedef enum _rknn_tensor_format {
  RKNN_TENSOR_NCHW = 0,
  RKNN_TENSOR_NHWC = 1,
  // Channels in blocks of C2, which the SoC sets: dims are N, C1, H, W, C2
  // with C1 = ceil(C / C2).
  RKNN_TENSOR_NC1HWC2 = 2,
  RKNN_TENSOR_UNDEFINED = 3,  // the model's own order; tensors not of 4 axes

  RKNN_TENSOR_FORMAT_MAX = 4  // one past the last
} rknn_tensor_format;

// Which NPU cores a context's jobs may run on. A value with several cores
// means one job on all of them together, not one of them.
typedef enum _rknn_core_mask {
  RKNN_NPU_CORE_AUTO = 0,  // whichever core is free
  RKNN_NPU_CORE_0 = 1,
  RKNN_NPU_CORE_1 = 2,
  RKNN_NPU_CORE_2 = 4,
  RKNN_NPU_CORE_0_1 = 3,
  RKNN_NPU_CORE_0_1_2 = 7,
  RKNN_NPU_CORE_ALL = 0xffff,  // as many as the chip has

  RKNN_NPU_CORE_UNDEFINED = 0x10000  // no mask
} rknn_core_mask;

// Where an rknn_tensor_mem came from. Programs treat `flags` as opaque.
typedef enum _rknn_tensor_mem_flags {
  RKNN_TENSOR_MEMORY_FLAGS_ALLOC_INSIDE = 1,  // rknn_create_mem, _mem2
  RKNN_TENSOR_MEMORY_FLAGS_FROM_FD = 2,       // rknn_create_mem_from_fd
  RKNN_TENSOR_MEMORY_FLAGS_FROM_PHYS = 3,     // rknn_create_mem_from_phys
  RKNN_TENSOR_MEMORY_FLAGS_UNKNOWN = 4        // no origin
} rknn_tensor_mem_flags;

// What memory rknn_create_mem2 shall give; or-ed.
typedef enum _rknn_mem_alloc_flags {
  RKNN_FLAG_MEMORY_FLAGS_DEFAULT = 0,  // cacheable
  RKNN_FLAG_MEMORY_CACHEABLE = 1,      // through the CPU's cache
  RKNN_FLAG_MEMORY_NON_CACHEABLE = 2,  // past it
  RKNN_FLAG_MEMORY_TRY_ALLOC_SRAM = 4  // SRAM as far as it goes, then DRAM
} rknn_mem_alloc_flags;

// The direction in which rknn_mem_sync makes memory agree with the CPU's cache.
typedef enum _rknn_mem_sync_mode {
  RKNN_MEMORY_SYNC_TO_DEVICE = 1,    // the CPU wrote, the NPU will read
  RKNN_MEMORY_SYNC_FROM_DEVICE = 2,  // the NPU wrote, the CPU will read
  RKNN_MEMORY_SYNC_BIDIRECTIONAL =
      RKNN_MEMORY_SYNC_TO_DEVICE | RKNN_MEMORY_SYNC_FROM_DEVICE
} rknn_mem_sync_mode;

// ---- structs ----------------------------------------------------------------

// How many tensors go into a model and come out of it.
typedef struct _rknn_input_output_num {
  uint32_t n_input;
  uint32_t n_output;
} rknn_input_output_num;

// One tensor of a model. 4-D inputs are described as NHWC, but those of BOOL
// and INT64 as NCHW (the vendor's guide, 5.2.3 a; programs take all others for
// NHWC); 4-D outputs as NCHW; tensors of other ranks in the model's own order
// as UNDEFINED. INT8 and UINT8 have the scale and zero point that the model
// gives them, zp 0 and scale 1 where it gives none or one for each channel.
typedef struct _rknn_tensor_attr {
  uint32_t index;                // set by the caller: which input or output
  uint32_t n_dims;               // entries of dims in use
  uint32_t dims[RKNN_MAX_DIMS];  // extents, outermost first; the rest is 0
  char name[RKNN_MAX_NAME_LEN];  // as in the model, NUL-terminated

  uint32_t n_elems;  // product of dims
  uint32_t size;     // bytes without padding

  rknn_tensor_format fmt;
  rknn_tensor_type type;
  rknn_tensor_qnt_type qnt_type;  // float tensors: AFFINE, zp 0, scale 1

  int8_t fl;    // fraction bits, for RKNN_TENSOR_QNT_DFP
  int32_t zp;   // zero point, for RKNN_TENSOR_QNT_AFFINE_ASYMMETRIC
  float scale;  // scale, likewise

  uint32_t w_stride;          // pixels from row to row; 0: as the width
  uint32_t size_with_stride;  // bytes to allocate for rknn_set_io_mem

  uint8_t pass_through;  // set by the caller for rknn_set_io_mem, as rknn_input
  uint32_t h_stride;     // set by the caller: rows of one batch item; 0: height
} rknn_tensor_attr;

// The shapes that a dynamic model lists for one input. Row k of every input
// belongs together.
typedef struct _rknn_input_range {
  uint32_t index;                // set by the caller: which input
  uint32_t shape_number;         // rows of dyn_range in use
  rknn_tensor_format fmt;        // of the rows
  char name[RKNN_MAX_NAME_LEN];  // NUL-terminated
  uint32_t dyn_range[RKNN_MAX_DYNAMIC_SHAPE_NUM][RKNN_MAX_DIMS];
  uint32_t n_dims;  // entries of each row in use
} rknn_input_range;

// A table of layers and their times. The text is the library's: never NULL
// after a success, NUL-terminated, valid until the next such query of this
// context or its end.
typedef struct _rknn_perf_detail {
  char* perf_data;
  uint64_t data_len;  // without the NUL
} rknn_perf_detail;

// How long the last run took on the NPU, in microseconds.
typedef struct _rknn_perf_run {
  int64_t run_duration;
} rknn_perf_run;

// Versions as text, NUL-terminated: "2.3.2 (...)" and "0.9.8".
typedef struct _rknn_sdk_version {
  char api_version[RKNN_MAX_NAME_LEN];  // of the library
  char drv_version[RKNN_MAX_NAME_LEN];  // of the driver
} rknn_sdk_version;

// What a model needs, in bytes.
typedef struct _rknn_mem_size {
  uint32_t total_weight_size;         // weights; at least 1
  uint32_t total_internal_size;       // intermediates without I/O; at least 1
  uint64_t total_dma_allocated_size;  // all NPU memory this process holds
  uint32_t total_sram_size;           // SRAM of the NPU
  uint32_t free_sram_size;            // SRAM that nobody holds
  uint32_t reserved[10];
} rknn_mem_size;

// Text that its converter put into the model; "" if none.
typedef struct _rknn_custom_string {
  char string[1024];
} rknn_custom_string;

// Memory that the NPU reaches. Made and freed by the functions below only; a
// program reads the fields and writes none.
typedef struct _rknn_tensor_memory {
  void* virt_addr;     // this process's mapping of the fd's first byte
  uint64_t phys_addr;  // 0 where addresses of the device are not shown
  int32_t fd;          // a dma-buf or sealed memfd; others may import it
  int32_t offset;      // the data begins here after virt_addr
  uint32_t size;       // bytes of the data
  uint32_t flags;      // rknn_tensor_mem_flags
  void* priv_data;     // the library's
} rknn_tensor_mem;

// The data of one input, for rknn_inputs_set.
typedef struct _rknn_input {
  uint32_t index;
  void* buf;      // the caller's; read during the call only
  uint32_t size;  // bytes at buf
  // 0: buf holds pixels or values of `type` in `fmt`, which the library
  // normalises, quantises and lays out. 1: buf holds what
  // RKNN_QUERY_NATIVE_INPUT_ATTR describes, padding included.
  uint8_t pass_through;
  rknn_tensor_type type;
  rknn_tensor_format fmt;
} rknn_input;

// The data of one output, for rknn_outputs_get.
typedef struct _rknn_output {
  uint8_t want_float;  // 1: as float32; 0: in the type of OUTPUT_ATTR
  uint8_t
      is_prealloc;  // 1: the caller brings buf and size; 0: the library does
  uint32_t index;
  void* buf;
  uint32_t size;  // bytes at buf; what was written on return
} rknn_output;

// More for rknn_init. Zero what is not used.
typedef struct _rknn_init_extend {
  rknn_context ctx;             // owner of the weights (SHARE_WEIGHT_MEM)
  int32_t real_model_offset;    // the model begins here in its file or buffer
  uint32_t real_model_size;     // bytes from there; 0: to the end
  int32_t model_buffer_fd;      // for MODEL_BUFFER_ZERO_COPY: where it is,
  uint32_t model_buffer_flags;  // and the flags of its rknn_tensor_mem
  uint8_t reserved[112];
} rknn_init_extend;

// More for rknn_run and rknn_wait.
typedef struct _rknn_run_extend {
  uint64_t frame_id;   // written: the number of this run in its context;
                       // rknn_wait: which one, 0: the last that was started
  int32_t non_block;   // not 0: return at once
  int32_t timeout_ms;  // how long a call that waits may take, and the run that
                       // it waits for; 0 and below: the library's bound. With
                       // non_block, ASYNC_MASK, FENCE_OUT it is no limit of
                       // the run, only of rknn_wait
  int32_t fence_fd;    // read or written, by the FENCE flags of rknn_init
} rknn_run_extend;

// More for rknn_outputs_get.
typedef struct _rknn_output_extend {
  uint64_t frame_id;  // written: the run these outputs are of
} rknn_output_extend;

// ---- contexts ---------------------------------------------------------------

// Loads a model and makes a context that runs it. With size > 0 `model` is the
// model's bytes, which may be freed after the call; with size 0 it is a path,
// NUL-terminated. `flag` is RKNN_FLAG_*; `extend` may be NULL. *context is only
// written. A model that any process has loaded before costs next to nothing.
// Errors: PARAM_INVALID, MODEL_INVALID, TARGET_PLATFORM_UNMATCH,
// DEVICE_UNAVAILABLE, MALLOC_FAIL.
int rknn_init(rknn_context* context, void* model, uint32_t size, uint32_t flag,
              rknn_init_extend* extend);

// Makes a second context of the model of *context_in: same weights, own inputs,
// outputs, memory bindings and core mask. Either may be destroyed first, and a
// duplicate duplicated. Of a dynamic model too: the new context has no shape
// chosen, whatever the other has, and chooses one of its own. Flags are the
// other's: with MEM_ALLOC_OUTSIDE or INTERNAL_ALLOC_OUTSIDE it needs internal
// memory of its own (rknn_set_internal_mem; it may be the same).
int rknn_dup_context(rknn_context* context_in, rknn_context* context_out);

// Ends a context and frees what the library holds for it; an rknn_tensor_mem is
// the program's to destroy, before or after. CTX_INVALID if there is no such
// context, or no longer.
int rknn_destroy(rknn_context context);

// Fills the struct at `info`, of `size` bytes, that belongs to `cmd`. A size
// below the struct's is PARAM_INVALID and nothing is written; so is an index
// that the model does not have.
int rknn_query(rknn_context context, rknn_query_cmd cmd, void* info,
               uint32_t size);

// ---- a run with copies ------------------------------------------------------

// Hands over input data, which is copied and converted before this returns and
// stays set over many runs. Errors: INPUT_INVALID for a wrong index, size, type
// or format.
int rknn_inputs_set(rknn_context context, uint32_t n_inputs,
                    rknn_input inputs[]);

// Spreads the items of a batch model over so many cores; until then they take
// turns on one. Fails for a model without a batch, for more cores than there
// are, and where there is one. rknn_set_core_mask and this replace each other.
int rknn_set_batch_core_num(rknn_context context, int core_num);

// Chooses the cores for the runs that follow. Fails for a core that the NPU
// does not have.
int rknn_set_core_mask(rknn_context context, rknn_core_mask core_mask);

// Runs the model once on what is set or bound, and waits for it. `extend` may
// be NULL. Errors: INPUT_INVALID when an input was never given, TIMEOUT,
// DEVICE_UNAVAILABLE.
int rknn_run(rknn_context context, rknn_run_extend* extend);

// Waits for a run that was started and not waited for, and gives its code once.
// At once after any other. TIMEOUT after extend->timeout_ms: it can be waited
// for again. PARAM_INVALID for a frame that was never begun. `extend` may be
// NULL.
int rknn_wait(rknn_context context, rknn_run_extend* extend);

// Fetches the outputs of the last run, which it waits for, in the axis order of
// RKNN_QUERY_OUTPUT_ATTR. With is_prealloc 0 the library allocates each buf,
// until rknn_outputs_release. `extend` may be NULL.
int rknn_outputs_get(rknn_context context, uint32_t n_outputs,
                     rknn_output outputs[], rknn_output_extend* extend);

// Frees what rknn_outputs_get allocated and sets those buf to NULL; entries
// that were never filled, or that are the caller's, are left alone.
int rknn_outputs_release(rknn_context context, uint32_t n_ouputs,
                         rknn_output outputs[]);

// ---- memory, and a run without copies ---------------------------------------

// Wraps memory of the program, known by its physical address. Only what the
// daemon's configuration allows to the program's user ([[physical_memory]] with
// uid, begin, size). It has no fd; virt_addr is kept as given, and may be NULL.
rknn_tensor_mem* rknn_create_mem_from_phys(rknn_context ctx, uint64_t phys_addr,
                                           void* virt_addr, uint32_t size);

// Wraps `size` bytes from `offset` of a dma-buf or memfd (sealed against
// shrinking). The fd and the mapping `virt_addr` of its first byte stay the
// caller's; the fd may be closed after the call. virt_addr may be NULL: the
// library maps the fd itself, for reading only where it allows no more (such
// memory is good for inputs).
rknn_tensor_mem* rknn_create_mem_from_fd(rknn_context ctx, int32_t fd,
                                         void* virt_addr, uint32_t size,
                                         int32_t offset);

// Wraps a block of Rockchip's media library from `offset` to its end, by the
// library's own function (RK_MPI_MMZ_Handle2Fd or RK_MPI_MB_Handle2Fd), which
// must be in the process. RKNN_ERR_FAIL's reason says what to use elsewhere.
rknn_tensor_mem* rknn_create_mem_from_mb_blk(rknn_context ctx, void* mb_blk,
                                             int32_t offset);

// Allocates `size` zeroed bytes that CPU and NPU reach, through the CPU's
// cache.
rknn_tensor_mem* rknn_create_mem(rknn_context ctx, uint32_t size);

// The same by rknn_mem_alloc_flags; with RKNN_MEM_FLAG_ALLOC_NO_CONTEXT ctx may
// be 0 and every context may use it.
rknn_tensor_mem* rknn_create_mem2(rknn_context ctx, uint64_t size,
                                  uint64_t alloc_flags);

// Frees the struct, and the memory if the library allocated it. A run that uses
// the memory ends first.
int rknn_destroy_mem(rknn_context ctx, rknn_tensor_mem* mem);

// Fills memory of total_weight_size bytes with the context's weights
// (MEM_ALLOC_OUTSIDE; else RKNN_ERR_FAIL). It is filled when the call returns
// and never read: the NPU goes on with its own weights, which all contexts of
// the model in all processes share, and what is written to `mem` afterwards
// changes nothing. To be called or left out.
int rknn_set_weight_mem(rknn_context ctx, rknn_tensor_mem* mem);

// Gives the context memory for intermediates, of total_internal_size bytes,
// which of a dynamic model is its largest shape's (MEM_ALLOC_OUTSIDE,
// INTERNAL_ALLOC_OUTSIDE; else RKNN_ERR_FAIL). In force from the next run; mem
// may be destroyed. Any contexts may share memory, in several processes too, by
// its fd: those whose memory overlaps run one after the other, whatever cores
// are free. It holds tensors only, and nobody clears it.
int rknn_set_internal_mem(rknn_context ctx, rknn_tensor_mem* mem);

// Binds memory to the input or output that `attr` describes (by its name), for
// all runs that follow, until bound anew. attr comes from a query; its type,
// fmt, pass_through and h_stride may have been edited to say what the program
// puts in or wants out. At least size_with_stride bytes of that type. An input
// that is NC1HWC2 has its blocks with pass_through = 1; without, its bytes are
// NHWC. For a tensor that is not 4-D, NCHW is as good as UNDEFINED, and so is
// NHWC where it means the same bytes. What else there is is refused, with the
// number that cannot be.
int rknn_set_io_mem(rknn_context ctx, rknn_tensor_mem* mem,
                    rknn_tensor_attr* attr);

// Chooses the shape of the only input. Superseded by rknn_set_input_shapes.
int rknn_set_input_shape(rknn_context ctx, rknn_tensor_attr* attr);

// Chooses the shape of all inputs of a dynamic model: index, name, n_dims, dims
// and fmt of each; together one of the rows that the model lists. To be called
// before the first run. After a change inputs are to be set again; memory that
// was bound stays so if it is large enough. INPUT_INVALID for other shapes.
int rknn_set_input_shapes(rknn_context ctx, uint32_t n_inputs,
                          rknn_tensor_attr attr[]);

// Makes `mem` agree with the CPU's cache. Does nothing, successfully, where
// memory is coherent.
int rknn_mem_sync(rknn_context context, rknn_tensor_mem* mem,
                  rknn_mem_sync_mode mode);

// ---- names for printing -----------------------------------------------------
// In this header only, not in the library. Static text; "UNKNOW" (so spelt) for
// any other value.

static inline const char* get_type_string(rknn_tensor_type type) {
  switch (type) {
    case RKNN_TENSOR_FLOAT32:
      return "FP32";
    case RKNN_TENSOR_FLOAT16:
      return "FP16";
    case RKNN_TENSOR_INT8:
      return "INT8";
    case RKNN_TENSOR_UINT8:
      return "UINT8";
    case RKNN_TENSOR_INT16:
      return "INT16";
    case RKNN_TENSOR_UINT16:
      return "UINT16";
    case RKNN_TENSOR_INT32:
      return "INT32";
    case RKNN_TENSOR_UINT32:
      return "UINT32";
    case RKNN_TENSOR_INT64:
      return "INT64";
    case RKNN_TENSOR_BOOL:
      return "BOOL";
    case RKNN_TENSOR_INT4:
      return "INT4";
    case RKNN_TENSOR_BFLOAT16:
      return "BF16";
    default:
      return "UNKNOW";
  }
}

static inline const char* get_qnt_type_string(rknn_tensor_qnt_type type) {
  switch (type) {
    case RKNN_TENSOR_QNT_NONE:
      return "NONE";
    case RKNN_TENSOR_QNT_DFP:
      return "DFP";
    case RKNN_TENSOR_QNT_AFFINE_ASYMMETRIC:
      return "AFFINE";
    default:
      return "UNKNOW";
  }
}

static inline const char* get_format_string(rknn_tensor_format fmt) {
  switch (fmt) {
    case RKNN_TENSOR_NCHW:
      return "NCHW";
    case RKNN_TENSOR_NHWC:
      return "NHWC";
    case RKNN_TENSOR_NC1HWC2:
      return "NC1HWC2";
    case RKNN_TENSOR_UNDEFINED:
      return "UNDEFINED";
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

#endif  // _RKNN_API_H
