"""A context of the C API: made, described, and freed when nobody has it."""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from typing import Any, Dict, List, Optional, Tuple, Union

from . import _abi, _library
from ._tensor import Shape, Tensor, query, query_attr, read_tensors
from .errors import Closed, InvalidArgument

Model = Union[str, "os.PathLike[str]", bytes, bytearray, memoryview, "Token"]

PRIORITIES = {"high": _abi.PRIORITY_HIGH, "medium": _abi.PRIORITY_MEDIUM,
              "low": _abi.PRIORITY_LOW}


class Token(str):
    """A model and its flags as text, by which any process of the same board may
    open it without the file (Session.token())."""


def _free(generation: int, handle: int) -> None:
    if generation == _library.process.generation:
        _library.library().rknn_destroy(handle)


def open_model(model: Model, flags: int, target: Optional[str]) -> int:
    """A new context's handle."""
    handle = _abi.Context()
    with _library.on_target(target):
        if isinstance(model, Token):
            token = _abi.Token()
            try:
                token.text = model.encode("ascii")
            except (UnicodeError, ValueError) as error:
                raise InvalidArgument(f"this is no token: {error}") from error
            _library.call("rknnd_init_from_token", ctypes.byref(handle), ctypes.byref(token))
        elif isinstance(model, (str, os.PathLike)):
            path = os.fsencode(model)
            if b"\0" in path:
                raise InvalidArgument("a path has no NUL")
            _library.call("rknn_init", ctypes.byref(handle), path, 0, flags, None)
        else:
            try:
                view = memoryview(model).cast("B")
            except TypeError as error:
                raise InvalidArgument(
                    f"a model is a path, bytes or a token, and not {type(model).__name__}"
                ) from error
            if not 0 < len(view) < 1 << 32:
                raise InvalidArgument(f"{len(view)} bytes are no model")
            data = bytes(view)
            _library.call("rknn_init", ctypes.byref(handle), data, len(data), flags, None)
    return int(handle.value)


class Context:
    """Owns a handle; Session is built on it."""

    def __init__(self, handle: int) -> None:
        self._generation = _library.process.generation
        self._lock = threading.Lock()
        self._handle: Optional[int] = handle
        self._finalizer = weakref.finalize(self, _free, self._generation, handle)
        numbers = query(handle, _abi.QUERY_IN_OUT_NUM, _abi.InOutNum())
        self._counts = (int(numbers.n_input), int(numbers.n_output))
        self._rows = self._read_rows()
        self._read_shape(_abi.QUERY_INPUT_ATTR, _abi.QUERY_OUTPUT_ATTR)

    @property
    def handle(self) -> int:
        """The C API's context. Raises Closed."""
        handle = self._handle
        if handle is None:
            raise Closed("this session is closed")
        if self._generation != _library.process.generation:
            raise Closed("this session belongs to the process that this one was forked from: "
                         "after fork() open a session of your own")
        return handle

    def _held(self) -> threading.Lock:
        """The lock of what threads share. Raises Closed, in a forked child too,
        where a thread that is not there may have it for ever."""
        self.handle
        return self._lock

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._handle is None

    @property
    def inputs(self) -> Tuple[Tensor, ...]:
        """What goes in: of a dynamic model at the chosen shape, before at the
        largest one."""
        return self._inputs

    @property
    def outputs(self) -> Tuple[Tensor, ...]:
        """What comes out."""
        return self._outputs

    @property
    def is_dynamic(self) -> bool:
        """Whether the model lists several shapes."""
        return bool(self._rows)

    @property
    def shapes(self) -> List[Dict[str, Shape]]:
        """The shapes that a dynamic model lists, each with one for every input;
        none of a model of one fixed shape."""
        return [dict(row) for row in self._rows]

    def _read_rows(self) -> List[Dict[str, Shape]]:
        ranges = []
        for index in range(self._counts[0]):
            listed = _abi.InputRange()
            listed.index = index
            code = _library.library().rknn_query(
                self.handle, _abi.QUERY_INPUT_DYNAMIC_RANGE, ctypes.byref(listed),
                ctypes.sizeof(listed))
            if code == _abi.ERR_MODEL_INVALID:
                return []  # a fixed shape
            _library.check("rknn_query", code)
            ranges.append(listed)
        if not ranges:
            return []
        return [{listed.name.decode("utf-8", "replace"):
                 tuple(listed.dyn_range[row][:listed.n_dims]) for listed in ranges}
                for row in range(ranges[0].shape_number)]

    def _read_shape(self, inputs: int, outputs: int) -> None:
        handle = self.handle
        self._input_attrs = [query_attr(handle, inputs, n) for n in range(self._counts[0])]
        self._output_attrs = [query_attr(handle, outputs, n) for n in range(self._counts[1])]
        self._inputs = read_tensors(self._input_attrs)
        self._outputs = read_tensors(self._output_attrs)
        self._by_name = {tensor.name: tensor for tensor in self._inputs}

    def _query(self, command: int, structure: Any) -> Any:
        return query(self.handle, command, structure)
