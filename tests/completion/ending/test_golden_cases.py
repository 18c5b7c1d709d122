"""The golden cases of the rules, one file for each, and what is shown of their texts while these grow."""

import tomllib
from pathlib import Path

import pytest

from completion.ending.context import Context
from completion.ending.decision import RULES, finished, shown
from completion.ending.resync import resync
from completion.ending.rule import DropReason
from completion.ending.shape import edges, indentation
from completion.request import Mode, Suggestion

FOLDER = Path(__file__).parent / "cases"
BY_NAME = {rule.__name__: [rule] for rule in RULES}
BY_NAME |= dict.fromkeys(["rest_of_line", "closers"], BY_NAME.pop("resync"))
SHAPES = {"indentation": lambda text, _, context: indentation(text, context), "edges": edges}
CASES = [
    pytest.param(path.stem, case, id=f"{path.stem}: {case['name']}")
    for path in sorted(FOLDER.glob("*.toml"))
    for case in tomllib.loads(path.read_text(encoding="utf-8"))["case"]
]


def context_of(case):
    return Context.of(
        case["before"],
        case["after"],
        case["language"],
        Mode(case.get("mode", "line")),
        invoked=case.get("invoked", False),
        cut_short=case.get("cut_short", False),
    )


def left_by(name, case):
    """Return what a rule or shape leaves of a case's text, and what that replaces."""
    text, replaces, context = case["text"], case.get("covers", 0), context_of(case)
    if name in SHAPES:
        return SHAPES[name](text, replaces, context), replaces
    for rule in BY_NAME[name]:
        ends = rule(text, context)
        if ends.maybe < len(text) and not text[: ends.maybe].strip() and "dropped" in case:
            return RULES[rule][0], 0
        text, replaces = text[: ends.maybe], ends.replaces
    return text, replaces


@pytest.mark.parametrize(("name", "case"), CASES)
def test_golden_case(name, case):
    left, replaced = left_by(name, case)
    if "dropped" in case:
        assert left == DropReason(case["dropped"])
    else:
        expected = case["expect"], case.get("replace_after", case.get("covers", 0))
        if resync in BY_NAME.get(name, []):  # a closer may be left out or replaced: the document is the same
            assert left + case["after"][replaced:] == expected[0] + case["after"][expected[1] :]
        else:
            assert (left, replaced) == expected


@pytest.mark.parametrize(("name", "case"), CASES)
def test_what_is_shown_of_a_growing_text_is_the_beginning_of_the_finished_one(name, case):
    if "cut_short" in case:
        return
    context = context_of(case)
    final = finished(Suggestion(case["text"]), context)
    text = "" if isinstance(final, DropReason) else final.text
    seen = {shown(case["text"][:end], context) for end in range(len(case["text"]) + 1)}
    assert [each for each in seen if not text.startswith(each)] == []


def test_every_rule_has_at_least_ten_cases_in_several_languages_with_tabs():
    for name in (*BY_NAME, *SHAPES):
        cases = tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))["case"]
        assert len(cases) >= 10, name
        assert len({case["language"] for case in cases}) >= 4, name
    text = "".join(path.read_text(encoding="utf-8") for path in FOLDER.glob("*.toml"))
    assert r"\t" in text
