"""Guesses the tokens that the model rated likely after the same tokens before, in any text of the workspace.

Source: "Turning Trash into Treasure: Accelerating Inference of Large Language Models with Token Recycling": a matrix
of the top candidates after each token, updated by every scored row, rejected guesses included. Here pairs of tokens
have rows as well, which come first, and all rows are in one hash table.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from drafting.arrays import IntArray
from drafting.compiled import compiled

KeyArray = npt.NDArray[np.int64]

WIDTH = 8
"""Number of candidates that are kept in a row."""

EMPTY = -1
"""Value of an unused entry."""

ALONE = -1
"""In place of the token before: the row of a single token."""

ROWS = 1 << 16
"""Number of rows, a power of two (2.9 MB). A new row replaces the oldest of a few neighbours."""

PROBES = 4
"""Number of neighbouring places in which a row may be."""

KINDS = WIDTH + 2
"""Ranks of a token in a row of candidates, and "absent" and "no row"."""
CLASSES = KINDS * KINDS
"""Kinds of evidence: rank in the pair's row × rank in the token's row."""


class RecyclingArrays(NamedTuple):
    """Memory of the source, in the form that compiled code takes.

    Attributes:
        keys: Tokens that a row belongs to, EMPTY for none.  # [rows]
        candidates: Candidates after these tokens, best first.  # [rows, WIDTH]
        ages: Value of `clock` when a row was last written.  # [rows]
        clock: Number of writes.  # [1]
    """

    keys: KeyArray
    candidates: IntArray
    ages: IntArray
    clock: IntArray


def empty_recycling(rows: int = ROWS) -> RecyclingArrays:
    """Return a memory without candidates; `rows` is a power of two."""
    return RecyclingArrays(
        np.full(rows, EMPTY, dtype=np.int64),
        np.full((rows, WIDTH), EMPTY, dtype=np.int32),
        np.zeros(rows, dtype=np.int32),
        np.zeros(1, dtype=np.int32),
    )


@compiled
def row_key(before: int, token: int) -> int:
    """Return one number for a token and the one before it, which may be ALONE."""
    return int(np.int64(before) << 32 | np.int64(token))


@compiled
def home_of(key: int, rows: int) -> int:
    """Return the first place in which a row may be; `rows` is a power of two."""
    return int(np.int64((np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)) & (rows - 1))


@compiled
def find_row(memory: RecyclingArrays, before: int, token: int) -> int:
    """Return the row of a token after another or ALONE, −1 if it has none."""
    key, rows = row_key(before, token), len(memory.keys)
    for probe in range(PROBES):
        row = (home_of(key, rows) + probe) & (rows - 1)
        if memory.keys[row] == key:
            return row
    return -1


@compiled
def claim_row(memory: RecyclingArrays, before: int, token: int) -> int:
    """Return the row of a token after another or ALONE; if it has none, empty the oldest of its possible rows."""
    row = find_row(memory, before, token)
    if row >= 0:
        return row
    key, rows = row_key(before, token), len(memory.keys)
    oldest = home_of(key, rows)
    for probe in range(1, PROBES):
        row = (home_of(key, rows) + probe) & (rows - 1)
        if memory.ages[row] < memory.ages[oldest]:
            oldest = row
    memory.keys[oldest] = key
    memory.candidates[oldest] = EMPTY
    return oldest


def recycle(memory: RecyclingArrays, before: IntArray, tokens: IntArray, tops: IntArray) -> None:
    """Store what the model rated likely after tokens, for pairs and for single tokens.

    Args:
        memory: Changed in place.
        before: The token before each token, negative for none.  # [rows]
        tokens: The scored tokens.  # [rows]
        tops: The model's best candidates after each token, best first.  # [rows, ≥ 1]
    """
    write_rows(memory, np.full_like(before, ALONE), tokens, tops)
    paired = before >= 0
    write_rows(memory, before[paired], tokens[paired], tops[paired])


@compiled
def write_rows(memory: RecyclingArrays, before: IntArray, tokens: IntArray, tops: IntArray) -> None:
    """Store candidates; in place of a token before there may be ALONE. The last rows are replaced last."""
    width = min(WIDTH, tops.shape[1])
    for i in range(len(tokens)):
        if tokens[i] >= 0:
            row = claim_row(memory, before[i], tokens[i])
            memory.candidates[row, :width] = tops[i, :width]
            memory.clock[0] += 1
            memory.ages[row] = memory.clock[0]


@compiled
def rank_in(row: IntArray, token: int) -> int:
    """Return the rank of a token in a row of candidates; WIDTH if it is absent."""
    for rank in range(WIDTH):
        if row[rank] == token:
            return rank
    return WIDTH
