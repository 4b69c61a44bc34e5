"""What the daemon knows of a context, as dictionaries."""

from __future__ import annotations

import ctypes
import math
from typing import Any, Dict, List, Optional

from . import _abi, _library
from ._tensor import query, query_attr
from .errors import InvalidArgument


def _text(value: Optional[bytes]) -> str:
    return value.decode("utf-8", "replace") if value else ""


def memory(handle: int, inputs: int, outputs: int) -> Dict[str, int]:
    """Of a context with so many inputs and outputs."""
    size = query(handle, _abi.QUERY_MEM_SIZE, _abi.MemSize())
    attrs = ([query_attr(handle, _abi.QUERY_INPUT_ATTR, index) for index in range(inputs)] +
             [query_attr(handle, _abi.QUERY_OUTPUT_ATTR, index) for index in range(outputs)])
    io = sum(max(int(attr.size), int(attr.size_with_stride)) for attr in attrs)
    weight, internal = int(size.total_weight_size), int(size.total_internal_size)
    return {"weight": weight, "internal": internal, "io": io, "total": weight + internal + io,
            "dma": int(size.total_dma_allocated_size), "sram": int(size.total_sram_size),
            "free_sram": int(size.free_sram_size)}


def daemon_memory(handle: int) -> Dict[str, int]:
    use = _abi.MemoryUse()
    _library.call("rknnd_query_memory", handle, ctypes.byref(use), ctypes.sizeof(use))
    return {"weight": use.weight, "internal": use.internal, "io": use.io, "other": use.other}


def copies(handle: int) -> Dict[str, int]:
    counted = _abi.CopyCounters()
    _library.call("rknnd_query_copies", handle, ctypes.byref(counted), ctypes.sizeof(counted))
    return {"to_device_inputs_set": counted.to_device_inputs_set,
            "to_device_conversion": counted.to_device_conversion,
            "from_device_outputs_get": counted.from_device_outputs_get,
            "from_device_conversion": counted.from_device_conversion}


def last_run(handle: int) -> Dict[str, int]:
    report = _abi.RunReport()
    _library.call("rknnd_last_run", handle, ctypes.byref(report))
    return {name: int(getattr(report, name)) for name, *_ in _abi.RunReport._fields_}


def layers(handle: int) -> List[Dict[str, Any]]:
    rows = ctypes.POINTER(_abi.Layer)()
    count = ctypes.c_uint32()
    _library.call("rknnd_query_layers", handle, ctypes.byref(rows), ctypes.byref(count))
    told: List[Dict[str, Any]] = []
    for row in rows[:count.value]:
        told.append({
            "type": _text(row.type), "name": _text(row.name), "data_type": _text(row.data_type),
            "target": _text(row.target), "input_shape": _text(row.input_shape),
            "output_shape": _text(row.output_shape), "ddr_cycles": row.ddr_cycles,
            "npu_cycles": row.npu_cycles, "time_ns": row.time_ns, "rw_bytes": row.rw_bytes,
            "tasks": row.tasks, "mac_usage": list(row.mac_usage[:row.cores]),
            "work_load": list(row.work_load[:row.cores])})
    return told


def kernels(handle: int) -> List[Dict[str, Any]]:
    rows = ctypes.POINTER(_abi.Kernel)()
    count = ctypes.c_uint32()
    _library.call("rknnd_query_kernels", handle, ctypes.byref(rows), ctypes.byref(count))
    return [{"type": _text(row.type), "name": _text(row.name),
             "input_shape": _text(row.input_shape), "output_shape": _text(row.output_shape),
             "kernel": _text(row.kernel), "is_slow": bool(row.is_slow)}
            for row in rows[:count.value]]


def admit(handle: int, rate: float, streams: int, reserve: bool) -> Dict[str, Any]:
    if not isinstance(rate, (int, float)) or not math.isfinite(rate) or rate < 0:
        raise InvalidArgument(f"rate {rate!r} is no number of frames a second")
    if not isinstance(streams, int) or not 0 <= streams < 1 << 31:
        raise InvalidArgument(f"streams {streams!r} is no number from 0 to 2^31")
    stream = _abi.Stream()
    stream.size = ctypes.sizeof(stream)
    stream.rate = rate
    stream.reserve = 1 if reserve else 0
    stream.streams = streams
    told = _abi.Admission()
    _library.call("rknnd_admit", handle, ctypes.byref(stream), ctypes.byref(told),
                  ctypes.sizeof(told))
    return {"fits": bool(told.fits), "rate": told.rate, "run_ns": told.run_ns,
            "measured": bool(told.measured), "load": told.load, "reason": _text(told.reason)}
