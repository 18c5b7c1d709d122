"""Takes large memory from the system directly, returns what is no longer needed, and says what is resident."""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from io import FileIO
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import numpy.typing as npt

from completion.errors import ModelError
from completion.free_memory import free_bytes

_ARENA_MAX = -8  # M_ARENA_MAX of glibc's malloc.h
_PAGEMAP = Path("/proc/self/pagemap")
_ENTRY_BYTES = 8  # of the page map: one number a page
_PRESENT, _OF_FILE = np.uint64(63), np.uint64(61)  # bits that say whether a page is in memory, and still of a file

Span = tuple[int, int]
"""Address and size in bytes of a part of this process's address space."""


class MemoryPart(StrEnum):
    """A part of what the process holds in memory; each byte belongs to one."""

    WEIGHTS = "weights"
    KV_SESSIONS = "kv_sessions"
    WORKSPACES = "workspaces"
    GRAMMARS = "grammars"
    CODE = "code"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Held:
    """What an owner of memory holds.

    Attributes:
        spans: Where its arrays are in this process; what is resident of them counts.
        object_bytes: Size of its Python objects.
        gpu_bytes: Size of its arrays on a GPU.
    """

    spans: tuple[Span, ...] = ()
    object_bytes: int = 0
    gpu_bytes: int = 0

    @classmethod
    def arrays(cls, arrays: Iterable[npt.NDArray[Any]]) -> Held:
        """Return what contiguous arrays hold."""
        return cls(tuple((array.ctypes.data, array.nbytes) for array in arrays))

    def __add__(self, other: Held) -> Held:
        """Return what both hold."""
        return Held(self.spans + other.spans, self.object_bytes + other.object_bytes, self.gpu_bytes + other.gpu_bytes)


def large_memory(size: int) -> mmap.mmap:
    """Return `size` zeroed bytes in pages of 2 MB, if the system has them; they are returned with their last view.

    glibc would put a large array among small objects once one of its size was freed, and then seldom returns it.

    Raises:
        ModelError: The system has not as much.
    """
    try:
        if sys.platform == "win32":
            memory = mmap.mmap(-1, size)
        else:
            memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        raise ModelError(f"There is no memory for {size:,} bytes. Close other programs and try again.") from error
    if sys.platform == "linux":
        memory.madvise(mmap.MADV_HUGEPAGE)
    return memory


def use_one_heap() -> None:
    """Let all threads of this process share one heap: glibc gives each its own, and each keeps what was freed in it."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None
    if mallopt is not None:
        mallopt(_ARENA_MAX, 1)


def trim_heap() -> None:
    """Return freed memory to the system. glibc keeps it if it consists of many small objects."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if os.name == "posix" else None
    if trim is not None:
        trim(0)


def drop_library(name: str) -> None:
    """Return the pages of loaded libraries that are as they are in the file. What is used again is read from it again.

    Pages that the loader has written, with addresses, stay. Without effect outside of Linux. `name` is a part of the
    libraries' paths: a file or a folder.
    """
    if sys.platform == "linux":
        for (start, size), access, file in mapped_spans():
            if access in {"r-xp", "r--p"} and name in PurePath(file).parts:
                for address, length in _unwritten(start, size):
                    ctypes.CDLL(None).madvise(ctypes.c_void_p(address), ctypes.c_size_t(length), mmap.MADV_DONTNEED)


def _unwritten(start: int, size: int) -> list[Span]:
    """Return the runs of pages of a mapped file that are in memory as they are in the file; none where unknown."""
    try:
        with _PAGEMAP.open("rb", buffering=0) as page_map:
            entries = _entries(page_map, start, start + size)
    except OSError:
        return []
    of_file = np.concatenate(([False], (entries >> _OF_FILE & np.uint64(1)).astype(np.bool_), [False]))
    edges = np.flatnonzero(of_file[1:] != of_file[:-1]).reshape(-1, 2).tolist()
    return [(start + first * mmap.PAGESIZE, (end - first) * mmap.PAGESIZE) for first, end in edges]


def free_gpu_bytes(share: float) -> int:
    """Return the memory that this process may still take of the GPU that it uses, of which `share` is its own.

    A Mac's GPU has the memory of the machine.
    """
    torch = sys.modules["torch"]
    if not torch.cuda.is_available():
        return free_bytes()
    free, total = torch.cuda.mem_get_info()
    return int(min(free, share * total - torch.cuda.memory_reserved()))


def trim_gpu() -> None:
    """Return freed memory of the GPU to the driver. torch keeps it for its next tensors."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.empty_cache()
    if torch is not None and torch.backends.mps.is_available():
        torch.mps.empty_cache()


def resident_bytes(spans: Iterable[Span]) -> int:
    """Return how many bytes of these spans are in memory, each byte once; all of them where the system does not say.

    Source: the Linux kernel's documentation, "Examining Process Page Tables" (`/proc/PID/pagemap`).
    """
    joined = list(_joined(spans))
    try:
        with _PAGEMAP.open("rb", buffering=0) as pages:
            return sum(_resident_part(pages, start, end) for start, end in joined)
    except OSError:
        return sum(end - start for start, end in joined)


def _joined(spans: Iterable[Span]) -> Iterator[tuple[int, int]]:
    """Yield start and end of each run of spans that overlap or touch, ascending."""
    start = end = 0
    for address, size in sorted(spans):
        if address > end:
            if end > start:
                yield start, end
            start, end = address, address
        end = max(end, address + size)
    if end > start:
        yield start, end


def _resident_part(page_map: FileIO, start: int, end: int) -> int:
    """Return how many bytes from `start` to `end` are in memory; a page counts as far as it lies between them."""
    present, page = _entries(page_map, start, end) >> _PRESENT, mmap.PAGESIZE
    before, after = start % page, -end % page
    return int(present.sum()) * page - int(present[0]) * before - int(present[-1]) * after


def _entries(page_map: FileIO, start: int, end: int) -> npt.NDArray[np.uint64]:
    """Return the page map's numbers for the pages from `start` to `end`.

    Raises:
        OSError: The page map cannot be read, or does not have them.
    """
    first, last = start // mmap.PAGESIZE, (end - 1) // mmap.PAGESIZE
    page_map.seek(_ENTRY_BYTES * first)
    entries = np.frombuffer(page_map.read(_ENTRY_BYTES * (last - first + 1)), np.uint64)
    if len(entries) != last - first + 1:
        raise OSError(f"{_PAGEMAP} has {len(entries)} of {last - first + 1} pages.")
    return entries


def mapped_spans() -> Iterator[tuple[Span, str, str]]:
    """Yield each mapping of this process, its access ("r-xp") and its file ("" for none); nothing where unknown."""
    with suppress(OSError):
        for line in Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines():
            addresses, access, _, _, _, *path = line.split(maxsplit=5)
            start, end = (int(address, 16) for address in addresses.split("-"))
            yield (start, end - start), access, path[0] if path else ""
