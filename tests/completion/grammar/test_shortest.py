"""Shortest insertions: what is missing between a text and what follows it, found without data about a language."""

import heapq
import itertools
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from completion.errors import GrammarBoundError
from completion.grammar.joint import Fit, Joint
from completion.grammar.shortest import Shortest
from completion.syntax.trees import error_count, parse
from tests.completion.grammar.acceptors import GRAMMARS

PROGRAMS = {path.stem: path.read_text() for path in sorted((Path(__file__).parent / "programs_written").glob("*.txt"))}


def snapshot_of(language, text):
    acceptor = GRAMMARS.load(language).acceptor
    return acceptor.read(acceptor.start(), text.encode())


def insertions_at(language, prefix, suffix, max_ms=10_000.0):
    grammar = GRAMMARS.load(language)
    joint = Joint(grammar.acceptor, suffix.encode())
    return grammar.shortest.insertions(snapshot_of(language, prefix), joint, max_ms)


@pytest.mark.parametrize(
    ("language", "prefix", "suffix", "terminals"),
    [
        ("go", "package a\nfunc f() {\n\tfoo(a", "\n}\n", ")"),
        ("go", "package a\nfunc f() {\n\tif a == b", "\n}\n", "{ }"),
        ("go", "package a\nfunc f() {\n\tfor i, v", "\n}\n", "= range 0 { }"),
        ("java", "class A {\n  void f() {\n    try { g();", "\n  }\n}\n", "} finally { }"),
        ("java", "class A {\n  void f() {\n    foo(new X() {", "\n  }\n}\n", "} ) ;"),
        ("rust", "fn f() {\n    match x {\n        a", "\n}\n", "=> a }"),
        ("rust", "fn f() {\n    let x = |a", "\n}\n", "| a ;"),
        ("cpp", "int f() {\n  auto x = [&", "\n}\n", "] { } ;"),
        ("c", "#include <std", "\nint x;\n", ">"),
        ("javascript", "import { a", ";\n", '} from " "'),
        ("javascript", "const x = `a${b", ";\n", "} `"),
        ("javascript", "class A { f(", "\n}\n", ") { }"),
        ("javascript", 'const x = "abc', ";\n", '"'),
        ("typescript", "const x: Map<string, Map<", ";\n", "a > >"),
        ("typescriptreact", "const x = <ul><li", ";\n", "/ > < / a >"),
        ("json", '{"a": [1, {"b"', "\n}\n", ": 0 } ]"),
        ("python", "x = f(", "\ny = 2\n", ")"),
        ("python", "x = {'a", "\n", "' }"),
        ("python", "x = f'{a", "\n", "} '"),
        ("python", "def f(", "\n", ") : a"),
        ("python", "class A:\n    @prop", "\n", "class a : a"),
        ("python", "class A:\n    def f(self):\n        match x:", "\n", "case _ : a"),
        ("python", "x = 1  # a", "\ny = 2\n", ""),
    ],
)
def test_the_cheapest_terminals_are_found(language, prefix, suffix, terminals):
    assert next(insertions_at(language, prefix, suffix)).text.split() == terminals.encode().split()


@pytest.mark.parametrize(("indent", "unit"), [("    ", " " * 4), ("\t", "\t")])
def test_what_a_language_demands_beyond_its_grammar_is_among_the_cheapest(indent, unit):
    prefix = f"def f():\n{indent}try:\n{indent}{unit}a()"
    found = [each.text for each in itertools.islice(insertions_at("python", prefix, "\n"), 4)]
    assert f"\n{indent}finally : a".encode() in [text.lstrip(b" ") for text in found]


@pytest.mark.parametrize("language", PROGRAMS)
@given(data=st.data())
def test_every_start_of_a_program_is_completed_by_an_insertion(language, data):
    """Inserted after any token of a program, the terminals make a file without errors."""
    program = PROGRAMS[language]
    prefix = program[: data.draw(st.integers(0, len(program)))]
    found = next(insertions_at(language, prefix, "\n"), None)
    assert found is not None
    tree = parse(prefix.encode() + found.text + b"\n", language)
    assert error_count(tree) == 0


@pytest.mark.parametrize("language", PROGRAMS)
@given(data=st.data())
def test_what_follows_in_a_program_needs_no_insertion(language, data):
    program = PROGRAMS[language]
    at = data.draw(st.integers(0, len(program)))
    found = next(insertions_at(language, program[:at], program[at:]), None)
    assert found is not None
    assert (found.text, found.cost) == (b"", 0)


def cheapest_by_single_terminals(prefix, suffix):
    """Return the cost of the cheapest insertion, by a search that inserts one terminal after the other."""
    grammar = GRAMMARS.load("json")
    acceptor, joint = grammar.acceptor, Joint(grammar.acceptor, suffix)
    spellings = grammar.shortest.spellings
    order, queue = itertools.count(), [(0, 0, snapshot_of("json", prefix))]
    while queue:
        cost, _, snapshot = heapq.heappop(queue)
        if joint.fit(snapshot) is Fit.YES:
            return cost
        for symbol, text in spellings.texts.items():
            after = acceptor.read(snapshot, b" " + text)
            if after is not None and cost < 10:
                heapq.heappush(queue, (cost + spellings.costs[symbol], next(order), after))
    return None


@given(prefix=st.text(alphabet="[]{},:1 ", max_size=6), suffix=st.text(alphabet="]},:1 ", max_size=3))
@example(prefix="{1", suffix=":1}")
@example(prefix="[[1,", suffix="]")
def test_no_search_by_single_terminals_finds_a_cheaper_insertion(prefix, suffix):
    if snapshot_of("json", prefix) is None:
        return
    found = next(insertions_at("json", prefix, suffix), None)
    expected = cheapest_by_single_terminals(prefix, suffix.encode())
    assert (found.cost if found is not None and expected is not None else None) == expected


def test_a_search_without_time_is_unknown():
    with pytest.raises(GrammarBoundError, match="took more than 0 ms"):
        list(insertions_at("java", "class A { void f() { foo(new X() {", "\n} }\n", max_ms=0))


def test_a_search_reads_what_follows_as_the_document_does():
    """After the enclosing construct, the rest of the file is not read again."""
    grammar = GRAMMARS.load("javascript")
    joint = Joint(grammar.acceptor, b"\n}\n" + b"function g() {\n  a();\n}\n" * 20)
    before = snapshot_of("javascript", "function f() {\n  a();\n  ")
    joint.refer_to(before, grammar.shortest.level(before))
    assert joint.fit(snapshot_of("javascript", "function f() {\n  a();\n  b();")) is Fit.YES
    assert joint.fit(snapshot_of("javascript", "function f() {\n  a();\n  if (b) {")) is Fit.NO


def test_the_tables_of_a_search_count_as_memory():
    grammar = GRAMMARS.load("java")
    alone = Shortest(grammar.tables, grammar.acceptor)
    assert alone.size_bytes == 0
    next(alone.insertions(snapshot_of("java", "class A {"), Joint(grammar.acceptor, b"\n")))
    assert alone.size_bytes > 100_000
