"""Takes large memory from the system directly, and returns what Python and torch have freed."""

from __future__ import annotations

import ctypes
import mmap
import os
import sys

_ARENA_MAX = -8  # M_ARENA_MAX of glibc's malloc.h


def large_memory(size: int) -> mmap.mmap:
    """Return `size` zeroed bytes in pages of 2 MB, if the system has them; they are returned with their last view.

    glibc would put a large array among small objects once one of its size was freed, and then seldom returns it.
    """
    if not hasattr(mmap, "MAP_ANONYMOUS"):
        return mmap.mmap(-1, size)
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
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


def trim_gpu() -> None:
    """Return freed memory of the GPU to the driver. torch keeps it for its next tensors."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.empty_cache()
