"""Converts between columns in code points and in the client's units (LSP 3.17, PositionEncodingKind)."""

from __future__ import annotations

import re
from enum import StrEnum

_NOT_UTF8 = re.compile("[\udc80-\udcff]")
"""Lone surrogates, each of which stands for one byte that is not UTF-8 (PEP 383, "surrogateescape")."""


class PositionEncoding(StrEnum):
    """The unit of a position's `character` (LSP 3.17, PositionEncodingKind)."""

    UTF8 = "utf-8"
    UTF16 = "utf-16"
    UTF32 = "utf-32"


def column_from_units(line: str, units: int, encoding: PositionEncoding) -> int:
    """Return the column after `units` code units of `line`, in code points. Inside a character, return its start."""
    if encoding is PositionEncoding.UTF32 or line.isascii():
        return min(units, len(line))
    if encoding is PositionEncoding.UTF16:
        data = line.encode("utf-16-le", "surrogatepass")
        cut = min(units * 2, len(data))
        if 0 < cut < len(data) and 0xD8 <= data[cut - 1] <= 0xDB and 0xDC <= data[cut + 1] <= 0xDF:
            cut -= 2  # it is between a high and a low surrogate
        return len(data[:cut].decode("utf-16-le", "surrogatepass"))
    data = _utf8(line)
    cut = min(units, len(data))
    while 0 < cut < len(data) and data[cut] & 0xC0 == 0x80:
        cut -= 1
    return len(data[:cut].decode("utf-8", "surrogatepass"))


def units_from_column(line: str, column: int, encoding: PositionEncoding) -> int:
    """Return the number of code units of the first `column` code points of `line`."""
    before = line[:column]
    if encoding is PositionEncoding.UTF32 or before.isascii():
        return len(before)
    if encoding is PositionEncoding.UTF16:
        return len(before.encode("utf-16-le", "surrogatepass")) // 2
    return len(_utf8(before))


def _utf8(text: str) -> bytes:
    """Return as many bytes as the client has for a text, with "?" for each byte that is not UTF-8."""
    try:
        return text.encode()
    except UnicodeEncodeError:  # it contains surrogates
        return _NOT_UTF8.sub("?", text).encode("utf-8", "surrogatepass")
