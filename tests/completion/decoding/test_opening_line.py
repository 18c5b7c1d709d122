"""A line that opens what later lines close is offered if it is likely. What the user has left open stays open."""

import pytest

from completion.decoding.constraints import open_grammar
from completion.decoding.decoder import Step
from completion.decoding.finishing import Finisher
from completion.ending.context import Context
from completion.ending.rule import DropReason
from completion.prompt.healing import HealedPrefix
from completion.request import CompletionRequest, Mode, StopReason, Suggestion
from drafting.verifier import MODEL
from tests.completion.grammar.acceptors import GRAMMARS
from tests.completion.tasks import DOCUMENT, task_at

LIKELY, UNLIKELY = (-0.01, -0.02), (-0.01, -0.9)


def finisher_at(prefix, suffix, language, mode=Mode.LINE, *, invoked=True):
    request = CompletionRequest(prefix, suffix, language, mode=mode, healing=False, invoked=invoked)
    context = Context.of(prefix, suffix, language, mode, invoked=invoked)
    return Finisher(request, context, open_grammar(request, HealedPrefix(prefix, ""), GRAMMARS), b"")


def finished(prefix, suffix, text, language, scores=LIKELY, reason=StopReason.LINE_END):
    finisher = finisher_at(prefix, suffix, language)
    result = finisher.finish(Suggestion(text, token_log_probabilities=scores), reason)
    return "" if isinstance(result, DropReason) else result.text


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
    assert finished("x = 1\n", "\ny = 2\n", "if foo bar(", "python") == ""


def test_a_line_whose_opener_the_document_closes_is_never_cut():
    assert finished("x = f(\n", "\n    2\n])\n", "    [", "python", UNLIKELY) == "    ["


@pytest.mark.parametrize(
    ("prefix", "suffix", "text", "language"),
    [
        ("NAMES = [\n    ", "\n\ndef f():\n    return 1\n", '"first",', "python"),
        ('NAMES = [\n    "fi', "\n\ndef f():\n    return 1\n", 'rst",', "python"),
        ("class A:\n    B = f(\n        ", "\n\n    def f(self):\n        return 1\n", "b + c,", "python"),
        ("NAMES = [\n    ", "\n\ndef f():\n    return 1\n", '"first",  # Not sorted.', "python"),
        ("NAMES = [\n    # Not ", "\n\ndef f():\n    return 1\n", "sorted.", "python"),
        ("f({\n  a: 1,\n  ", "\n\ny();\n", "b: 2,", "javascript"),
        ("int f() {\n    int size ", "\n\nint g() {\n    return 1;\n}\n", "= 2;", "c"),
        ("class A {\n    void f() {\n        run(", "\n\n    void g() {}\n}\n", "1);", "java"),
        ("f();\n\n/**\n * Names ", "\nfunction g() {}\n", "the first.", "typescript"),
        ("let a = (x: u8) -> [u8; 2] {\n", "\nfn g() {}\n", "    [x, x]", "rust"),
    ],
    ids=[
        "list",
        "string",
        "call",
        "comment after it",
        "comment within",
        "two brackets",
        "body",
        "method",
        "block comment",
        "broken before",
    ],
)
def test_what_the_user_has_opened_may_stay_open(prefix, suffix, text, language):
    assert finished(prefix, suffix, text, language, UNLIKELY) == text


@pytest.mark.parametrize(
    ("text", "kept"),
    [("1, 2])", "1, 2]"), ("1, f(", ""), ('1, "a', ""), ("1, f(  # a", "")],
    ids=["a closer too many", "unlikely opener", "a string of its own", "unlikely opener with a comment"],
)
def test_what_is_wrong_after_an_open_bracket_is_cut(text, kept):
    assert finished("x = [\n    ", "\n\ndef f():\n    pass\n", text, "python", UNLIKELY) == kept


def test_unfinished_text_is_shown_within_a_bracket_that_the_user_has_opened():
    finisher = finisher_at("names = [\n    ", "\n\ndef f():\n    return 1\n", "python")
    assert finisher.visible_part("first + second,", "") == "first + second,"
    assert finisher.visible_part("first + second)", "") == ""


GO = "package a\n\n// Get returns an item by its key.\n"


@pytest.mark.parametrize(
    "text", ["func Get(key string", "func Get(key string) {", "func Get(key string) {\n\treturn f(key)"]
)
def test_a_block_is_shown_before_it_closes_what_it_opens(text):
    assert finisher_at(GO, "\n", "go", Mode.BLOCK, invoked=False).visible_part(text, "") == text


def test_a_block_that_was_asked_for_is_shown_when_it_is_closed():
    finisher = finisher_at(GO, "\n", "go", Mode.BLOCK)
    assert finisher.visible_part("func Get(key string) {", "") == ""
    assert finisher.visible_part("func Get(key string) {\n}", "") == "func Get(key string) {\n}"


def test_a_block_that_no_closer_makes_valid_is_not_shown():
    assert finisher_at(GO, "\n", "go", Mode.BLOCK, invoked=False).visible_part("func Get(key] string", "") == ""


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
