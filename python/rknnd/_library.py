"""Finds and opens rknnd's librknnrt.so, and makes calls of it raise.

The library is opened at the first call that needs it, not at import. Every call
releases the interpreter's lock (ctypes.CDLL does), so that other threads run
while one waits for the NPU.

A process has one target (RKNND_TARGET); the library reads it when it is first
asked for the NPU.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
from ctypes import POINTER, c_char_p, c_int, c_int32, c_uint32, c_uint64, c_void_p
from typing import Any, Iterator, List, Optional, Tuple

from . import _abi
from .errors import Error, InvalidArgument, LibraryMissing, error_of

_NAME = "librknnrt.so"

# Function, what it returns, what it takes.
_MEMORY = POINTER(_abi.TensorMem)
_PROTOTYPES: List[Tuple[str, Any, List[Any]]] = [
    ("rknn_init", c_int, [POINTER(_abi.Context), c_void_p, c_uint32, c_uint32, c_void_p]),
    ("rknn_dup_context", c_int, [POINTER(_abi.Context), POINTER(_abi.Context)]),
    ("rknn_destroy", c_int, [_abi.Context]),
    ("rknn_query", c_int, [_abi.Context, c_int, c_void_p, c_uint32]),
    ("rknn_inputs_set", c_int, [_abi.Context, c_uint32, POINTER(_abi.Input)]),
    ("rknn_set_batch_core_num", c_int, [_abi.Context, c_int]),
    ("rknn_set_core_mask", c_int, [_abi.Context, c_int]),
    ("rknn_run", c_int, [_abi.Context, c_void_p]),
    ("rknn_wait", c_int, [_abi.Context, c_void_p]),
    ("rknn_outputs_get", c_int, [_abi.Context, c_uint32, POINTER(_abi.Output), c_void_p]),
    ("rknn_outputs_release", c_int, [_abi.Context, c_uint32, POINTER(_abi.Output)]),
    ("rknn_create_mem2", _MEMORY, [_abi.Context, c_uint64, c_uint64]),
    ("rknn_create_mem_from_fd", _MEMORY, [_abi.Context, c_int32, c_void_p, c_uint32, c_int32]),
    ("rknn_destroy_mem", c_int, [_abi.Context, _MEMORY]),
    ("rknn_set_io_mem", c_int, [_abi.Context, _MEMORY, POINTER(_abi.TensorAttr)]),
    ("rknn_set_input_shapes", c_int, [_abi.Context, c_uint32, POINTER(_abi.TensorAttr)]),
    ("rknn_mem_sync", c_int, [_abi.Context, _MEMORY, c_int]),
    ("rknnd_version", c_uint32, []),
    ("rknnd_version_string", c_char_p, []),
    ("rknnd_last_error", c_char_p, []),
    ("rknnd_query_copies", c_int, [_abi.Context, POINTER(_abi.CopyCounters), c_uint32]),
    ("rknnd_query_memory", c_int, [_abi.Context, POINTER(_abi.MemoryUse), c_uint32]),
    ("rknnd_query_buffer_key", c_int, [_abi.Context, _MEMORY, POINTER(_abi.BufferKey), c_uint32]),
    ("rknnd_last_run", c_int, [_abi.Context, POINTER(_abi.RunReport)]),
    ("rknnd_query_layers", c_int,
     [_abi.Context, POINTER(POINTER(_abi.Layer)), POINTER(c_uint32)]),
    ("rknnd_query_kernels", c_int,
     [_abi.Context, POINTER(POINTER(_abi.Kernel)), POINTER(c_uint32)]),
    ("rknnd_model_token", c_int, [_abi.Context, POINTER(_abi.Token)]),
    ("rknnd_init_from_token", c_int, [POINTER(_abi.Context), POINTER(_abi.Token)]),
    ("rknnd_set_input_frame", c_int, [_abi.Context, c_uint32, POINTER(_abi.Frame)]),
    ("rknnd_place_frame", c_int,
     [_abi.Context, c_uint32, POINTER(_abi.Frame), POINTER(_abi.Placement), c_uint32]),
    ("rknnd_set_io_mem", c_int, [_abi.Context, c_uint32, _MEMORY, POINTER(_abi.TensorAttr)]),
    ("rknnd_submit", c_int, [_abi.Context, POINTER(_abi.RunOptions), POINTER(c_uint64)]),
    ("rknnd_wait", c_int,
     [_abi.Context, c_uint64, c_int32, POINTER(_abi.Completion), c_uint32]),
    ("rknnd_cancel", c_int, [_abi.Context, c_uint64, POINTER(c_uint32)]),
    ("rknnd_queue_create", c_int, [POINTER(c_uint64)]),
    ("rknnd_queue_fd", c_int, [c_uint64]),
    ("rknnd_queue_next", c_int, [c_uint64, POINTER(_abi.Completion), c_uint32]),
    ("rknnd_queue_destroy", c_int, [c_uint64]),
    ("rknnd_set_queue_policy", c_int, [_abi.Context, POINTER(_abi.QueuePolicy)]),
    ("rknnd_admit", c_int,
     [_abi.Context, POINTER(_abi.Stream), POINTER(_abi.Admission), c_uint32]),
]


def _candidates() -> Iterator[str]:
    explicit = os.environ.get("RKNND_LIBRARY", "")
    if explicit:
        yield explicit
        return
    for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":"):
        if folder:
            yield os.path.join(folder, _NAME)
    machine = os.uname().machine
    triplet = "arm-linux-gnueabihf" if machine.startswith("armv") else machine + "-linux-gnu"
    for prefix in ("/usr/lib", "/usr/local/lib"):
        for folder in (os.path.join(prefix, triplet), prefix):
            yield os.path.join(folder, "rknnd", _NAME)
    # What the loader finds by itself; the vendor's library is told apart below.
    yield _NAME


def _open() -> ctypes.CDLL:
    told = []
    for path in _candidates():
        if "/" in path and not os.path.exists(path):
            continue
        try:
            library = ctypes.CDLL(path)
        except OSError as error:
            told.append(str(error))
            continue
        if not hasattr(library, "rknnd_version"):
            told.append(f"{path} is not rknnd's")
            continue
        for name, result, arguments in _PROTOTYPES:
            function = getattr(library, name, None)
            if function is None:
                raise LibraryMissing(f"{path} is older than this module: it has no {name}")
            function.restype = result
            function.argtypes = arguments
        return library
    reasons = "; ".join(told)
    raise LibraryMissing(
        "no librknnrt.so of rknnd was found: install package librknnd1, or name the file in "
        "RKNND_LIBRARY" + (f" ({reasons})" if reasons else ""))


class _Process:
    """What this process has of the library. `generation` grows in each forked
    child: what was made before the fork is not the child's."""

    def __init__(self) -> None:
        self.library: Optional[ctypes.CDLL] = None
        self.generation = 0
        self.target: Optional[str] = None
        self.lock = threading.Lock()


process = _Process()


def _in_child() -> None:
    process.generation += 1
    process.target = None
    process.lock = threading.Lock()


os.register_at_fork(after_in_child=_in_child)


def library() -> ctypes.CDLL:
    """The library, opened when first asked for. Raises LibraryMissing."""
    if process.library is None:
        with process.lock:
            if process.library is None:
                process.library = _open()
    return process.library


def last_error() -> str:
    """Why the last call of this thread that failed did so."""
    text: Optional[bytes] = library().rknnd_last_error()
    return text.decode("utf-8", "replace") if text else ""


def check(function: str, code: int) -> None:
    """Raises unless a call that this thread has just made returned 0."""
    if code != 0:
        raise error_of(code, function, last_error())


def call(function: str, *arguments: Any) -> None:
    """Calls a function that returns a number, and raises if that is not 0."""
    check(function, getattr(library(), function)(*arguments))


@contextlib.contextmanager
def on_target(target: Optional[str]) -> Iterator[None]:
    """Around the calls that may open the process's target: "unix:PATH",
    "tcp://HOST:PORT", "local:", or None for what RKNND_TARGET says. Raises
    InvalidArgument where the process is on another target already."""
    before = os.environ.get("RKNND_TARGET")
    if target is not None:
        if not isinstance(target, str) or "\0" in target:
            raise InvalidArgument(f"target {target!r} is no text")
        if process.target is not None and process.target != target:
            raise InvalidArgument(
                f"this process is on target '{process.target or 'the default'}' already and "
                f"cannot use '{target}' too: a process has one target; use another process")
        os.environ["RKNND_TARGET"] = target
    try:
        yield
    except Error as error:
        if error.code in (_abi.ERR_DEVICE_UNAVAILABLE, _abi.ERR_PARAM_INVALID):
            # The target was not reached: the next call may name another one.
            if target is not None and process.target is None:
                if before is None:
                    os.environ.pop("RKNND_TARGET", None)
                else:
                    os.environ["RKNND_TARGET"] = before
        else:
            _note_target()
        raise
    _note_target()


def _note_target() -> None:
    if process.target is None:
        process.target = os.environ.get("RKNND_TARGET", "")


def version() -> str:
    """The version of the C library, as "0.1.0"."""
    text: bytes = library().rknnd_version_string()
    return text.decode()
