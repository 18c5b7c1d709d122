"""Shortest insertions: what is missing between a text and what follows it, found without data about a language."""

import gzip
import heapq
import itertools
import json
import re
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.joining.__main__ import main
from benchmarks.joining.joint import Fit, Joint
from benchmarks.joining.shortest import MAX_STEPS
from benchmarks.joining.triples import DATA, Kind, Triple, triples
from benchmarks.joining.verdicts import Cursor, Searcher, Verdict
from completion.errors import GrammarBoundError
from completion.syntax.trees import error_count, parse

PROGRAMS_AT = Path(__file__).parents[1] / "completion" / "closing" / "programs"
PROGRAMS = {path.stem: path.read_text() for path in sorted(PROGRAMS_AT.glob("*.txt"))}

searcher_of = cache(Searcher)


def snapshot_of(searcher, text):
    acceptor = searcher.grammar.acceptor
    return acceptor.read(acceptor.start(), text.encode())


def insertions_at(language, prefix, suffix, max_steps=100_000, searcher=None):
    searcher = searcher or searcher_of(language)
    joint = Joint(searcher.grammar.acceptor, suffix.encode())
    return searcher.shortest.insertions(snapshot_of(searcher, prefix), joint, max_steps)


@pytest.mark.parametrize(
    ("language", "prefix", "suffix", "terminals"),
    [
        ("go", "package a\nfunc f() {\n\tfoo(a", "\n}\n", ")"),
        ("go", "package a\nfunc f() {\n\tif a == b", "\n}\n", "{ }"),
        ("go", "package a\nfunc f() {\n\tfor i, v", "\n}\n", "= range 0 { }"),
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
    assert f"\n{indent}finally : a".encode() in [text.lstrip(b" ") for text in found]


@pytest.mark.parametrize("text", ["def f():\n", "for a in b:\n    try:\n", "if a:\n    b\n    with c:\n"])
def test_what_a_line_that_is_begun_lacks_is_indented(text):
    """The parser of Python takes it, which is stricter than that of the grammar."""
    compile(text + next(insertions_at("python", text, "\n")).text.decode() + "\n", "", "exec")


@pytest.mark.parametrize(
    "language", sorted(PROGRAMS.keys() - {"cpp", "javascript", "python"})
)  # see `benchmarks.joining`
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
    searcher = searcher_of("json")
    acceptor = searcher.grammar.acceptor
    joint, spellings, seen = Joint(acceptor, suffix), searcher.shortest.spellings, set()
    order, queue = itertools.count(), [(0, 0, acceptor.read(snapshot_of(searcher, prefix), b" "))]
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
    warm = searcher_of(language)
    assert found_at(warm, places) == found_at(warm, places) == found_at(Searcher(language), places[::-1])[::-1]


def found_at(searcher, places):
    """Return the first insertions of each place with the number of steps."""
    found = []
    for prefix, suffix in places:
        try:
            texts = [each.text for each in insertions_at("", prefix, suffix, MAX_STEPS, searcher)]
        except GrammarBoundError as error:
            texts = str(error)
        found.append((texts, searcher.shortest.searches[-1].steps))
    return found


def test_a_search_reads_what_follows_as_the_document_does():
    """After the enclosing construct, the rest of the file is not read again."""
    searcher = searcher_of("javascript")
    joint = Joint(searcher.grammar.acceptor, b"\n}\n" + b"function g() {\n  a();\n}\n" * 20)
    before = snapshot_of(searcher, "function f() {\n  a();\n  ")
    joint.refer_to(before, searcher.shortest.level(before))
    assert joint.fit(snapshot_of(searcher, "function f() {\n  a();\n  b();")) is Fit.YES
    assert joint.fit(snapshot_of(searcher, "function f() {\n  a();\n  if (b) {")) is Fit.NO


def test_symbols_of_each_state_are_those_of_the_tables():
    grammar = searcher_of("json").grammar
    for state in range(grammar.tables.state_count):
        follows = (
            grammar.tables.actions(state, each)
            if each < grammar.tables.token_count
            else grammar.tables.goto(state, each)
            for each in range(grammar.symbol_count)
        )
        assert grammar.symbols_after(state) == [symbol for symbol, action in enumerate(follows) if action]


RECORD = {
    "id": "a",
    "language": "go",
    "prefix": "package a\n\nfunc f() {\n\t",
    "reference": "g(a[0])",
    "suffix": "\n\th()\n}\n",
}


def test_the_texts_at_a_cursor():
    found = [*triples(RECORD)]
    assert found == [*triples(RECORD)]
    assert Counter(each.kind for each in found) == Counter(Kind) + Counter([Kind.START])
    assert [each.text for each in found if each.kind in (Kind.WHOLE, Kind.REPEATED)] == ["g(a[0])", "g(a[0])\n\th()"]


def test_a_whole_text_is_kept_and_one_with_a_bracket_too_many_is_cut():
    cursor = Cursor(searcher_of("go"), RECORD["prefix"], RECORD["suffix"], "go")
    texts = [("g(a[0])", Kind.WHOLE), ("g(a[", Kind.START), ("g(a[0]])", Kind.ADDED)]
    verdicts = [
        cursor.verdicts(Triple("go", kind, RECORD["prefix"], text, RECORD["suffix"]), invoked=False)
        for text, kind in texts
    ]
    assert verdicts == [(Verdict.KEPT,) * 2, (Verdict.KEPT,) * 2, (Verdict.CUT,) * 2]


@pytest.mark.parametrize(
    ("language", "prefix", "text", "suffix", "invoked"),
    [
        ("java", "class A {\n  void f() {\n    g(1).h", "();\n  }", "\n  }\n\n  void k() {\n  }\n}\n", True),
        ("c", "int f(void) {\n    return g(a, b", "c);\n}", "\n}\n\nint h(void) {\n    return 1;\n}\n", True),
        ("javascript", "function f() {\n  const q = new URL", "rLoad} */", "}\n  q.set(a);\n}\n", False),
    ],
)
def test_a_closer_that_stands_below_is_cut(language, prefix, text, suffix, invoked):
    cursor = Cursor(searcher_of(language), prefix, suffix, language)
    verdicts = cursor.verdicts(Triple(language, Kind.REPEATED, prefix, text, suffix), invoked=invoked)
    assert verdicts == (Verdict.CUT, Verdict.CUT)


@pytest.mark.parametrize(
    ("prefix", "text", "suffix"),
    [
        ("def f(", "a: int", "):\n\n\nx = 1\n"),
        ("def f(", "a: int) -> int", "):\n\n\nx = 1\n"),
        ("class A(", "B", "):\n\n\nx = 1\n"),
        ("def f(", "a: int", "):\n    return a\n"),
        ("if f(", "a", "):\n\nx = 1\n"),
    ],
)
def test_a_head_before_its_colon_is_kept_also_without_a_body(prefix, text, suffix):
    cursor = Cursor(searcher_of("python"), prefix, suffix, "python")
    for kind in (Kind.WHOLE, Kind.START):
        assert cursor.verdicts(Triple("python", kind, prefix, text, suffix), invoked=False)[1] is Verdict.KEPT


def test_a_run_prints_its_figures(tmp_path, monkeypatch, capsys):
    for name in DATA:
        with gzip.open(tmp_path / name, "wt") as file:
            file.write(json.dumps(RECORD) + "\n")
    command = ["joining", "--cursors", "1", "--languages", "go", "--data-dir", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", command)
    main()
    figures = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert figures["references"] == figures["references_product"] == figures["references_insertion"] == 2
    assert set(figures) >= {
        *("texts", "product", "insertion", "unknown", "unknown_share", "searches", "table_ms_max"),
        *(f"{value}_{share}" for value in ("steps", "ms") for share in ("median", "p95", "max")),
    }
    assert figures["by_language"].keys() == {"go"}
    assert {"whole, automatic", "whole, manual", "start, automatic"} <= figures["by_kind"].keys()
