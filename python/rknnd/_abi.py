"""The C API's structures and numbers (rknn_api.h, rknnd.h), as ctypes sees them.

Nothing here calls the library. Names are those of the headers without their
prefix; `tests/python` compares the sizes with the headers' own.
"""

from __future__ import annotations

import ctypes
from ctypes import (
    c_char,
    c_char_p,
    c_float,
    c_int,
    c_int8,
    c_int32,
    c_int64,
    c_uint8,
    c_uint32,
    c_uint64,
    c_void_p,
)

MAX_DIMS = 16
MAX_NAME = 256
MAX_SHAPES = 512
MAX_CORES = 32
MAX_PLANES = 4
SETS = 8

# Flags of rknn_init.
PRIORITY_HIGH, PRIORITY_MEDIUM, PRIORITY_LOW = 0, 1, 2
FLAG_ASYNC = 0x4
FLAG_COLLECT_PERF = 0x8
FLAG_ALLOC_NO_CONTEXT = 0x20000
MEMORY_CACHEABLE, MEMORY_NON_CACHEABLE, MEMORY_TRY_SRAM = 1, 2, 4
MEMORY_DMA32, MEMORY_CONTIGUOUS = 1 << 56, 1 << 57

# Queries.
QUERY_IN_OUT_NUM = 0
QUERY_INPUT_ATTR, QUERY_OUTPUT_ATTR = 1, 2
QUERY_PERF_DETAIL, QUERY_PERF_RUN = 3, 4
QUERY_SDK_VERSION, QUERY_MEM_SIZE, QUERY_CUSTOM_STRING = 5, 6, 7
QUERY_NATIVE_INPUT_ATTR, QUERY_NATIVE_OUTPUT_ATTR = 8, 9
QUERY_INPUT_DYNAMIC_RANGE = 13
QUERY_CURRENT_INPUT_ATTR, QUERY_CURRENT_OUTPUT_ATTR = 14, 15

# Layouts and kinds of quantisation.
NCHW, NHWC, NC1HWC2, UNDEFINED = 0, 1, 2, 3
QNT_NONE, QNT_DFP, QNT_AFFINE = 0, 1, 2

# Types of elements.
FLOAT32, FLOAT16, INT8, UINT8, INT16, UINT16 = 0, 1, 2, 3, 4, 5
INT32, UINT32, INT64, BOOL, INT4, BFLOAT16 = 6, 7, 8, 9, 10, 11

SYNC_TO_DEVICE, SYNC_FROM_DEVICE = 1, 2

# Return codes.
ERR_FAIL = -1
ERR_TIMEOUT = -2
ERR_DEVICE_UNAVAILABLE = -3
ERR_MALLOC_FAIL = -4
ERR_PARAM_INVALID = -5
ERR_MODEL_INVALID = -6
ERR_CTX_INVALID = -7
ERR_INPUT_INVALID = -8
ERR_OUTPUT_INVALID = -9
ERR_DEVICE_UNMATCH = -10
ERR_PRE_COMPILE = -11
ERR_OPTIMIZATION_LEVEL = -12
ERR_PLATFORM_UNMATCH = -13
ERR_DROPPED = -101
ERR_CANCELLED = -102
ERR_EMPTY = -103


class InOutNum(ctypes.Structure):
    _fields_ = [("n_input", c_uint32), ("n_output", c_uint32)]


class TensorAttr(ctypes.Structure):
    _fields_ = [
        ("index", c_uint32),
        ("n_dims", c_uint32),
        ("dims", c_uint32 * MAX_DIMS),
        ("name", c_char * MAX_NAME),
        ("n_elems", c_uint32),
        ("size", c_uint32),
        ("fmt", c_int),
        ("type", c_int),
        ("qnt_type", c_int),
        ("fl", c_int8),
        ("zp", c_int32),
        ("scale", c_float),
        ("w_stride", c_uint32),
        ("size_with_stride", c_uint32),
        ("pass_through", c_uint8),
        ("h_stride", c_uint32),
    ]


class InputRange(ctypes.Structure):
    _fields_ = [
        ("index", c_uint32),
        ("shape_number", c_uint32),
        ("fmt", c_int),
        ("name", c_char * MAX_NAME),
        ("dyn_range", (c_uint32 * MAX_DIMS) * MAX_SHAPES),
        ("n_dims", c_uint32),
    ]


class PerfDetail(ctypes.Structure):
    _fields_ = [("perf_data", c_char_p), ("data_len", c_uint64)]


class PerfRun(ctypes.Structure):
    _fields_ = [("run_duration", c_int64)]


class SdkVersion(ctypes.Structure):
    _fields_ = [("api_version", c_char * MAX_NAME), ("drv_version", c_char * MAX_NAME)]


class MemSize(ctypes.Structure):
    _fields_ = [
        ("total_weight_size", c_uint32),
        ("total_internal_size", c_uint32),
        ("total_dma_allocated_size", c_uint64),
        ("total_sram_size", c_uint32),
        ("free_sram_size", c_uint32),
        ("reserved", c_uint32 * 10),
    ]


class CustomString(ctypes.Structure):
    _fields_ = [("string", c_char * 1024)]


class TensorMem(ctypes.Structure):
    _fields_ = [
        ("virt_addr", c_void_p),
        ("phys_addr", c_uint64),
        ("fd", c_int32),
        ("offset", c_int32),
        ("size", c_uint32),
        ("flags", c_uint32),
        ("priv_data", c_void_p),
    ]


class Input(ctypes.Structure):
    _fields_ = [
        ("index", c_uint32),
        ("buf", c_void_p),
        ("size", c_uint32),
        ("pass_through", c_uint8),
        ("type", c_int),
        ("fmt", c_int),
    ]


class Output(ctypes.Structure):
    _fields_ = [
        ("want_float", c_uint8),
        ("is_prealloc", c_uint8),
        ("index", c_uint32),
        ("buf", c_void_p),
        ("size", c_uint32),
    ]


class InitExtend(ctypes.Structure):
    _fields_ = [
        ("ctx", c_uint64),
        ("real_model_offset", c_int32),
        ("real_model_size", c_uint32),
        ("model_buffer_fd", c_int32),
        ("model_buffer_flags", c_uint32),
        ("reserved", c_uint8 * 112),
    ]


class RunExtend(ctypes.Structure):
    _fields_ = [
        ("frame_id", c_uint64),
        ("non_block", c_int32),
        ("timeout_ms", c_int32),
        ("fence_fd", c_int32),
    ]


class OutputExtend(ctypes.Structure):
    _fields_ = [("frame_id", c_uint64)]


class CopyCounters(ctypes.Structure):
    _fields_ = [
        ("to_device_inputs_set", c_uint64),
        ("to_device_conversion", c_uint64),
        ("from_device_outputs_get", c_uint64),
        ("from_device_conversion", c_uint64),
        ("reserved", c_uint64 * 4),
    ]


class MemoryUse(ctypes.Structure):
    _fields_ = [
        ("weight", c_uint64),
        ("internal", c_uint64),
        ("io", c_uint64),
        ("other", c_uint64),
        ("reserved", c_uint64 * 4),
    ]


class BufferKey(ctypes.Structure):
    _fields_ = [
        ("text", c_char * 40),
        ("offset", c_uint64),
        ("size", c_uint64),
        ("reserved", c_uint64 * 4),
    ]


class RunReport(ctypes.Structure):
    _fields_ = [
        ("frame_id", c_uint64),
        ("queue_ns", c_uint64),
        ("run_ns", c_uint64),
        ("total_ns", c_uint64),
        ("core", c_uint32),
        ("drops", c_uint32),
    ]


class Layer(ctypes.Structure):
    _fields_ = [
        ("type", c_char_p),
        ("name", c_char_p),
        ("data_type", c_char_p),
        ("target", c_char_p),
        ("input_shape", c_char_p),
        ("output_shape", c_char_p),
        ("ddr_cycles", c_uint64),
        ("npu_cycles", c_uint64),
        ("time_ns", c_uint64),
        ("rw_bytes", c_uint64),
        ("tasks", c_uint32),
        ("cores", c_uint32),
        ("mac_usage", c_float * MAX_CORES),
        ("work_load", c_float * MAX_CORES),
    ]


class Kernel(ctypes.Structure):
    _fields_ = [
        ("type", c_char_p),
        ("name", c_char_p),
        ("input_shape", c_char_p),
        ("output_shape", c_char_p),
        ("kernel", c_char_p),
        ("is_slow", c_uint32),
        ("pad", c_uint32),
        ("reserved", c_uint64 * 4),
    ]


class Token(ctypes.Structure):
    _fields_ = [("text", c_char * 256)]


class Plane(ctypes.Structure):
    _fields_ = [
        ("memory", c_void_p),
        ("offset", c_uint64),
        ("stride", c_uint32),
        ("reserved", c_uint32),
    ]


class Frame(ctypes.Structure):
    _fields_ = [
        ("format", c_uint32),
        ("width", c_uint32),
        ("height", c_uint32),
        ("planes", Plane * MAX_PLANES),
        ("crop_x", c_uint32),
        ("crop_y", c_uint32),
        ("crop_width", c_uint32),
        ("crop_height", c_uint32),
        ("fit", c_uint32),
        ("pad", c_uint8 * 3),
        ("bgr_input", c_uint8),
        ("reserved", c_uint32 * 8),
    ]


class Placement(ctypes.Structure):
    _fields_ = [
        ("x", c_uint32),
        ("y", c_uint32),
        ("width", c_uint32),
        ("height", c_uint32),
        ("scale_x", c_float),
        ("scale_y", c_float),
        ("offset_x", c_float),
        ("offset_y", c_float),
        ("reserved", c_uint32 * 8),
    ]


class Completion(ctypes.Structure):
    _fields_ = [
        ("context", c_uint64),
        ("frame_id", c_uint64),
        ("user", c_void_p),
        ("code", c_int32),
        ("core", c_uint32),
        ("queue_ns", c_uint64),
        ("run_ns", c_uint64),
        ("total_ns", c_uint64),
        ("drops", c_uint32),
        ("set", c_uint32),
        ("reserved", c_uint64 * 8),
    ]


class RunOptions(ctypes.Structure):
    _fields_ = [
        ("size", c_uint32),
        ("flags", c_uint32),
        ("frame_id", c_uint64),
        ("deadline_ns", c_uint64),
        ("timeout_ms", c_int32),
        ("set", c_uint32),
        ("fence_in", c_int32),
        ("use_fence_in", c_uint32),
        ("fence_out", c_void_p),
        ("queue", c_uint64),
        ("callback", c_void_p),
        ("user", c_void_p),
        ("reserved", c_uint64 * 8),
    ]


class QueuePolicy(ctypes.Structure):
    _fields_ = [
        ("size", c_uint32),
        ("policy", c_uint32),
        ("depth", c_uint32),
        ("max_age_ms", c_uint32),
        ("reserved", c_uint64 * 4),
    ]


class Stream(ctypes.Structure):
    _fields_ = [
        ("size", c_uint32),
        ("rate", c_float),
        ("priority", c_uint32),
        ("reserve", c_uint32),
        ("streams", c_uint32),
        ("pad", c_uint32),
        ("reserved", c_uint64 * 3),
    ]


class Admission(ctypes.Structure):
    _fields_ = [
        ("fits", c_uint32),
        ("rate", c_float),
        ("run_ns", c_uint64),
        ("measured", c_uint32),
        ("load", c_float),
        ("reason", c_char * 256),
        ("reserved", c_uint64 * 4),
    ]


# Handles of contexts are 32-bit on 32-bit Arm (rknn_api.h).
Context = c_uint32 if ctypes.sizeof(c_void_p) == 4 else c_uint64
