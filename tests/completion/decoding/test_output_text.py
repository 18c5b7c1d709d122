"""Streamed text consists of complete characters, only grows, and leaves out the forced bytes."""

from __future__ import annotations

import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from completion.decoding.output_text import OutputText


def split(data: bytes, sizes: list[int]) -> list[bytes]:
    pieces = []
    for size in sizes:
        pieces.append(data[:size])
        data = data[size:]
    return [piece for piece in [*pieces, data] if piece]


@given(st.text(max_size=40), st.lists(st.integers(1, 4), max_size=20))
def test_growing_text_is_never_retracted(text, sizes):
    data = text.encode("utf-8", "ignore")
    output = OutputText(0)
    seen = ""
    for piece in split(data, sizes):
        output.extend(piece, "model")
        growing = output.growing()
        assert growing.startswith(seen)
        assert data.decode().startswith(growing)
        seen = growing
    assert output.whole() == data.decode()


def test_a_grapheme_is_shown_once_its_last_part_is_there():
    output = OutputText(0)
    output.extend("a👩".encode(), "model")
    assert output.growing() == "a"
    output.extend("\u200d💻".encode(), "model")
    output.extend(b" ", "model")
    assert output.growing() == "a👩\u200d💻 "


def test_forced_bytes_are_left_out_and_each_piece_has_its_drafter():
    output = OutputText(3)
    output.extend(b"fo", "healing")
    output.extend(b"o_bar", "lookup")
    output.extend(b"(x)", "lookup")
    output.extend(b"\n", "model")
    assert output.whole() == "_bar(x)\n"
    assert output.pieces(7) == (("lookup", "_bar(x)"),)
    assert output.tokens_within(4) == 2
    assert output.size_bytes == 8


TEXT = st.text("a龘😀\u0301", max_size=20).map(str.encode)


@given(TEXT, st.one_of(TEXT, st.binary(max_size=20)), st.lists(st.integers(1, 4), max_size=20))
def test_pieces_are_the_text_and_split_no_character(forced, after, sizes):
    output = OutputText(len(forced))
    for number, part in enumerate(split(forced + after, sizes)):
        output.extend(part, f"drafter {number % 3}")
    for length in range(len(output.whole()) + 1):
        assert "".join(piece for _, piece in output.pieces(length)) == output.whole()[:length]


def test_a_character_of_two_tokens_is_a_piece_of_the_drafter_that_completed_it():
    output = OutputText(0)
    output.extend("é".encode() + "龘".encode()[:2], "lookup")
    output.extend("龘".encode()[2:] + b"a", "model")
    assert output.pieces(3) == (("lookup", "é"), ("model", "龘a"))


def test_graphemes_are_not_loaded_for_ascii_text():
    script = (
        "import sys\n"
        "from completion.engine import Engine\n"
        "from completion.decoding.output_text import OutputText\n"
        "text = OutputText(0)\n"
        "text.extend(b'return', 'model')\n"
        "print(text.growing(), 'regex' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "return False\n"
