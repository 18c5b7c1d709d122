"""The arrays of a model folder's tokenizer in the user's cache, so that only its first start reads the vocabulary."""

from __future__ import annotations

import hashlib
import json
import logging
import tempfile
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tokenizers

from completion.errors import StorageError
from completion.model.store.disk import storage_errors
from completion.model.tokens.pieces import PieceEncoder
from completion.paths import cache_dir
from drafting.arrays import IntArray

logger = logging.getLogger(__name__)

FORMAT = 1
"""Version of the file; a change reads all vocabularies again."""
_FILES = ("tokenizer.json", "config.json")


@dataclass(frozen=True, slots=True)
class TokenTables:
    """What a tokenizer knows.

    Attributes:
        special: Control tokens by their text.
        text: Bytes of all tokens, one after the other.
        offsets: Where each token's bytes begin, and the end of the last one's.  # [vocabulary_size + 1]
        order: Tokens that have bytes, by their bytes.  # [tokens with bytes]
        encoder: Encodes text.
    """

    special: dict[str, int]
    text: bytes
    offsets: IntArray
    order: IntArray
    encoder: Callable[[str], list[int]]


def read_tables(folder: Path) -> TokenTables | None:
    """Return the tables of a model folder; None if the cache has no undamaged ones."""
    try:
        with np.load(_file(folder), allow_pickle=False) as arrays:
            facts = json.loads(arrays["facts"].tobytes())
            encoder = PieceEncoder(facts["splitter"], arrays["byte_tokens"], arrays["pairs"], arrays["ranks"])
            text = arrays["text"].tobytes()
            return TokenTables(facts["special"], text, arrays["offsets"], arrays["order"], encoder)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, StorageError):
        return None


def write_tables(folder: Path, tables: TokenTables) -> None:
    """Keep the tables of a model folder, unless the library encodes its text.

    A disk that cannot hold them only costs time at the next start.
    """
    encoder = tables.encoder
    if not isinstance(encoder, PieceEncoder):
        return
    facts = json.dumps({"special": tables.special, "splitter": encoder.splitter}).encode()
    try:
        target = _file(folder)
        with storage_errors(target.parent):
            target.parent.mkdir(exist_ok=True, mode=0o700)
            with tempfile.NamedTemporaryFile(dir=target.parent, suffix=".partial", delete=False) as file:
                np.savez(
                    file,
                    facts=np.frombuffer(facts, np.uint8),
                    text=np.frombuffer(tables.text, np.uint8),
                    offsets=tables.offsets,
                    order=tables.order,
                    byte_tokens=encoder.byte_tokens,
                    pairs=encoder.pairs,
                    ranks=encoder.ranks,
                )
            Path(file.name).replace(target)
    except (OSError, StorageError) as error:
        logger.warning("The tokenizer's tables cannot be kept: %s", error)
        with suppress(OSError, NameError):
            Path(file.name).unlink(missing_ok=True)


def _file(folder: Path) -> Path:
    """Return the path of the tables, which depends on the files' paths, sizes and times.

    Raises:
        OSError: The folder has no tokenizer.
    """
    states = [
        (str(path.resolve()), (stat := path.stat()).st_size, stat.st_mtime_ns) for path in map(folder.joinpath, _FILES)
    ]
    facts = repr((FORMAT, tokenizers.__version__, np.dtype(np.int64).byteorder, states))
    return cache_dir() / "tokenizers" / f"{hashlib.sha256(facts.encode()).hexdigest()[:16]}.npz"
