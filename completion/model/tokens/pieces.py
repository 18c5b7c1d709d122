"""Text to tokens by pieces: the tokenizers library splits a text, and arrays say how a piece's bytes merge.

Token for token, a piece becomes what the library returns.
Source: "Neural Machine Translation of Rare Words with Subword Units", section 3.2.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer, pre_tokenizers

from drafting.arrays import IntArray
from drafting.compiled import compiled, compiled_within

LongArray = npt.NDArray[np.int64]

REMOVED = -1
"""Token that became a part of the one before it; also the neighbour of the first and the last token."""
HEAP_ENTRIES = 3
"""Maximum number of entries of the heap for each byte: one at first, two for each merge."""
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
        pairs: See `merge`.  # [pairs]
        ranks: See `merge`.  # [2, pairs]
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


@compiled
def merge(tokens: IntArray, neighbours: IntArray, heap: LongArray, pairs: LongArray, ranks: IntArray) -> None:
    """Merge neighbours, those with the lowest rank first, the leftmost among equals, until no pair is left.

    Args:
        tokens: Tokens of the piece's bytes; the result's tokens stay, with REMOVED between.  # [bytes]
        neighbours: Scratch.  # [2, bytes]
        heap: Scratch.  # [HEAP_ENTRIES · bytes]
        pairs: Pairs that can be merged, as left · 2³² + right, ascending.  # [pairs]
        ranks: Rank of each pair, and the token that it becomes.  # [2, pairs]
    """
    before, after = neighbours[0], neighbours[1]
    size = 0
    for i in range(len(tokens)):
        before[i], after[i] = i - 1, i + 1
    after[len(tokens) - 1] = REMOVED
    for i in range(len(tokens) - 1):
        size = _offer(tokens, after, i, heap, size, pairs, ranks)
    while size > 0:
        best = heap[0]
        size = _take_first(heap, size)
        left = best & 0xFFFFFFFF
        if tokens[left] == REMOVED or after[left] == REMOVED:
            continue
        right = after[left]
        found = _find(pairs, tokens[left], tokens[right])
        if found < 0 or ranks[0, found] != best >> 32:
            continue  # a neighbour was merged meanwhile
        tokens[left], tokens[right] = ranks[1, found], REMOVED
        after[left] = after[right]
        if after[left] != REMOVED:
            before[after[left]] = left
            size = _offer(tokens, after, left, heap, size, pairs, ranks)
        if before[left] != REMOVED:
            size = _offer(tokens, after, np.int64(before[left]), heap, size, pairs, ranks)  # type: ignore[arg-type]


@compiled_within
def _offer(
    tokens: IntArray, after: IntArray, left: int, heap: LongArray, size: int, pairs: LongArray, ranks: IntArray
) -> int:
    """Put a token and the next one on the heap if they can be merged; return the heap's size."""
    found = _find(pairs, tokens[left], tokens[after[left]])
    if found < 0:
        return size
    entry, at = (np.int64(ranks[0, found]) << 32) | left, size
    while at > 0 and heap[(at - 1) // 2] > entry:
        heap[at] = heap[(at - 1) // 2]
        at = (at - 1) // 2
    heap[at] = entry
    return size + 1


@compiled_within
def _take_first(heap: LongArray, size: int) -> int:
    """Remove the heap's first entry; return its size."""
    size -= 1
    entry, at = heap[size], 0
    while True:
        child = 2 * at + 1
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if child >= size or heap[child] >= entry:
            break
        heap[at] = heap[child]
        at = child
    heap[at] = entry
    return size


@compiled_within
def _find(pairs: LongArray, left: int, right: int) -> int:
    """Return the index of a pair, −1 if it cannot be merged."""
    wanted = (np.int64(left) << 32) | right
    low, high = 0, len(pairs)
    while low < high:
        middle = (low + high) // 2
        if pairs[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low if low < len(pairs) and pairs[low] == wanted else -1
