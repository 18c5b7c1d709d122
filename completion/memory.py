"""Takes large memory from the system directly, and returns what is no longer needed."""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
from contextlib import suppress
from pathlib import Path

import psutil

_ARENA_MAX = -8  # M_ARENA_MAX of glibc's malloc.h


def large_memory(size: int) -> mmap.mmap:
    """Return `size` zeroed bytes in pages of 2 MB, if the system has them; they are returned with their last view.

    glibc would put a large array among small objects once one of its size was freed, and then seldom returns it.
    """
    if sys.platform == "win32":
        memory = mmap.mmap(-1, size)
    else:
        memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
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


def drop_code(library: str) -> None:
    """Return the code of a loaded library that was needed to start. What runs again is read from the file again.

    Only pages of code are returned, which the process cannot have written. Without effect outside of Linux.
    """
    if sys.platform == "linux":
        for line in Path("/proc/self/maps").read_text().splitlines():
            addresses, access, *_, path = line.split()
            if access == "r-xp" and Path(path).name == library:
                start, end = (int(address, 16) for address in addresses.split("-"))
                ctypes.CDLL(None).madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), mmap.MADV_DONTNEED)


def free_bytes() -> int:
    """Return the memory that this process may still take, of the machine and of its container."""
    free: int = psutil.virtual_memory().available
    with suppress(OSError, ValueError):  # no container, or one without a limit
        limit, used = (int(Path("/sys/fs/cgroup", name).read_text()) for name in ("memory.max", "memory.current"))
        free = min(free, limit - used)
    return free


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
