"""Text to tokens and tokens to exact bytes; text of the user never becomes a control token."""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
from tokenizers import AddedToken, Tokenizer, normalizers, pre_tokenizers

from completion.errors import ModelDamagedError, UnsupportedModelError
from drafting.arrays import IntArray

_MARKER = re.compile(r"\u2581?<\S.*>")  # what control tokens look like, declared "special" or not
_BYTE_PIECE = re.compile(r"<0x([0-9A-F]{2})>")  # sentencepiece's byte fallback
_SPACE = "\u2581"  # stands for a blank in sentencepiece vocabularies
_CACHED_PREFIXES = 4096  # answers of `tokens_with_prefix` that are kept


class CodeTokenizer:
    """A byte-exact tokenizer: `decode(encode(text))` is the text's UTF-8, whatever it holds.

    Normalisation and the blank that some models put before a text are switched off for that. In sentencepiece
    vocabularies U+2581 is the blank itself, and comes back as one.

    Attributes:
        special: Control tokens by their text. Their bytes are empty, and `encode` never gives them.
        vocabulary_size: Rows of the model's embedding; some at the end may have no token.
        stop_ids: Tokens without bytes: a completion ends where the model gives one.
    """

    special: Mapping[str, int]
    vocabulary_size: int
    stop_ids: frozenset[int]

    def __init__(self, tokenizer: Tokenizer, vocabulary_size: int = 0) -> None:
        added = tokenizer.get_added_tokens_decoder()
        markers = {i: token.content for i, token in added.items() if token.special or _MARKER.fullmatch(token.content)}
        self.special = MappingProxyType({content: i for i, content in markers.items()})
        self._plain = _without_markers(tokenizer, added)
        self._refuse_spellable_markers()
        self.vocabulary_size = max(vocabulary_size, tokenizer.get_vocab_size())
        pieces = [tokenizer.id_to_token(i) for i in range(self.vocabulary_size)]
        self._bytes, self._offsets = _byte_table(pieces, added, markers, byte_level=_is_byte_level(tokenizer))
        self.stop_ids = frozenset(np.flatnonzero(np.diff(self._offsets) == 0).tolist())
        self._prefix_answers: dict[bytes, IntArray] = {}

    @classmethod
    def from_folder(cls, folder: Path) -> CodeTokenizer:
        """Read `tokenizer.json`, and the size of the embedding from `config.json`.

        Raises:
            ModelDamagedError: One of them cannot be read.
            UnsupportedModelError: The vocabulary could spell its own control tokens, or has no exact bytes.
        """
        try:
            config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
            tokenizer = _read_tokenizer(folder / "tokenizer.json")
        except (OSError, ValueError) as error:
            raise ModelDamagedError(f"The tokenizer in {folder} cannot be read ({error}).") from error
        return cls(tokenizer, int(config.get("vocab_size", 0)))

    def encode(self, text: str) -> list[int]:
        """Tokens of a text, none of them special.

        A lone surrogate, which has no UTF-8, counts as "?". Bytes that the vocabulary lacks are left out: some
        byte-level vocabularies have no token for rare control characters.
        """
        exact = text.encode("utf-8", "replace").decode("utf-8")
        return list(self._plain.encode(exact, add_special_tokens=False).ids)

    def token_bytes(self, token: int) -> bytes:
        """The exact bytes of a token, which may be a part of a character; b"" for a special one."""
        return self._bytes[self._offsets[token] : self._offsets[token + 1]]

    def decode(self, tokens: Iterable[int]) -> bytes:
        """The bytes that tokens stand for, one after the other."""
        return b"".join(map(self.token_bytes, tokens))

    def tokens_with_prefix(self, prefix: bytes) -> IntArray:
        """Tokens that agree with forced bytes: theirs start with `prefix`, or are a beginning of it.  # [count].

        Ids ascend; an empty prefix gives every token that has bytes. The answer is cached and read-only.
        """
        answer = self._prefix_answers.get(prefix)
        if answer is None:
            if len(self._prefix_answers) >= _CACHED_PREFIXES:
                self._prefix_answers.clear()
            answer = self._prefix_answers[prefix] = self._find_with_prefix(prefix)
        return answer

    def _find_with_prefix(self, prefix: bytes) -> IntArray:
        table, ids = self._sorted
        found = [ids[bisect_left(table, prefix) : _end_of_prefix(table, prefix)]]
        for length in range(1, len(prefix)):
            beginning = prefix[:length]
            found.append(ids[bisect_left(table, beginning) : bisect_right(table, beginning)])
        answer = np.sort(np.concatenate(found))
        answer.flags.writeable = False
        return answer

    @cached_property
    def _sorted(self) -> tuple[list[bytes], IntArray]:
        """Bytes of all tokens that have some, in order, and the tokens' ids.  # [count] twice."""
        table = [self._bytes[start:end] for start, end in pairwise(self._offsets.tolist())]
        ids = sorted((i for i, text in enumerate(table) if text), key=table.__getitem__)
        return [table[i] for i in ids], np.array(ids, dtype=np.int32)

    def _refuse_spellable_markers(self) -> None:
        """User text must not be able to become a control token, even through the vocabulary itself."""
        ids = set(self.special.values())
        for marker in self.special:
            if not ids.isdisjoint(self.encode(marker.replace(_SPACE, " "))):
                raise UnsupportedModelError(
                    f"The tokenizer turns the plain text {marker!r} into a control token, which source code must not "
                    "be able to do. Use another model."
                )


def _read_tokenizer(path: Path) -> Tokenizer:
    """Read a `tokenizer.json`.

    Raises:
        ValueError: It cannot be read.
    """
    try:
        return Tokenizer.from_file(str(path))
    except Exception as error:
        if type(error) is not Exception:  # this very class is what the tokenizers library raises, and nothing narrower
            raise
        raise ValueError(str(error)) from error


def _is_byte_level(tokenizer: Tokenizer) -> bool:
    """Whether each character of a token stands for one byte; otherwise tokens are text, with a byte fallback.

    Raises:
        UnsupportedModelError: It is neither.
    """
    if tokenizer.pre_tokenizer is not None and b'"ByteLevel"' in tokenizer.pre_tokenizer.__getstate__():
        return True
    if getattr(tokenizer.model, "byte_fallback", False):
        return False
    raise UnsupportedModelError("The tokenizer is neither byte-level nor has a byte fallback; others are not exact.")


def _without_markers(tokenizer: Tokenizer, added: Mapping[int, AddedToken]) -> Tokenizer:
    """The same vocabulary, with control tokens as plain text and nothing that changes the text's bytes."""
    plain = Tokenizer(tokenizer.model)
    for i, token in sorted(added.items()):
        if token.special or _MARKER.fullmatch(token.content):
            plain.add_special_tokens([AddedToken(token.content, special=True)])
        else:
            plain.add_tokens([token])
        if plain.token_to_id(token.content) != i:
            raise UnsupportedModelError(f"The added token {token.content!r} has no place of its own in the vocabulary.")
    plain.encode_special_tokens = True  # the library's name for: special tokens in a text are text
    plain.pre_tokenizer = _exact_splitter(tokenizer)
    if not _is_byte_level(tokenizer) and not _turns_blanks(plain):
        plain.normalizer = normalizers.Replace(" ", _SPACE)
    return plain


def _exact_splitter(tokenizer: Tokenizer) -> pre_tokenizers.PreTokenizer | None:
    """The tokenizer's way of splitting, without the blank that it may put in front."""
    if tokenizer.pre_tokenizer is None:
        return None
    state = tokenizer.pre_tokenizer.__getstate__().decode("utf-8")
    state = state.replace('"add_prefix_space":true', '"add_prefix_space":false')
    state = re.sub(r'"prepend_scheme":"\w+"', '"prepend_scheme":"never"', state)
    empty = {"version": "1.0", "added_tokens": [], "model": {"type": "BPE", "vocab": {}, "merges": []}}
    return Tokenizer.from_str(json.dumps(empty | {"pre_tokenizer": json.loads(state)})).pre_tokenizer


def _turns_blanks(tokenizer: Tokenizer) -> bool:
    """Whether the splitter already writes blanks as sentencepiece does."""
    return tokenizer.pre_tokenizer is not None and b'"Metaspace"' in tokenizer.pre_tokenizer.__getstate__()


def _byte_table(
    pieces: list[str | None], added: Mapping[int, AddedToken], markers: Mapping[int, str], *, byte_level: bool
) -> tuple[bytes, npt.NDArray[np.int64]]:
    """All tokens' bytes in one string, and where each begins.  # offsets: [vocabulary_size + 1]."""
    to_bytes = _byte_level_bytes if byte_level else _sentencepiece_bytes
    table = to_bytes(["" if piece is None or i in added else piece for i, piece in enumerate(pieces)])
    for i, token in added.items():
        if i not in markers:
            table[i] = token.content.encode("utf-8")
    offsets = np.zeros(len(table) + 1, dtype=np.int64)
    np.cumsum([len(entry) for entry in table], out=offsets[1:])
    return b"".join(table), offsets


def _byte_level_bytes(pieces: list[str]) -> list[bytes]:
    """GPT-2's alphabet, in which printable bytes are themselves and the others come after U+0100, in order."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = (byte for byte in range(256) if byte not in printable)
    alphabet = {byte: byte for byte in printable} | {256 + n: byte for n, byte in enumerate(others)}
    return [piece.translate(alphabet).encode("latin-1") for piece in pieces]


def _sentencepiece_bytes(pieces: list[str]) -> list[bytes]:
    return [
        bytes.fromhex(found[1]) if (found := _BYTE_PIECE.fullmatch(piece)) else piece.replace(_SPACE, " ").encode()
        for piece in pieces
    ]


def _end_of_prefix(table: list[bytes], prefix: bytes) -> int:
    """Index after the last entry that starts with `prefix`."""
    stem = prefix.rstrip(b"\xff")
    return bisect_left(table, stem[:-1] + bytes([stem[-1] + 1])) if stem else len(table)
