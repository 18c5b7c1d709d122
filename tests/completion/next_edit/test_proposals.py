"""What the parse tree says about candidates, and the gate's opinion."""

from collections.abc import Sequence

import pytest

from completion.edits import Diagnostic, LineEdit, NextEditRequest
from completion.next_edit.gate import JUDGED_FROM, Gate
from completion.next_edit.proposals import Proposal, proposals
from completion.syntax.parsing import IN_PROCESS, Parsing
from completion.syntax.parsing.process import ParserProcess


def in_python(lines: list[str], edits: list[LineEdit], diagnostics: Sequence[Diagnostic] = ()) -> NextEditRequest:
    return NextEditRequest(tuple(lines), tuple(edits), "python", diagnostics=tuple(diagnostics))


def proposed(
    before: str, line: int, new: str, language: str = "python", parsing: Parsing = IN_PROCESS
) -> list[Proposal]:
    lines = before.splitlines()
    edit = LineEdit(line, (lines[line],), (new,))
    lines[line] = new
    return proposals(NextEditRequest(tuple(lines), (edit,), language), parsing)


def test_a_name_that_lost_its_definition_is_an_orphan_and_likely() -> None:
    (proposal,) = proposed("import zstd\n\nx = zstd.open(1)\n", 0, "import zstandard")
    assert proposal.syntax.orphan
    assert Gate.shipped().rules.probability(proposal.rule_features()) > 2 * JUDGED_FROM


def test_a_name_that_a_diagnostic_reports_is_likely() -> None:
    lines = ["class Item:", "    cost: int", "def f(price): ...", *("" for _ in range(40)), "print(item.price)"]
    edits = [LineEdit(1, ("    price: int",), ("    cost: int",))]
    told = [Diagnostic(len(lines) - 1, "Property 'price' does not exist on type 'Item'.")]
    chances = [
        Gate.shipped().rules.probability(each.rule_features())
        for diagnostics in ((), told)
        for each in proposals(in_python(lines, edits, diagnostics=diagnostics), IN_PROCESS)
        if each.candidate.line == told[0].line
    ]
    assert chances[1] > max(JUDGED_FROM, 1.5 * chances[0])


def test_a_name_that_is_still_defined_is_no_orphan() -> None:
    found = proposed("def f(first, other):\n    g(first)\n    h(first)\n", 1, "    g(other)")
    assert {proposal.syntax.orphan for proposal in found} == {False}


def test_what_would_break_the_syntax_is_not_proposed() -> None:
    before = "x = load(a, b)\ny = [load(a, b)]\n"
    assert proposed(before, 0, "for x in load(a, b): pass") == []


def test_the_age_of_a_proposal_counts_the_edits_since_the_one_that_taught_it() -> None:
    lines = ["import zstandard", "x = zstd", *(f"value_{number} = 1" for number in range(12))]
    others = [LineEdit(number, ("",), (lines[number],)) for number in range(2, 14)]
    rename = LineEdit(0, ("import zstd",), ("import zstandard",))
    for edits, age in ([*others, rename], 0), ([*others, rename, LineEdit(3, ("x",), ("value_1 = 1",))], 1):
        assert [each.age for each in proposals(in_python(lines, edits), IN_PROCESS)] == [age]


def test_a_name_that_the_edits_still_use_is_less_likely_to_be_replaced() -> None:
    def chance(*imported: str) -> float:
        lines = [*imported, "", "x = zstd.open(1)"]
        (proposal,) = proposals(in_python(lines, [LineEdit(0, ("import zstd", "import os"), imported)]), IN_PROCESS)
        return Gate.shipped().rules.probability(proposal.rule_features())

    assert chance("import zstdlib", "import os") > chance("import zstdlib", "import os as zstd")


def test_a_line_that_was_like_the_edited_one_is_likelier_than_another_and_than_after_a_large_edit() -> None:
    def chance(line: str, *others: str) -> float:
        old, new = ("log(old, 1)", *others), ("log(new, 1)", *others)
        found = proposals(in_python([*new, "", line], [LineEdit(0, old, new)]), IN_PROCESS)
        return max(Gate.shipped().rules.probability(each.rule_features()) for each in found)

    assert chance("log(old, 1)") > chance("print(old, 2)")
    assert chance("log(old, 1)") > chance("log(old, 1)", *(f"call({number})" for number in range(8)))


def test_comments_and_strings_are_known_as_such() -> None:
    found = proposed("import zstd\nx = zstd\n# zstd\n", 0, "import zstandard")
    assert [(proposal.candidate.line, proposal.syntax.literal) for proposal in found] == [(1, False), (2, True)]


def test_an_unknown_language_has_proposals_without_syntax() -> None:
    (proposal,) = proposed("use zstd\nopen zstd x\n", 0, "use zstandard", language="unknown")
    assert not proposal.syntax.orphan


def test_in_a_document_of_10_000_lines_the_nearest_candidates_stay_within_the_parsers_bounds() -> None:
    uses = "".join(f"other_{number} = zstd.open({number})\n" for number in range(30))
    text = "import zstd\n" + "".join(f"value_{number} = compute({number})\n" for number in range(10_000)) + uses
    parsing = ParserProcess()
    try:
        found = proposed(text, 0, "import zstandard", parsing=parsing)
    finally:
        parsing.close()
    assert [proposal.candidate.line for proposal in found] == list(range(10_001, 10_001 + len(found)))
    assert 6 <= len(found) < 30


@pytest.mark.parametrize(
    ("language", "lines", "use"),
    [
        ("cpp", ["class Point {", "  Point(int x) : x(x) {}", "  int x;", "};", "Point make();"], 4),
        ("java", ["class Point {", "  Point(int x) {}", "}", "class B {", "  Point p;", "}"], 4),
    ],
)
def test_a_class_of_which_only_the_constructor_has_the_old_name_has_lost_its_definition(language, lines, use) -> None:
    found = proposed("\n".join(lines), 0, "class Point3D {", language)
    assert {each.candidate.line for each in found if each.syntax.orphan} == {1, use}


def test_a_class_that_becomes_an_interface_is_still_defined() -> None:
    found = proposed("class Foo {}\nlet x: Foo;\n", 0, "interface Foo {}", "typescript")
    assert not any(each.syntax.orphan for each in found)


def test_on_a_line_that_was_edited_only_the_use_of_a_lost_name_is_proposed_and_not_the_same_word_in_text() -> None:
    lines = ['first_name = "John"', 'print(f"Your first name is {name}.")', "other = first_name"]
    edits = [
        LineEdit(1, ('print(f"Your name is {name}.")',), (lines[1],)),
        LineEdit(0, ('name = "Foo"',), (lines[0],)),
    ]
    (found,) = proposals(in_python(lines, edits), IN_PROCESS)
    assert found.syntax.orphan
    assert found.candidate.new == ('print(f"Your first name is {first_name}.")',)
