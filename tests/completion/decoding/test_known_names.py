"""Known names: which tokens lead to one however the text is cut into tokens, and what their cost does to a text."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from completion.cancellation import CancelToken
from completion.decoding.constraints import KnownNames, NameState, known_names
from completion.engine import Engine
from completion.prompt.healing import heal
from completion.request import CacheMode, CompletionRequest

NAMES = ("total", "total_price", "tax", "größe", "$el")
LETTERS = st.text("totalpricex_ß$.( ", min_size=1, max_size=12)


def judged(written: bytes, cuts: list[int], prefix: str) -> int:
    """Return how many of the tokens of a text leave the known names; it starts with the healed run of `prefix`."""
    known = KnownNames(NAMES, prefix, heal(prefix).run)
    state, left = known.start, 0
    ends = sorted({cut % (len(written) + 1) for cut in cuts} | {len(written)})
    for start, end in zip([0, *ends], ends, strict=False):
        if state is not None:
            state, is_unknown = known.advance(state, written[start:end])
            left += is_unknown
    return left


@given(LETTERS, st.lists(st.integers(0, 99), max_size=6))
@pytest.mark.parametrize("typed", ["", "to"])
def test_a_text_leaves_the_names_once_or_never_however_it_is_cut(typed, text, cuts):
    prefix = f"order.{typed}"
    name = typed + text[: next((at for at, letter in enumerate(text) if letter in ".( "), len(text))]
    is_ended = len(name) < len(typed + text)
    is_known = not name or name in NAMES if is_ended else any(each.startswith(name) for each in NAMES)
    assert judged((heal(prefix).run + text).encode(), cuts, prefix) == (not is_known)


def test_names_that_are_no_identifiers_count_for_nothing():
    assert KnownNames(['"key"', "a b", "", "1st", "-x"], "order.", ".").start is None


@pytest.fixture(scope="module")
def engine(tiny_model):
    one = Engine(tiny_model)
    yield one
    one.close()


REQUEST = CompletionRequest(
    "class Order:\n    def run(self):\n        return self.",
    language="python",
    document="a",
    cache=CacheMode.EXACT,
    filters=False,
    invoked=True,
    max_tokens=12,
)


def text_of(engine, request) -> str:
    *_, last = engine.complete(request, CancelToken())
    return last.suggestions[0].text


@pytest.mark.parametrize("typed", ["", "s", "to"])
@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_drafts_change_no_text_with_names(engine, typed, temperature):
    sampling = replace(REQUEST.sampling, temperature=temperature, seed=4)
    for names in (("total", "tax", "started"), tuple(f"name_{number}" for number in range(50))):
        asked = replace(REQUEST, prefix=REQUEST.prefix + typed, names=names, sampling=sampling)
        assert text_of(engine, asked) == text_of(engine, replace(asked, drafting=False))


def test_a_known_name_takes_the_place_of_an_unknown_one_and_nothing_changes_in_a_comment(engine, monkeypatch):
    monkeypatch.setattr(KnownNames, "unknown_cost", 1e3)
    begun = replace(REQUEST, prefix=REQUEST.prefix + "z")
    assert re.match(r"\w*", text_of(engine, begun))[0] not in ("", "ebra")
    assert re.match(r"\w*", text_of(engine, replace(begun, names=("zebra",))))[0] in ("", "ebra")
    within = replace(begun, suffix="ero()")
    assert text_of(engine, replace(within, names=("zebra",))) == text_of(engine, within)
    comment = replace(begun, prefix=begun.prefix.replace("return", "# return"))
    assert text_of(engine, replace(comment, names=("zebra",))) == text_of(engine, comment)


def test_what_follows_a_dot_elsewhere_in_the_document_is_known_but_not_the_name_that_is_typed():
    known = known_names(replace(REQUEST, prefix="order.total\norder.to", suffix="\norder.gross", names=("tax",)), ".to")
    judged = [known.advance(NameState(0), name)[1] for name in (b"total(", b"gross(", b"tax(", b"to(", b"net(")]
    assert judged == [False, False, False, True, True]
