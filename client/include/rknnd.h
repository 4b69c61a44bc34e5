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

// Runs the context once, as rknn_run does, and writes the output of each layer
// into `directory` (made if it is not there) as
// <ID>_<OpType>_<tensor>.npy: ID as in the per-layer table, from 1. 8-bit and
// half-precision tensors become float32, axes are the model's own.
int rknnd_dump(rknn_context context, const char* directory);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif

#endif  // RKNND_H
