"""Checksums of a weights file by block, which detect zeros, truncation and changed bytes.

A sum of 64-bit words is as fast as reading memory, which a cryptographic checksum is not.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import numpy.typing as npt

BLOCK_BYTES = 1 << 16
"""Bytes with one checksum."""
SAMPLED_EVERY = 64
"""Of the blocks that loading does not read, one in this many is checked: 4 MB of the default model's 272 MB."""

SumArray = npt.NDArray[np.uint64]


def sums_of(data: memoryview | bytes) -> SumArray:
    """Return the sum of each block's words, modulo 2⁶⁴; `data` is a whole number of blocks.  # [blocks]."""
    words = np.frombuffer(data, np.uint64).reshape(-1, BLOCK_BYTES // 8)
    return words.sum(axis=1, dtype=np.uint64)


def sums_of_file(path: Path) -> SumArray:
    """Return the sum of each block of a file.  # [blocks]."""
    with path.open("rb") as file:
        found = [sums_of(data) for data in iter(lambda: file.read(256 * BLOCK_BYTES), b"")]
    return np.concatenate(found)


def sampled_sums_agree(path: Path, sums: SumArray, first: int) -> bool:
    """Return whether a sample of a file's blocks from block `first` on, the last block included, has the right sums."""
    sampled = {*range(first, len(sums), SAMPLED_EVERY), len(sums) - 1}
    with path.open("rb") as file:
        for block in sorted(sampled):
            file.seek(block * BLOCK_BYTES)
            data = file.read(BLOCK_BYTES)
            if len(data) != BLOCK_BYTES or sums_of(data)[0] != sums[block]:
                return False
    return True


def sealed(body: str) -> str:
    """Return a text after a line with its digest."""
    return f"{hashlib.blake2b(body.encode()).hexdigest()}\n{body}"


def unsealed(text: str) -> str | None:
    """Return the text of `sealed`; None if it was changed."""
    body = text.partition("\n")[2]
    return body if sealed(body) == text else None
