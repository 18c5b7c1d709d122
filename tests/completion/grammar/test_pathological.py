"""Hostile inputs cost bounded time and memory, and end in an answer or in a named reason."""

import contextlib
import itertools

import pytest

from completion.errors import CancelledError, GrammarBoundError
from completion.grammar.constraint import GrammarConstraint, Off, OffReason
from completion.grammar.grammar import load_grammar
from completion.request import GrammarMode
from completion.syntax.parser_process import InProcess, ParserProcess

MEGABYTE = 1_000_000
MOST_WORK = 4
"""Bytes looked at and steps of the stacks for each byte of a text: the point is that nothing is quadratic."""


class Work:
    """Counts what an acceptor does."""

    def __init__(self, monkeypatch, acceptor):
        self.done = 0
        lexer, machine = type(acceptor._lexer), type(acceptor.machine)
        lex, step = lexer.lex, machine.step
        monkeypatch.setattr(lexer, "lex", lambda *given: self.count(lex(*given), given[2]))
        monkeypatch.setattr(machine, "step", lambda *given: self.count(step(*given)))

    def count(self, result, offset=None):
        self.done += 1 if offset is None else 1 + result.end - offset
        return result


def read(language, text):
    acceptor = load_grammar(language).acceptor
    return acceptor.read(acceptor.start(), text)


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("python", b"x = " + b"(" * 5_000),
        ("json", b"[" * 20_000),
        ("cpp", b"int x = a" + b"<b" * 1_000),
        ("javascript", b"x = " + b"`${" * 3_000),
        ("rust", b"/*" * 10_000),
        ("go", b"package m\n" + b"func(){" * 10),
        ("python", b"".join(b" " * i + b"if x:\n" for i in range(300))),
    ],
    ids=["parentheses", "arrays", "angle brackets", "templates", "comments", "functions", "indentation"],
)
def test_deep_nesting_is_read_with_bounded_work(language, text, monkeypatch):
    work = Work(monkeypatch, load_grammar(language).acceptor)
    with contextlib.suppress(GrammarBoundError):
        read(language, text)
    assert 0 < work.done < MOST_WORK * len(text)


@pytest.mark.parametrize("language", ["python", "javascript", "json"])
def test_a_long_line_is_read_with_linear_work(language, monkeypatch):
    work = Work(monkeypatch, load_grammar(language).acceptor)
    assert read(language, b"[" + b"1, " * (MEGABYTE // 60)) is not None
    quarter, work.done = work.done, 0
    assert read(language, b"[" + b"1, " * (MEGABYTE // 15)) is not None
    assert work.done <= 4 * quarter + 10


def test_a_request_reads_no_more_than_its_bound():
    off = GrammarConstraint.open("python", "x = [" + "1, " * (MEGABYTE // 3), "", GrammarMode.STRICT)
    assert isinstance(off, Off)
    assert off.reason is OffReason.TOO_LARGE


def test_a_lexeme_without_end_gives_up_by_name():
    with pytest.raises(GrammarBoundError, match="lexeme"):
        read("python", b"'" + b"a" * MEGABYTE)
    off = GrammarConstraint.open("python", "'''" + "a" * 90_000, "", GrammarMode.STRICT)
    assert isinstance(off, Off)
    assert off.reason is OffReason.BOUND


@pytest.mark.parametrize("language", ["python", "javascript", "c", "rust", "json"])
@pytest.mark.parametrize("text", [b"\0", b"a\0b", b"'\0'\n", b"\0" * 1000, b"\xff\xfe\0", b"\r\r\n\x0b\x0c"])
def test_nul_and_control_bytes_are_answered(language, text):
    result = read(language, text)
    assert result is None or result.heads


def test_the_constraint_lets_everything_pass_once_it_gave_up():
    opened = GrammarConstraint.open("python", "x = '''", "", GrammarMode.STRICT)
    long = opened.advance(opened.root, b"a" * 70_000)
    assert long is opened.root
    assert opened.off_reason is OffReason.BOUND
    assert opened.advance(long, b"]") is long
    assert opened.may_end(long)


def test_interned_stacks_are_forgotten_when_there_are_many(monkeypatch):
    monkeypatch.setattr("completion.grammar.lr.stacks.MAX_INTERNED_NODES", 50)
    acceptor = load_grammar("json").acceptor
    kept = acceptor.read(acceptor.start(), b'{"a": [[[[[[[')
    for depth in range(60):
        acceptor.trim()
        acceptor.read(acceptor.start(), b"[" * depth)
    assert acceptor.machine.size < 200
    assert acceptor.accepts_end(acceptor.read(kept, b"]]]]]]]}"))


def test_learned_steps_are_forgotten_when_there_are_many(monkeypatch):
    monkeypatch.setattr("completion.grammar.lr.step_shapes.MAX_SHAPES", 5)
    acceptor = load_grammar("go").acceptor
    kept = acceptor.read(acceptor.start(), b"package m\nfunc f() { x := []int{1")
    for text in (b"package a\nvar x = 1\n", b"package b\ntype T struct{}\n"):
        acceptor.trim()
        assert acceptor.read(acceptor.start(), text) is not None
    assert acceptor.accepts_end(acceptor.read(kept, b"} }\n"))


def test_too_many_ways_down_are_a_named_bound(monkeypatch):
    monkeypatch.setattr("completion.grammar.lr.stacks.MAX_PATHS", 1)
    acceptor = load_grammar("cpp").acceptor
    with pytest.raises(GrammarBoundError, match="stacks"):
        acceptor.read(acceptor.start(), b"int f() { a < b > (c) * d; a < b > (c) * d; (a)(b) * c; }\n" * 3)


@pytest.fixture
def parser():
    process = ParserProcess(cpu_limit_s=0.5)
    yield process
    process.close()


@pytest.mark.parametrize(("language", "text"), [("java", "A<" * 30_000), ("python", "/*\n" * 5_000)])
def test_a_document_that_cannot_be_parsed_has_no_grammar_by_name(language, text, parser):
    off = GrammarConstraint.open(language, text, "", GrammarMode.STRICT, "", parser)
    assert isinstance(off, Off)
    assert off.reason is OffReason.PARSE_LIMIT
    assert off.longest_passing_cut(b"anything ((") == len(b"anything ((")


def test_a_completion_that_cannot_be_parsed_is_not_rejected(parser):
    opened = GrammarConstraint.open("java", "class A { int a = ", ";\n}\n", GrammarMode.STRICT, "", parser)
    middle = b"A<" * 10_000
    assert opened.growing_cut(middle, 0) == len(middle)
    assert opened.longest_passing_cut(middle) == len(middle)
    assert opened.off_reason is OffReason.PARSE_LIMIT


class Looks(InProcess):
    """Counts the looks at the cancel token; cancels at one of them."""

    def __init__(self, last=None):
        self.counter, self.count, self.last = itertools.count(1), 0, last

    def raise_if_cancelled(self):
        self.count = next(self.counter)
        if self.count == self.last:
            raise CancelledError("Enough.")


@pytest.mark.parametrize("unit", ["(", "(\n", "f(1)\n"])
def test_a_long_prefix_is_read_in_pieces_between_looks_at_the_cancel_token(unit):
    text, looks = unit * (60_000 // len(unit)), Looks()
    GrammarConstraint.open("python", text, "", GrammarMode.STRICT, "", looks)
    assert looks.count >= len(text) // 1024


def test_a_cancelled_reading_goes_on_where_it_was():
    text, looks = "y = [" + "1, " * 20_000, Looks(last=40)
    with pytest.raises(CancelledError):
        GrammarConstraint.open("python", text, "", GrammarMode.STRICT, "", looks)
    again = Looks()
    opened = GrammarConstraint.open("python", text, "", GrammarMode.STRICT, "", again)
    assert isinstance(opened, GrammarConstraint)
    assert again.count <= len(text) // 1024 - 35
