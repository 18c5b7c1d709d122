"""numba's `njit` as the kernels use it: each function is compiled once, and only what Python calls can be called by it.

numba would compile a function anew for each literal number that it is called with, and wrap each one for calls by
Python and C, which takes longest where arguments are structures: 60 s of compilation became 33 s.

It would also optimise and emit each function by itself, although those that only compiled functions call are then
optimised again as parts of their callers, whose code is all that runs: that was 4 of 28 s.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_lock import require_global_compiler_lock
from numba.core.registry import cpu_target
from numba.core.types.misc import unliteral

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


class CalledLibrary(JITCodeLibrary):  # type: ignore[misc]  # numba has no types
    """numba's library of one function, which is emitted once its address is asked for or numba's cache keeps it."""

    _is_emitted = False

    def finalize(self) -> None:
        """Take in the functions that this one calls."""
        require_global_compiler_lock()
        self._raise_if_finalized()
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)  # noqa: SLF001  as numba does
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)  # noqa: SLF001
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return the address of a function's code; 0 if the library has none of that name."""
        self._ensure_finalized()
        if not self._is_emitted and self._has(name):
            self._emit()
        return int(super().get_pointer_to_function(name))

    def serialize_using_object_code(self) -> Any:  # noqa: ANN401  numba's cache writes it
        """Return what numba's cache keeps."""
        self._emit()
        return super().serialize_using_object_code()

    @property
    def codegen(self) -> Any:  # noqa: ANN401  numba's class
        """What has emitted the code, and gives it its constants; this object, which does not, if there is none."""
        return self._codegen if self._is_emitted else self

    def set_env(self, name: str, constants: object) -> None:
        """Do nothing: code that was not emitted has no word for its constants."""

    @classmethod
    def _unserialize(cls, codegen: Any, state: Any) -> Any:  # noqa: ANN401  numba's classes
        library = super()._unserialize(codegen, state)
        library._is_emitted = True  # noqa: SLF001
        return library

    def _has(self, name: str) -> bool:
        try:
            return not self._final_module.get_function(name).is_declaration
        except NameError:
            return False

    def _emit(self) -> None:
        self._ensure_finalized()
        if not self._is_emitted:
            self._is_emitted = True
            self._optimize_final_module()
            self._final_module.verify()
            self._finalize_final_module()


cpu_target.target_context.codegen()._library_class = CalledLibrary  # noqa: SLF001  numba has no other way
