"""Text to tokens and tokens to exact bytes. Text never becomes a control token."""

from __future__ import annotations

import hashlib
import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType

import numpy as np
from tokenizers import AddedToken, Tokenizer, normalizers, pre_tokenizers

from completion.errors import ModelDamagedError, UnsupportedModelError
from completion.model.architecture import check_size
from completion.model.tokens.pieces import PieceEncoder, byte_characters, splitter_of
from completion.model.tokens.stored import TokenTables, read_tables, write_tables
from drafting.arrays import IntArray

_MARKER = re.compile(r"\u2581?<\S.*>")  # form of control tokens, declared "special" or not
_BYTE_PIECE = re.compile(r"<0x([0-9A-F]{2})>")  # sentencepiece's byte fallback
_SPACE = "\u2581"  # the space in sentencepiece vocabularies
_MAX_CACHED_PREFIXES = 4096  # results of `tokens_with_prefix`


class CodeTokenizer:
    """Byte-exact tokenizer: `decode(encode(text))` is the text's UTF-8.

    Normalisation is off, and so is the space that some models put before a text. In sentencepiece vocabularies U+2581
    means a space, and decodes to one.

    Attributes:
        tables: What it knows.
        special: Control tokens by their text. They have no bytes, and `encode` never returns them.
        vocabulary_size: Rows of the model's embedding; the last ones may have no token.
        stop_ids: Tokens without bytes; a completion ends at the first of them.
    """

    special: Mapping[str, int]
    vocabulary_size: int
    stop_ids: frozenset[int]

    def __init__(self, source: Tokenizer | TokenTables, vocabulary_size: int = 0) -> None:
        """Take the library's tokenizer, or what was kept of one.

        Raises:
            UnsupportedModelError: Plain text could become a control token, or tokens have no exact bytes.
        """
        self.tables = source if isinstance(source, TokenTables) else _tables_of(source, vocabulary_size)
        self._text, self._offsets, self._order = self.tables.text, self.tables.offsets, self.tables.order
        self.special = MappingProxyType(self.tables.special)
        self.vocabulary_size = len(self._offsets) - 1
        self.stop_ids = frozenset(np.flatnonzero(np.diff(self._offsets) == 0).tolist())
        self._prefix_results: dict[bytes, IntArray] = {}
        if self.tables is not source:
            self._refuse_spellable_markers()

    @classmethod
    def from_folder(cls, folder: Path) -> CodeTokenizer:
        """Read `tokenizer.json`, and the size of the embedding from `config.json`, or what was kept of them.

        Raises:
            ModelDamagedError: One of the files cannot be read.
            UnsupportedModelError: Plain text could become a control token, or tokens have no exact bytes.
        """
        kept = read_tables(folder)
        if kept is not None:
            return cls(kept)
        try:
            config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
            tokenizer = _read_tokenizer(folder / "tokenizer.json")
            found = cls(tokenizer, int(config.get("vocab_size", 0)))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            raise ModelDamagedError(
                f"The tokenizer in {folder} cannot be read ({error}). Convert or download the model again."
            ) from error
        write_tables(folder, found.tables)
        return found

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text, none of them special.

        A lone surrogate, which has no UTF-8, counts as "?". Bytes that the vocabulary lacks are dropped: some
        byte-level vocabularies have no token for rare control characters.
        """
        exact = text.encode("utf-8", "replace").decode("utf-8")
        return self.tables.encoder(exact)

    def forget_texts(self) -> None:
        """Free what was kept of encoded texts, so that it need not be computed again."""
        self._prefix_results = {}
        if isinstance(self.tables.encoder, PieceEncoder):
            self.tables.encoder.forget()

    def token_bytes(self, token: int) -> bytes:
        """Return the exact bytes of a token, which may be a part of a character; b"" for a special one."""
        return self._text[self._offsets[token] : self._offsets[token + 1]]

    @cached_property
    def digest(self) -> str:
        """Digest of the vocabulary: tokenizers that give the same tokens the same bytes have the same."""
        return hashlib.blake2b(self._text + self._offsets.astype(np.int64).tobytes(), digest_size=16).hexdigest()

    def decode(self, tokens: Iterable[int]) -> bytes:
        """Return the bytes of the tokens, joined."""
        return b"".join(map(self.token_bytes, tokens))

    def tokens_with_prefix(self, prefix: bytes) -> IntArray:
        """Return the tokens that agree with forced bytes: theirs start with `prefix` or are a beginning of it.

        Ids ascend. An empty prefix returns every token that has bytes. The result is cached and read-only.  # [count]
        """
        result = self._prefix_results.get(prefix)
        if result is None:
            if len(self._prefix_results) >= _MAX_CACHED_PREFIXES:
                self._prefix_results.clear()
            result = self._prefix_results[prefix] = self._find_with_prefix(prefix)
        return result

    def tokens_with_byte(self, byte: bytes) -> list[int]:
        """Return the tokens that contain a byte. Ids ascend."""
        places = np.flatnonzero(np.frombuffer(self._text, np.uint8) == ord(byte))
        return sorted(set((np.searchsorted(self._offsets, places, side="right") - 1).tolist()))

    def _find_with_prefix(self, prefix: bytes) -> IntArray:
        found = [self._order[self._first_from(prefix) : self._first_after(prefix)]]
        for length in range(1, len(prefix)):
            beginning = prefix[:length]
            found.append(
                self._order[self._first_from(beginning) : bisect_right(self._order, beginning, key=self.token_bytes)]
            )
        result = np.sort(np.concatenate(found))
        result.flags.writeable = False
        return result

    def _first_from(self, text: bytes) -> int:
        """Return the index in `_order` of the first token whose bytes are not before `text`."""
        return bisect_left(self._order, text, key=self.token_bytes)

    def _first_after(self, prefix: bytes) -> int:
        """Return the index in `_order` after the last token that starts with `prefix`."""
        stem = prefix.rstrip(b"\xff")
        return self._first_from(stem[:-1] + bytes([stem[-1] + 1])) if stem else len(self._order)

    def _refuse_spellable_markers(self) -> None:
        """Check that no plain text becomes a control token, even through the vocabulary itself."""
        ids = set(self.special.values())
        for marker in self.special:
            if not ids.isdisjoint(self.encode(marker.replace(_SPACE, " "))):
                raise UnsupportedModelError(
                    f"The tokenizer turns the plain text {marker!r} into a control token, which source code must not "
                    "be able to do. Use another model."
                )


def _tables_of(tokenizer: Tokenizer, vocabulary_size: int) -> TokenTables:
    added = tokenizer.get_added_tokens_decoder()
    markers = {i: token.content for i, token in added.items() if token.special or _MARKER.fullmatch(token.content)}
    plain = _without_markers(tokenizer, added)
    vocabulary = tokenizer.get_vocab()
    vocabulary_size = max(vocabulary_size, 1 + max(vocabulary.values(), default=0))
    check_size("The number of tokens", vocabulary_size)
    pieces: list[str | None] = [None] * vocabulary_size
    for piece, i in vocabulary.items():
        pieces[i] = piece
    text, offsets = _byte_table(pieces, added, markers, byte_level=_is_byte_level(tokenizer))
    special = {content: i for i, content in markers.items()}

    def by_library(text: str) -> list[int]:
        return list(plain.encode(text, add_special_tokens=False).ids)

    encoder = PieceEncoder.of(plain) or by_library
    return TokenTables(special, text, offsets, _ordered(text, offsets), encoder)


def _ordered(text: bytes, offsets: IntArray) -> IntArray:
    """Return the tokens that have bytes, by their bytes.  # [count]."""
    table = [text[start:end] for start, end in pairwise(offsets.tolist())]
    return np.array(sorted((i for i, each in enumerate(table) if each), key=table.__getitem__), dtype=np.int32)


def _read_tokenizer(path: Path) -> Tokenizer:
    """Read a `tokenizer.json`.

    Raises:
        ValueError: The file cannot be read.
    """
    try:
        return Tokenizer.from_str(path.read_text(encoding="utf-8"))  # a path may be no UTF-8
    except Exception as error:
        if type(error) is not Exception:  # the tokenizers library raises this class itself
            raise
        raise ValueError(str(error)) from error


def _is_byte_level(tokenizer: Tokenizer) -> bool:
    """Return whether each character of a token stands for one byte; otherwise tokens are text with a byte fallback.

    Raises:
        UnsupportedModelError: The tokenizer is of neither kind.
    """
    if tokenizer.pre_tokenizer is not None and b'"ByteLevel"' in tokenizer.pre_tokenizer.__getstate__():
        return True
    if getattr(tokenizer.model, "byte_fallback", False):
        return False
    raise UnsupportedModelError(
        "The tokenizer is neither byte-level nor has a byte fallback, so it is not exact. Use another model."
    )


def _without_markers(tokenizer: Tokenizer, added: Mapping[int, AddedToken]) -> Tokenizer:
    """Return a tokenizer of the same vocabulary that treats control tokens as text and keeps the text's bytes."""
    plain = Tokenizer(tokenizer.model)
    for i, token in sorted(added.items()):
        if token.special or _MARKER.fullmatch(token.content):
            plain.add_special_tokens([AddedToken(token.content, special=True)])
        else:
            plain.add_tokens([token])
        if plain.token_to_id(token.content) != i:
            raise UnsupportedModelError(
                f"The added token {token.content!r} has no id of its own in the vocabulary. Use another model."
            )
    plain.encode_special_tokens = True  # the library's option for reading special tokens in a text as text
    plain.pre_tokenizer = _exact_splitter(tokenizer)
    if not _is_byte_level(tokenizer) and not _replaces_spaces(plain):
        plain.normalizer = normalizers.Replace(" ", _SPACE)
    return plain


def _exact_splitter(tokenizer: Tokenizer) -> pre_tokenizers.PreTokenizer | None:
    """Return the tokenizer's splitter without the space that it may put before a text."""
    if tokenizer.pre_tokenizer is None:
        return None
    state = tokenizer.pre_tokenizer.__getstate__().decode("utf-8")
    state = state.replace('"add_prefix_space":true', '"add_prefix_space":false')
    return splitter_of(re.sub(r'"prepend_scheme":"\w+"', '"prepend_scheme":"never"', state))


def _replaces_spaces(tokenizer: Tokenizer) -> bool:
    """Return whether the splitter already replaces spaces by sentencepiece's U+2581."""
    return tokenizer.pre_tokenizer is not None and b'"Metaspace"' in tokenizer.pre_tokenizer.__getstate__()


def _byte_table(
    pieces: list[str | None], added: Mapping[int, AddedToken], markers: Mapping[int, str], *, byte_level: bool
) -> tuple[bytes, IntArray]:
    """Return all tokens' bytes in one string, and where each token's bytes begin.  # offsets: [vocabulary_size + 1]."""
    to_bytes = _byte_level_bytes if byte_level else _sentencepiece_bytes
    table = to_bytes(["" if piece is None or i in added else piece for i, piece in enumerate(pieces)])
    for i, token in added.items():
        if i not in markers:
            table[i] = token.content.encode("utf-8")
    offsets = np.zeros(len(table) + 1, dtype=np.int32)
    np.cumsum([len(entry) for entry in table], out=offsets[1:])
    return b"".join(table), offsets


def _byte_level_bytes(pieces: list[str]) -> list[bytes]:
    """Decode GPT-2's alphabet."""
    alphabet = {ord(character): byte for byte, character in enumerate(byte_characters())}
    return [piece.translate(alphabet).encode("latin-1") for piece in pieces]


def _sentencepiece_bytes(pieces: list[str]) -> list[bytes]:
    return [
        bytes.fromhex(found[1]) if (found := _BYTE_PIECE.fullmatch(piece)) else piece.replace(_SPACE, " ").encode()
        for piece in pieces
    ]
