"""A model that is open on the NPU, and its runs."""

from __future__ import annotations

import ctypes
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from . import _abi, _library
from ._context import PRIORITIES, Model, Token, open_model
from ._pool import Pool, as_feeds
from ._telling import TellingContext
from ._tensor import Array, Shape, Tensor, address, fit, named
from .binding import Binding
from .errors import Closed, InvalidArgument
from .frame import Frame, Placement
from .memory import Memory
from .runs import Run, milliseconds, run_options

Feeds = Union[Mapping[str, Any], Sequence[Any], Any]
_CORES = {"auto": 0, "all": 0xFFFF}


class Session(TellingContext):
    """Opens a model: a path, bytes, or a Token of another session.

    core_mask: which cores its runs may use: 0 or "auto" for whichever is free, a
    mask of bits (1, 2, 4; several bits are one run on all of them together), or
    "all". priority: "high", "medium" or "low"; the daemon has a ceiling. target:
    "unix:PATH", "tcp://HOST:PORT" or "local:" (no daemon); None is what
    RKNND_TARGET says. A process has one target. perf: takes the times of layers,
    for layers().

    Any thread may use a session; its blocking runs are done one at a time. Ctrl-C
    during `run` is raised when the run has ended, during Run.wait at once. It is
    a context manager, and closes when nobody has it any more.

    Raises ModelError, InvalidArgument, Unavailable, OutOfMemory.
    """

    def __init__(self, model: Model, *, core_mask: Union[int, str] = 0, priority: str = "high",
                 target: Optional[str] = None, perf: bool = False) -> None:
        if priority not in PRIORITIES:
            raise InvalidArgument(f"priority {priority!r} is none of {', '.join(PRIORITIES)}")
        mask = _cores(core_mask)
        flags = PRIORITIES[priority] | (_abi.FLAG_COLLECT_PERF if perf else 0)
        self._begin(open_model(model, flags, target))
        if mask:
            self.set_core_mask(mask)

    def _begin(self, handle: int) -> None:
        TellingContext.__init__(self, handle)
        self._binding: Optional[Binding] = None
        self._sets: Dict[int, Binding] = {}
        self._shape_chosen = False
        self._input_array = (_abi.Input * len(self._inputs))()
        self._output_array = (_abi.Output * len(self._outputs))()
        self._pool = Pool()

    # ---- runs --------------------------------------------------------------

    def run(self, feeds: Optional[Feeds] = None, *, layout: Optional[str] = None,
            raw: bool = False, timeout: Optional[float] = None) -> Dict[str, Array]:
        """Runs once and waits. Returns the outputs by name.

        feeds: an array for each input: {name: array}, a list in order, or the
        array of the only one. A 4-D input takes "NHWC" or "NCHW", told by its
        shape, or by `layout` where both would fit. uint8 and float arrays are the
        application's numbers: mean and deviation are applied, and quantisation. A
        Frame may stand for an array. Without feeds the run is on what is bound
        (`bind`), and what is returned are the bound arrays.

        Outputs: float32, dequantised; integers that stand for themselves as they
        are. raw: in the model's own types. timeout: in seconds.

        Raises InvalidArgument for wrong shapes, types and names; Timeout, Closed,
        Unavailable.
        """
        extend = None
        if timeout is not None:
            extend = _abi.RunExtend()
            extend.timeout_ms = milliseconds(timeout)
        with self._held():
            handle = self.handle
            if feeds is None and self._binding is None:
                raise InvalidArgument("there is nothing to run on: give arrays, or bind() memory",
                                      _abi.ERR_INPUT_INVALID)
            kept = None
            if feeds is not None:
                kept = self._feed(handle, as_feeds(self._by_name, feeds), upper(layout))
            _library.call("rknn_run", handle, None if extend is None else ctypes.byref(extend))
            del kept
            binding = self._binding
            if binding is not None:
                return dict(binding.outputs)
            return self._fetch(handle, raw)

    __call__ = run

    def submit(self, feeds: Optional[Feeds] = None, *, binding: Optional[Binding] = None,
               layout: Optional[str] = None, frame_id: int = 0,
               deadline: Optional[float] = None, timeout: Optional[float] = None) -> Run:
        """Begins a run and returns at once, while earlier ones are on their way:
        up to 7 with feeds, each in memory of its own, and as many as there are
        sets with bindings. With 7 on their way it waits for the oldest.

        deadline: seconds after which the run is not begun any more; timeout:
        after which it has ended. Raises as `run`, and OutOfMemory with too many.
        """
        options = run_options(frame_id, deadline, timeout)
        with self._held():
            handle = self.handle
            if feeds is None:
                number = (binding or self._need_binding()).set
                options.set = number
                return Run(self, handle, options, binding or self._need_binding(), None)
            by_name = as_feeds(self._by_name, feeds)
            self._choose(by_name)
            slot = self._pool.take(self)
            try:
                slot.load(self, by_name, upper(layout))
                options.set = slot.binding.set
                return Run(self, handle, options, slot.binding, slot)
            except BaseException:
                slot.run = None
                raise

    async def run_async(self, feeds: Optional[Feeds] = None, *,
                        binding: Optional[Binding] = None, layout: Optional[str] = None,
                        deadline: Optional[float] = None,
                        timeout: Optional[float] = None) -> Dict[str, Array]:
        """As `run`, for asyncio: without a thread, woken by the descriptor of a
        queue of completions. Several may be awaited at the same time. If the task
        is cancelled, so is the run, unless it has a core already."""
        from ._aio import run_async  # asyncio is imported by those who use it
        return await run_async(self, feeds, binding, upper(layout), deadline, timeout)

    def bind(self, inputs: Optional[Mapping[str, Any]] = None,
             outputs: Optional[Mapping[str, Any]] = None, *, set: int = 0) -> Binding:
        """Binds memory to all inputs and outputs, so that runs copy nothing.

        inputs, outputs: for those that are to differ, a dtype, a Memory of yours,
        or (Memory, dtype), by name; all others get new memory in the type of the
        tensor. A 4-D input is NHWC, a 4-D output NCHW. set: 0 is what `run` uses;
        1 to 7 are for `submit` and `run_async` (binding=...), so that one frame
        can be filled while another one is computed. Do not mix them with feeds.

        Raises InvalidArgument for what cannot be bound so.
        """
        with self._held():
            binding = self._sets.get(set) or Binding(self, set)
            wanted = _wishes(self._inputs, inputs)
            for tensor, (memory, dtype) in zip(self._inputs, wanted):
                binding.bind_input(tensor, dtype, memory)
            wanted = _wishes(self._outputs, outputs)
            for tensor, (memory, dtype) in zip(self._outputs, wanted):
                binding.bind_output(tensor, dtype, memory)
            self._sets[set] = binding
            if set == 0:
                self._binding = binding
            return binding

    def _need_binding(self) -> Binding:
        if self._binding is None:
            raise InvalidArgument("there is nothing to run on: give arrays, or bind() memory",
                                  _abi.ERR_INPUT_INVALID)
        return self._binding

    def _feed(self, handle: int, feeds: Dict[str, Any], layout: Optional[str]) -> List[Array]:
        self._choose(feeds)
        if self._binding is not None:
            self._binding.fill(self._by_name, feeds, layout, adapt=False)
            return []
        kept: List[Array] = []
        count = 0
        for tensor in self._inputs:
            if tensor.name not in feeds:
                continue  # set before, or the library says that it was not
            value = feeds[tensor.name]
            if isinstance(value, Frame):
                self._set_frame(handle, tensor, value)
                continue
            array, type_, number = fit(tensor, value, layout)
            entry = self._input_array[count]
            entry.index = tensor.index
            entry.buf = address(array)
            entry.size = array.nbytes
            entry.type = type_
            entry.fmt = number
            kept.append(array)
            count += 1
        if count:
            _library.call("rknn_inputs_set", handle, count, self._input_array)
        return kept

    def _fetch(self, handle: int, raw: bool) -> Dict[str, Array]:
        answers: Dict[str, Array] = {}
        for tensor, entry in zip(self._outputs, self._output_array):
            want_float = not raw and tensor.is_real
            array = np.empty(tensor.shape, np.float32 if want_float else tensor.dtype)
            entry.want_float = want_float
            entry.is_prealloc = 1
            entry.index = tensor.index
            entry.buf = address(array)
            entry.size = array.nbytes
            answers[tensor.name] = array
        _library.call("rknn_outputs_get", handle, len(self._outputs), self._output_array, None)
        return answers

    # ---- what it is set to -------------------------------------------------

    def set_core_mask(self, core_mask: Union[int, str]) -> None:
        """As the constructor's; from the next run on."""
        _library.call("rknn_set_core_mask", self.handle, _cores(core_mask))

    def set_batch_cores(self, cores: int) -> None:
        """Spreads the pictures of a batch over so many cores."""
        _library.call("rknn_set_batch_core_num", self.handle, _number("cores", cores))

    def set_shapes(self, shapes: Mapping[str, Shape]) -> None:
        """Chooses one of `shapes` of a dynamic model. `run` does so by itself,
        from the arrays it is given. Raises InvalidArgument for another one."""
        with self._held():
            self._set_shapes(shapes)

    def set_frame(self, name: str, frame: Frame) -> Placement:
        """Puts a frame in place of an input, from the next run on."""
        with self._held():
            return self._set_frame(self.handle, named(self._by_name, name), frame)

    def set_queue(self, policy: str = "fifo", depth: int = 0, max_age: float = 0.0) -> None:
        """How submitted frames wait: "fifo", or "newest", where a newer frame
        takes the place of the one that waits. depth: how many may (0: the
        daemon's limit); max_age: seconds after which one is dropped (0: never).
        Frames that are dropped end with Dropped."""
        if policy not in ("fifo", "newest"):
            raise InvalidArgument(f"policy {policy!r} is none of fifo, newest")
        wish = _abi.QueuePolicy()
        wish.size = ctypes.sizeof(wish)
        wish.policy = 1 if policy == "newest" else 0
        wish.depth = _number("depth", depth)
        wish.max_age_ms = milliseconds(max_age) if max_age else 0
        _library.call("rknnd_set_queue_policy", self.handle, ctypes.byref(wish))

    def duplicate(self) -> "Session":
        """A second session of the same model: its weights, but inputs, outputs
        and cores of its own."""
        handle = _abi.Context()
        _library.call("rknn_dup_context", ctypes.byref(_abi.Context(self.handle)),
                      ctypes.byref(handle))
        session = Session.__new__(Session)
        session._begin(int(handle.value))
        return session

    def token(self) -> Token:
        """The model as text, from which `Session(token)` in any process of the
        board makes the same, as long as the daemon has the model."""
        token = _abi.Token()
        _library.call("rknnd_model_token", self.handle, ctypes.byref(token))
        return Token(token.text.decode("ascii"))

    # ---- its end ------------------------------------------------------------

    def close(self) -> None:
        """Ends the session. A blocking run of another thread ends first; runs
        that wait for a core end with Cancelled, or Closed."""
        if self._handle is None:
            return
        if self._generation != _library.process.generation:
            self._finalizer.detach()
            self._handle = None
            return
        with self._lock:
            self._finalizer()
            self._handle = None
            self._binding = None
            self._sets.clear()
        self._pool.close()

    def __enter__(self) -> "Session":
        if self._handle is None:
            raise Closed("this session is closed")
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._handle is None else (
            f"{', '.join(f'{t.name} {t.dtype}{list(t.shape)}' for t in self._inputs)} -> "
            f"{', '.join(f'{t.name} {t.dtype}{list(t.shape)}' for t in self._outputs)}")
        return f"<rknnd.Session {state}>"

    # ---- shapes and names ---------------------------------------------------

    def _choose(self, feeds: Mapping[str, Any]) -> None:
        """Of a dynamic model, the row that these arrays have."""
        if not self._rows:
            return
        given = {name: np.shape(value) for name, value in feeds.items()
                 if not isinstance(value, Frame)}
        if self._shape_chosen and all(
                given.get(t.name, t.shape) in (t.shape, t.other_shape) for t in self._inputs):
            return
        for row in self._rows:
            if all(name in row and shape in _orders(row[name]) for name, shape in given.items()):
                self._set_shapes(row)
                return
        raise InvalidArgument(f"arrays of shapes {given} are none that this model lists: "
                              f"{self._rows}", _abi.ERR_INPUT_INVALID)

    def _set_shapes(self, shapes: Mapping[str, Shape]) -> None:
        if not self._rows:
            raise InvalidArgument("this model has one fixed shape")
        attrs = (_abi.TensorAttr * len(self._inputs))()
        for attr, known in zip(attrs, self._input_attrs):
            ctypes.pointer(attr)[0] = known
            name = known.name.decode("utf-8", "replace")
            wanted = tuple(int(extent) for extent in shapes.get(name, ()))
            if not 0 < len(wanted) <= _abi.MAX_DIMS or min(wanted) < 0:
                raise InvalidArgument(f"a shape of input '{name}' is needed, not {wanted}",
                                      _abi.ERR_INPUT_INVALID)
            attr.n_dims = len(wanted)
            attr.dims[:len(wanted)] = wanted
        _library.call("rknn_set_input_shapes", self.handle, len(attrs), attrs)
        self._shape_chosen = True
        self._read_shape(_abi.QUERY_CURRENT_INPUT_ATTR, _abi.QUERY_CURRENT_OUTPUT_ATTR)

    def _set_frame(self, handle: int, tensor: Tensor, frame: Frame) -> Placement:
        structure = frame.structure()
        _library.call("rknnd_set_input_frame", handle, tensor.index, ctypes.byref(structure))
        place = _abi.Placement()
        _library.call("rknnd_place_frame", handle, tensor.index, ctypes.byref(structure),
                      ctypes.byref(place), ctypes.sizeof(place))
        return Placement(place.x, place.y, place.width, place.height, place.scale_x,
                         place.scale_y, place.offset_x, place.offset_y)


def upper(layout: Optional[str]) -> Optional[str]:
    if layout is None:
        return None
    if not isinstance(layout, str) or layout.upper() not in ("NHWC", "NCHW"):
        raise InvalidArgument(f"layout {layout!r} is none of NHWC, NCHW")
    return layout.upper()


def _orders(shape: Shape) -> Tuple[Shape, ...]:
    if len(shape) != 4:
        return (shape,)
    n, a, b, c = shape
    return (shape, (n, c, a, b), (n, b, c, a))


def _cores(mask: Union[int, str]) -> int:
    if isinstance(mask, str):
        if mask not in _CORES:
            raise InvalidArgument(f"core_mask {mask!r} is none of auto, all and a mask of bits")
        return _CORES[mask]
    return _number("core_mask", mask)


def _number(what: str, value: int) -> int:
    if not isinstance(value, int) or not 0 <= value < 1 << 31:
        raise InvalidArgument(f"{what} {value!r} is no number from 0 to 2^31")
    return value


def _wishes(tensors: Tuple[Tensor, ...],
            wishes: Optional[Mapping[str, Any]]) -> List[Tuple[Optional[Memory], Any]]:
    names = [tensor.name for tensor in tensors]
    for name in wishes or {}:
        if name not in names:
            raise InvalidArgument(f"there is no tensor {name!r}: there are {names}")
    return [_wish((wishes or {}).get(name)) for name in names]


def _wish(wish: Any) -> Tuple[Optional[Memory], Any]:
    if wish is None:
        return None, None
    if isinstance(wish, Memory):
        return wish, None
    if isinstance(wish, tuple) and len(wish) == 2 and isinstance(wish[0], Memory):
        return wish[0], wish[1]
    try:
        return None, np.dtype(wish)
    except TypeError as error:
        raise InvalidArgument(f"{wish!r} is no dtype, Memory or (Memory, dtype)") from error
