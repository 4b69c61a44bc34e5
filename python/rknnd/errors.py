"""What calls of this module raise, with the C library's own words.

Each exception is also one of Python's own kinds where there is a fitting one,
so that a program may catch ValueError, TimeoutError, ConnectionError or
MemoryError without knowing this module.
"""

from __future__ import annotations

from typing import Dict, Type

from . import _abi


class Error(Exception):
    """A call failed. `code` is the C API's number (RKNN_ERR_*, RKNND_ERR_*),
    `function` the C function that gave it, "" where no C function was called."""

    default_code = _abi.ERR_FAIL

    def __init__(self, message: str, code: int = 0, function: str = "") -> None:
        super().__init__(message)
        self.code = code or self.default_code
        self.function = function


class InvalidArgument(Error, ValueError):
    """An argument is wrong: a shape, a type, a name, a descriptor, a number."""

    default_code = _abi.ERR_PARAM_INVALID


class ModelError(Error, ValueError):
    """The model cannot be loaded, or is for another chip."""

    default_code = _abi.ERR_MODEL_INVALID


class Timeout(Error, TimeoutError):
    """It took longer than it may."""

    default_code = _abi.ERR_TIMEOUT


class Unavailable(Error, ConnectionError):
    """There is no daemon, or no NPU, to be had."""

    default_code = _abi.ERR_DEVICE_UNAVAILABLE


class OutOfMemory(Error, MemoryError):
    """Out of memory, or over a limit of the daemon."""

    default_code = _abi.ERR_MALLOC_FAIL


class Closed(Error):
    """The session or memory is closed, or belongs to the process that this one
    was forked from."""

    default_code = _abi.ERR_CTX_INVALID


class Dropped(Error):
    """A newer frame took the frame's place, or it had become too old."""

    default_code = _abi.ERR_DROPPED


class Cancelled(Error):
    """The run was taken back before it had a core."""

    default_code = _abi.ERR_CANCELLED


class LibraryMissing(Error, ImportError):
    """No librknnrt.so of rknnd was found."""

    default_code = _abi.ERR_DEVICE_UNAVAILABLE


_KINDS: Dict[int, Type[Error]] = {
    _abi.ERR_TIMEOUT: Timeout,
    _abi.ERR_DEVICE_UNAVAILABLE: Unavailable,
    _abi.ERR_MALLOC_FAIL: OutOfMemory,
    _abi.ERR_PARAM_INVALID: InvalidArgument,
    _abi.ERR_MODEL_INVALID: ModelError,
    _abi.ERR_CTX_INVALID: Closed,
    _abi.ERR_INPUT_INVALID: InvalidArgument,
    _abi.ERR_OUTPUT_INVALID: InvalidArgument,
    _abi.ERR_DEVICE_UNMATCH: ModelError,
    _abi.ERR_PRE_COMPILE: ModelError,
    _abi.ERR_OPTIMIZATION_LEVEL: ModelError,
    _abi.ERR_PLATFORM_UNMATCH: ModelError,
    _abi.ERR_DROPPED: Dropped,
    _abi.ERR_CANCELLED: Cancelled,
}


def error_of(code: int, function: str, words: str) -> Error:
    """The exception for a number of the C API."""
    kind = _KINDS.get(code, Error)
    return kind(words or f"{function} failed with {code}", code, function)


def error_of_pointer(function: str, words: str) -> Error:
    """The exception of a function that gave NULL, which has no number: what the
    words say decides."""
    text = words.lower()
    if "fork" in text:
        return Closed(words, function=function)
    if "rknnd is not running" in text or "daemon" in text and "away" in text:
        return Unavailable(words, function=function)
    if "memory" in text and ("limit" in text or "no room" in text or "out of" in text):
        return OutOfMemory(words, function=function)
    return InvalidArgument(words or f"{function} failed", function=function)
