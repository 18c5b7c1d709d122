"""The probabilities of a line's starts count each text once, however the model may divide it into tokens."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from completion.cancellation import CancelToken
from completion.decoding.decoder import TopTokens
from completion.decoding.stop_rules import StopRules
from completion.ending.rule import Stop
from completion.engine import Engine
from completion.model.loading import load_model
from completion.request import CompletionRequest, Mode, StopReason
from tests.completion.tasks import DOCUMENT, task_at


def token_of(loaded, data):
    """Return the token with these bytes."""
    return next(
        token for token in range(loaded.tokenizer.vocabulary_size) if loaded.tokenizer.token_bytes(token) == data
    )


def line_attempt(loaded, *tokens, prefix="x = ", suffix="", healing=False, mode=Mode.LINE, filters=False):
    """Return an attempt at a line or block with these tokens: pairs of bytes and probability."""
    task = task_at(loaded, 0, prefix=prefix, suffix=suffix, mode=mode, healing=healing, filters=filters)
    numbers = tuple(token_of(loaded, data) for data, _ in tokens)
    rules = StopRules(task.request, task.context)
    return task.attempt_from(numbers, tuple(math.log(p) for _, p in tokens), rules)


def set_top(attempt, loaded, *positions):
    """Set the likeliest tokens of each position: the one that was taken first, as pairs of bytes and probability."""
    state = attempt.source.constraints.start
    for likeliest in positions:
        numbers = [token_of(loaded, data) for data, _ in likeliest]
        values = np.log([p for _, p in likeliest])
        attempt.top_tokens.append(TopTokens(numbers[0], np.array(numbers), values, state))


def chances(attempt, text):
    return [(end, pytest.approx(math.exp(value))) for end, value in attempt.ends(text)]


def test_tokens_that_start_like_the_last_one_count_for_the_text_up_to_it(tiny_model):
    attempt = line_attempt(tiny_model, (b"(", 0.4), (b")", 0.5))
    set_top(
        attempt, tiny_model, [(b"(", 0.4), (b"(self", 0.3), (b"[", 0.2)], [(b")", 0.5), (b")\n", 0.25), (b"[", 0.1)]
    )
    assert chances(attempt, "()") == [(1, 0.7), (2, 0.4 * 0.75)]


def test_a_text_that_ends_inside_its_last_token_counts_all_that_start_like_it(tiny_model):
    attempt = line_attempt(tiny_model, (b")\n", 0.2))
    set_top(attempt, tiny_model, [(b")\n", 0.2), (b"):\n", 0.3), (b"(", 0.4)])
    assert chances(attempt, ")") == [(1, 0.5)]


def test_a_line_that_ends_inside_a_token_has_its_end_there_too(tiny_model):
    attempt = line_attempt(tiny_model, (b"x", 0.5), (b")\n", 0.6), (b"y", 0.9), mode=Mode.BLOCK)
    set_top(attempt, tiny_model, [(b"x", 0.5)], [(b")\n", 0.6), (b"):\n", 0.3)], [(b"y", 0.9)])
    line_end = (2, 0.5 * 0.9)
    assert chances(attempt, "x)\ny") == [(1, 0.5), line_end, (3, 0.5 * 0.6), (4, 0.5 * 0.6 * 0.9)]
    assert chances(attempt, "x)") == [(1, 0.5), line_end]


def test_a_line_that_ends_before_the_cursor_is_no_end(tiny_model):
    attempt = line_attempt(tiny_model, (b")\n", 0.6), (b"y", 0.9), prefix="x)", healing=True, mode=Mode.BLOCK)
    set_top(attempt, tiny_model, [(b")\n", 0.6)], [(b"y", 0.9)])
    assert chances(attempt, "\ny") == [(1, 0.6), (2, 0.6 * 0.9)]


def test_the_text_before_the_cursor_has_no_ends(tiny_model):
    attempt = line_attempt(tiny_model, (b"de", 0.5), (b"f", 0.8), (b"(", 0.5), prefix="de", healing=True)
    set_top(attempt, tiny_model, [(b"de", 0.5), (b"def", 0.4)], [(b"f", 0.8)], [(b"(", 0.5)])
    assert chances(attempt, "f(") == [(1, 0.4), (2, 0.2)]


def test_a_text_that_a_filter_changed_has_no_ends(tiny_model):
    attempt = line_attempt(tiny_model, (b"(", 0.4))
    assert attempt.ends("[") == ()


def test_a_text_with_other_indentation_has_the_ends_of_its_words(tiny_model):
    attempt = line_attempt(
        tiny_model, (b" ", 0.5), (b"\n", 0.8), (b" ", 0.5), (b"a", 0.9), (b"b", 0.5), prefix="x\n", mode=Mode.BLOCK
    )
    assert chances(attempt, "\n\tab") == [(3, 0.5 * 0.8 * 0.5 * 0.9), (4, 0.5 * 0.8 * 0.5 * 0.9 * 0.5)]
    assert chances(attempt, "\n\ta") == [(3, 0.5 * 0.8 * 0.5 * 0.9)]
    assert attempt.ends("\n\tabc") == ()


@pytest.mark.parametrize("cluster", ["🇬🇧", "👍🏽", "👩\u200d💻", "e\u0301", "नि"])
def test_no_end_is_inside_a_cluster(tiny_model, cluster):
    parts = tuple((bytes([byte]), 0.5) for byte in f"a{cluster}".encode())
    ends = [end for end, _ in line_attempt(tiny_model, *parts).ends(f"a{cluster}")]
    assert set(ends) == {1, len(cluster) + 1}


def test_a_block_has_ends(tiny_model):
    block = line_attempt(tiny_model, (b"(", 0.4), (b")", 0.5), mode=Mode.BLOCK)
    assert chances(block, "()") == [(1, 0.4), (2, 0.2)]


def test_a_line_whose_end_is_decided_lines_later_may_become_as_likely_as_it_will_be(tiny_model):
    """However many tokens a step has, a search must not drop it meanwhile: its brackets are never closed."""
    tokens = [(b"f", 0.9), (b"(", 0.8), *[(b"\n", 0.7), (b"a", 0.6)] * 6, (b"\n", 0.5)]
    whole = line_attempt(tiny_model, *tokens, filters=True)
    assert whole.stop == Stop(2, StopReason.LINE_END)
    assert whole.total() == pytest.approx(math.log(0.9 * 0.8 * 0.7))
    for count in range(1, whole.output.tokens + 1):
        assert line_attempt(tiny_model, *tokens[:count], filters=True).most_total() >= whole.total()
    assert line_attempt(tiny_model, *tokens[:2], filters=True).most_total() == pytest.approx(math.log(0.9 * 0.8))


def test_a_line_with_its_body_is_as_likely_as_the_line(tiny_model):
    """Each token more makes a text less likely: a search must not prefer another line for what has no body."""
    line = [(b"f", 0.9), (b"(", 0.8), (b"\n", 0.7)]
    body = line_attempt(tiny_model, *line, (b"a", 0.6), (b")", 0.4), (b"\n", 0.5), filters=True)
    assert body.output.whole()[: body.stop.length] == "f(\na)"
    assert body.total() == pytest.approx(math.log(0.9 * 0.8 * 0.7))


@pytest.mark.parametrize(
    ("prefix", "suffix", "visible", "replaced"),
    [
        ('f("', '")', 'load", async', 1),
        ('f("', '")', 'load")', 2),
        ('f("', '")', "load", 0),
        ("f(g(", "))", "a) +", 1),
        ("f(g(", "))", "(a)", 0),
        ("f(", "", "a) +", 0),
    ],
)
def test_what_is_visible_of_an_unfinished_text_replaces_the_closers_that_it_contains(
    tiny_model, prefix, suffix, visible, replaced
):
    places = {"prefix": prefix, "suffix": suffix}
    assert line_attempt(tiny_model, (b"a", 0.4), filters=True, **places).growing(visible).replace_after == replaced
    assert line_attempt(tiny_model, (b"a", 0.4), **places).growing(visible).replace_after == 0


@pytest.mark.real_model
@pytest.mark.parametrize("mode", [Mode.LINE, Mode.BLOCK])
def test_the_ends_of_every_event_lead_to_the_end_of_its_text_and_never_become_likelier(mode):
    engine = Engine(load_model("default"))
    seen = 0
    for cursor in range(40, len(DOCUMENT), 7):
        request = CompletionRequest(DOCUMENT[:cursor], "\n", "python", document="a", mode=mode, max_tokens=24)
        for event in engine.complete(request, CancelToken()):
            for suggestion in event.suggestions:
                ends, values = zip(*suggestion.ends, strict=True)
                assert list(ends) == sorted(ends)
                assert ends[-1] == len(suggestion.text)
                assert all(later <= earlier <= 0 for earlier, later in pairwise(values))
                seen += 1
    assert seen > 10
