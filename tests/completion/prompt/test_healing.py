"""Healing takes the run before the cursor off the prompt and forces it, byte for byte."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from completion.prompt.healing import MAX_RUN_BYTES, heal, missing_after


@pytest.mark.parametrize(
    ("prefix", "shown", "forced"),
    [
        ("x = foo.app", "x = foo", b".app"),
        ("return val", "return", b" val"),
        ("def f():\n    ", "def f():\n", b"    "),
        ("a ==", "a", b" =="),
        ('x = f("', "x = f", b'("'),
        ('case "', "case", b' "'),
        ('case "rect', "case", b' "rect'),
        ("    $va", "   ", b" $va"),
        ("\t\t&mu", "\t\t", b"&mu"),
        ("\t\tva", "\t", b"\tva"),
        ('["__na', "", b'["__na'),
        ("a.b().ma", "a.b", b"().ma"),
        ("line\n", "line\n", b""),
        ("", "", b""),
        ("naïve", "", "naïve".encode()),
        ("\ufeffimpo", "\ufeff", b"impo"),
        ("\ufeff", "\ufeff", b""),
        ("\ufeff#", "\ufeff", b"#"),
    ],
)
def test_the_run_before_the_cursor_is_forced(prefix, shown, forced):
    healed = heal(prefix)
    assert (healed.shown, healed.forced) == (shown, forced)


@given(st.one_of(st.text(max_size=200), st.text("𠀀龘é", min_size=20, max_size=200)))
def test_the_shown_part_and_the_forced_bytes_together_are_the_prefix(prefix):
    healed = heal(prefix)
    assert healed.shown + healed.forced.decode() == prefix
    assert len(healed.forced) <= MAX_RUN_BYTES


@given(st.text(alphabet="abc_", min_size=1, max_size=20), st.text(alphabet="abc_ (", max_size=4))
def test_typing_a_word_does_not_change_the_shown_part(word, before):
    shown = {heal(f"x = 1\n{before} {word[:length]}").shown for length in range(1, len(word) + 1)}
    assert len(shown) == 1


@given(st.binary(min_size=1, max_size=12), st.lists(st.integers(1, 5), min_size=1, max_size=12))
def test_forced_bytes_accept_exactly_their_own_bytes(forced, sizes):
    missing, offset = forced, 0
    for size in sizes:
        if not missing:
            break
        piece = forced[offset : offset + size] + (b"tail" if offset + size > len(forced) else b"")
        wrong = bytes([piece[0] ^ 1]) + piece[1:]
        assert missing_after(wrong, missing) is None
        missing = missing_after(piece, missing)
        offset += size
        assert missing == forced[offset:]


def test_a_special_token_never_passes_while_bytes_are_forced():
    assert missing_after(b"", b"x") is None
