"""What a context tells of itself, for programs to read."""

from __future__ import annotations

from typing import Any, Dict, List

from . import _abi, _reports
from ._context import Context


class TellingContext(Context):
    """A context with its reports; Session is built on it."""

    @property
    def custom_string(self) -> str:
        """The text that the model's converter put into it."""
        text: bytes = self._query(_abi.QUERY_CUSTOM_STRING, _abi.CustomString()).string
        return text.decode("utf-8", "replace")

    @property
    def versions(self) -> Dict[str, str]:
        """`api` and `driver`, as the C API tells them."""
        version = self._query(_abi.QUERY_SDK_VERSION, _abi.SdkVersion())
        return {"api": version.api_version.decode(), "driver": version.drv_version.decode()}

    def memory(self) -> Dict[str, int]:
        """Bytes: `weight`, `internal`, `io`, `total` of this model; `dma`, all that this
        process holds; `sram`, `free_sram`."""
        return _reports.memory(self.handle, *self._counts)

    def daemon_memory(self) -> Dict[str, int]:
        """Bytes of the daemon's NPU memory for all its clients: `weight`,
        `internal`, `io`, `other`."""
        return _reports.daemon_memory(self.handle)

    def copies(self) -> Dict[str, int]:
        """Bytes copied or converted on the way to the NPU and back, by cause; all
        0 as long as the session runs without copies."""
        return _reports.copies(self.handle)

    def last_run(self) -> Dict[str, int]:
        """`frame_id`, `queue_ns`, `run_ns`, `total_ns`, `core` and `drops` of the
        last run."""
        return _reports.last_run(self.handle)

    def layers(self) -> List[Dict[str, Any]]:
        """The times of each layer in the last run, of a session with perf=True."""
        with self._held():
            return _reports.layers(self.handle)

    def kernels(self) -> List[Dict[str, Any]]:
        """What computes each layer on a device without an NPU, and whether that
        is a slow reference loop."""
        with self._held():
            return _reports.kernels(self.handle)

    def perf_text(self) -> str:
        """The table of layers as the vendor's tools print it."""
        with self._held():
            detail = self._query(_abi.QUERY_PERF_DETAIL, _abi.PerfDetail())
            text: bytes = detail.perf_data
        return text.decode("utf-8", "replace")

    def admit(self, rate: float, *, streams: int = 1, reserve: bool = False) -> Dict[str, Any]:
        """Whether so many streams of `rate` frames a second fit beside those that
        others have reserved: `fits`, `rate`, `run_ns`, `measured`, `load`,
        `reason`. reserve: keeps room as long as the session is open."""
        return _reports.admit(self.handle, rate, streams, reserve)
