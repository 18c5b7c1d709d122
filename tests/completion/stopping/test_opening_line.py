"""A line that opens what later lines close is offered where the model is sure of it, and cut back where it is not."""

import pytest

from completion.decoding.decoder import Step
from completion.decoding.finishing import Finisher, open_grammar
from completion.postprocess import Context, Dropped
from completion.prompt.healing import HealedPrefix
from completion.request import CompletionRequest, Mode, StopReason, Suggestion
from drafting.verifier import MODEL
from tests.completion.tasks import DOCUMENT, task_at

SURE, UNSURE = (-0.01, -0.02), (-0.01, -0.9)


def finished(prefix, suffix, text, language, scores=SURE, reason=StopReason.LINE_END):
    request = CompletionRequest(prefix, suffix, language, mode=Mode.LINE, healing=False, invoked=True)
    context = Context.of(prefix, suffix, language, Mode.LINE, invoked=True)
    finisher = Finisher(request, context, open_grammar(request, HealedPrefix(prefix, "")), b"")
    left = finisher.finish(Suggestion(text, token_log_probabilities=scores), reason)
    return "" if isinstance(left, Dropped) else left.text


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
def test_a_sure_line_that_opens_something_is_offered_whole(prefix, suffix, text, language):
    assert finished(prefix, suffix, text, language) == text


@pytest.mark.parametrize("reason", [StopReason.UNLIKELY, StopReason.MAX_TOKENS])
def test_a_line_that_was_cut_short_is_none(reason):
    assert finished("x = 1\n", "\ny = 2\n", "foo(", "python", reason=reason) in ("", "foo")


def test_an_unsure_line_is_cut_back_to_what_stands_alone():
    assert finished("x = 1\n", "\ny = 2\n", "foo(", "python", UNSURE) == "foo"


def test_a_line_that_no_closer_makes_sound_is_cut_back():
    assert finished("x = 1\n", "\ny = 2\n", "if foo(", "python") == ""


def test_a_line_whose_opener_the_document_closes_needs_no_rule():
    assert finished("x = f(\n", "\n    2\n])\n", "    [", "python", UNSURE) == "    ["


def attempt_at(loaded, text, score):
    """A request in line mode for which the model wrote a text, each token of it with the same log-probability."""
    asked = {"prefix": "x = 1\n", "suffix": "\n\n", "mode": Mode.LINE, "filters": True, "invoked": True}
    task = task_at(loaded, len(DOCUMENT), max_tokens=64, **asked)
    attempt = task.first()
    for token in loaded.tokenizer.encode(text):
        if attempt.stop is None:
            attempt.add(Step((token,), (MODEL,), (score,), 0, 0.0))
    return task, attempt


def test_a_sure_line_is_shown_before_its_bracket_is_closed(tiny_model):
    task, attempt = attempt_at(tiny_model, "foo(\n    1,\n", score=-0.001)
    assert attempt.stop is None
    assert task.opening(attempt).text == "foo("


def test_an_unsure_line_is_shown_with_what_closes_it(tiny_model):
    task, attempt = attempt_at(tiny_model, "foo(\n    1,\n", score=-0.5)
    assert task.opening(attempt) is None
    task, attempt = attempt_at(tiny_model, "foo(\n    1,\n)\n", score=-0.5)
    assert task.finish(attempt).text == "foo(\n    1,\n)"


@pytest.mark.parametrize(
    "rest", ["    1,\n)\n", "    1 2,\n)\n", "    ]\n)\n", "    1,\n    2,\n    3,\n    4,\n    5,\n"]
)
def test_what_was_shown_early_stays(tiny_model, rest):
    task, attempt = attempt_at(tiny_model, "foo(\n" + rest, score=-0.001)
    assert attempt.stop is not None
    assert task.finish(attempt).text.startswith("foo(")
