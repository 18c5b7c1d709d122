"""Valid texts are accepted in any pieces, broken texts are rejected, and snapshots never change."""

import random

import pytest
from tree_sitter import Parser

from completion.syntax.languages import tree_sitter_language
from completion.syntax.table import row_of
from tests.completion.grammar.acceptors import acceptor_of
from tests.completion.grammar.samples import SAMPLES


def advance_in_pieces(acceptor, text, seed):
    rng = random.Random(seed)
    snapshot, position = acceptor.start(), 0
    while position < len(text):
        piece = text[position : position + rng.randint(1, 9)]
        after = acceptor.advance(snapshot, piece)
        assert after is not None, (text[:position][-60:], piece)
        snapshot, position = after, position + len(piece)
    return snapshot


@pytest.mark.parametrize("language", sorted(SAMPLES))
def test_tree_sitter_accepts_the_samples(language):
    row = row_of(language)
    tree = Parser(tree_sitter_language(row.package, row.entry)).parse(SAMPLES[language].encode())
    assert not tree.root_node.has_error, str(tree.root_node)


@pytest.mark.parametrize("language", sorted(SAMPLES))
@pytest.mark.parametrize("seed", range(2))
def test_a_valid_text_is_accepted_in_any_pieces(any_lexer, language, seed):
    acceptor = any_lexer(language)
    snapshot = advance_in_pieces(acceptor, SAMPLES[language].encode(), seed)
    assert acceptor.accepts_end(snapshot)


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("python", "x = (1]\n"),
        ("python", "def f(:\n"),
        ("python", "for x y in z:\n"),
        ("javascript", "let = = 3;\n"),
        ("javascript", "foo(a b)\n"),
        ("typescript", "type A = { a number\n"),
        ("go", "package main\nfunc f( { }\n"),
        ("rust", "fn f() -> { let x y = 1; }\n"),
        ("java", "class A { int f( { } }\n"),
        ("c", "int f(void { return; }\n"),
        ("cpp", "class { public int x; };\n"),
        ("json", '{"a" 1}\n'),
    ],
)
def test_a_broken_text_is_rejected(any_lexer, language, text):
    acceptor = any_lexer(language)
    assert acceptor.advance(acceptor.start(), text.encode()) is None


def test_the_beginning_of_a_word_that_cannot_follow_is_rejected():
    acceptor = acceptor_of("python")
    after_name = acceptor.advance(acceptor.start(), b"if x")
    assert acceptor.advance(after_name, b" i") is not None  # in, is
    assert acceptor.advance(after_name, b" foo") is None


def test_advance_does_not_change_its_snapshot_and_caches_the_result():
    acceptor = acceptor_of("python")
    snapshot = acceptor.advance(acceptor.start(), b"x = (1, ")
    before = (snapshot.heads, snapshot.pending, snapshot.column)
    one = acceptor.advance(snapshot, b"y)\n")
    assert acceptor.advance(snapshot, b"y]\n") is None
    assert (snapshot.heads, snapshot.pending, snapshot.column) == before
    assert acceptor.advance(snapshot, b"y)\n") is one


def test_equal_texts_reach_the_same_shared_stacks():
    acceptor = acceptor_of("javascript")
    one = acceptor.advance(acceptor.advance(acceptor.start(), b"f(a); g("), b"b);")
    other = acceptor.advance(acceptor.start(), b"f(a); g(b);")
    assert [head.stacks for head in one.heads] == [head.stacks for head in other.heads]


def test_a_piece_may_end_inside_a_character():
    acceptor = acceptor_of("python")
    text = "naïve = '€𝄞'\n".encode()
    snapshot = acceptor.start()
    for byte in text:
        snapshot = acceptor.advance(snapshot, bytes([byte]))
        assert snapshot is not None
    assert acceptor.accepts_end(snapshot)


@pytest.mark.parametrize(
    "text", [b"x = \xff\xfe 1\n", b"x = '\xff", b"# \xc3(", b"# \x80", b"# \xc0\xaf", b"# \xed\xa0\x80"]
)
def test_bytes_that_are_not_utf8_are_rejected_also_in_strings_and_comments(text):
    acceptor = acceptor_of("python")
    snapshot = acceptor.start()
    for byte in text:
        snapshot = snapshot and acceptor.advance(snapshot, bytes([byte]))
    assert (snapshot, acceptor.advance(acceptor.start(), text)) == (None, None)


def test_a_text_that_ends_inside_an_interpolated_string_does_not_affect_the_next_text(any_lexer):
    acceptor = any_lexer("python")
    assert acceptor.advance(acceptor.start(), b"x = f'{a") is not None
    snapshot = acceptor.advance(acceptor.start(), b"try:\n    import a\nexcept E:\n    pass\n")
    assert snapshot is not None
    assert acceptor.accepts_end(snapshot)
