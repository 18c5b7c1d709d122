"""What numba keeps of a compiled function: machine code only if something calls it, else what its callers take in.

numba optimises and emits each function by itself, although those that only compiled functions call are then optimised
again as parts of their callers, whose code is all that runs: that was 4 of 28 s of compilation.
"""

from __future__ import annotations

from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_lock import require_global_compiler_lock
from numba.core.registry import cpu_target


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


def emit_what_is_called() -> None:
    """Let numba keep functions of this process so from now on; see the module."""
    cpu_target.target_context.codegen()._library_class = CalledLibrary  # noqa: SLF001  numba has no other way
