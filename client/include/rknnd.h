// What rknnd's librknnrt.so offers beside the vendor's API: reasons in words,
// versions, and proof of how little is copied. C; called by application
// programs; every function may be called from any thread. Functions are added
// with new versions and never changed.

#ifndef RKNND_H
#define RKNND_H

#include <stdint.h>

#include "rknn_api.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

// Flags of rknn_create_mem2 beyond the vendor's, which uses bits below 32 only
// and ignores these. Wishes, as RKNN_FLAG_MEMORY_NON_CACHEABLE is: where no
// heap of the machine has such memory, other memory is given, and a line of the
// log says which (`rknnctl buffers` does too). The daemon's configuration can
// ask for the same for all memory: `dma32`, `contiguous` under [memory].
#define RKNND_MEMORY_DMA32 (UINT64_C(1) << 56)       // below 4 GiB, for RGA2
#define RKNND_MEMORY_CONTIGUOUS (UINT64_C(1) << 57)  // in one piece

// The version of this header: major * 10000 + minor * 100 + patch.
#define RKNND_VERSION 100

// The library's version as a number like RKNND_VERSION, and as text ("0.1.0",
// static). They may be newer than the header a program was compiled with.
uint32_t rknnd_version(void);
const char* rknnd_version_string(void);

// Why the last call of this thread that failed did so, NUL-terminated; "" if
// none has. A call that succeeds leaves it alone. Valid until the next call of
// this API by the same thread.
const char* rknnd_last_error(void);

// Bytes of tensors copied (or converted, which is a copy too) between a
// program's memory and memory the device works on, for one context since it
// was made, by direction and by what made the copy necessary. All 0 as long as
// a context runs zero-copy. Types and layouts that the NPU takes as they are:
// the native attributes' (RKNN_QUERY_NATIVE_INPUT_ATTR and the like, also with
// channels last), and UINT8 pixels with channels last for a 4-D input. Bytes of
// a conversion are those of the program's side.
//
// The daemon counts too, for `rknnctl contexts` and `top`, and the two may
// differ: a daemon that was started anew while the program ran begins at 0,
// and a run that the program gave up for its timeout is counted by the daemon
// alone, if it ended well there.
typedef struct rknnd_copy_counters {
  uint64_t to_device_inputs_set;     // rknn_inputs_set
  uint64_t to_device_conversion;     // input in another type or layout
  uint64_t from_device_outputs_get;  // rknn_outputs_get
  uint64_t from_device_conversion;   // output in another type or layout
  uint64_t reserved[4];              // 0
} rknnd_copy_counters;

// Fills `counters`, of `size` bytes: as many fields as fit, so that programs
// compiled with a shorter struct go on working; bytes beyond the fields that
// the library knows are zeroed.
int rknnd_query_copies(rknn_context context, rknnd_copy_counters* counters,
                       uint32_t size);

// Memory of the NPU by kind, in bytes: all that the daemon behind `context`
// holds, for all its clients together. With target local: that is what this
// process holds, since its daemon serves nobody else.
typedef struct rknnd_memory {
  uint64_t weight;       // of models
  uint64_t internal;     // for intermediate tensors
  uint64_t io;           // of rknn_create_mem and imported
  uint64_t other;        // models on their way in
  uint64_t reserved[4];  // 0
} rknnd_memory;

// Fills `memory`, of `size` bytes, as rknnd_query_copies does.
int rknnd_query_memory(rknn_context context, rknnd_memory* memory,
                       uint32_t size);

// A name by which other programs may use a memory through the same daemon: a
// gRPC client (the Open Inference Protocol's SystemSharedMemoryRegister, or its
// parameter shared_memory_region) has tensors read from it and written to it
// without a copy. Whoever knows the key may do so: hand it to those alone who
// shall.
typedef struct rknnd_buffer_key {
  char text[40];         // 32 hexadecimal digits, NUL-terminated
  uint64_t offset;       // where the memory begins in what the key names
  uint64_t size;         // of the memory
  uint64_t reserved[4];  // 0
} rknnd_buffer_key;

// The key of `memory`, which must be one of the target that `context` is on.
// The daemon makes it at the first question; it is the same until the memory is
// destroyed or the program ends, and different when the daemon was started anew
// meanwhile: ask again then. Memories of one descriptor have a key each.
// Fills `key`, of `size` bytes, as rknnd_query_copies does. With target tcp://
// there are no keys: RKNN_ERR_FAIL.
int rknnd_query_buffer_key(rknn_context context, rknn_tensor_mem* memory,
                           rknnd_buffer_key* key, uint32_t size);

// The last finished run of a context, as its completion says. Times are the
// daemon's, in nanoseconds: waiting for a core, on the core, and both with what
// lies between.
typedef struct rknnd_run_report {
  uint64_t frame_id;
  uint64_t queue_ns;
  uint64_t run_ns;
  uint64_t total_ns;
  uint32_t core;   // the lowest it ran on
  uint32_t drops;  // frames of this context dropped before this one
} rknnd_run_report;

// RKNN_ERR_FAIL when the context has not run yet.
int rknnd_last_run(rknn_context context, rknnd_run_report* report);

// One row of the per-layer table (RKNN_QUERY_PERF_DETAIL has it as text): what
// a layer did in a context's last run. Texts are NUL-terminated. Cycles are the
// SoC's by its timing model; usage and load are percent of each core, in order.
#define RKNND_MAX_CORES 32
typedef struct rknnd_layer {
  const char* type;         // "ConvRelu"
  const char* name;         // "Conv:conv1"
  const char* data_type;    // "INT8"
  const char* target;       // "NPU", "CPU"
  const char* input_shape;  // "(1,3,224,224),(64,3,7,7)"
  const char* output_shape;
  uint64_t ddr_cycles;
  uint64_t npu_cycles;
  uint64_t time_ns;
  uint64_t rw_bytes;  // read from DDR: what the vendor's RW(KB) counts
  uint32_t tasks;
  uint32_t cores;  // of the NPU: how many of these are set
  float mac_usage[RKNND_MAX_CORES];
  float work_load[RKNND_MAX_CORES];
} rknnd_layer;

// The context must have been made with RKNN_FLAG_COLLECT_PERF_MASK and have
// run. The rows are the context's, until the next call of this function or its
// end.
int rknnd_query_layers(rknn_context context, const rknnd_layer** layers,
                       uint32_t* count);

// What computes one layer of a context's model, on a device without an NPU.
typedef struct rknnd_kernel {
  const char* type;  // as rknnd_layer has it
  const char* name;  // likewise, and the shapes
  const char* input_shape;
  const char* output_shape;
  const char* kernel;    // "bytes avx2", "oneDNN jit:avx2", "loops"; "": the
                         // device does not say, as one with an NPU
  uint32_t is_slow;      // 1: no kernel is made for this CPU and shape, so that
                         // a library's reference loop computes it
  uint32_t pad;          // 0
  uint64_t reserved[4];  // 0
} rknnd_kernel;

// The layers in the order of rknnd_query_layers, whether the context has run or
// not, with any flags. None where the daemon is older than this function. The
// rows are the context's, until the next call of this function or its end.
int rknnd_query_kernels(rknn_context context, const rknnd_kernel** kernels,
                        uint32_t* count);

// Runs the context once, as rknn_run does, and writes the output of each layer
// into `directory` (made if it is not there) as
// <ID>_<OpType>_<tensor>.npy: ID as in the per-layer table, from 1. 8-bit and
// half-precision tensors become float32, axes are the model's own.
int rknnd_dump(rknn_context context, const char* directory);

// Called now and then while something long goes on: "upload", a model on its
// way to another machine; "dump", layers on their way into files; both in
// bytes. On a thread of the library's or the caller's, one call at a time: it
// must return soon and call nothing of this API.
typedef void (*rknnd_progress)(void* user, const char* what, uint64_t done,
                               uint64_t total);

// Of the whole process; NULL: nobody is told. When it returns, the callback
// before is not called any more.
int rknnd_set_progress(rknnd_progress callback, void* user);

// A model and the flags of a context, as text that can be printed, stored for a
// while or sent: "rknnd1-...", NUL-terminated. It holds no secret and no bytes
// of the model.
typedef struct rknnd_token {
  char text[256];
} rknnd_token;

// The token of a context's model.
int rknnd_model_token(rknn_context context, rknnd_token* token);

// Makes a context of the token's model, with the same flags, in any process of
// the same board: as rknn_dup_context does in one process, without the file,
// and no byte of the model is sent. It begins with nothing bound and no shape
// chosen; with RKNN_FLAG_MEM_ALLOC_OUTSIDE or _INTERNAL_ALLOC_OUTSIDE it needs
// rknn_set_internal_mem of its own.
//
// A token is good as long as the daemon has the model: while a context of it
// exists, for the grace period after the last one, and as long as the model is
// in the daemon's cache folder. After that MODEL_INVALID; for a text that is no
// token PARAM_INVALID.
int rknnd_init_from_token(rknn_context* context, const rknnd_token* token);

// Frames as cameras, decoders and scalers leave them: planes, strides, a part
// of interest. One stands in for the tensor of an image input (4-D, 3 channels,
// one picture at a time); the NPU's side converts and scales it in each run,
// which rknnd_query_copies counts as a conversion (bytes of the picture that
// comes out) and the per-layer times as the input's InputOperator. What comes
// out is taken as a UINT8 picture with channels last is.
//
// What is computed: each pixel becomes RGB by itself (BT.601, limited range;
// the colour sample of a 2x2 square serves its four pixels), then the picture
// is scaled bilinearly with pixel centres at halves: input pixel i is taken
// from (i + 1/2) / scale - 1/2 of the crop, and beyond its border from its
// outermost pixels.
typedef enum rknnd_pixel_format {
  RKNND_PIXEL_NV12 = 1,    // plane 0: Y; 1: Cb and Cr by turns, half as many
                           // columns and rows
  RKNND_PIXEL_NV21 = 2,    // the same with Cr first
  RKNND_PIXEL_RGB888 = 3,  // one plane, red in the first byte
  RKNND_PIXEL_BGR888 = 4,  // one plane, blue in the first byte
} rknnd_pixel_format;

typedef enum rknnd_fit {
  RKNND_FIT_STRETCH = 0,    // to the whole input
  RKNND_FIT_LETTERBOX = 1,  // proportions kept, centred, the rest padded
} rknnd_fit;

#define RKNND_MAX_PLANES 4
typedef struct rknnd_plane {
  rknn_tensor_mem* memory;  // several planes may be in one
  uint64_t offset;          // of the plane, from the memory's own
  uint32_t stride;          // bytes from row to row; 0: of a row's pixels
  uint32_t reserved;        // 0
} rknnd_plane;

// Zero it, then set what is needed. NV12 and NV21: width, height and crop are
// even. No side is above 16384.
typedef struct rknnd_frame {
  uint32_t format;  // rknnd_pixel_format
  uint32_t width;   // of the whole frame, in pixels
  uint32_t height;
  rknnd_plane planes[RKNND_MAX_PLANES];  // as many as the format has
  uint32_t crop_x;  // the part that is taken; all four 0: the whole frame
  uint32_t crop_y;
  uint32_t crop_width;
  uint32_t crop_height;
  uint32_t fit;          // rknnd_fit
  uint8_t pad[3];        // of a letterbox, in the input's order of channels
  uint8_t bgr_input;     // the model wants blue, green, red
  uint32_t reserved[8];  // 0
} rknnd_frame;

// Puts a frame in place of what is bound to input `index`, from the next run on
// and until something else is (rknn_set_io_mem, rknn_inputs_set, another
// frame). The bytes are read in each run; the memory may be read-only, and the
// context keeps it. A call that fails leaves what was bound.
int rknnd_set_input_frame(rknn_context context, uint32_t index,
                          const rknnd_frame* frame);

// Where a frame comes to lie in an input, to map what the model finds back:
//   frame_x = (input_x - offset_x) / scale_x     (pixels, fractions included)
typedef struct rknnd_placement {
  uint32_t x;  // the picture's rectangle in the input
  uint32_t y;
  uint32_t width;
  uint32_t height;
  float scale_x;  // input pixels for a pixel of the frame
  float scale_y;
  float offset_x;  // input_x = frame_x * scale_x + offset_x; crop included
  float offset_y;
  uint32_t reserved[8];  // 0
} rknnd_placement;

// Fills `placement`, of `size` bytes, as rknnd_query_copies does. Needs no more
// of `frame` than width, height, crop and fit; of a dynamic model it is that of
// the chosen shape.
int rknnd_place_frame(rknn_context context, uint32_t index,
                      const rknnd_frame* frame, rknnd_placement* placement,
                      uint32_t size);

// ---- runs that are not waited for -------------------------------------------
//
// rknnd_submit begins a run and returns; the run's end is heard of in one of
// three ways: rknnd_wait for one frame, a queue of completions whose descriptor
// an event loop watches, or a function that rknnd_dispatch calls. Runs of one
// context are done in the order of their submission, one at a time; only a run
// that was lost with the device under it is done again after those that wait.
//
// Memory of a run's tensors is the NPU's from rknnd_submit until the run has
// ended. A context has RKNND_SETS sets of bindings, so that a frame can be
// filled while another one is computed: rknn_set_io_mem and all other calls
// work on set 0, rknnd_set_io_mem on any. A run keeps what was bound when it
// was submitted: what is bound later is for later runs. rknn_inputs_set and
// rknn_set_input_shapes wait for the runs that read what they replace;
// rknn_destroy takes back those that wait for a core.
//
// When the daemon dies or is upgraded, runs on their way are done again on the
// next one, in order: a late frame, and no error.

// Numbers beyond the vendor's RKNN_ERR_*.
#define RKNND_ERR_DROPPED (-101)    // a newer frame took its place, or its age
#define RKNND_ERR_CANCELLED (-102)  // rknnd_cancel, rknn_destroy
#define RKNND_ERR_EMPTY (-103)      // no completion is there: nothing is wrong

#define RKNND_SETS 8

// As rknn_set_io_mem, for set `set` of the context's bindings. What a set does
// not bind is as in set 0.
int rknnd_set_io_mem(rknn_context context, uint32_t set,
                     rknn_tensor_mem* memory, rknn_tensor_attr* attr);

// How a run ended.
typedef struct rknnd_completion {
  rknn_context context;
  uint64_t frame_id;
  void* user;         // of the options
  int32_t code;       // RKNN_SUCC, RKNN_ERR_*, RKNND_ERR_*
  uint32_t core;      // the lowest it ran on
  uint64_t queue_ns;  // waiting for a core; the daemon's clock, as all of these
  uint64_t run_ns;    // on the core
  uint64_t total_ns;  // both, with what lies between
  uint32_t drops;     // frames of this context dropped before this one
  uint32_t set;       // of the options
  uint64_t reserved[8];  // 0
} rknnd_completion;

typedef void (*rknnd_callback)(const rknnd_completion* completion);

// A queue of completions: of runs of any contexts of the process.
typedef uint64_t rknnd_queue;

// Flags of rknnd_run_options.
//
// The run may be answered with the result of another session's run: of the same
// model, on the same registered memory, with the same frame_id, which both must
// give (not 0) and both must have asked for. One of them is computed and the
// outputs copied, which rknnd_query_copies counts.
#define RKNND_RUN_SHARED 1u

// Zero it, set `size`, and what is to differ from a plain run.
typedef struct rknnd_run_options {
  uint32_t size;         // sizeof(rknnd_run_options)
  uint32_t flags;        // RKNND_RUN_*
  uint64_t frame_id;     // the caller's number; 0: counted per context, from 1
  uint64_t deadline_ns;  // not begun later than so long after now; 0: none
  int32_t timeout_ms;  // it has ended so long after now; 0: the daemon's limit
  uint32_t set;        // of bindings
  int32_t fence_in;    // with use_fence_in: begun when this can be read
  uint32_t use_fence_in;
  int32_t* fence_out;  // gets a descriptor that can be read once the run has
                       // ended, however, or when the daemon has died: a wait
                       // for the run then says. It can be read a moment after
                       // the run's completion can be had. The caller closes it.
                       // NULL: none is made
  rknnd_queue queue;   // its completion goes there; 0: to rknnd_wait
  rknnd_callback callback;  // with a queue: called by rknnd_dispatch
  void* user;
  uint64_t reserved[8];  // 0
} rknnd_run_options;

// Begins a run. `options` may be NULL. Writes its number to `frame_id` where
// that is not NULL. Never waits for a run: with as many on their way as can be
// (128 in a process) or 4096 completions that nobody took it is
// RKNN_ERR_MALLOC_FAIL. A fence costs a question to the daemon.
int rknnd_submit(rknn_context context, const rknnd_run_options* options,
                 uint64_t* frame_id);

// Waits for the end of a run that was submitted without a queue; frame_id 0:
// the oldest one that was not waited for. timeout_ms below 0: without a bound
// of its own; 0: looks. RKNN_ERR_TIMEOUT: it has not ended yet, and may be
// waited for again; its completion is then all 0. Gives the run's own code
// otherwise. RKNND_ERR_EMPTY: there is none to wait for. `completion` of `size`
// bytes may be NULL. The last 256 that ended are remembered.
int rknnd_wait(rknn_context context, uint64_t frame_id, int32_t timeout_ms,
               rknnd_completion* completion, uint32_t size);

// Takes back runs that wait for a core: the one of that number, or with 0 all
// of the context. They end with RKNND_ERR_CANCELLED. A run on a core ends by
// itself. `cancelled`, where not NULL, gets how many they were.
int rknnd_cancel(rknn_context context, uint64_t frame_id, uint32_t* cancelled);

int rknnd_queue_create(rknnd_queue* queue);
// A descriptor that can be read (poll, epoll: level-triggered) while
// completions are there; seldom a moment longer, and when the daemon died, to
// have the queue looked after: rknnd_queue_next or rknnd_dispatch then finds
// none. The queue's: not to be read, nor closed. Below 0: an error.
int rknnd_queue_fd(rknnd_queue queue);
// The next completion, without waiting; RKNND_ERR_EMPTY when none is there.
// Of a run that failed rknnd_last_error has the reason. Many threads may take
// from one queue: each completion is one thread's.
int rknnd_queue_next(rknnd_queue queue, rknnd_completion* completion,
                     uint32_t size);
// Calls the callbacks of all completions that are there, on this thread;
// `called`, where not NULL, gets how many. Those without one are passed over
// and lost.
int rknnd_dispatch(rknnd_queue queue, uint32_t* called);
// Runs that are on their way end unheard.
int rknnd_queue_destroy(rknnd_queue queue);

// ---- how a context's frames wait --------------------------------------------

typedef enum rknnd_policy {
  RKNND_QUEUE_FIFO = 0,    // a full queue answers at once
  RKNND_QUEUE_NEWEST = 1,  // one waits; a newer frame takes its place
} rknnd_policy;

typedef struct rknnd_queue_policy {
  uint32_t size;         // sizeof(rknnd_queue_policy)
  uint32_t policy;       // rknnd_policy
  uint32_t depth;        // runs that may wait; 0: the daemon's limit
  uint32_t max_age_ms;   // older ones are dropped, not run; 0: no bound
  uint64_t reserved[4];  // 0
} rknnd_queue_policy;

// From the next run on. Frames that are dropped end with RKNND_ERR_DROPPED.
int rknnd_set_queue_policy(rknn_context context,
                           const rknnd_queue_policy* policy);

// ---- will it fit ------------------------------------------------------------

typedef struct rknnd_stream {
  uint32_t size;      // sizeof(rknnd_stream)
  float rate;         // frames a second; 0: takes back what was reserved
  uint32_t priority;  // RKNN_FLAG_PRIOR_*
  uint32_t reserve;   // not 0: keep room for it as long as the context exists
  uint32_t streams;   // so many alike, each of a context of its own; 0: one.
                      // Room is kept for one only
  uint32_t pad;       // 0
  uint64_t reserved[3];  // 0
} rknnd_stream;

typedef struct rknnd_admission {
  uint32_t fits;         // 1: yes
  float rate;            // the most that fits, frames a second
  uint64_t run_ns;       // of one frame
  uint32_t measured;     // 1: on this board; 0: by the SoC's timing model
  float load;            // of the cores it may use, by admitted streams: 0 to 1
  char reason[256];      // in words, where it does not fit
  uint64_t reserved[4];  // 0
} rknnd_admission;

// Asks whether frames of this context's model fit at this rate beside the
// streams that others have reserved. That it does not is no error. Fills
// `admission`, of `size` bytes, as rknnd_query_copies does.
int rknnd_admit(rknn_context context, const rknnd_stream* stream,
                rknnd_admission* admission, uint32_t size);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif

#endif  // RKNND_H
