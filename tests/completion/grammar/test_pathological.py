"""Hostile inputs take bounded time and memory, and give a result or a reason."""

import contextlib
import itertools

import pytest

from completion.errors import CancelledError, GrammarBoundError
from completion.grammar.constraint import GrammarConstraint, OffReason
from completion.request import GrammarMode
from completion.syntax.parsing import Parsing
from completion.syntax.parsing.process import ParserProcess
from tests.completion.grammar.acceptors import GRAMMARS

MEGABYTE = 1_000_000
MAX_WORK = 4
"""Maximum number of bytes read and steps taken for each byte of a text: the work must not be quadratic."""


class Work:
    """Counts the bytes that an acceptor reads and its steps."""

    def __init__(self, monkeypatch, acceptor):
        self.done = 0
        lexer, machine = type(acceptor.lexer), type(acceptor.machine)
        lex, step = lexer.lex, machine.step
        monkeypatch.setattr(lexer, "lex", lambda *given: self.count(lex(*given), given[2]))
        monkeypatch.setattr(machine, "step", lambda *given: self.count(step(*given)))

    def count(self, result, offset=None):
        self.done += 1 if offset is None else 1 + result.end - offset
        return result


def read(language, text):
    acceptor = GRAMMARS.load(language).acceptor
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
def test_deep_nesting_takes_bounded_work(language, text, monkeypatch):
    work = Work(monkeypatch, GRAMMARS.load(language).acceptor)
    with contextlib.suppress(GrammarBoundError):
        read(language, text)
    assert 0 < work.done < MAX_WORK * len(text)


@pytest.mark.parametrize("language", ["python", "javascript", "json"])
def test_a_long_line_takes_linear_work(language, monkeypatch):
    work = Work(monkeypatch, GRAMMARS.load(language).acceptor)
    assert read(language, b"[" + b"1, " * (MEGABYTE // 60)) is not None
    quarter, work.done = work.done, 0
    assert read(language, b"[" + b"1, " * (MEGABYTE // 15)) is not None
    assert work.done <= 4 * quarter + 10


def test_a_prefix_longer_than_the_maximum_is_refused():
    off = GrammarConstraint(GRAMMARS, "python", "x = [" + "1, " * (MEGABYTE // 3), "", GrammarMode.STRICT)
    assert off.root is None
    assert off.off_reason is OffReason.TOO_LARGE


def test_an_endless_lexeme_exceeds_a_bound():
    with pytest.raises(GrammarBoundError, match="lexeme"):
        read("python", b"'" + b"a" * MEGABYTE)
    off = GrammarConstraint(GRAMMARS, "python", "'''" + "a" * 90_000, "", GrammarMode.STRICT)
    assert off.root is None
    assert off.off_reason is OffReason.BOUND


@pytest.mark.parametrize("language", ["python", "javascript", "c", "rust", "json"])
@pytest.mark.parametrize("text", [b"\0", b"a\0b", b"'\0'\n", b"\0" * 1000, b"\xff\xfe\0", b"\r\r\n\x0b\x0c"])
def test_nul_and_control_bytes_raise_no_error(language, text):
    result = read(language, text)
    assert result is None or result.heads


def test_every_token_passes_after_the_constraint_exceeded_a_bound():
    opened = GrammarConstraint(GRAMMARS, "python", "x = '''", "", GrammarMode.STRICT)
    long = opened.advance(opened.root, b"a" * 70_000)
    assert long is opened.root
    assert opened.off_reason is OffReason.BOUND
    assert opened.advance(long, b"]") is long


def test_trim_clears_interned_stacks_above_the_maximum(monkeypatch):
    monkeypatch.setattr("completion.grammar.lr.stacks.MAX_INTERNED_NODES", 50)
    acceptor = GRAMMARS.load("json").acceptor
    kept = acceptor.read(acceptor.start(), b'{"a": [[[[[[[')
    for depth in range(60):
        acceptor.trim()
        acceptor.read(acceptor.start(), b"[" * depth)
    assert acceptor.machine.size_bytes < 100_000
    assert acceptor.accepts_end(acceptor.read(kept, b"]]]]]]]}"))


def test_interned_stacks_are_trimmed_while_a_text_is_read(monkeypatch):
    monkeypatch.setattr("completion.grammar.lr.stacks.MAX_INTERNED_NODES", 50)
    grammar = GRAMMARS.load("json")
    assert grammar.prefixes.read(b"[1,    \n" * 300, lambda: ()) is not None
    assert grammar.acceptor.machine.size_bytes < 150_000


@pytest.mark.parametrize(("language", "opener"), [("python", "("), ("json", "["), ("javascript", "a({b: [")])
def test_deep_nesting_exceeds_a_bound(language, opener):
    opened = GrammarConstraint(GRAMMARS, language, opener * 10_000, "", GrammarMode.STRICT)
    assert opened.off_reason is OffReason.BOUND


def test_too_many_reductions_of_the_stacks_exceed_a_bound(monkeypatch):
    monkeypatch.setattr("completion.grammar.lr.stacks.MAX_REDUCTIONS", 5)
    acceptor = GRAMMARS.load("cpp").acceptor
    with pytest.raises(GrammarBoundError, match="stacks"):
        acceptor.read(acceptor.start(), b"int f() { a < b > (c) * d; a < b > (c) * d; (a)(b) * c; }\n" * 3)


@pytest.fixture
def parser():
    process = ParserProcess(cpu_limit_s=0.5)
    yield process
    process.close()


@pytest.mark.parametrize(("language", "text"), [("java", "A<" * 30_000), ("python", "/*\n" * 5_000)])
def test_a_document_that_exceeds_a_parse_limit_has_no_acceptor(language, text, parser):
    off = GrammarConstraint(GRAMMARS, language, text, "", GrammarMode.STRICT, "", parser)
    assert off.root is None
    assert off.off_reason is OffReason.PARSE_LIMIT
    assert off.longest_passing_cut(b"anything ((") == len(b"anything ((")


def test_a_completion_that_exceeds_a_parse_limit_is_not_rejected(parser):
    opened = GrammarConstraint(GRAMMARS, "java", "class A { int a = ", ";\n}\n", GrammarMode.STRICT, "", parser)
    middle = b"A<" * 10_000
    assert opened.growing_cut(middle, 0) == len(middle)
    assert opened.longest_passing_cut(middle) == len(middle)
    assert opened.off_reason is OffReason.PARSE_LIMIT


class CancelChecks(Parsing):
    """Counts the checks of the cancel token and cancels at the check number `last`."""

    def __init__(self, last=None):
        self.counter, self.count, self.last = itertools.count(1), 0, last

    def raise_if_cancelled(self):
        self.count = next(self.counter)
        if self.count == self.last:
            raise CancelledError("The test cancels this request.")


@pytest.mark.parametrize("unit", ["f(1); ", "\n", "f(1)\n"])
def test_a_long_prefix_is_read_in_pieces_between_checks_of_the_cancel_token(unit):
    text, checks = unit * (60_000 // len(unit)), CancelChecks()
    GrammarConstraint(GRAMMARS, "python", text, "", GrammarMode.STRICT, "", checks)
    assert checks.count >= len(text) // 1024


def test_reading_a_prefix_resumes_after_a_cancelled_request():
    text, checks = "y = [" + "1, " * 20_000, CancelChecks(last=40)
    with pytest.raises(CancelledError):
        GrammarConstraint(GRAMMARS, "python", text, "", GrammarMode.STRICT, "", checks)
    again = CancelChecks()
    opened = GrammarConstraint(GRAMMARS, "python", text, "", GrammarMode.STRICT, "", again)
    assert opened.root is not None
    assert again.count <= len(text) // 1024 - 35
