"""Compilation of inner loops to machine code with numba. The compiled function keeps its Python type."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., object])


def compiled(function: Function) -> Function:
    """Compile a function at its first call, with a cache on disk; it runs without the interpreter's global lock."""
    return cast("Function", numba.njit(cache=True, nogil=True, error_model="numpy")(function))
