"""How much of an accepted text remains, compared with a model that marks every accepted character."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lsp_server.documents.documents import Document
from lsp_server.documents.text_lines import Place, TextLines
from lsp_server.telemetry.persistence import CHECKPOINTS_S, PersistenceTracker


class Followed:
    """A document with one accepted text, which tests edit by offsets."""

    def __init__(self, before, accepted, after):
        self.document = Document("file:///a", "python", 1, TextLines(before + accepted + after))
        self.now = 0.0
        self.reports = []
        self.tracker = PersistenceTracker(self.reports.append, lambda: self.now)
        assert self.tracker.accepted("id", self.document, self.at(len(before)), accepted)

    def at(self, offset):
        return self.document.lines.advance(Place(0, 0), offset)

    def edit(self, start, end, text):
        edit = self.document.lines.replace(self.at(start), self.at(end), text)
        self.tracker.changed(self.document, [edit])

    def measure(self):
        self.now += CHECKPOINTS_S[len(self.reports)] - self.now
        self.tracker.tick()
        return self.reports[-1]


def test_unchanged_text_remains_whole_at_every_checkpoint():
    followed = Followed("x = ", "value + 1", "\n")
    for checkpoint in CHECKPOINTS_S:
        remains = followed.measure()
        assert (remains.after_s, remains.share, remains.characters) == (checkpoint, 1.0, 9)
    assert followed.tracker.next_due() is None


def test_nothing_is_measured_before_the_first_checkpoint():
    followed = Followed("", "abc", "")
    followed.now = 29.9
    followed.tracker.tick()
    assert followed.reports == []
    assert followed.tracker.next_due() == 30


def test_edits_outside_the_text_move_it_and_do_not_count():
    followed = Followed("a\nb = ", "one\ntwo", "\nc")
    followed.edit(0, 1, "first\nsecond\nthird")
    followed.edit(len(followed.document.lines), len(followed.document.lines), "\nmore")
    place = followed.document.lines.text().index("one")
    followed.edit(place, place, "zero ")
    end = followed.document.lines.text().index("two") + 3
    followed.edit(end, end, " three")
    assert followed.measure().share == 1.0


def test_a_text_of_which_half_was_changed_remains_by_half():
    followed = Followed("x = ", "abcdefgh", ";")
    followed.edit(8, 12, "1234")
    remains = followed.measure()
    assert (remains.share, remains.characters) == (0.5, 4)


def test_of_a_deleted_text_nothing_remains_until_undo_restores_it():
    followed = Followed("x = ", "value\nnext", ";")
    followed.edit(4, 14, "")
    assert (followed.measure().share, followed.reports[-1].characters) == (0.0, 0)
    followed.edit(0, 0, "# moved\n")
    followed.edit(12, 12, "value\nnext")
    assert followed.measure().share == 1.0


def test_closing_the_document_reports_the_later_checkpoints():
    followed = Followed("", "abcd", "")
    followed.measure()
    followed.edit(2, 4, "")
    followed.tracker.closed(followed.document)
    assert [(one.after_s, one.share) for one in followed.reports] == [(30, 1.0), (120, 0.5), (300, 0.5), (600, 0.5)]
    assert followed.tracker.next_due() is None


def test_another_part_of_the_same_completion_keeps_its_checkpoints():
    followed = Followed("", "abcdef", "")
    followed.now = 10
    assert followed.tracker.accepted("id", followed.document, Place(0, 0), "abc")
    assert followed.tracker.next_due() == 30


def test_another_part_does_not_measure_again_what_was_measured():
    followed = Followed("", "abcdef", "")
    followed.measure()
    followed.now = 40
    assert followed.tracker.accepted("id", followed.document, Place(0, 0), "abc")
    followed.tracker.tick()
    assert [one.after_s for one in followed.reports] == [30]
    assert followed.tracker.next_due() == 120


def test_a_text_that_the_document_does_not_contain_is_not_followed():
    followed = Followed("x = ", "abc", "")
    assert not followed.tracker.accepted("other", followed.document, Place(0, 0), "y = ")


def test_an_acceptance_where_the_document_has_no_text_any_more_is_not_followed():
    followed = Followed("x = ", "abc", "")
    assert not followed.tracker.accepted("other", followed.document, Place(7, 0), "abc")


TEXT = st.text(alphabet="ab\n ", max_size=8)


@settings(max_examples=300)
@given(TEXT, TEXT.filter(bool), TEXT, st.lists(st.tuples(st.integers(0, 24), st.integers(0, 24), TEXT), max_size=5))
def test_the_followed_range_contains_every_accepted_character_that_survives(before, accepted, after, edits):
    followed = Followed(before, accepted, after)
    marks = [False] * len(before) + [True] * len(accepted) + [False] * len(after)
    for one, other, text in edits:
        start, end = sorted((min(one, len(marks)), min(other, len(marks))))
        marks[start:end] = [False] * len(text)
        followed.edit(start, end, text)
        if not any(marks):
            return  # if no character is left, an insertion of the same text counts as undo, which has its own test
    (state,) = followed.tracker._accepted.values()
    lines = followed.document.lines
    first, last = marks.index(True), len(marks) - marks[::-1].index(True)
    assert lines.between(Place(0, 0), state.start) in {lines.text()[:at] for at in range(first + 1)}
    assert len(lines.between(Place(0, 0), state.start)) <= first
    assert len(lines.between(Place(0, 0), state.end)) >= last


@pytest.mark.parametrize("checkpoint", CHECKPOINTS_S)
def test_late_ticks_report_every_checkpoint_that_has_passed(checkpoint):
    followed = Followed("", "abc", "")
    followed.now = checkpoint
    followed.tracker.tick()
    assert [one.after_s for one in followed.reports] == [one for one in CHECKPOINTS_S if one <= checkpoint]


def test_line_ends_that_become_one_do_not_break_the_measurement():
    followed = Followed("a\r", "b", "")
    followed.edit(2, 2, "\n")
    assert followed.document.lines.text() == "a\r\nb"
    assert followed.measure().after_s == CHECKPOINTS_S[0]
