"""A file of machine code: what numba compiled for the functions that a process called, by the kinds of arguments."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np

from drafting.machine_code.numba_runtime import runtime
from drafting.machine_code.objects import IS_LINKABLE, link
from drafting.state_files import StateFileError, read_state, set_aside, write_state

Shape: TypeAlias = "str | int | bool | tuple[Shape, ...]"
"""What numba would tell apart in an argument, nested like the tuples that it consists of.

It is hashable, and the same after a trip through JSON.
"""

_FLAGS, _IN_C_ORDER = 0x503, 0x501
"""numpy's flags for C order, Fortran order, aligned and writable arrays; arrays in both orders count as in C order."""
_PLAIN = {int: "int", bool: "bool", float: "float"}

UNUSED_S = 30 * 86400.0
"""Time after which what no process has read is deleted, in seconds; other files may belong to other versions."""

_HEADER = b"draftline machine code 1\n"
_UNFINISHED = ".partial"
UNTRIED = ".untried"
"""End of the name of an image until a process has completed with it."""
_DIGEST_BYTES = 32
_MOST_BYTES = 256 << 20  # several times the code of all kernels

logger = logging.getLogger(__name__)

Native = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Code:
    """One compiled version of a function, or a callback.

    Attributes:
        name: Name of the function, "module:name".
        shape: Kinds of its arguments; () for a callback, which C code calls.
        symbol: Symbol in the object to call.
        environments: Constants of functions, by the symbol of the word that takes their address: the module of the
            function, and the names of array types, which are all the constants that are kept.
    """

    name: str
    shape: Shape
    symbol: str
    content: bytes
    environments: Mapping[str, tuple[str, tuple[str, ...]]]


class Image:
    """Machine code in this process.

    Attributes:
        functions: Functions by name and the shape of their arguments.
        callbacks: Addresses of callbacks by name.
    """

    def __init__(self, codes: list[Code]) -> None:
        """Link the code.

        Raises:
            ImportError: numba's C modules lack what is needed.
            ObjectError: An object cannot be linked.
            LookupError: It needs a symbol that this process lacks.
            OSError: The system allows no memory for code.
        """
        parts = runtime()
        self._environments = [
            {symbol: _environment(*constants) for symbol, constants in code.environments.items()} for code in codes
        ]
        words = [{symbol: id(each) for symbol, each in one.items()} for one in self._environments]
        self._linked = link([code.content for code in codes], parts.resolve, words)
        self.functions: dict[str, dict[Shape, Native]] = {}
        self.callbacks: dict[str, int] = {}
        for code, addresses in zip(codes, self._linked.addresses, strict=True):
            if not code.shape:
                self.callbacks[code.name] = addresses[code.symbol]
                continue
            module, _, name = code.name.partition(":")
            alive = self._linked, self._environments
            plain = _environment(module)
            function = parts.function(ModuleType(module), name, "", addresses[code.symbol], plain, alive)
            self.functions.setdefault(code.name, {})[code.shape] = function

    @property
    def span(self) -> tuple[int, int]:
        """Address and size in bytes of the code and its constants."""
        return self._linked.address, len(self._linked.memory)


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


def is_whole(path: Path) -> bool:
    """Return whether there is an image, as it was written."""
    return _read(path) is not None


def read_image(path: Path) -> Image | None:
    """Load an image. One that is damaged, or that others can write, is set aside.

    Returns:
        None if there is no image that can be used; numba compiles then.
    """
    codes = _read(path) if IS_LINKABLE else None
    if codes is None:
        return None
    try:
        return Image(codes)
    except (OSError, ImportError) as error:
        logger.warning("The machine code in %s cannot be used: %s", path, error)
    except (LookupError, TypeError, ValueError, OverflowError, MemoryError) as error:
        set_aside(path, f"it cannot be linked: {type(error).__name__}")
    return None


def _read(path: Path) -> list[Code] | None:
    return read_state(path, _parse, most_bytes=_MOST_BYTES, is_code=True)


def _parse(content: bytes) -> list[Code]:
    digest, body = content[len(_HEADER) : len(_HEADER) + _DIGEST_BYTES], content[len(_HEADER) + _DIGEST_BYTES :]
    sound = content.startswith(_HEADER) and hashlib.blake2b(body, digest_size=_DIGEST_BYTES).digest() == digest
    if not sound:
        raise StateFileError("it is not as it was written")
    return _codes(body)


def write_image(path: Path, codes: Iterable[Code]) -> None:
    """Write an image, at once for other processes.

    Raises:
        OSError: The file cannot be written.
    """
    contents, entries, end = [], [], 0
    for code in codes:
        entries.append((code.name, code.shape, code.symbol, end, len(code.content), dict(code.environments)))
        contents.append(code.content)
        end += len(code.content)
    index = json.dumps(entries).encode()
    body = len(index).to_bytes(8, "little") + index + b"".join(contents)
    write_state(path, _HEADER + hashlib.blake2b(body, digest_size=_DIGEST_BYTES).digest() + body)


def note_use(path: Path, now_s: float) -> None:
    """Note that a file is in use, and delete those of its kind in its folder that nobody has used for a month.

    A process reads its file as a whole, so it misses none that is deleted meanwhile; the next start makes it anew.
    """
    with suppress(OSError):  # a folder that cannot be written loses nothing but its tidiness
        os.utime(path, (now_s, now_s))
        for other in path.parent.iterdir():
            with suppress(FileNotFoundError):  # another process deletes them as well
                is_ours = other.suffix in {path.suffix, _UNFINISHED, UNTRIED} and other != path
                if is_ours and now_s - other.stat().st_mtime > UNUSED_S:
                    other.unlink()


def _codes(body: bytes) -> list[Code]:
    size = int.from_bytes(body[:8], "little")
    start = 8 + size
    return [
        Code(
            name,
            from_json(shape),
            symbol,
            body[start + first : start + first + length],
            {word: (module, tuple(constants)) for word, (module, constants) in environments.items()},
        )
        for name, shape, symbol, first, length, environments in json.loads(body[8:start])
    ]


def _environment(module: str, constants: tuple[str, ...] = ()) -> Any:  # noqa: ANN401  a class of numba's C module
    """Return the object from which machine code takes its constants."""
    environment = runtime().environment({"__name__": module})
    environment.consts[:] = [np.dtype(each) for each in constants]
    return environment
