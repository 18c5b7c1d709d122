"""The arrays of a model folder's tokenizer in the user's cache, so that only its first start reads the vocabulary."""

from __future__ import annotations

import hashlib
import io
import json
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tokenizers

from completion.errors import StorageError
from completion.model.store.disk import file_states
from completion.model.tokens.pieces import PieceEncoder
from completion.paths import cache_dir
from drafting.arrays import IntArray
from drafting.machine_code.image import note_use
from drafting.state_files import StateFileError, read_state, write_state

logger = logging.getLogger(__name__)

FORMAT = 1
"""Version of the file; a change reads all vocabularies again."""
_MOST_BYTES = 256 << 20  # several times the tables of the largest vocabulary
_FILES = ("tokenizer.json", "config.json")


@dataclass(frozen=True, slots=True)
class TokenTables:
    """What a tokenizer knows.

    Attributes:
        special: Control tokens by their text.
        text: Bytes of all tokens, one after the other.
        offsets: Where each token's bytes begin, and the end of the last one's.  # [vocabulary_size + 1]
        order: Tokens that have bytes, by their bytes.  # [tokens with bytes]
    """

    special: dict[str, int]
    text: bytes
    offsets: IntArray
    order: IntArray
    encoder: Callable[[str], list[int]]


def read_tables(folder: Path) -> TokenTables | None:
    """Return the tables of a model folder; None if the cache has no undamaged ones."""
    try:
        path = _file(folder)
    except (OSError, StorageError):
        return None
    tables = read_state(path, _parse, most_bytes=_MOST_BYTES)
    note_use(path, time.time())
    return tables


def write_tables(folder: Path, tables: TokenTables) -> None:
    """Keep the tables of a model folder, unless the library encodes its text.

    A disk that cannot hold them only costs time at the next start.
    """
    encoder = tables.encoder
    if not isinstance(encoder, PieceEncoder):
        return
    facts = json.dumps({"special": tables.special, "splitter": encoder.splitter}).encode()
    content = io.BytesIO()
    np.savez(
        content,
        facts=np.frombuffer(facts, np.uint8),
        text=np.frombuffer(tables.text, np.uint8),
        offsets=tables.offsets,
        order=tables.order,
        byte_tokens=encoder.byte_tokens,
        pairs=encoder.pairs,
        ranks=encoder.ranks,
    )
    try:
        write_state(_file(folder), content.getvalue())
    except (OSError, StorageError) as error:
        logger.warning("The tokenizer's tables cannot be kept: %s", error)


def _parse(data: bytes) -> TokenTables:
    """Return the tables of a file, in which no number leads out of an array: compiled code does not check that.

    Raises:
        StateFileError: One does.
    """
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
        facts, text = json.loads(arrays["facts"].tobytes()), arrays["text"].tobytes()
        offsets, order, byte_tokens = arrays["offsets"], arrays["order"], arrays["byte_tokens"]
        pairs, ranks = arrays["pairs"], arrays["ranks"]
    tokens = len(offsets) - 1
    is_sound = (
        (pairs.dtype, ranks.dtype, byte_tokens.dtype) == (np.int64, np.int32, np.int32)
        and (offsets.dtype.kind, order.dtype.kind) == ("i", "i")
        and (offsets.ndim, order.ndim, pairs.ndim, byte_tokens.shape) == (1, 1, 1, (256,))
        and ranks.shape == (2, len(pairs))
        and (offsets[0], offsets[-1]) == (0, len(text))
        and bool((np.diff(offsets) >= 0).all())
        and _are_within(order, 0, tokens)
        and _are_within(byte_tokens, -1, tokens)
        and _are_within(ranks[0], 0, len(pairs))
        and _are_within(ranks[1], 0, tokens)
        and all(type(token) is int and 0 <= token < tokens for token in facts["special"].values())
    )
    if not is_sound:
        raise StateFileError("its numbers fit no vocabulary")
    encoder = PieceEncoder(facts["splitter"], byte_tokens, pairs, np.ascontiguousarray(ranks))
    return TokenTables(facts["special"], text, offsets, order, encoder)


def _are_within(numbers: IntArray, lowest: int, end: int) -> bool:
    return not numbers.size or bool(numbers.min() >= lowest and numbers.max() < end)


def _file(folder: Path) -> Path:
    """Return the path of the tables, which depends on the files' paths, sizes and times.

    Raises:
        OSError: The folder has no tokenizer.
    """
    states = file_states(map(folder.joinpath, _FILES))
    facts = repr((FORMAT, tokenizers.__version__, np.dtype(np.int64).byteorder, states))
    return cache_dir() / "tokenizers" / f"{hashlib.sha256(facts.encode()).hexdigest()[:16]}.npz"
