"""Says where this process's memory is: each resident byte belongs to one part."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePath

import psutil

from completion.memory import Held, MemoryPart, Span, mapped_spans, resident_bytes
from drafting.compiled import code_span

HeldParts = Mapping[MemoryPart, Held]
"""What an engine holds, by part."""

_COMPILERS = ("llvmlite", "numba")
_GRAMMARS = "tree_sitter"  # start of the names of packages with grammars
_RUNNABLE = "r-xp"


@dataclass(frozen=True, slots=True)
class MemoryAccount:
    """Where the memory is, in bytes.

    Attributes:
        parts: Resident memory of this process by part. OTHER is the rest: Python, its libraries and small buffers.
        gpu: Memory of a GPU by part, of what the engine holds there; empty without a GPU.
        children: Resident memory of the child processes: the parser's.
    """

    parts: Mapping[MemoryPart, int]
    gpu: Mapping[MemoryPart, int]
    children: int

    @property
    def resident(self) -> int:
        """Resident size of this process: the sum of its parts."""
        return sum(self.parts.values())

    def to_json(self) -> dict[str, object]:
        """Return the account as JSON values."""
        return {"parts": dict(self.parts), "gpu": dict(self.gpu), "children": self.children, "resident": self.resident}


def memory_account(held: Callable[[], HeldParts]) -> MemoryAccount:
    """Return the account of this process, which takes about 20 ms. May be called on any thread."""
    found = {part: Held() for part in MemoryPart} | dict(held())
    if (image := code_span()) is not None:
        found[MemoryPart.CODE] += Held((image,))
    for part, span in _mapped():
        found[part] += Held((span,))
    parts = {part: resident_bytes(each.spans) + each.object_bytes for part, each in found.items()}
    process = psutil.Process()
    parts[MemoryPart.OTHER] = max(process.memory_info().rss - sum(parts.values()), 0)
    gpu = {part: each.gpu_bytes for part, each in found.items() if each.gpu_bytes}
    return MemoryAccount(parts, gpu, sum(map(_resident, process.children(recursive=True))))


def _mapped() -> Iterator[tuple[MemoryPart, Span]]:
    """Yield the libraries of grammars and of the compiler, and code of no file."""
    for span, access, file in mapped_spans():
        names = PurePath(file).parts
        if any(name.startswith(_GRAMMARS) for name in names):
            yield MemoryPart.GRAMMARS, span
        elif any(name in _COMPILERS for name in names) or (access == _RUNNABLE and not file):
            yield MemoryPart.CODE, span


def _resident(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.Error:  # it has ended meanwhile
        return 0
