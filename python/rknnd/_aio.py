"""Runs for asyncio: their ends wake the event loop by the descriptor of a queue
of completions, without a thread."""

from __future__ import annotations

import asyncio
import ctypes
import itertools
import threading
import weakref
from typing import TYPE_CHECKING, Any, Dict, List, Optional

from . import _abi, _library
from ._pool import Slot, as_feeds
from ._tensor import Array
from .errors import Closed, Error, error_of
from .runs import run_options

if TYPE_CHECKING:
    from .binding import Binding
    from .session import Session

_numbers = itertools.count(1)


class _Pending:
    """What stands in a slot for a run whose end the queue tells."""

    can_wait = False

    def __init__(self, session: "Session") -> None:
        self.session = session
        self.future: "asyncio.Future[Dict[str, Array]]" = (
            asyncio.get_running_loop().create_future())
        self.used: Optional["Binding"] = None
        self.slot: Optional[Slot] = None
        self.ended = False

    def answers(self) -> Dict[str, Array]:
        """Taken when the run has ended, before the next run has the slot."""
        if self.slot is not None:
            return self.slot.answers()
        return {} if self.used is None else dict(self.used.outputs)

    def done(self) -> bool:
        return self.ended


class _Queue:
    """The queue of one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        handle = ctypes.c_uint64()
        _library.call("rknnd_queue_create", ctypes.byref(handle))
        self.handle = int(handle.value)
        self.generation = _library.process.generation
        self._loop = weakref.ref(loop)
        self._fd = int(_library.library().rknnd_queue_fd(self.handle))
        self._pending: Dict[int, _Pending] = {}
        self._waiting: List["asyncio.Future[None]"] = []
        weakref.finalize(self, _destroy, self.generation, self.handle)

    def submit(self, handle: int, options: _abi.RunOptions, pending: _Pending) -> int:
        loop = asyncio.get_running_loop()
        number = next(_numbers)
        options.queue = self.handle
        options.user = number
        frame = ctypes.c_uint64()
        if not self._pending:
            loop.add_reader(self._fd, self._take)
        self._pending[number] = pending
        try:
            _library.call("rknnd_submit", handle, ctypes.byref(options), ctypes.byref(frame))
        except BaseException:
            self._forget(number)
            raise
        return int(frame.value)

    async def a_run_has_ended(self) -> None:
        future = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        try:
            # Runs of submit() or of another loop end without a word to this one.
            await asyncio.wait([future], timeout=0.01)
        finally:
            if future in self._waiting:
                self._waiting.remove(future)

    def _forget(self, number: int) -> None:
        self._pending.pop(number, None)
        loop = self._loop()
        if not self._pending and loop is not None and not loop.is_closed():
            loop.remove_reader(self._fd)

    def _take(self) -> None:
        library = _library.library()
        completion = _abi.Completion()
        while self._pending:
            code = library.rknnd_queue_next(self.handle, ctypes.byref(completion),
                                            ctypes.sizeof(completion))
            if code == _abi.ERR_EMPTY:
                break
            # Of a run that failed it is the run's own, and there is a completion.
            pending = self._pending.get(completion.user or 0)
            if pending is None:
                if completion.user is None:
                    break
                continue
            error: Optional[Error] = None
            if completion.code != 0:
                error = error_of(completion.code, "rknnd_submit", _library.last_error())
            self.end(int(completion.user), error)
        for number, pending in list(self._pending.items()):
            if pending.session.closed:
                self.end(number, Closed("the session was closed before this run had ended"))

    def end(self, number: int, error: Optional[Error]) -> None:
        pending = self._pending[number]
        self._forget(number)
        pending.ended = True
        if not pending.future.done():
            if error is None:
                pending.future.set_result(pending.answers())
            else:
                pending.future.set_exception(error)
        for future in self._waiting:
            if not future.done():
                future.set_result(None)
        self._waiting.clear()


def _destroy(generation: int, handle: int) -> None:
    if generation == _library.process.generation:
        _library.library().rknnd_queue_destroy(handle)


_queues: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Queue]" = (
    weakref.WeakKeyDictionary())
_queues_lock = threading.Lock()


def _queue() -> _Queue:
    loop = asyncio.get_running_loop()
    with _queues_lock:
        queue = _queues.get(loop)
        if queue is None or queue.generation != _library.process.generation:
            queue = _queues[loop] = _Queue(loop)
        return queue


async def run_async(session: "Session", feeds: Any, binding: Optional["Binding"],
                    layout: Optional[str], deadline: Optional[float],
                    timeout: Optional[float]) -> Dict[str, Array]:
    """Session.run_async()."""
    queue = _queue()
    options = run_options(0, deadline, timeout)
    pending = _Pending(session)
    if feeds is None:
        pending.used = binding or session._need_binding()
    else:
        by_name = as_feeds(session._by_name, feeds)
        while pending.used is None:
            with session._held():
                handle = session.handle
                session._choose(by_name)
                slot = session._pool.free_slot(session)
                if slot is not None:
                    slot.load(session, by_name, layout)
                    slot.run = pending
                    pending.slot, pending.used = slot, slot.binding
            if slot is None:
                await queue.a_run_has_ended()
    options.set = pending.used.set
    handle = session.handle
    try:
        frame = queue.submit(handle, options, pending)
    except BaseException:
        pending.ended = True
        raise
    try:
        return await pending.future
    except asyncio.CancelledError:
        if not session.closed:
            count: Any = ctypes.c_uint32()
            _library.library().rknnd_cancel(handle, frame, ctypes.byref(count))
        raise
