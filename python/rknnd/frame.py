"""Frames as cameras, decoders and scalers leave them (docs/tensors-and-frames.md)."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import Optional, Sequence, Tuple

from . import _abi
from .errors import InvalidArgument
from .memory import Memory

_FORMATS = {"nv12": 1, "nv21": 2, "rgb888": 3, "bgr888": 4}
_FITS = {"stretch": 0, "letterbox": 1}


@dataclass(frozen=True)
class Plane:
    """One plane: `offset` bytes into `memory`, `stride` bytes from row to row
    (0: of a row's pixels)."""

    memory: Memory
    offset: int = 0
    stride: int = 0


@dataclass(frozen=True)
class Frame:
    """A picture in memory that stands in for an image input; the NPU's side
    converts and scales it in each run.

    format: "nv12", "nv21", "rgb888" or "bgr888". Sizes are in pixels; `crop` is
    (x, y, width, height), None the whole frame. fit: "stretch" or "letterbox",
    whose border is `pad`, in the input's order of channels. bgr_input: the model
    wants blue, green, red.
    """

    format: str
    width: int
    height: int
    planes: Sequence[Plane]
    crop: Optional[Tuple[int, int, int, int]] = None
    fit: str = "stretch"
    pad: Tuple[int, int, int] = field(default=(0, 0, 0))
    bgr_input: bool = False

    @classmethod
    def nv12(cls, memory: Memory, width: int, height: int, *, stride: int = 0, rows: int = 0,
             crop: Optional[Tuple[int, int, int, int]] = None, fit: str = "stretch",
             pad: Tuple[int, int, int] = (0, 0, 0), bgr_input: bool = False) -> "Frame":
        """Both planes of one memory: rows of `stride` bytes (0: the width), the
        colours after `rows` of them (0: the height)."""
        stride = stride or width
        return cls("nv12", width, height,
                   (Plane(memory, 0, stride), Plane(memory, stride * (rows or height), stride)),
                   crop, fit, pad, bgr_input)

    @classmethod
    def rgb(cls, memory: Memory, width: int, height: int, *, stride: int = 0,
            crop: Optional[Tuple[int, int, int, int]] = None, fit: str = "stretch",
            pad: Tuple[int, int, int] = (0, 0, 0), bgr_input: bool = False) -> "Frame":
        """One plane of red, green, blue."""
        return cls("rgb888", width, height, (Plane(memory, 0, stride),), crop, fit, pad, bgr_input)

    def structure(self) -> _abi.Frame:
        """As the C API takes it. Raises InvalidArgument, Closed."""
        if self.format not in _FORMATS:
            raise InvalidArgument(f"frame format {self.format!r} is none of {', '.join(_FORMATS)}")
        if self.fit not in _FITS:
            raise InvalidArgument(f"fit {self.fit!r} is none of {', '.join(_FITS)}")
        if len(self.planes) > _abi.MAX_PLANES:
            raise InvalidArgument(f"a frame has at most {_abi.MAX_PLANES} planes")
        frame = _abi.Frame()
        frame.format = _FORMATS[self.format]
        frame.width = _whole("width", self.width)
        frame.height = _whole("height", self.height)
        for place, plane in zip(frame.planes, self.planes):
            place.memory = ctypes.cast(plane.memory.pointer, ctypes.c_void_p).value
            place.offset = _whole("offset", plane.offset, 1 << 63)
            place.stride = _whole("stride", plane.stride)
        if self.crop is not None:
            if len(self.crop) != 4:
                raise InvalidArgument("crop is (x, y, width, height)")
            frame.crop_x, frame.crop_y, frame.crop_width, frame.crop_height = (
                _whole("crop", side) for side in self.crop)
        frame.fit = _FITS[self.fit]
        frame.pad[:] = [_whole("pad", value, 256) for value in self.pad]
        frame.bgr_input = 1 if self.bgr_input else 0
        return frame


@dataclass(frozen=True)
class Placement:
    """Where a frame comes to lie in an input, in the input's pixels:
    frame_x = (input_x - offset_x) / scale_x."""

    x: int
    y: int
    width: int
    height: int
    scale_x: float
    scale_y: float
    offset_x: float
    offset_y: float


def _whole(what: str, value: int, bound: int = 1 << 32) -> int:
    if not isinstance(value, int) or not 0 <= value < bound:
        raise InvalidArgument(f"{what} {value!r} is no number from 0 to {bound - 1}")
    return value
