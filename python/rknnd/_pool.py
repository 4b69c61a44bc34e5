"""Memory for runs in flight: sets 1 to 7 of a session's bindings, each of which
carries the arrays of one run to the NPU and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional

import numpy as np

from . import _abi
from ._tensor import Array, Tensor, named
from .binding import Binding
from .errors import InvalidArgument
from .frame import Frame

if TYPE_CHECKING:
    from .runs import Run
    from .session import Session


class Slot:
    """One set, and the run that has it."""

    def __init__(self, session: "Session", number: int) -> None:
        self.binding = Binding(session, number)
        self.run: Optional[Any] = None

    def load(self, session: "Session", feeds: Dict[str, Any], layout: Optional[str]) -> None:
        """Copies the arrays into the set's memory, and binds what is not yet."""
        missing = [tensor.name for tensor in session.inputs if tensor.name not in feeds]
        if missing:
            raise InvalidArgument(f"no array was given for input '{missing[0]}'",
                                  _abi.ERR_INPUT_INVALID)
        if any(isinstance(value, Frame) for value in feeds.values()):
            raise InvalidArgument("a Frame is for run(): set_frame() and bind() memory to submit "
                                  "runs of frames", _abi.ERR_INPUT_INVALID)
        self.binding.fill(session._by_name, feeds, layout, adapt=True)
        for tensor in session.outputs:
            self.binding.bind_output(tensor, np.float32 if tensor.is_real else tensor.dtype)

    def answers(self) -> Dict[str, Array]:
        """The outputs as arrays of the caller's own."""
        return {name: array.copy() for name, array in self.binding.outputs.items()}


class Pool:
    """The slots of one session. Its callers hold the session's lock."""

    def __init__(self) -> None:
        self._slots: List[Slot] = []

    def free_slot(self, session: "Session") -> Optional[Slot]:
        """One without a run that is on its way, or None."""
        for slot in self._slots:
            run: Optional["Run"] = slot.run
            if run is None or run.done():
                slot.run = None
                return slot
        if len(self._slots) < _abi.SETS - 1:
            slot = Slot(session, len(self._slots) + 1)
            self._slots.append(slot)
            return slot
        return None

    def take(self, session: "Session") -> Slot:
        """A free one; where there is none, the oldest when its run has ended."""
        slot = self.free_slot(session)
        if slot is not None:
            return slot
        waited = [slot.run for slot in self._slots if slot.run is not None and slot.run.can_wait]
        if not waited:
            raise InvalidArgument("all sets have asynchronous runs: await them, or use one way "
                                  "to run a session at a time")
        min(waited, key=lambda run: int(run.order)).settle()
        slot = self.free_slot(session)
        if slot is None:  # one that is not waited for took it
            raise InvalidArgument("all sets have runs: wait for them")
        return slot

    def close(self) -> None:
        self._slots.clear()


def as_feeds(inputs: Mapping[str, Tensor], feeds: Any) -> Dict[str, Any]:
    """Arrays by name. Raises InvalidArgument for names the model has not."""
    if isinstance(feeds, Mapping):
        for name in feeds:
            named(inputs, name)
        return dict(feeds)
    given = list(feeds) if isinstance(feeds, (list, tuple)) else [feeds]
    if len(given) != len(inputs):
        count = f"{len(given)} arrays were" if len(given) != 1 else "one array was"
        raise InvalidArgument(f"{count} given, the model has {len(inputs)} inputs",
                              _abi.ERR_INPUT_INVALID)
    return dict(zip(inputs, given))
