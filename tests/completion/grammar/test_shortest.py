"""Shortest insertions: what is missing between a text and what follows it, found without data about a language."""

import heapq
import itertools
import re
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from completion.errors import GrammarBoundError
from completion.grammar.grammar import Grammar
from completion.grammar.joint import Fit, Joint
from completion.grammar.shortest import MAX_STEPS
from completion.syntax.table import row_of
from completion.syntax.trees import error_count, parse

PROGRAMS_AT = Path(__file__).parent / "programs_written"
PROGRAMS = {path.stem: path.read_text() for path in sorted(PROGRAMS_AT.glob("*.txt"))}


def loaded(language):
    return Grammar(row_of(language))


grammar_of = cache(loaded)


def snapshot_of(grammar, text):
    acceptor = grammar.acceptor
    return acceptor.read(acceptor.start(), text.encode())


def insertions_at(language, prefix, suffix, max_steps=100_000, grammar=None):
    grammar = grammar or grammar_of(language)
    joint = Joint(grammar.acceptor, suffix.encode())
    return grammar.shortest.insertions(snapshot_of(grammar, prefix), joint, max_steps)


@pytest.mark.parametrize(
    ("language", "prefix", "suffix", "terminals"),
    [
        ("go", "package a\nfunc f() {\n\tfoo(a", "\n}\n", ")"),
        ("go", "package a\nfunc f() {\n\tif a == b", "\n}\n", "{ }"),
        ("go", "package a\nfunc f() {\n\tfor i, v", "\n}\n", "= range a { }"),
        ("java", "class A {\n  void f() {\n    try { g();", "\n  }\n}\n", "} finally { }"),
        ("java", "class A {\n  void f() {\n    foo(new X() {", "\n  }\n}\n", "} ) ;"),
        ("rust", "fn f() {\n    match x {\n        a", "\n}\n", "=> a }"),
        ("rust", "fn f() {\n    let x = |a", "\n}\n", "| _ ;"),
        ("cpp", "int f() {\n  auto x = [&", "\n}\n", "] { } ;"),
        ("c", "#include <std", "\nint x;\n", ">"),
        ("javascript", "import { a", ";\n", '} from " "'),
        ("javascript", "const x = `a${b", ";\n", "} `"),
        ("javascript", "class A { f(", "\n}\n", ") { }"),
        ("javascript", 'const x = "abc', ";\n", '"'),
        ("typescript", "const x: Map<string, Map<", ";\n", "a > >"),
        ("typescriptreact", "const x = <ul><li", ";\n", "/> </ >"),
        ("json", '{"a": [1, {"b"', "\n}\n", ": 0 } ]"),
        ("python", "x = f(", "\ny = 2\n", ")"),
        ("python", "x = {'a", "\n", "' }"),
        ("python", "x = f'{a", "\n", "} '"),
        ("python", "def f(", "\n", ") : a"),
        ("python", "class A:\n    @prop", "\n", "class a : a"),
        ("python", "class A:\n    def f(self):\n        match x:", "\n", "case _ : a"),
        ("python", "x = 1  # a", "\ny = 2\n", ""),
        ("python", "class A:\n    def f(self):\n", "\n", "a"),
        ("python", "class A:\n    def f(self):\n      ", "\n", "a"),
        ("python", "class A:\n\tdef f(self):\n\t\t", "\n", "a"),
        ("python", "def f():\n    @a\n", "\n", "class a : a"),
    ],
)
def test_the_cheapest_terminals_are_found(language, prefix, suffix, terminals):
    assert next(insertions_at(language, prefix, suffix)).text.split() == terminals.encode().split()


@pytest.mark.parametrize(("indent", "unit"), [("    ", " " * 4), ("\t", "\t")])
def test_what_a_language_demands_beyond_its_grammar_is_among_the_cheapest(indent, unit):
    prefix = f"def f():\n{indent}try:\n{indent}{unit}a()"
    found = [each.text for each in itertools.islice(insertions_at("python", prefix, "\n"), 4)]
    assert f"\n{indent}except : a".encode() in [text.lstrip(b" ") for text in found]


@pytest.mark.parametrize("text", ["def f():\n", "for a in b:\n    try:\n", "if a:\n    b\n    with c:\n"])
def test_what_a_line_that_is_begun_lacks_is_indented(text):
    """The parser of Python takes it, which is stricter than that of the grammar."""
    compile(text + next(insertions_at("python", text, "\n")).text.decode() + "\n", "", "exec")


@pytest.mark.parametrize("language", sorted(PROGRAMS.keys() - {"cpp", "javascript", "python"}))  # see docs/joining.md
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
    grammar = grammar_of("json")
    acceptor = grammar.acceptor
    joint, spellings, seen = Joint(acceptor, suffix), grammar.shortest.spellings, set()
    order, queue = itertools.count(), [(0, 0, acceptor.read(snapshot_of(grammar, prefix), b" "))]
    while queue and queue[0][0] <= 8:
        cost, _, snapshot = heapq.heappop(queue)
        if joint.fit(snapshot) is Fit.YES:
            return cost
        if snapshot.heads not in seen:
            seen.add(snapshot.heads)
            for symbol, text in spellings.texts.items():
                after = acceptor.read(snapshot, text + b" ")
                if after is not None:
                    heapq.heappush(queue, (cost + spellings.costs[symbol], next(order), after))
    return None


@pytest.mark.parametrize(
    ("prefix", "suffix"),
    [
        ("{", "}"),
        ("[[1,", "]"),
        ('{"a"', "}"),
        ('{"a": [', "]}"),
        ('[{"a": 1', "]"),
        ("[", ""),
        ("[1", ", 2]"),
    ],
)
def test_no_search_by_single_terminals_finds_a_cheaper_insertion(prefix, suffix):
    found = next(insertions_at("json", prefix, suffix), None)
    assert (None if found is None else found.cost) == cheapest_by_single_terminals(prefix, suffix.encode())


def test_a_search_without_steps_is_unknown():
    with pytest.raises(GrammarBoundError, match="took 0 steps"):
        list(insertions_at("java", "class A { void f() { foo(new X() {", "\n} }\n", max_steps=0))


@pytest.mark.parametrize("language", ["python", "go", "java"])
def test_a_search_is_the_same_with_cold_and_warm_caches(language):
    program = PROGRAMS[language]
    ends = [each.end() for each in re.finditer(r"\w+|[^\w\s]+", program)][5::23]
    places = [(program[:end], "\n") for end in ends]
    warm = grammar_of(language)
    assert found_at(warm, places) == found_at(warm, places) == found_at(loaded(language), places[::-1])[::-1]


def found_at(grammar, places):
    """Return the first insertions of each place with the number of steps."""
    found = []
    for prefix, suffix in places:
        before = grammar.shortest.steps
        try:
            texts = [each.text for each in insertions_at("", prefix, suffix, MAX_STEPS, grammar)]
        except GrammarBoundError as error:
            texts = str(error)
        found.append((texts, grammar.shortest.steps - before))
    return found


def test_a_search_reads_what_follows_as_the_document_does():
    """After the enclosing construct, the rest of the file is not read again."""
    grammar = grammar_of("javascript")
    joint = Joint(grammar.acceptor, b"\n}\n" + b"function g() {\n  a();\n}\n" * 20)
    before = snapshot_of(grammar, "function f() {\n  a();\n  ")
    joint.refer_to(before, grammar.shortest.level(before))
    assert joint.fit(snapshot_of(grammar, "function f() {\n  a();\n  b();")) is Fit.YES
    assert joint.fit(snapshot_of(grammar, "function f() {\n  a();\n  if (b) {")) is Fit.NO
