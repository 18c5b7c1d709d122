"""numba's `njit` as the kernels use it: each function is compiled once, and only what Python calls can be called by it.

numba would compile a function anew for each literal number that it is called with, and wrap each one for calls by
Python and C, which takes longest where arguments are structures: 60 s of compilation became 33 s.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numba.core.types.misc import unliteral

from drafting.machine_code.libraries import emit_what_is_called

emit_what_is_called()
Function = TypeVar("Function", bound=Callable[..., object])


def entry(function: Function, *, nogil: bool = True) -> Function:
    """Compile a function that Python calls, at its first call, with numba's cache on disk.

    With `nogil` it runs without the interpreter's global lock.
    """
    return cast("Function", _compiled(function, cache=True, nogil=nogil))


def inner(function: Function) -> Function:
    """Compile a function that only compiled functions call, with the first of them."""
    return cast("Function", _compiled(function, no_cpython_wrapper=True))


def _compiled(function: Callable[..., object], **options: object) -> Any:  # noqa: ANN401  numba's class
    """Return numba's function, to which compiled callers pass `0` as they pass any integer."""
    dispatcher = numba.njit(no_cfunc_wrapper=True, error_model="numpy", **options)(function)
    template_of = dispatcher.get_call_template

    def get_call_template(arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:  # noqa: ANN401
        plain = {name: unliteral(each) for name, each in named.items()}
        return template_of(tuple(map(unliteral, arguments)), plain)

    dispatcher.get_call_template = get_call_template
    return dispatcher
