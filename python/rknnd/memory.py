"""Memory that the CPU and the NPU both reach, and its view as an array."""

from __future__ import annotations

import contextlib
import ctypes
import weakref
from typing import TYPE_CHECKING, Any, Dict, Iterator, Optional, Sequence, Tuple, Union

import numpy as np

from . import _abi, _library
from .errors import Closed, InvalidArgument, error_of_pointer

if TYPE_CHECKING:
    from .session import Session

_LARGEST = (1 << 32) - 1


def _free(generation: int, memory: Any) -> None:
    # A forked child has the parent's structures and the right to none of them.
    if generation == _library.process.generation:
        _library.library().rknn_destroy_mem(0, memory)


class Memory:
    """`size` zeroed bytes, allocated by the daemon.

    Where they come from is a matter of the daemon's heaps; `cacheable=False`,
    `sram=True`, `dma32=True` (below 4 GiB, for RGA2) and `contiguous=True` are
    wishes that it meets where it can. `target` is as for Session.

    Arrays of `array()` are views: they stay good after `close()`, because the
    memory is freed only when the last of them is gone. From Python 3.12 on a
    Memory is itself a buffer; before, `buffer` is one. numpy.asarray and DLPack
    (`numpy.from_dlpack`, `torch.from_dlpack`) take it everywhere.

    Raises InvalidArgument, OutOfMemory, Unavailable.
    """

    def __init__(self, size: int, *, cacheable: bool = True, sram: bool = False,
                 dma32: bool = False, contiguous: bool = False,
                 target: Optional[str] = None) -> None:
        _check_size(size)
        flags = _abi.FLAG_ALLOC_NO_CONTEXT
        flags |= _abi.MEMORY_CACHEABLE if cacheable else _abi.MEMORY_NON_CACHEABLE
        flags |= _abi.MEMORY_TRY_SRAM if sram else 0
        flags |= _abi.MEMORY_DMA32 if dma32 else 0
        flags |= _abi.MEMORY_CONTIGUOUS if contiguous else 0
        with _library.on_target(target):
            made = _library.library().rknn_create_mem2(0, size, flags)
            if not made:
                raise error_of_pointer("rknn_create_mem2", _library.last_error())
        self._take(made)

    @classmethod
    def from_fd(cls, session: "Session", fd: int, size: int, offset: int = 0) -> "Memory":
        """Wraps `size` bytes from `offset` of a dma-buf, or of a memfd that is
        sealed against shrinking. The descriptor stays the caller's and may be
        closed. Raises InvalidArgument for what is no such descriptor."""
        _check_size(size)
        if not isinstance(fd, int) or not 0 <= fd < 1 << 31:
            raise InvalidArgument(f"{fd!r} is no descriptor")
        if not isinstance(offset, int) or not 0 <= offset < 1 << 31:
            raise InvalidArgument(f"offset {offset!r} is none from 0 to 2^31")
        made = _library.library().rknn_create_mem_from_fd(session.handle, fd, None, size, offset)
        if not made:
            raise error_of_pointer("rknn_create_mem_from_fd", _library.last_error())
        memory = cls.__new__(cls)
        memory._take(made)
        memory._writable = _is_writable(int(made.contents.virt_addr))
        return memory

    def _take(self, made: Any) -> None:
        self._pointer = made
        self._generation = _library.process.generation
        self._size = int(made.contents.size)
        # Views hold the block, and the block's end frees the memory. Not the
        # process's end, at which views may still be in use.
        block = (ctypes.c_uint8 * self._size).from_address(
            int(made.contents.virt_addr) + int(made.contents.offset))
        weakref.finalize(block, _free, self._generation, made).atexit = False
        self._block: Optional[Any] = block
        self._writable = True

    @property
    def pointer(self) -> Any:
        """The C structure (rknn_tensor_mem *). Raises Closed."""
        if self._block is None:
            raise Closed("this memory is closed")
        if self._generation != _library.process.generation:
            raise Closed("this memory belongs to the process that this one was forked from: "
                         "after fork() make memory of your own")
        return self._pointer

    @property
    def size(self) -> int:
        """In bytes."""
        return self._size

    @property
    def fd(self) -> int:
        """A dma-buf or memfd, for other programs and drivers. The memory's own:
        it is not to be closed."""
        return int(self.pointer.contents.fd)

    @property
    def offset(self) -> int:
        """Where the memory begins in its descriptor, in bytes."""
        return int(self.pointer.contents.offset)

    @property
    def buffer(self) -> memoryview:
        """The bytes; writable but for memory of a descriptor that is not."""
        if self._block is None:
            raise Closed("this memory is closed")
        view = memoryview(self._block).cast("B")
        return view if self._writable else view.toreadonly()

    def array(self, shape: Union[int, Sequence[int], None] = None, dtype: Any = np.uint8,
              offset: int = 0) -> Any:
        """A view as an array, from `offset` bytes on; all of the memory where no
        shape is given. Raises InvalidArgument if it is too small."""
        if self._block is None:
            raise Closed("this memory is closed")
        kind = np.dtype(dtype)
        if kind.hasobject:
            raise InvalidArgument(f"memory holds numbers, not {kind}")
        if not isinstance(offset, int) or not 0 <= offset <= self._size:
            raise InvalidArgument(f"offset {offset!r} is outside of {self._size} bytes")
        if shape is None:
            count = (self._size - offset) // kind.itemsize
            extents: Tuple[int, ...] = (count,)
        else:
            extents = (shape,) if isinstance(shape, int) else tuple(int(n) for n in shape)
            count = 1
            for extent in extents:
                count *= extent
        if count < 0 or offset + count * kind.itemsize > self._size:
            raise InvalidArgument(
                f"{extents} of {kind} from byte {offset} needs {count * kind.itemsize} bytes, "
                f"the memory has {self._size}")
        array = np.frombuffer(self._block, kind, count, offset)
        if not self._writable:
            array.flags.writeable = False
        return array.reshape(extents)

    @contextlib.contextmanager
    def cpu(self, *, read: bool = True, write: bool = False,
            shape: Union[int, Sequence[int], None] = None, dtype: Any = np.uint8) -> Iterator[Any]:
        """A bracket around the CPU's use of memory whose cache the program cares
        for: `with memory.cpu(write=True) as array:`. Runs do so for bound memory
        by themselves. Does nothing where memory is coherent."""
        if read:
            _library.call("rknn_mem_sync", 0, self.pointer, _abi.SYNC_FROM_DEVICE)
        try:
            yield self.array(shape, dtype)
        finally:
            if write:
                _library.call("rknn_mem_sync", 0, self.pointer, _abi.SYNC_TO_DEVICE)

    def key(self, session: "Session") -> Dict[str, Any]:
        """A name by which gRPC clients of the same daemon may use the memory:
        `key`, 32 digits; `offset` and `size` in bytes. Whoever knows it may."""
        key = _abi.BufferKey()
        _library.call("rknnd_query_buffer_key", session.handle, self.pointer, ctypes.byref(key),
                      ctypes.sizeof(key))
        return {"key": key.text.decode(), "offset": key.offset, "size": key.size}

    def close(self) -> None:
        """Ends the use of the memory. It is freed at once, or with the last view
        of it, or when a session to which it is bound is closed."""
        self._block = None
        self._pointer = None

    def __enter__(self) -> "Memory":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        return self._size

    def __buffer__(self, _flags: int) -> memoryview:
        return self.buffer

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> Any:
        array = self.array()
        return array if dtype is None and not copy else np.array(array, dtype)

    def __dlpack__(self, **options: Any) -> Any:
        return self.array().__dlpack__(**options)

    def __dlpack_device__(self) -> Tuple[int, int]:
        return (1, 0)  # the CPU

    def __repr__(self) -> str:
        state = "closed" if self._block is None else f"fd {self._pointer.contents.fd}"
        return f"<rknnd.Memory of {self._size} bytes, {state}>"


def _check_size(size: int) -> None:
    if not isinstance(size, int) or not 0 < size <= _LARGEST:
        raise InvalidArgument(f"a memory of {size!r} bytes cannot be: 1 to {_LARGEST} can")


def _is_writable(address: int) -> bool:
    # A descriptor may allow no more than reading, and a store there would end the
    # process; only the kernel's list says how it was mapped.
    with open("/proc/self/maps", encoding="ascii", errors="replace") as maps:
        for line in maps:
            bounds, rights = line.split(" ", 2)[:2]
            first, last = (int(bound, 16) for bound in bounds.split("-"))
            if first <= address < last:
                return "w" in rights
    return False
