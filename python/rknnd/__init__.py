"""Runs models on a Rockchip NPU that rknnd shares among programs.

    import rknnd
    with rknnd.Session("detector.onnx") as session:
        answers = session.run({"frame": picture})

docs/python.md describes all of it. What a call raises is in rknnd.errors; all of
these are rknnd.Error.
"""

from ._context import Token
from ._library import version
from ._tensor import Tensor
from .binding import Binding
from .daemon import contexts, doctor, models, sessions, status, watch
from .errors import (
    Cancelled,
    Closed,
    Dropped,
    Error,
    InvalidArgument,
    LibraryMissing,
    ModelError,
    OutOfMemory,
    Timeout,
    Unavailable,
)
from .frame import Frame, Placement, Plane
from .memory import Memory
from .runs import Run
from .session import Session
from .shims import install_shims, shims_folder

__version__ = "0.1.0"

CORE_AUTO, CORE_0, CORE_1, CORE_2, CORE_0_1, CORE_0_1_2, CORE_ALL = 0, 1, 2, 4, 3, 7, 0xFFFF

__all__ = [
    "Binding", "CORE_0", "CORE_0_1", "CORE_0_1_2", "CORE_1", "CORE_2", "CORE_ALL", "CORE_AUTO",
    "Cancelled", "Closed", "Dropped", "Error", "Frame", "InvalidArgument", "LibraryMissing",
    "Memory", "ModelError", "OutOfMemory", "Placement", "Plane", "Run", "Session", "Tensor",
    "Timeout", "Token", "Unavailable", "contexts", "doctor", "install_shims", "models",
    "sessions", "shims_folder", "status", "version", "watch",
]
