"""Guesses the tokens that the model rated likely after the same tokens before, in any text of the workspace.

Source: "Turning Trash into Treasure: Accelerating Inference of Large Language Models with Token Recycling": a matrix
of the top candidates after each token, updated by every scored row, rejected guesses included. Here pairs of tokens
have rows as well, which come first. One hash table has the numbers of all rows, in the order in which they were added.
"""

from __future__ import annotations

from importlib import resources
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from drafting.arrays import IntArray, own_zeros
from drafting.compiled import compiled, compiled_within

KeyArray = npt.NDArray[np.int64]

WIDTH = 8
"""Number of candidates that are kept in a row."""

EMPTY = -1
"""Value of an unused entry."""

ALONE = -1
"""In place of the token before: the row of a single token."""

ROWS = 1 << 16
"""Maximum number of rows, a power of two (3.1 MB). A new row replaces the oldest of a few neighbours."""

PROBES = 4
"""Number of neighbouring places in which a row's number may be."""

COMMON_FILE = "common_tokens.npz"
"""File of what often comes after tokens in public code, in drafting/data; scripts/write_common_tokens.py writes it."""

KINDS = WIDTH + 2
"""Ranks of a token in a row of candidates, and "absent" and "no row"."""
CLASSES = KINDS * KINDS
"""Kinds of evidence: rank in the pair's row × rank in the token's row."""


class RecyclingArrays(NamedTuple):
    """Memory of the source, in the form that compiled code takes.

    Attributes:
        places: The hash table: numbers of rows, EMPTY for none.  # [rows]
        keys: Tokens that a row belongs to.  # [rows]
        candidates: Candidates after these tokens, best first.  # [rows, WIDTH]
        ages: Value of `clock` when a row was last written.  # [rows]
        clock: Number of writes.  # [1]
        used: Number of rows that were added: the others take no memory.  # [1]
    """

    places: IntArray
    keys: KeyArray
    candidates: IntArray
    ages: IntArray
    clock: IntArray
    used: IntArray


def empty_recycling(rows: int = ROWS) -> RecyclingArrays:
    """Return a memory without candidates; `rows` is a power of two."""
    return RecyclingArrays(
        places=np.full(rows, EMPTY, dtype=np.int32),
        keys=own_zeros((rows,), np.int64),
        candidates=own_zeros((rows, WIDTH), np.int32),
        ages=own_zeros((rows,), np.int32),
        clock=np.zeros(1, dtype=np.int32),
        used=np.zeros(1, dtype=np.int32),
    )


@compiled_within
def row_key(before: int, token: int) -> int:
    """Return one number for a token and the one before it, which may be ALONE."""
    return int(np.int64(before) << 32 | np.int64(token))


@compiled_within
def home_of(key: int, places: int) -> int:
    """Return the first place in which a row's number may be; `places` is a power of two."""
    return int(np.int64((np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)) & (places - 1))


@compiled
def find_row(memory: RecyclingArrays, before: int, token: int) -> int:
    """Return the row of a token after another or ALONE, −1 if it has none."""
    key, places = row_key(before, token), len(memory.places)
    for probe in range(PROBES):
        row = memory.places[(home_of(key, places) + probe) & (places - 1)]
        if row != EMPTY and memory.keys[row] == key:
            return int(row)
    return -1


@compiled
def claim_row(memory: RecyclingArrays, before: int, token: int) -> int:
    """Return the row of a token after another or ALONE; if it has none, a new one, or the oldest of a few, emptied."""
    row = find_row(memory, before, token)
    if row >= 0:
        return row
    key, places = row_key(before, token), len(memory.places)
    chosen, oldest = home_of(key, places), memory.clock[0] + 1
    for probe in range(PROBES):
        place = (home_of(key, places) + probe) & (places - 1)
        age = memory.ages[memory.places[place]] if memory.places[place] != EMPTY else 0
        if age < oldest:
            chosen, oldest = place, age
    if memory.places[chosen] == EMPTY:
        memory.places[chosen] = memory.used[0]
        memory.used[0] += 1
    row = int(memory.places[chosen])
    memory.keys[row] = key
    memory.candidates[row] = EMPTY
    return row


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
            for rank in range(width):
                memory.candidates[row, rank] = tops[i, rank]
            memory.clock[0] += 1
            memory.ages[row] = memory.clock[0]


@compiled_within
def rank_in(row: IntArray, token: int) -> int:
    """Return the rank of a token in a row of candidates; WIDTH if it is absent."""
    for rank in range(WIDTH):
        if row[rank] == token:
            return rank
    return WIDTH


def common_recycling(digest: str) -> RecyclingArrays:
    """Return a memory of what is frequent in public code, empty for another vocabulary than the file's."""
    memory = empty_recycling()
    with resources.files("drafting").joinpath("data", COMMON_FILE).open("rb") as file, np.load(file) as arrays:
        if str(arrays["vocabulary"]) != digest:
            return memory
        before, tokens = np.ascontiguousarray(arrays["tokens"].T)
        write_rows(memory, before, tokens, arrays["after"])
    return memory
