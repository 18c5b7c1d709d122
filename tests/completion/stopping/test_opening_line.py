"""A line that opens what later lines close is offered if it is likely, and cut if it is not."""

import pytest

from completion.decoding.decoder import Step
from completion.decoding.finishing import Finisher, open_grammar
from completion.postprocess import Context, Dropped
from completion.prompt.healing import HealedPrefix
from completion.request import CompletionRequest, Mode, StopReason, Suggestion
from drafting.verifier import MODEL
from tests.completion.tasks import DOCUMENT, task_at

LIKELY, UNLIKELY = (-0.01, -0.02), (-0.01, -0.9)


def finished(prefix, suffix, text, language, scores=LIKELY, reason=StopReason.LINE_END):
    request = CompletionRequest(prefix, suffix, language, mode=Mode.LINE, healing=False, invoked=True)
    context = Context.of(prefix, suffix, language, Mode.LINE, invoked=True)
    finisher = Finisher(request, context, open_grammar(request, HealedPrefix(prefix, "")), b"")
    result = finisher.finish(Suggestion(text, token_log_probabilities=scores), reason)
    return "" if isinstance(result, Dropped) else result.text


@pytest.mark.parametrize(
    ("prefix", "suffix", "text", "language"),
    [
        ("x = 1\n", "\ny = 2\n", "foo(", "python"),
        ("from a ", "\n\ny = 2\n", "import (", "python"),
        ("def f():\n    tr", "\n    return 1\n", "y:", "python"),
        ("let a = 1;\nfun", "\nlet b = 2;\n", "ction f(a) {", "javascript"),
        ("void f() {\n  g();\n", "\n  h();\n}\n", "  run(a, g(", "c"),
    ],
    ids=["call", "import", "block", "function", "two brackets"],
)
def test_a_likely_line_that_opens_something_is_offered_whole(prefix, suffix, text, language):
    assert finished(prefix, suffix, text, language) == text


@pytest.mark.parametrize("reason", [StopReason.UNLIKELY, StopReason.MAX_TOKENS])
def test_a_line_that_was_cut_short_does_not_stay_open(reason):
    assert finished("x = 1\n", "\ny = 2\n", "foo(", "python", reason=reason) in ("", "foo")


def test_an_unlikely_line_is_cut_to_what_is_valid_alone():
    assert finished("x = 1\n", "\ny = 2\n", "foo(", "python", UNLIKELY) == "foo"


def test_a_line_that_no_closer_makes_valid_is_cut():
    assert finished("x = 1\n", "\ny = 2\n", "if foo(", "python") == ""


def test_a_line_whose_opener_the_document_closes_is_never_cut():
    assert finished("x = f(\n", "\n    2\n])\n", "    [", "python", UNLIKELY) == "    ["


def attempt_at(loaded, text, score):
    """Return a task in line mode and an attempt with a text whose tokens all have the same log-probability."""
    changes = {"prefix": "x = 1\n", "suffix": "\n\n", "mode": Mode.LINE, "filters": True, "invoked": True}
    task = task_at(loaded, len(DOCUMENT), max_tokens=64, **changes)
    attempt = task.first_attempt()
    for token in loaded.tokenizer.encode(text):
        if attempt.stop is None:
            attempt.add(Step((token,), (MODEL,), (score,), 0, 0.0))
    return task, attempt


def test_a_likely_line_is_shown_before_its_bracket_is_closed(tiny_model):
    task, attempt = attempt_at(tiny_model, "foo(\n    1,\n", score=-0.001)
    assert attempt.stop is None
    assert task.opening_line(attempt).text == "foo("


def test_an_unlikely_line_is_shown_with_the_lines_that_close_it(tiny_model):
    task, attempt = attempt_at(tiny_model, "foo(\n    1,\n", score=-0.5)
    assert task.opening_line(attempt) is None
    task, attempt = attempt_at(tiny_model, "foo(\n    1,\n)\n", score=-0.5)
    assert task.finish(attempt).text == "foo(\n    1,\n)"


@pytest.mark.parametrize(
    "later_lines", ["    1,\n)\n", "    1 2,\n)\n", "    ]\n)\n", "    1,\n    2,\n    3,\n    4,\n    5,\n"]
)
def test_a_line_that_was_shown_early_stays(tiny_model, later_lines):
    task, attempt = attempt_at(tiny_model, "foo(\n" + later_lines, score=-0.001)
    assert attempt.stop is not None
    assert task.finish(attempt).text.startswith("foo(")
