"""Takes from numba the object code of what it compiled. Only the process that writes an image imports this."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numba.core.environment import lookup_environment

from drafting.machine_code.image import Code, Shape
from drafting.machine_code.objects import IS_LINKABLE, common_words

Seen: TypeAlias = "tuple[Any, ...]"
"""numba's types of the arguments of a call."""

_ENVIRONMENT = "_ZN08NumbaEnv"
"""Start of the names of the words that take the address of a function's constants."""


def types_of(dispatcher: Any, arguments: tuple[Any, ...]) -> Seen:  # noqa: ANN401  numba's dispatcher
    """Return numba's types of arguments, for exactly which the function is compiled."""
    types = tuple(dispatcher.typeof_pyval(argument) for argument in arguments)
    dispatcher.compile(types)
    return types


def codes_of_kernel(name: str, compiled: Any, seen: Mapping[Shape, Seen]) -> list[Code]:  # noqa: ANN401  numba's dispatcher
    """Return the code of the versions that were called; none where this system cannot link it."""
    found = []
    for shape, types in seen.items() if IS_LINKABLE else ():
        result = compiled.overloads[types]
        code = _code(name, shape, result.fndesc.llvm_cpython_wrapper_name, _content(compiled, types, result.library))
        found += [code] if code else []
    return found


def codes_of_callback(name: str, compiled: Any) -> list[Code]:  # noqa: ANN401  numba's C function
    """Return the code of a callback; none where this system cannot link it."""
    if not IS_LINKABLE:
        return []
    code = _code(name, (), compiled.native_name, _content(compiled, compiled._sig, compiled._library))  # noqa: SLF001
    return [code] if code else []


def _content(compiled: Any, signature: Any, library: Any) -> bytes:  # noqa: ANN401  numba's classes
    """Return object code. numba gives it away once it has loaded it, so what it did not compile is read again."""
    if library._compiled_object is None:  # noqa: SLF001  numba has no other way
        cache = compiled._cache  # noqa: SLF001
        saved = cache._cache_file.load(cache._index_key(signature, library.codegen))  # noqa: SLF001
        (_, _, (content, _)), *_ = saved
    else:
        content = library._compiled_object  # noqa: SLF001
    return bytes(content)


def _code(name: str, shape: Any, symbol: str, content: bytes) -> Code | None:  # noqa: ANN401
    """Return the code of a compiled version; None if it has constants that an image does not keep."""
    environments = {}
    for word in common_words(content):
        found = lookup_environment(word) if word.startswith(_ENVIRONMENT) else None
        if found is not None:
            if not all(isinstance(constant, np.dtype) for constant in found.consts):
                return None
            module = found.globals.get("__name__", "")  # functions that numba makes itself have none
            environments[word] = (module, tuple(each.str for each in found.consts))
    return Code(name, shape, symbol, content, environments)
