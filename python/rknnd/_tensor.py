"""What a model says of its inputs and outputs, and whether an array fits one."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from . import _abi, _library
from .errors import InvalidArgument

Shape = Tuple[int, ...]
Array = Any  # numpy.ndarray of any type

_DTYPES: Dict[int, "np.dtype[Any]"] = {
    _abi.FLOAT32: np.dtype(np.float32),
    _abi.FLOAT16: np.dtype(np.float16),
    _abi.INT8: np.dtype(np.int8),
    _abi.UINT8: np.dtype(np.uint8),
    _abi.INT16: np.dtype(np.int16),
    _abi.UINT16: np.dtype(np.uint16),
    _abi.INT32: np.dtype(np.int32),
    _abi.UINT32: np.dtype(np.uint32),
    _abi.INT64: np.dtype(np.int64),
    _abi.BOOL: np.dtype(np.bool_),
}
_TYPES: Dict["np.dtype[Any]", int] = {dtype: number for number, dtype in _DTYPES.items()}
_LAYOUTS = {_abi.NCHW: "NCHW", _abi.NHWC: "NHWC", _abi.NC1HWC2: "NC1HWC2",
            _abi.UNDEFINED: "UNDEFINED"}


@dataclass(frozen=True)
class Tensor:
    """One input or output.

    `shape` is in the order of `layout`: "NHWC" for pictures that go in, "NCHW"
    for those that come out, "UNDEFINED" for tensors that are not 4-D, which have
    the model's own order. `dtype` is what the model works with. Real numbers are
    `(value - zero_point) * scale` where `quantized` is true.
    """

    index: int
    name: str
    shape: Shape
    dtype: "np.dtype[Any]"
    layout: str
    quantized: bool
    scale: float
    zero_point: int

    @property
    def elements(self) -> int:
        """How many numbers it has."""
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    @property
    def is_real(self) -> bool:
        """Whether its numbers stand for real ones: outputs are float32 then."""
        return self.quantized or self.dtype.kind == "f"

    @property
    def number(self) -> int:
        """The layout as the C API's number."""
        return {"NCHW": _abi.NCHW, "NHWC": _abi.NHWC}.get(self.layout, _abi.UNDEFINED)

    @property
    def other_shape(self) -> Optional[Shape]:
        """The shape with its channels at the other end, of a 4-D tensor."""
        if self.layout == "NHWC":
            n, h, w, c = self.shape
            return (n, c, h, w)
        if self.layout == "NCHW":
            n, c, h, w = self.shape
            return (n, h, w, c)
        return None


def query(handle: int, command: int, structure: Any) -> Any:
    """The structure, as rknn_query fills it. Raises Error."""
    _library.call("rknn_query", handle, command, ctypes.byref(structure),
                  ctypes.sizeof(structure))
    return structure


def query_attr(handle: int, command: int, index: int) -> _abi.TensorAttr:
    attr = _abi.TensorAttr()
    attr.index = index
    query(handle, command, attr)
    return attr


def read_tensors(attrs: Sequence[_abi.TensorAttr]) -> Tuple[Tensor, ...]:
    tensors: List[Tensor] = []
    for attr in attrs:
        tensors.append(Tensor(
            attr.index, attr.name.decode("utf-8", "replace"), tuple(attr.dims[:attr.n_dims]),
            _DTYPES.get(attr.type, np.dtype(np.uint8)), _LAYOUTS.get(attr.fmt, "UNDEFINED"),
            attr.qnt_type == _abi.QNT_AFFINE and attr.type in (
                _abi.INT8, _abi.UINT8, _abi.INT16),
            attr.scale, attr.zp))
    return tuple(tensors)


def named(tensors: Mapping[str, Tensor], name: Any) -> Tensor:
    """The input of this name. Raises InvalidArgument."""
    tensor = tensors.get(name)
    if tensor is None:
        raise InvalidArgument(f"the model has no input {name!r}: it has "
                              f"{', '.join(map(repr, tensors))}", _abi.ERR_INPUT_INVALID)
    return tensor


def type_number(tensor: Tensor, dtype: "np.dtype[Any]") -> int:
    """The C API's number of a dtype. Raises InvalidArgument."""
    number = _TYPES.get(dtype)
    if number is None:
        names = ", ".join(sorted(known.name for known in _TYPES))
        raise InvalidArgument(
            f"'{tensor.name}': dtype {dtype.name or dtype} cannot be given to an NPU: use one of "
            f"{names}, for example array.astype(numpy.float32)", _abi.ERR_INPUT_INVALID)
    return number


def as_array(name: str, value: Any) -> Array:
    """`value` as an array, without a copy where it has a buffer, an array
    interface or DLPack. Raises InvalidArgument."""
    if isinstance(value, np.ndarray):
        return value
    try:
        if hasattr(value, "__dlpack__") and not hasattr(value, "__array__"):
            return np.from_dlpack(value)
        return np.asarray(value)
    except Exception as error:
        raise InvalidArgument(f"'{name}': {type(value).__name__} is no array: {error}",
                              _abi.ERR_INPUT_INVALID) from error


def fit(tensor: Tensor, value: Any, layout: Optional[str]) -> Tuple[Array, int, int]:
    """The array, contiguous, its type's number and its layout's. A leading
    extent of 1 may be left out. Raises InvalidArgument."""
    array = as_array(tensor.name, value)
    type_ = type_number(tensor, array.dtype)
    shape = array.shape
    if len(shape) + 1 == len(tensor.shape) and tensor.shape[0] == 1:
        shape = (1,) + shape
    other = tensor.other_shape
    if shape == tensor.shape and layout in (None, tensor.layout):
        number = tensor.number
    elif other is not None and shape == other and layout != tensor.layout:
        number = _abi.NCHW if tensor.number == _abi.NHWC else _abi.NHWC
    else:
        expected = f"{tensor.shape}" + (f" ({tensor.layout})" if other else "")
        if other is not None:
            expected += f" or {other}"
        raise InvalidArgument(
            f"input '{tensor.name}' has shape {expected}, and an array of shape {array.shape}"
            + (f" with layout {layout}" if layout else "") + " was given",
            _abi.ERR_INPUT_INVALID)
    if not array.flags.c_contiguous:
        array = np.ascontiguousarray(array)
    return array, type_, number


def address(array: Array) -> int:
    """Where an array's first byte is."""
    place: int = array.__array_interface__["data"][0]
    return place
