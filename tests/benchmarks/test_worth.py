"""The replay of benchmarks.worth counts what its person writes by accepting, and no figure without data."""

from collections import Counter
from dataclasses import replace

import pytest

from benchmarks.typing.scripts import Script
from benchmarks.worth.__main__ import figures
from benchmarks.worth.places import Place, read_places, write_places
from benchmarks.worth.replay import Replay, Row
from completion.request import Suggestion
from lsp_server.gate.acceptance_model import Strictness

WHOLE_LINES = Row(None, Strictness.OFF)


def session(typed: str, suggestion: Suggestion, after: str = "") -> list[Place]:
    """Return the places of a session in which the same text is suggested before each key."""
    return [
        Place("s", 0, index, typed[index:], "x = ", after, 4 + index, 9, suggestion if index == 0 else None)
        for index in range(len(typed))
    ]


def test_what_is_right_is_accepted_with_its_first_key():
    counts = Replay(WHOLE_LINES, session("abcdefgh(i)", Suggestion("abcdefgh(i)")), 1).run()
    assert counts["accepted"] + counts["keys"] - counts["accepts"] == counts["characters"] == 11


def test_a_line_that_replaces_what_follows_is_not_right_where_another_line_is_typed_before_it():
    places = session("a + b + c\ndef", Suggestion("a + b + c)", replace_after=1), ")")
    assert [Replay(WHOLE_LINES, places, seed).run()["accepted"] for seed in range(9)] == [0] * 9


def test_a_share_of_nothing_is_none():
    assert figures(Counter())["offers_right"] is None
    assert figures(Counter(offers=4, offers_right=1))["offers_right"] == 0.25


def test_answers_are_kept_by_session_length_and_model(tmp_path):
    suggestion = Suggestion("ab", 1, -1.0, (-0.5, -0.5), ((1, -0.5), (2, -1.0)))
    places = session("ab\n", suggestion)
    path = tmp_path / "places.jsonl"
    script = Script("s", "python", "a.py", "", (), 3)
    write_places(path, "default", script, places)
    whole = path.read_bytes()
    write_places(path, "default", replace(script, length=9), places)
    path.write_bytes(path.read_bytes()[:-20])  # the run was ended while it wrote
    (kept,) = read_places(path, "default").items()
    assert kept[0] == ("s", 3)
    assert kept[1][0].suggestion.ends == suggestion.ends
    assert [place.rest for place in kept[1]] == ["ab\n", "b\n", "\n"]
    assert path.read_bytes() == whole
    with pytest.raises(SystemExit, match="not of another"):
        read_places(path, "another")


def test_blanks_after_code_are_a_key_each():
    def keys(before):
        places = [replace(place, before=before) for place in session("  # note", Suggestion(""))]
        return Replay(WHOLE_LINES, places, 1).run()["keys"]

    assert (keys("x = 1"), keys("x = 1\n")) == (8, 7)
