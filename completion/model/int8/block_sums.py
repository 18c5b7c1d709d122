"""Sums of a weights file, block by block: they tell zeros, a cut or a changed byte from what was written.

A sum of 64-bit words runs as fast as memory is read, which a cryptographic checksum does not.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import numpy.typing as npt

BLOCK_BYTES = 1 << 16
SAMPLED_EVERY = 64
"""Of blocks that loading does not read anyway one in so many is checked: 4 MB of the default model's 272 MB."""

SumArray = npt.NDArray[np.uint64]


def sums_of(data: memoryview | bytes) -> SumArray:
    """Sum of each block's words, modulo 2⁶⁴; the length is a whole number of blocks.  # [blocks]."""
    words = np.frombuffer(data, np.uint64).reshape(-1, BLOCK_BYTES // 8)
    return words.sum(axis=1, dtype=np.uint64)


def sums_of_file(path: Path) -> SumArray:
    """Sum of each block of a file.  # [blocks]."""
    with path.open("rb") as file:
        found = [sums_of(data) for data in iter(lambda: file.read(256 * BLOCK_BYTES), b"")]
    return np.concatenate(found)


def sampled_sums_agree(path: Path, sums: SumArray, first: int) -> bool:
    """Whether some blocks of a file from block `first` on, the last one among them, have their sums."""
    sampled = {*range(first, len(sums), SAMPLED_EVERY), len(sums) - 1}
    with path.open("rb") as file:
        for block in sorted(sampled):
            file.seek(block * BLOCK_BYTES)
            data = file.read(BLOCK_BYTES)
            if len(data) != BLOCK_BYTES or sums_of(data)[0] != sums[block]:
                return False
    return True


def sealed(body: str) -> str:
    """A text with its digest in a line before it."""
    return f"{hashlib.blake2b(body.encode()).hexdigest()}\n{body}"


def unsealed(text: str) -> str | None:
    """The text of `sealed`; None where it was changed."""
    body = text.partition("\n")[2]
    return body if sealed(body) == text else None
