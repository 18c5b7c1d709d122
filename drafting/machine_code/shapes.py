"""What numba would tell apart in arguments, without numba: the key of a compiled version of a function."""

from __future__ import annotations

import sys
from typing import TypeAlias

import numpy as np

Shape: TypeAlias = "str | int | bool | tuple[Shape, ...]"
"""Kind of an argument, nested like the tuples that it consists of; hashable, and the same after a trip through JSON."""

_FLAGS, _IN_C_ORDER = 0x503, 0x501
"""numpy's flags for C order, Fortran order, aligned and writable arrays; arrays in both orders count as in C order."""
_PLAIN = {int: "int", bool: "bool", float: "float"}


def shape_of(value: object) -> Shape:
    """Return the kind of a value: of an array its type, dimensions and layout, of a tuple its class and entries.

    Raises:
        TypeError: Values of this class have no known kind.
    """
    kind = type(value)
    if kind is np.ndarray:
        flags = value.flags.num  # type: ignore[attr-defined]
        return (value.dtype.str, value.ndim, flags & (_IN_C_ORDER if flags & 1 else _FLAGS))  # type: ignore[attr-defined]
    plain = _PLAIN.get(kind)
    if plain is not None:
        return plain
    if issubclass(kind, tuple):
        return (f"{kind.__module__}.{kind.__qualname__}", *map(shape_of, value))  # type: ignore[call-overload]
    if issubclass(kind, np.generic):
        return str(value.dtype.str)  # type: ignore[attr-defined]
    raise TypeError(f"Compiled functions take no {kind.__name__}.")


def from_json(listed: object) -> Shape:
    """Return a shape that JSON has turned into lists."""
    if isinstance(listed, list):
        return tuple(from_json(each) for each in listed)
    assert isinstance(listed, (str, int))  # noqa: S101  what `shape_of` returns
    return sys.intern(listed) if isinstance(listed, str) else listed
