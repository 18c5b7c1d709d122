"""Returns memory that Python has freed to the system."""

from __future__ import annotations

import ctypes
import os


def trim_heap() -> None:
    """Return freed memory to the system. glibc keeps it if it consists of many small objects."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if os.name == "posix" else None
    if trim is not None:
        trim(0)
