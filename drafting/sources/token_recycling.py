"""Guesses the tokens that the model rated likely after the same tokens before, in any text of the workspace.

Source: "Turning Trash into Treasure: Accelerating Inference of Large Language Models with Token Recycling": a matrix
of the top candidates after each token, updated by every scored row, rejected guesses included. Here frequent pairs of
tokens have rows of their own, which come first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from drafting.arrays import IntArray
from drafting.compiled import compiled

KeyArray = npt.NDArray[np.int64]

WIDTH = 8
"""Number of candidates that are kept after a token."""

EMPTY = -1
"""Value of an unused entry."""

PAIR_ROWS = 1 << 16
"""Number of rows for pairs of tokens, a power of two (2.6 MB). A new pair replaces the oldest of a few neighbours."""

PROBES = 4
"""Number of neighbouring rows in which a pair may be."""

KINDS = WIDTH + 2
"""Ranks of a token in a row of candidates, and "absent" and "no row"."""
CLASSES = KINDS * KINDS
"""Kinds of evidence: rank in the pair's row × rank in the token's row."""


class RecyclingArrays(NamedTuple):
    """Memory of the source, in the form that compiled code takes.

    Attributes:
        single: Candidates after a token, best first.  # [vocabulary, WIDTH]
        pair_keys: Pair that a row belongs to, EMPTY for none.  # [PAIR_ROWS]
        pair_rows: Candidates after the pair, best first.  # [PAIR_ROWS, WIDTH]
        ages: Value of `clock` when a pair's row was last written.  # [PAIR_ROWS]
        clock: Number of writes.  # [1]
    """

    single: IntArray
    pair_keys: KeyArray
    pair_rows: IntArray
    ages: IntArray
    clock: IntArray


def empty_recycling(vocabulary: int, pair_rows: int = PAIR_ROWS) -> RecyclingArrays:
    """Return a memory without candidates."""
    return RecyclingArrays(
        np.full((vocabulary, WIDTH), EMPTY, dtype=np.int32),
        np.full(pair_rows, EMPTY, dtype=np.int64),
        np.full((pair_rows, WIDTH), EMPTY, dtype=np.int32),
        np.zeros(pair_rows, dtype=np.int32),
        np.zeros(1, dtype=np.int32),
    )


@compiled
def pair_key(before: int, token: int) -> int:
    """Return one number for two tokens."""
    return int(np.int64(before) << 32 | np.int64(token))


@compiled
def home_of(key: int, rows: int) -> int:
    """Return the first row in which a pair may be; `rows` is a power of two."""
    return int(np.int64((np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)) & (rows - 1))


@compiled
def find_pair(memory: RecyclingArrays, before: int, token: int) -> int:
    """Return the row of a pair of tokens, −1 if it has none."""
    key, rows = pair_key(before, token), len(memory.pair_keys)
    for probe in range(PROBES):
        row = (home_of(key, rows) + probe) & (rows - 1)
        if memory.pair_keys[row] == key:
            return row
    return -1


@compiled
def claim_pair(memory: RecyclingArrays, before: int, token: int) -> int:
    """Return the row of a pair of tokens; if it has none, empty the oldest of its possible rows for it."""
    row = find_pair(memory, before, token)
    if row >= 0:
        return row
    key, rows = pair_key(before, token), len(memory.pair_keys)
    oldest = home_of(key, rows)
    for probe in range(1, PROBES):
        row = (home_of(key, rows) + probe) & (rows - 1)
        if memory.ages[row] < memory.ages[oldest]:
            oldest = row
    memory.pair_keys[oldest] = key
    memory.pair_rows[oldest] = EMPTY
    return oldest


@compiled
def recycle(memory: RecyclingArrays, before: IntArray, tokens: IntArray, tops: IntArray) -> None:
    """Store what the model rated likely after tokens.

    Args:
        memory: Changed in place.
        before: The token before each token, negative for none.  # [rows]
        tokens: The scored tokens.  # [rows]
        tops: The model's best candidates after each token, best first.  # [rows, ≥ 1]
    """
    width = min(WIDTH, tops.shape[1])
    for i in range(len(tokens)):
        if not 0 <= tokens[i] < len(memory.single):
            continue
        memory.clock[0] += 1
        memory.single[tokens[i], :width] = tops[i, :width]
        if before[i] >= 0:
            row = claim_pair(memory, before[i], tokens[i])
            memory.pair_rows[row, :width] = tops[i, :width]
            memory.ages[row] = memory.clock[0]


@compiled
def rank_in(row: IntArray, token: int) -> int:
    """Return the rank of a token in a row of candidates; WIDTH if it is absent."""
    for rank in range(WIDTH):
        if row[rank] == token:
            return rank
    return WIDTH
