"""The rules of unsafe constructs: each has a source and matches its examples, and no part of an example is shown."""

import re
import tomllib
from importlib.resources import files

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from completion.ending.context import Context
from completion.ending.decision import finished
from completion.ending.decision import shown as shown_part
from completion.ending.rule import DropReason
from completion.request import Mode, Suggestion
from completion.workspace.unsafe_code import begun_construct, names_unsafe

RULES = tomllib.loads(files("completion.workspace").joinpath("unsafe_rules.toml").read_text(encoding="utf-8"))["rule"]

EXAMPLES = [
    pytest.param(language, example, id=f"{language or 'any'}: {example}")
    for rule in RULES
    for language in rule["languages"] or ("python", "")
    for example in rule["examples"]
]
CALLS = [(rule["languages"][0], example) for rule in RULES if rule.get("query") for example in rule["examples"]]
LINES = st.sampled_from(
    [
        (language, re.compile(pattern.replace(" ", "[ ]?")))
        for rule in RULES
        if not rule.get("query")
        for language in rule["languages"][:1] or ("python",)
        for pattern in rule["patterns"]
    ]
).flatmap(lambda row: st.tuples(st.just(row[0]), st.from_regex(row[1], fullmatch=True))) | st.sampled_from(CALLS)


def test_each_rule_has_a_kind_a_reason_and_a_source():
    for rule in RULES:
        assert rule["kind"] in ("shell", "fetch", "verification", "secret", "sql", "path", "crypto", "deserialise")
        assert rule.keys() <= {"kind", "languages", "patterns", "reason", "source", "examples", "query"}
        assert rule["reason"].endswith(".")
        assert re.match(r"CWE-\d+", rule["source"])
        assert rule["patterns"]
        assert rule["examples"]


@pytest.mark.parametrize(("language", "example"), EXAMPLES)
def test_an_example_is_dropped_and_nothing_of_it_is_shown(language, example):
    context = Context.of("first\n", "\n", language, Mode.BLOCK)
    final = finished(Suggestion(example), context)
    assert final == DropReason.UNSAFE
    assert {shown_part(example[:end], context) for end in range(len(example) + 1)} == {""}


@given(LINES, st.sampled_from(["", "a = 1\n", "a = ", "f("]), st.sampled_from(["", "\nb = 2\n", "b", ")"]))
@settings(max_examples=500)
def test_no_beginning_of_a_construct_is_shown_and_taken_back(line, before, after):
    language, construct = line
    text = before + construct + after
    context = Context.of("first\n", "\n", language, Mode.BLOCK)
    final = finished(Suggestion(text), context)
    final_text = "" if isinstance(final, DropReason) else final.text
    for end in range(len(text) + 1):
        assert final_text.startswith(shown_part(text[:end], context)), text[:end]


@pytest.mark.parametrize(("language", "example"), EXAMPLES)
def test_a_beginning_of_a_construct_before_many_blanks_is_searched_in_linear_time(language, example):
    # A search that tries each blank as the end of each gap takes longer than the time limit of a test.
    for beginning in (example[: word.end()] for word in re.finditer(r"\w+", example)):
        names_unsafe(f"{beginning}{' ' * 20_000}", language)
        begun_construct(language).search(f"{beginning}{' ' * 20_000}.")
