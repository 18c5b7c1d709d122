"""The golden cases of the filters, one file for each filter."""

import tomllib
from pathlib import Path

import pytest

from completion.postprocess import FILTERS, Context, Dropped
from completion.request import Mode, Suggestion

FOLDER = Path(__file__).parent / "cases"
BY_NAME = {one_filter.__name__: one_filter for one_filter in FILTERS}
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


@pytest.mark.parametrize(("name", "case"), CASES)
def test_golden_case(name, case):
    result = BY_NAME[name](Suggestion(case["text"], replace_after=case.get("covers", 0)), context_of(case))
    if "dropped" in case:
        assert isinstance(result, Dropped), result
        assert result.reason == case["dropped"]
    else:
        assert isinstance(result, Suggestion), result
        assert result.text == case["expect"]
        assert result.replace_after == case.get("replace_after", 0)


def test_every_filter_has_at_least_ten_cases_in_several_languages_with_tabs():
    for name in BY_NAME:
        cases = tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))["case"]
        assert len(cases) >= 10, name
        assert len({case["language"] for case in cases}) >= 4, name
    text = "".join(path.read_text(encoding="utf-8") for path in FOLDER.glob("*.toml"))
    assert r"\t" in text
