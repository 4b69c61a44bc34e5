"""Runs that were begun and are not waited for yet."""

from __future__ import annotations

import ctypes
import itertools
import threading
import time
from typing import TYPE_CHECKING, Dict, Optional

from . import _abi, _library
from ._tensor import Array
from .errors import Closed, Error, InvalidArgument, Timeout, error_of

if TYPE_CHECKING:
    from ._pool import Slot
    from .binding import Binding
    from .session import Session

# So long the library waits before Python looks for signals.
_SLICE_MS = 100
_orders = itertools.count()


class Run:
    """A run, made by Session.submit()."""

    can_wait = True

    def __init__(self, session: "Session", handle: int, options: _abi.RunOptions,
                 binding: "Binding", slot: Optional["Slot"]) -> None:
        frame = ctypes.c_uint64()
        _library.call("rknnd_submit", handle, ctypes.byref(options), ctypes.byref(frame))
        self.frame_id = int(frame.value)
        self.order = next(_orders)
        self._session: Optional["Session"] = session
        self._handle = handle
        self._binding = binding
        self._slot = slot
        self._answers: Optional[Dict[str, Array]] = None
        self._error: Optional[Error] = None
        self._ended = False
        self._lock = threading.Lock()
        self.report: Dict[str, int] = {}
        if slot is not None:
            slot.run = self

    def done(self) -> bool:
        """Whether the run has ended."""
        return self._look(0)

    def wait(self, timeout: Optional[float] = None) -> Dict[str, Array]:
        """Waits and returns the outputs by name: arrays of the caller's own, or
        the binding's. timeout: in seconds; the run can be waited for again.
        Raises Timeout, Dropped, Cancelled, Closed, Unavailable."""
        end = None if timeout is None else time.monotonic() + timeout
        while not self._ended:
            left = _SLICE_MS
            if end is not None:
                left = min(left, max(0, int((end - time.monotonic()) * 1000)))
            if not self._look(left) and end is not None and time.monotonic() >= end:
                raise Timeout(f"frame {self.frame_id} has not ended within {timeout} s: it can "
                              "be waited for again")
        if self._error is not None:
            raise self._error
        assert self._answers is not None
        return self._answers

    def cancel(self) -> bool:
        """Takes the run back if it has no core yet; it then ends with Cancelled."""
        if self._ended or self._session is None or self._session.closed:
            return False
        count = ctypes.c_uint32()
        _library.call("rknnd_cancel", self._handle, self.frame_id, ctypes.byref(count))
        return count.value > 0

    def settle(self) -> None:
        """Waits for the end, and keeps how it was for wait()."""
        while not self._look(_SLICE_MS):
            pass

    def _look(self, wait_ms: int) -> bool:
        if self._ended:
            return True
        session = self._session
        if session is not None and not session.closed:
            session.handle  # raises Closed in a forked child, before the lock
        with self._lock:
            if self._ended:
                return True
            session = self._session
            if session is None or session.closed:
                return self._end(Closed("the session was closed before this run had ended"))
            completion = _abi.Completion()
            code = _library.library().rknnd_wait(
                self._handle, self.frame_id, wait_ms, ctypes.byref(completion),
                ctypes.sizeof(completion))
            if code == _abi.ERR_TIMEOUT and completion.frame_id == 0:
                return False  # not yet
            if code == _abi.ERR_EMPTY:
                return self._end(error_of(_abi.ERR_FAIL, "rknnd_wait",
                                          f"nothing is known of frame {self.frame_id} any more: "
                                          "wait for runs before 256 newer ones have ended"))
            self.report = report_of(completion)
            if code != 0:
                return self._end(error_of(code, "rknnd_wait", _library.last_error()))
            self._answers = (dict(self._binding.outputs) if self._slot is None
                             else self._slot.answers())
            return self._end(None)

    def _end(self, error: Optional[Error]) -> bool:
        self._error = error
        self._session = None
        if self._slot is not None:
            self._slot.run = None
            self._slot = None
        self._ended = True
        return True


def report_of(completion: _abi.Completion) -> Dict[str, int]:
    """A completion as a dictionary; times are the daemon's, in nanoseconds."""
    return {"frame_id": completion.frame_id, "core": completion.core,
            "queue_ns": completion.queue_ns, "run_ns": completion.run_ns,
            "total_ns": completion.total_ns, "drops": completion.drops}


def run_options(frame_id: int, deadline: Optional[float],
                timeout: Optional[float]) -> _abi.RunOptions:
    """Raises InvalidArgument for numbers that cannot be."""
    options = _abi.RunOptions()
    options.size = ctypes.sizeof(options)
    if not isinstance(frame_id, int) or not 0 <= frame_id < 1 << 64:
        raise InvalidArgument(f"frame_id {frame_id!r} is no number from 0 to 2^64")
    options.frame_id = frame_id
    if deadline is not None:
        if not isinstance(deadline, (int, float)) or not 0 < deadline < 1e9:
            raise InvalidArgument(f"deadline {deadline!r} is no number of seconds above 0")
        options.deadline_ns = max(1, int(deadline * 1e9))
    if timeout is not None:
        options.timeout_ms = milliseconds(timeout)
    return options


def milliseconds(seconds: float) -> int:
    """A time limit as the C API takes it. Raises InvalidArgument."""
    if not isinstance(seconds, (int, float)) or not 0 < seconds < 2e6:
        raise InvalidArgument(f"{seconds!r} is no number of seconds above 0")
    return max(1, int(seconds * 1000))
