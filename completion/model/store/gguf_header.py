"""Reads the header of a GGUF file, which may lie in several parts: its fields, and where its tensors are.

The reader of the package gguf makes arrays of every string: that takes seconds and hundreds of megabytes for a
vocabulary. It also reads no file in parts.

Source: "GGUF", docs/gguf.md of the repository ggml-org/ggml.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import numpy.typing as npt
from gguf import GGUFValueType as Kind

Bytes = npt.NDArray[np.uint8]
_HEADER_BYTES = 1 << 26
"""Size within which a header ends; vocabularies take up to 16 MB."""
_ALIGNMENT = 32  # of tensors, unless a field says another
_VERSIONS = (2, 3)
_NUMBERS = {
    Kind.UINT8: "<B", Kind.INT8: "<b", Kind.UINT16: "<H", Kind.INT16: "<h", Kind.UINT32: "<I", Kind.INT32: "<i",
    Kind.FLOAT32: "<f", Kind.BOOL: "<?", Kind.UINT64: "<Q", Kind.INT64: "<q", Kind.FLOAT64: "<d",
}  # fmt: skip
_LENGTH = struct.Struct("<Q")


class OtherByteOrderError(ValueError):
    """The file's numbers have the other byte order."""


class JoinedFiles:
    """The bytes of files that follow one another, mapped into memory."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._parts = [np.memmap(path, np.uint8, "r") for path in paths]
        self._ends = list(accumulate(map(len, self._parts)))
        self.size = self._ends[-1]

    def between(self, start: int, end: int) -> Bytes:
        """Return bytes; they are copied only if they lie in several files."""
        firsts = [0, *self._ends]
        pieces = [
            part[max(0, start - first) : end - first]
            for part, first, last in zip(self._parts, firsts, self._ends, strict=False)
            if start < last and end > first
        ]
        return pieces[0] if len(pieces) == 1 else np.concatenate([np.zeros(0, np.uint8), *pieces])

    def head(self) -> memoryview:
        """Return the bytes that a header may take."""
        return self.between(0, min(_HEADER_BYTES, self.size)).data


@dataclass(frozen=True, slots=True)
class StoredBlocks:
    """A tensor as it is in a file.

    Attributes:
        name: GGUF's name.
        kind: Kind of its blocks.
        shape: Shape, the columns last.
        start: Its first byte.
    """

    name: str
    kind: gguf.GGMLQuantizationType
    shape: tuple[int, ...]
    start: int
    files: JoinedFiles

    @property
    def row_shape(self) -> tuple[int, ...]:
        """Shape of its rows in bytes.

        Raises:
            ValueError: A row is no whole number of blocks.
        """
        numbers, size = gguf.GGML_QUANT_SIZES[self.kind]
        if not self.shape or self.shape[-1] % numbers:
            raise ValueError(f"rows of {self.shape[-1:]} numbers in blocks of {numbers}")
        return (*self.shape[:-1], self.shape[-1] // numbers * size)

    @property
    def end(self) -> int:
        """The byte after its last one."""
        return self.start + math.prod(self.row_shape)

    def rows(self) -> Bytes:
        """Return its blocks.  # [..., bytes of a row]."""
        return self.files.between(self.start, self.end).reshape(self.row_shape)


class _Cursor:
    """Reads a header from front to back. Every method raises ValueError or struct.error where it ends too early."""

    def __init__(self, content: memoryview) -> None:
        self._content, self.at = content, 0

    def number(self, layout: str) -> Any:  # noqa: ANN401  (an integer, a float or a truth value)
        (found,) = struct.unpack_from(layout, self._content, self.at)
        self.at += struct.calcsize(layout)
        return found

    def text(self) -> bytes:
        start = self.at + _LENGTH.size
        self.at = start + _LENGTH.unpack_from(self._content, self.at)[0]
        if self.at > len(self._content):
            raise ValueError(f"a text ends at byte {self.at:,}")
        return bytes(self._content[start : self.at])

    def value(self, kind: int) -> Any:  # noqa: ANN401  (of any type)
        """Return a number, bytes, or a list of either."""
        if kind == Kind.STRING:
            return self.text()
        if kind != Kind.ARRAY:
            return self.number(_NUMBERS[Kind(kind)])
        inner, count = self.number("<I"), self.number("<Q")
        if inner not in _NUMBERS:
            return [self.value(inner) for _ in range(count)]
        found = np.frombuffer(self._content, _NUMBERS[inner], count, self.at)
        self.at += found.nbytes
        return found.tolist()


def read_header(files: JoinedFiles) -> tuple[dict[str, Any], list[StoredBlocks]]:
    """Return the fields by name, with texts as bytes, and the tensors.

    Raises:
        OtherByteOrderError: As its name says.
        ValueError, KeyError, struct.error: The file is truncated or damaged, or no GGUF file of a known version.
    """
    cursor = _Cursor(files.head())
    if cursor.number("<I") != gguf.GGUF_MAGIC:
        raise ValueError("it does not start as one")
    version = cursor.number("<I")
    if version & 0xFFFF == 0:
        raise OtherByteOrderError
    if version not in _VERSIONS:
        raise ValueError(f"version {version}")
    tensor_count, field_count = cursor.number("<Q"), cursor.number("<Q")
    fields = {_name(cursor): cursor.value(cursor.number("<I")) for _ in range(field_count)}
    tensors = [_tensor(cursor, files) for _ in range(tensor_count)]
    alignment = int(fields.get("general.alignment", _ALIGNMENT))
    start = cursor.at + -cursor.at % alignment
    found = [StoredBlocks(each.name, each.kind, each.shape, start + each.start, files) for each in tensors]
    if (end := max((each.end for each in found), default=0)) > files.size:
        raise ValueError(f"it has {files.size:,} bytes, and its tensors end at {end:,}")
    return fields, found


def _name(cursor: _Cursor) -> str:
    return cursor.text().decode()


def _tensor(cursor: _Cursor, files: JoinedFiles) -> StoredBlocks:
    """Read an entry of the table; `start` counts from the first tensor."""
    name, dimensions = _name(cursor), cursor.number("<I")
    shape = tuple(cursor.number("<Q") for _ in range(dimensions))[::-1]
    kind = gguf.GGMLQuantizationType(cursor.number("<I"))
    return StoredBlocks(name, kind, shape, cursor.number("<Q"), files)
