"""Memory that is bound to a session's inputs and outputs, so that no byte of a
tensor is copied on the way to the NPU and back."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Dict, Mapping, Optional, Tuple

import numpy as np

from . import _abi, _library
from ._tensor import Array, Tensor, fit, query_attr, type_number
from .errors import InvalidArgument
from .memory import Memory

if TYPE_CHECKING:
    from .session import Session


class Binding:
    """One set of bindings, made by Session.bind().

    `inputs` and `outputs` are the arrays, by name: views of `memories`. They are
    the NPU's from the beginning of a run to its end. `memories` are named
    "in:NAME" and "out:NAME", as a name may be an input's and an output's.
    """

    def __init__(self, session: "Session", number: int) -> None:
        if not isinstance(number, int) or not 0 <= number < _abi.SETS:
            raise InvalidArgument(f"set {number!r} is none of 0 to {_abi.SETS - 1}")
        self.set = number
        self.inputs: Dict[str, Array] = {}
        self.outputs: Dict[str, Array] = {}
        self.memories: Dict[str, Memory] = {}
        self._handle = session.handle
        self._dynamic = session.is_dynamic
        self._bound: Dict[str, Tuple[int, int, Tuple[int, ...]]] = {}

    def bind_input(self, tensor: Tensor, dtype: Optional[Any] = None,
                   memory: Optional[Memory] = None, layout: Optional[int] = None) -> Array:
        """Binds memory of this type and layout; the memory that is bound already
        where it is large enough and none is given."""
        array = self._bind("in:", tensor, np.dtype(dtype or tensor.dtype), memory,
                           tensor.number if layout is None else layout)
        self.inputs[tensor.name] = array
        return array

    def bind_output(self, tensor: Tensor, dtype: Optional[Any] = None,
                    memory: Optional[Memory] = None) -> Array:
        """Likewise, in the layout of the tensor."""
        array = self._bind("out:", tensor, np.dtype(dtype or tensor.dtype), memory, tensor.number)
        self.outputs[tensor.name] = array
        return array

    def fill(self, tensors: Mapping[str, Tensor], feeds: Mapping[str, Any],
             layout: Optional[str], adapt: bool) -> None:
        """Copies arrays into the bound inputs. adapt: memory is bound anew where
        an array has another type or layout. Raises InvalidArgument."""
        for name, value in feeds.items():
            tensor = tensors[name]
            array, _, number = fit(tensor, value, layout)
            bound = self.inputs.get(name)
            if bound is None or adapt:
                bound = self.bind_input(tensor, array.dtype, None, number)
            if bound.dtype != array.dtype or bound.size != array.size or (
                    self._bound["in:" + name][1] != number):
                raise InvalidArgument(
                    f"input '{name}' is bound as {bound.dtype} {bound.shape}; an array of "
                    f"{array.dtype} {array.shape} does not fit: bind it anew",
                    _abi.ERR_INPUT_INVALID)
            np.copyto(bound, array.reshape(bound.shape))

    def _bind(self, direction: str, tensor: Tensor, dtype: "np.dtype[Any]",
              memory: Optional[Memory], layout: int) -> Array:
        key = direction + tensor.name
        type_ = type_number(tensor, dtype)
        shape = tensor.shape
        if layout != tensor.number and tensor.other_shape is not None:
            shape = tensor.other_shape
        old = self.memories.get(key)
        if memory is None and old is not None and self._bound.get(key) == (type_, layout, shape):
            arrays = self.inputs if direction == "in:" else self.outputs
            return arrays[tensor.name]
        size = tensor.elements * dtype.itemsize
        if memory is None:
            memory = old if old is not None and old.size >= size else Memory(size)
        array = memory.array(shape, dtype)
        query = _abi.QUERY_INPUT_ATTR if direction == "in:" else _abi.QUERY_OUTPUT_ATTR
        if self._dynamic:
            query += _abi.QUERY_CURRENT_INPUT_ATTR - _abi.QUERY_INPUT_ATTR
        attr = query_attr(self._handle, query, tensor.index)
        attr.type = type_
        attr.fmt = layout
        attr.n_dims = len(shape)
        attr.dims[:len(shape)] = shape
        attr.w_stride = 0
        attr.pass_through = 0
        _library.call("rknnd_set_io_mem", self._handle, self.set, memory.pointer,
                      ctypes.byref(attr))
        self.memories[key] = memory
        self._bound[key] = (type_, layout, shape)
        return array
