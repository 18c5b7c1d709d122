"""Links object code into this process: ELF for x86-64, as numba writes it on Linux.

numba compiles for any distance between code and data, so almost every reference is a plain 64-bit address. Code with
another kind of reference, or with data that it writes, is refused.

Source: "System V Application Binary Interface, AMD64 Architecture Processor Supplement", chapter 4.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

IS_LINKABLE = sys.platform == "linux" and platform.machine() == "x86_64"
"""Whether this system can run such code."""

_MAGIC = b"\x7fELF\x02\x01\x01"  # 64 bits, little-endian
_X86_64 = 62
_SECTIONS_AT, _SECTION_COUNT_AT, _MACHINE_AT = 40, 60, 18
_SECTION = np.dtype(
    [("name", "<u4"), ("type", "<u4"), ("flags", "<u8"), ("address", "<u8"), ("offset", "<u8"), ("size", "<u8"),
     ("link", "<u4"), ("info", "<u4"), ("align", "<u8"), ("entry", "<u8")]
)  # fmt: skip
_SYMBOL = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"), ("size", "<u8")]
)
_REFERENCE = np.dtype([("offset", "<u8"), ("kind", "<u4"), ("symbol", "<u4"), ("addend", "<i8")])
_PROGRAM, _SYMBOLS, _REFERENCES, _ZEROS, _UNWINDING = 1, 2, 4, 8, 0x70000001
_WRITABLE, _LOADED, _EXECUTABLE = 1, 2, 4
_UNDEFINED, _ABSOLUTE, _COMMON = 0, 0xFFF1, 0xFFF2
_ADDRESS = 1  # R_X86_64_64: the symbol's address plus the addend
_PAGE = mmap.PAGESIZE
_READ, _EXECUTE = 1, 4  # PROT_READ, PROT_EXEC


class ObjectError(ValueError):
    """Object code cannot be linked: it is damaged, of another machine, or has what this module does not know."""


class Linked(NamedTuple):
    """Object code in memory.

    Attributes:
        addresses: Address of every global symbol of each object.
        memory: Keeps the code alive.
        address: Where the memory is.
    """

    addresses: list[dict[str, int]]
    memory: mmap.mmap
    address: int


class _Object:
    """One object file, parsed."""

    def __init__(self, content: bytes) -> None:
        if content[:7] != _MAGIC or int.from_bytes(content[_MACHINE_AT : _MACHINE_AT + 2], "little") != _X86_64:
            raise ObjectError("The object code is not ELF for x86-64.")
        try:
            self._parse(content)
        except (ValueError, IndexError) as error:
            raise ObjectError(f"The object code is damaged ({error}).") from error

    def _parse(self, content: bytes) -> None:
        count = int.from_bytes(content[_SECTION_COUNT_AT : _SECTION_COUNT_AT + 2], "little")
        start = int.from_bytes(content[_SECTIONS_AT : _SECTIONS_AT + 8], "little")
        self.content = content
        self.sections = np.frombuffer(content, _SECTION, count, start)
        table = self.sections[self.sections["type"] == _SYMBOLS][0]
        self.symbols = np.frombuffer(content, _SYMBOL, int(table["size"]) // _SYMBOL.itemsize, int(table["offset"]))
        names = self.sections[int(table["link"])]
        text = content[int(names["offset"]) : int(names["offset"]) + int(names["size"])]
        self.names = [text[at : text.index(b"\0", at)].decode() for at in self.symbols["name"].tolist()]
        self.loaded = [
            number
            for number, section in enumerate(self.sections)
            if section["flags"] & _LOADED and section["size"] and section["type"] != _UNWINDING
        ]
        if any(self.sections[number]["flags"] & _WRITABLE for number in self.loaded):
            raise ObjectError("The object code has variables.")

    def references(self) -> list[tuple[int, npt.NDArray[np.void]]]:
        """Return each loaded section that refers to symbols, by its number, and what it refers to."""
        found = []
        for section in self.sections:
            if section["type"] == _REFERENCES and int(section["info"]) in self.loaded:
                count = int(section["size"]) // _REFERENCE.itemsize
                references = np.frombuffer(self.content, _REFERENCE, count, int(section["offset"]))
                if (references["kind"] != _ADDRESS).any():
                    raise ObjectError(
                        f"The object code has references of the kinds {set(references['kind'].tolist())}."
                    )
                found.append((int(section["info"]), references))
        return found


def common_words(content: bytes) -> list[str]:
    """Return the names of the words that object code declares for others to fill.

    Raises:
        ObjectError: The object code is damaged or of another machine.
    """
    each = _Object(content)
    return [each.names[number] for number in np.flatnonzero(each.symbols["section"] == _COMMON).tolist()]


def link(contents: Sequence[bytes], resolve: Callable[[str], int], words: Sequence[Mapping[str, int]]) -> Linked:
    """Load objects, each on its own: their symbols do not see each other.

    Args:
        contents: Object files.
        resolve: Returns the address of a symbol that an object does not define; raises LookupError.
        words: For each object the values of the common words that it declares; others are 0.

    Raises:
        ObjectError: An object cannot be linked.
        LookupError: `resolve` does not know a symbol.
        OSError: The system allows no memory for code.
    """
    objects = [_Object(content) for content in contents]
    places, code_bytes, size = _lay_out(objects)
    memory = _own_memory(max(size, _PAGE))
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    addresses, known = [], dict[str, int]()
    for each, place, own in zip(objects, places, words, strict=True):
        for number in each.loaded:
            section = each.sections[number]
            if section["type"] != _ZEROS:
                first = int(section["offset"])
                memory[place[number] : place[number] + int(section["size"])] = each.content[
                    first : first + int(section["size"])
                ]
        values = _values(each, place, base, resolve, known)
        for name, word in own.items():
            at = place[_COMMON + each.names.index(name)]
            memory[at : at + 8] = word.to_bytes(8, "little")
        for number, references in each.references():
            targets = (values[references["symbol"]] + references["addend"].view(np.uint64)).tolist()
            for offset, target in zip(references["offset"].tolist(), targets, strict=True):
                at = place[number] + offset
                memory[at : at + 8] = target.to_bytes(8, "little")
        addresses.append({name: int(value) for name, value in zip(each.names, values, strict=True) if name})
    _protect(base, code_bytes, _READ | _EXECUTE)
    _protect(base + code_bytes, len(memory) - code_bytes, _READ)
    return Linked(addresses, memory, base)


def _lay_out(objects: Sequence[_Object]) -> tuple[list[dict[int, int]], int, int]:
    """Return the offset of each section and, after _COMMON, of each common symbol; the bytes of code, and of all."""
    places: list[dict[int, int]] = [{} for _ in objects]
    end = 0
    for executable in (_EXECUTABLE, 0):
        for each, place in zip(objects, places, strict=True):
            for number in each.loaded:
                section = each.sections[number]
                if section["flags"] & _EXECUTABLE == executable:
                    end = _aligned(end, int(section["align"]))
                    place[number] = end
                    end += int(section["size"])
        if executable:
            end = code_bytes = _aligned(end, _PAGE)
    for each, place in zip(objects, places, strict=True):
        for number in np.flatnonzero(each.symbols["section"] == _COMMON).tolist():
            end = _aligned(end, int(each.symbols[number]["value"]))
            place[_COMMON + number] = end
            end += int(each.symbols[number]["size"])
    return places, code_bytes, _aligned(end, _PAGE)


def _values(
    each: _Object, place: Mapping[int, int], base: int, resolve: Callable[[str], int], known: dict[str, int]
) -> npt.NDArray[np.uint64]:
    """Return the address of each symbol; 0 for those of sections that are not loaded.  # [symbols]."""
    values = np.zeros(len(each.symbols), np.uint64)
    for number, (name, symbol) in enumerate(zip(each.names, each.symbols, strict=True)):
        section = int(symbol["section"])
        if section == _COMMON:
            values[number] = base + place[_COMMON + number]
        elif section == _ABSOLUTE:
            values[number] = symbol["value"]
        elif section != _UNDEFINED:
            if section in place and symbol["value"] > each.sections[section]["size"]:
                raise ObjectError(f"The object code has a symbol outside of its section {section}.")
            values[number] = base + place[section] + int(symbol["value"]) if section in place else 0
        elif name:
            if name not in known:
                known[name] = resolve(name)
            values[number] = known[name]
    return values


def _own_memory(size: int) -> mmap.mmap:
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS  # type: ignore[attr-defined, unused-ignore]  # not on Windows
    return mmap.mmap(-1, size, flags=flags)  # type: ignore[call-arg, unused-ignore]


def _protect(address: int, size: int, access: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if size and libc.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(size), access):
        raise OSError(ctypes.get_errno(), "The system allows no memory for code")


def _aligned(offset: int, alignment: int) -> int:
    return offset + -offset % max(alignment, 1)
