"""The replay of benchmarks.worth counts what its person writes by accepting, and no figure without data."""

import math
from collections import Counter
from dataclasses import replace

import pytest

from benchmarks.typing.scripts import Script
from benchmarks.worth.__main__ import SHARES, figures
from benchmarks.worth.guarantee import CANDIDATES, Held, clopper_pearson, held, threshold, waits
from benchmarks.worth.places import Place, read_places, write_places
from benchmarks.worth.replay import Replay, Row
from completion.request import Suggestion
from lsp_server.gate.acceptance_model import Strictness
from lsp_server.gate.worth import RIGHT_FROM

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


def place(p: float, rest: str, text: str = "f(x)\n", index: int = 0) -> Place:
    """Return a place at which a text of one token with probability p is suggested, before what the person types."""
    suggestion = Suggestion(text, 0, math.log(p), (math.log(p),), ends=((len(text.rstrip()), math.log(p)),))
    return Place("s", 0, index, rest, "", "", 4, 9, suggestion)


@pytest.mark.parametrize(("right", "shown"), [(0, 5), (3, 5), (5, 5), (45, 60), (900, 1200)])
def test_the_bound_of_clopper_and_pearson_is_that_of_the_binomial_tail(right, shown):
    bound = clopper_pearson(right, shown, 0.95)
    tail = sum(math.comb(shown, k) * bound**k * (1 - bound) ** (shown - k) for k in range(right, shown + 1))
    assert bound == 0 if right == 0 else tail == pytest.approx(0.05, abs=1e-4)


def test_a_promise_gets_the_lowest_threshold_that_keeps_it():
    sure, unsure = [place(0.8, "f(x)\n")] * 60, [place(0.5, "f(y)\n")] * 60
    assert threshold([*sure, *unsure], 0.9) == 0.52
    assert threshold([*sure, *unsure], 0.3) == CANDIDATES[-1]
    assert threshold(unsure, 0.3) is None
    assert threshold(sure[:20], 0.3) is None
    assert held([*sure, *unsure], 0.52) == Held(120, 60, 60)


def test_only_the_first_line_counts_and_where_something_is_shown():
    block = "if a:\n    b()"
    shown = [place(0.8, "if a:\n    c()", block), place(0.8, "if a and b:\n", block), place(0.1, "if a:\n", block)]
    assert held(shown, 0.0) == Held(3, 2, 1)


def test_keys_that_follow_the_suggestion_are_no_waits():
    session = [place(0.8, "f(y)\n"[index:], index=index) for index in range(5)]
    assert [each.index for each in waits(session)] == [0, 3, 4]


def test_a_shipped_promise_shows_less_the_more_it_says():
    thresholds = [RIGHT_FROM[share] for share in SHARES]
    assert thresholds == sorted(thresholds)
