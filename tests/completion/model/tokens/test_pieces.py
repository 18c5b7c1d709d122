"""Arrays give the tokens of the tokenizers library, and what was kept of a tokenizer gives the same again."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from completion.model.tokenizer import CodeTokenizer, _without_markers
from completion.model.tokens.pieces import PieceEncoder
from completion.model.tokens.stored import read_tables

_SOURCES = sorted(Path(__file__).parents[4].joinpath("completion").rglob("*.py"))
_ANY = st.text(st.characters(exclude_categories=["Cs"]))
_WORDS = st.lists(st.sampled_from(["aaaa", "aab", "def ", "    ", "\n", "é", "🙂", "\x00", "self.self", "<x>"])).map(
    "".join
)


def _tokenizer(*, digits: bool) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    split = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.pre_tokenizer = (
        pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), split]) if digits else split
    )
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    texts = [path.read_text(encoding="utf-8") for path in _SOURCES[:40]] + ["a" * 64, "ab" * 40]
    tokenizer.train_from_iterator(
        texts, trainers.BpeTrainer(vocab_size=1500, initial_alphabet=alphabet, show_progress=False)
    )
    return tokenizer


@pytest.fixture(scope="module", params=[False, True])
def pair(request: pytest.FixtureRequest) -> tuple[PieceEncoder, Tokenizer]:
    """Return the encoder of arrays and the library's, of one vocabulary."""
    plain = _without_markers(tokenizer := _tokenizer(digits=request.param), tokenizer.get_added_tokens_decoder())
    encoder = PieceEncoder.of(plain)
    assert encoder is not None
    encoder("two words")  # compiles
    return encoder, plain


@given(st.one_of(_ANY, _WORDS))
def test_any_text_has_the_librarys_tokens(pair: tuple[PieceEncoder, Tokenizer], text: str) -> None:
    encoder, plain = pair
    assert encoder(text) == plain.encode(text, add_special_tokens=False).ids


def test_code_and_long_words_have_the_librarys_tokens(pair: tuple[PieceEncoder, Tokenizer]) -> None:
    encoder, plain = pair
    letters = random.Random(1).choices("abcdef", k=20_000)
    texts = [path.read_text(encoding="utf-8") for path in _SOURCES[40:60]] + ["a" * 30_000, "".join(letters)]
    for text in texts:
        assert encoder(text) == plain.encode(text, add_special_tokens=False).ids


def test_bytes_that_the_vocabulary_lacks_are_dropped() -> None:
    tokenizer = Tokenizer(models.BPE({"a": 0, "b": 1, "ab": 2}, [("a", "b")]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    encoder = PieceEncoder.of(tokenizer)

    assert encoder is not None
    for text in ("ab", "axb", "xx", "aab b"):
        assert encoder(text) == tokenizer.encode(text).ids


def test_vocabularies_that_do_more_than_merge_are_left_to_the_library() -> None:
    plain = _tokenizer(digits=False)
    with_tokens = Tokenizer.from_str(plain.to_str())
    with_tokens.add_tokens(["=>"])

    assert PieceEncoder.of(with_tokens) is None
    assert PieceEncoder.of(Tokenizer(models.BPE(byte_fallback=True))) is None


def test_what_was_kept_is_the_same_tokenizer(tiny_qwen2: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAFTLINE_CACHE_DIR", str(tmp_path))
    assert read_tables(tiny_qwen2) is None
    first = CodeTokenizer.from_folder(tiny_qwen2)
    kept = read_tables(tiny_qwen2)
    assert kept is not None
    again = CodeTokenizer(kept)

    text = _SOURCES[0].read_text(encoding="utf-8")
    assert again.encode(text) == first.encode(text)
    assert (again.special, again.stop_ids, again.digest) == (first.special, first.stop_ids, first.digest)
    for prefix in (b"", b" ", b"de", b"\xff", b"\xc3"):
        assert again.tokens_with_prefix(prefix).tolist() == first.tokens_with_prefix(prefix).tolist()


def test_tables_that_nobody_has_used_for_a_month_are_deleted(tiny_qwen2: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("DRAFTLINE_CACHE_DIR", str(tmp_path))
    CodeTokenizer.from_folder(tiny_qwen2)
    (used,) = tmp_path.rglob("*.npz")
    for path in (used, used.with_name("old.npz")):
        path.touch()
        os.utime(path, (0, 0))
    CodeTokenizer.from_folder(tiny_qwen2)
    assert list(tmp_path.rglob("*.npz")) == [used]
    assert used.stat().st_mtime > 0


@pytest.mark.parametrize(
    "change", [lambda content: content[:-200], lambda content: content[:1000] + b"?" + content[1001:]]
)
def test_damaged_tables_are_read_again(tiny_qwen2: Path, tmp_path: Path, monkeypatch, change) -> None:
    monkeypatch.setenv("DRAFTLINE_CACHE_DIR", str(tmp_path))
    expected = CodeTokenizer.from_folder(tiny_qwen2).encode("def area(width):")
    (path,) = tmp_path.rglob("*.npz")
    path.write_bytes(change(path.read_bytes()))

    assert read_tables(tiny_qwen2) is None
    assert CodeTokenizer.from_folder(tiny_qwen2).encode("def area(width):") == expected
    assert read_tables(tiny_qwen2) is not None
