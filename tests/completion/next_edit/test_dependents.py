"""The dependent edits of a request."""

from dataclasses import replace

from completion.edits import LineEdit, NextEditRequest
from completion.next_edit.candidates import GAP
from completion.next_edit.dependents import MAX_CHARACTERS, dependents
from completion.syntax.parsing import IN_PROCESS
from completion.syntax.parsing.process import ParserProcess

LINES = ("class P:", "    def __init__(self, x, y, z):", "        self.x = x", "        self.y = y", "", "P(1, 2)")
REQUEST = NextEditRequest(LINES, (LineEdit(1, ("    def __init__(self, x, y):",), (LINES[1],)),), "python", "a.py")


def test_they_come_from_neighbours_and_from_the_grammar_the_nearest_to_the_last_edit_first() -> None:
    found = [(each.line, each.new) for each in dependents(REQUEST, IN_PROCESS)]
    assert found == [(3, ("        self.y = y", "        self.z = z")), (5, (f"P(1, 2, {GAP})",))]


def test_the_parsers_process_finds_the_same() -> None:
    parser = ParserProcess()
    try:
        assert dependents(REQUEST, parser) == dependents(REQUEST, IN_PROCESS)
    finally:
        parser.close()


def test_large_documents_edits_outside_of_the_document_and_lines_with_the_mark_of_a_gap_have_none() -> None:
    assert dependents(replace(REQUEST, edits=(LineEdit(99, (), ("x",)),)), IN_PROCESS) == []
    assert dependents(replace(REQUEST, edits=()), IN_PROCESS) == []
    assert dependents(replace(REQUEST, lines=(*LINES, "#" * MAX_CHARACTERS)), IN_PROCESS) == []
    marked = tuple(line.replace("P(1", f"P({GAP}1") for line in LINES)
    assert [each.line for each in dependents(replace(REQUEST, lines=marked), IN_PROCESS)] == [3]
