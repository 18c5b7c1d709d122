"""Text to tokens by pieces: the tokenizers library splits a text, and arrays say how a piece's bytes merge."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer, pre_tokenizers

from completion.model.tokens.merging import HEAP_ENTRIES, REMOVED, merge
from drafting.arrays import IntArray

_MAX_PIECES, _MAX_KEPT_LENGTH = 10_000, 64  # pieces whose tokens are kept, about 2 MB, and their length
_UNKNOWN = -1  # token of a byte that the vocabulary lacks
_PLAIN_MODEL = {
    "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
    "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
}  # fmt: skip


class PieceEncoder:
    """Encodes text of a byte-level vocabulary without added tokens.

    Attributes:
        splitter: Description of how the library splits a text, as in tokenizer.json.
        byte_tokens: Token of each byte, −1 for none.  # [256]
        pairs: See `merging.merge`.  # [pairs]
        ranks: See `merging.merge`.  # [2, pairs]
    """

    def __init__(self, splitter: str, byte_tokens: IntArray, pairs: npt.NDArray[np.int64], ranks: IntArray) -> None:
        self.splitter, self.byte_tokens, self.pairs, self.ranks = splitter, byte_tokens, pairs, ranks
        self._split = splitter_of(splitter)
        self._known: dict[str, tuple[int, ...]] = {}
        self._byte_of = {character: byte for byte, character in enumerate(byte_characters())}

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> PieceEncoder | None:
        """Return the encoder of a plain tokenizer; None if it does more than split and merge, or has no byte level."""
        described: dict[str, Any] = json.loads(tokenizer.to_str())
        model = described["model"]
        splitter = described["pre_tokenizer"]
        plain_tokens = [token for token in described["added_tokens"] if not token["special"]]
        if (
            plain_tokens
            or described["normalizer"] is not None
            or {name: model.get(name) for name in _PLAIN_MODEL} != _PLAIN_MODEL
            or '"ByteLevel"' not in json.dumps(splitter)
        ):
            return None
        vocabulary = model["vocab"]
        merges = [entry.split(" ") if isinstance(entry, str) else entry for entry in model["merges"]]
        pairs = np.array([(vocabulary[left] << 32) | vocabulary[right] for left, right in merges], np.int64)
        merged = [vocabulary[left + right] for left, right in merges]
        ranks = np.array([range(len(merges)), merged], np.int32)
        order = np.argsort(pairs, kind="stable")
        if (np.diff(pairs[order]) == 0).any():
            return None
        bytes_ = np.array([vocabulary.get(character, _UNKNOWN) for character in byte_characters()], np.int32)
        return cls(json.dumps(splitter), bytes_, pairs[order], np.ascontiguousarray(ranks[:, order]))

    def __call__(self, text: str) -> list[int]:
        """Return the tokens of a text that has a UTF-8 encoding."""
        found: list[int] = []
        known = self._known
        for piece, _ in self._split.pre_tokenize_str(text):
            tokens = known.get(piece)
            found += self._encode(piece) if tokens is None else tokens
        return found

    def forget(self) -> None:
        """Forget the pieces of texts."""
        self._known = {}

    def _encode(self, piece: str) -> tuple[int, ...]:
        """Return the tokens of a piece, whose characters stand for bytes."""
        tokens = self.byte_tokens[[self._byte_of[character] for character in piece]]
        tokens = tokens[tokens != _UNKNOWN]
        if len(tokens) > 1:
            neighbours = np.empty((2, len(tokens)), np.int32)
            merge(tokens, neighbours, np.empty(HEAP_ENTRIES * len(tokens), np.int64), self.pairs, self.ranks)
            tokens = tokens[tokens != REMOVED]
        found = tuple(tokens.tolist())
        if len(piece) <= _MAX_KEPT_LENGTH:
            if len(self._known) >= _MAX_PIECES:
                self._known.clear()
            self._known[piece] = found
        return found


def splitter_of(description: str) -> pre_tokenizers.PreTokenizer:
    """Return the library's splitter of a description in JSON."""
    empty = {"version": "1.0", "added_tokens": [], "model": {"type": "BPE", "vocab": {}, "merges": []}}
    return Tokenizer.from_str(json.dumps(empty | {"pre_tokenizer": json.loads(description)})).pre_tokenizer


def byte_characters() -> list[str]:
    """Return GPT-2's alphabet: printable bytes stand for themselves, the others start at U+0100, in order."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(256, 512))
    return [chr(byte if byte in printable else next(others)) for byte in range(256)]
