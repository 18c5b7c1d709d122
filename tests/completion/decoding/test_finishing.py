"""Text that is shown while it grows is the beginning of the result, also in a document with broken syntax."""

from __future__ import annotations

import inspect
import random
from dataclasses import dataclass

import pytest

from completion.cancellation import CancelToken
from completion.decoding import finishing
from completion.decoding.constraints import open_grammar
from completion.decoding.decoder import Step
from completion.decoding.run_record import RunRecord
from completion.decoding.task import Task
from completion.ending.context import cursor_context
from completion.ending.rule import DropReason
from completion.request import CompletionRequest, GrammarMode, Mode
from drafting.verifier import MODEL
from tests.completion.grammar.acceptors import GRAMMARS
from tests.completion.tasks import prompt_of


class Dictation:
    """A source of the tokens of a given text, some in each step."""

    def __init__(self, tokens, constraints, step_tokens):
        self.constraints, self.stop_ids, self.tokens = constraints, frozenset(), []
        self._dictated, self._step_tokens = tokens, step_tokens

    def steps(self, _cancel):
        for start in range(0, len(self._dictated), self._step_tokens):
            tokens = tuple(self._dictated[start : start + self._step_tokens])
            self.tokens += tokens
            yield Step(tokens, (MODEL,) * len(tokens), (-0.1,) * len(tokens), 0, 0.0)


@dataclass(frozen=True, slots=True)
class DictatedTask(Task):
    """A request whose answer is a given text."""

    text: str
    step_tokens: int

    def source(self, constraints, written, state, *, is_first):
        return Dictation(self.tokenizer.encode(self.text), constraints, self.step_tokens)


def shown_and_result(loaded, language, prefix, text, suffix, mode=Mode.BLOCK, max_tokens=1000, step_tokens=1, **more):
    """Return every text that a client sees while `text` is generated, and the text of the result."""
    shown, result = shown_and_outcome(loaded, language, prefix, text, suffix, mode, max_tokens, step_tokens, **more)
    return shown, "" if isinstance(result, DropReason) else result.text


def shown_and_outcome(loaded, language, prefix, text, suffix, mode=Mode.BLOCK, max_tokens=1000, step_tokens=1, **more):
    """Return every text that a client sees while `text` is generated, and the suggestion or the reason for none."""
    request = CompletionRequest(prefix, suffix, language, mode=mode, max_tokens=max_tokens, healing=False, **more)
    prompt = prompt_of(loaded, request)
    grammar = open_grammar(request, prompt.healed, GRAMMARS)
    record = RunRecord(lambda: 0.0)
    context = cursor_context(request)
    task = DictatedTask(loaded.tokenizer, request, context, prompt, grammar, record, text, step_tokens)
    attempt = task.first_attempt()
    shown = list(task.stream(attempt, CancelToken()))
    return shown, task.finish(attempt)


@pytest.mark.parametrize("closer", ["", '"'])
def test_a_text_opens_an_element_within_one_of_its_name(tiny_model, closer):
    prefix, suffix = 'const a = (\n  <div>\n    {b && (\n      <div id="', "\n    )}\n    <i />\n  </div>\n);\n"
    _, result = shown_and_outcome(tiny_model, "javascript", prefix, 'd">', closer + suffix, mode=Mode.LINE)
    assert (result.text, result.replace_after) == ('d">', len(closer))


def test_a_closer_that_the_grammar_cuts_off_is_not_replaced(tiny_model):
    prefix, suffix = "function f() {\n  const q = new URL", "}\n  q.set(a);\n}\n"
    _, result = shown_and_outcome(tiny_model, "javascript", prefix, "rLoad} */", suffix, mode=Mode.LINE)
    assert (result.text, result.replace_after) == ("rLoad", 0)


@pytest.mark.parametrize(
    ("prefix", "text", "suffix"),
    [
        ("def f(", "a: int", "):\n\n\nx = 1\n"),
        ("def f(", "a: int) -> int", "):\n\n\nx = 1\n"),
        ("class A(", "B", "):\n\n\nx = 1\n"),
        ("def f(", "a: int", "):\n    return a\n"),
        ("if f(", "a", "):\n\nx = 1\n"),
    ],
)
def test_a_head_in_python_gets_suggestions_before_its_colon_also_without_a_body(tiny_model, prefix, text, suffix):
    shown, result = shown_and_result(tiny_model, "python", prefix, text + "\n", suffix, mode=Mode.LINE)
    assert result == text
    assert {each for each in shown if not result.startswith(each)} == set()


@pytest.mark.parametrize(
    ("language", "prefix", "text", "suffix", "left"),
    [
        ("java", "class A {\n  public ", "int get() {\n", " put(int a) {\n    b = a;\n  }\n}\n", "int"),
        ("java", "class A {\n  public ", "int get()", " put(int a) {\n    b = a;\n  }\n}\n", "int"),
        ("java", "class A {\n  D", "ouble a;", "<B> b = new C<>();\n}\n", "ouble"),
        ("java", "class A {\n  void f() {\n    if (a", " && g(b)", ") {\n    }\n  }\n}\n", " && g(b)"),
        ("typescript", "const a = ", "f((b) => {\n", " + c;\n", "f"),
    ],
    ids=[
        "a method's head before another",
        "a method before another",
        "a field before another",
        "a call in a condition",
        "a callback before an operator",
    ],
)
def test_a_text_opens_nothing_before_code_that_follows_the_cursor_on_its_line(
    tiny_model, language, prefix, text, suffix, left
):
    shown, result = shown_and_result(tiny_model, language, prefix, text, suffix, mode=Mode.LINE)
    assert result == left
    assert {each for each in shown if not left.startswith(each)} == set()


@pytest.mark.parametrize(
    ("language", "prefix", "text", "suffix"),
    [
        ("go", "package main\n\nfunc f(x []int) {\n\t", "for i := range x {\n\t\tprint(i)\n\t}", "\n\tse#lect {}\n}\n"),
        ("java", "class A {\n  void f() {\n    ", "int a = 1;\n    if (a > 1) { h(a); }\n    k(a);", "\n  }\n}}\n"),
        ("rust", "fn f() {\n    ", "let a = 1;\n    if a > 1 { h(a); }\n    k(a);", "\n}}\n"),
    ],
    ids=["a broken line", "a brace too many", "another brace too many"],
)
def test_text_that_was_shown_stays_where_the_text_after_the_cursor_is_broken(
    tiny_model, language, prefix, text, suffix
):
    """There a shorter cut can fit the broken text better than what was shown."""
    shown, result = shown_and_result(tiny_model, language, prefix, text, suffix)
    assert shown
    assert [each for each in shown if not result.startswith(each)] == []


@pytest.mark.parametrize("seed", range(60))
def test_the_result_does_not_depend_on_how_many_tokens_a_step_has(tiny_model, seed):
    """Drafts change that. What was shown is kept, so what is shown must not depend on it either."""
    draw = random.Random(seed)
    code = inspect.getsource(finishing)
    at, length = draw.randrange(600, len(code) - 400), draw.randrange(15, 140)
    text, suffix = code[at : at + length], code[code.index("\n", at + length) :]
    broken, most = draw.randrange(200), draw.choice((12, 20, 1000))
    document = "python", code[:at], text, suffix[:broken] + suffix[broken + 1 :], draw.choice((Mode.LINE, Mode.BLOCK))
    results = {shown_and_result(tiny_model, *document, most, count)[1] for count in (1, 2, 3, 5, 8)}
    assert len(results) == 1


@pytest.mark.parametrize("mode", [Mode.LINE, Mode.BLOCK])
@pytest.mark.parametrize(
    ("language", "prefix", "text"),
    [
        ("python", "def f(a):\n    ", "if a:\n        return 1\n    return 2\n\n\ndef g():\n    pass\n"),
        ("python", "", "# a\n@b\ndef f():\n    return 1\n\nx = 1\ny = 2\n"),
        ("java", "class A {\n  void f() {\n    ", "if (a) {\n      b();\n    }\n  }\n\n  void g() {\n"),
        ("go", "func f() {\n\t", "return\n}\n\nfunc g() {\n\treturn\n}\n"),
        ("rust", "", "fn f() -> u8 {\n    1\n}\n\nfn g() {}\n\nfn h() {}\n"),
        ("ruby", "def f\n  ", "a\nend\n\ndef g\n  b\nend\n"),
        ("yaml", "a:\n  ", "b: 1\n  c: 2\nd: 3\ne: 4\n"),
        ("sql", "", "SELECT a\nFROM b;\n\nSELECT c;\n"),
    ],
)
def test_without_filters_too_nothing_is_taken_back(tiny_model, language, prefix, text, mode):
    plain = {"filters": False, "grammar": GrammarMode.OFF}
    for end in range(1, len(text) + 1):
        shown, result = shown_and_result(tiny_model, language, prefix, text[:end], "", mode, **plain)
        assert [each for each in shown if not result.startswith(each)] == []
    assert result == result.rstrip()  # nor does it keep the start of a line before which it ends


def test_a_line_that_was_cut_short_ends_with_a_whole_word(tiny_model):
    found = set()
    for most in range(1, 12):
        document = "python", "x = ", "alpha_beta + gamma_delta", "\n", Mode.LINE
        found.add(shown_and_result(tiny_model, *document, most)[1].rstrip())
    assert {"alpha_beta +"} <= found <= {"", "alpha_beta", "alpha_beta +"}
