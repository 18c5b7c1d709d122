"""Machine code for the inner loops: numba, with the types of the Python function kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., object])


def compiled(function: Function) -> Function:
    """Compile on first use and cache on disk; other threads run meanwhile (the global lock is released)."""
    return cast("Function", numba.njit(cache=True, nogil=True, error_model="numpy")(function))
