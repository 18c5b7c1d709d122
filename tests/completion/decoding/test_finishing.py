"""Text that is shown while it grows is the beginning of the result, also in a document with broken syntax."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from completion.cancellation import CancelToken
from completion.decoding.decoder import Step
from completion.decoding.finishing import open_grammar
from completion.decoding.run_record import RunRecord
from completion.decoding.task import Task
from completion.postprocess import Dropped
from completion.request import CompletionRequest, Mode
from completion.stopping.mode import cursor_context
from drafting.verifier import MODEL
from tests.completion.grammar.acceptors import GRAMMARS
from tests.completion.tasks import prompt_of


class Dictation:
    """A source of the tokens of a given text, one a step."""

    def __init__(self, tokens, constraints):
        self.constraints, self.stop_ids, self.tokens = constraints, frozenset(), []
        self._dictated = tokens

    def steps(self, _cancel):
        for token in self._dictated:
            self.tokens.append(token)
            yield Step((token,), (MODEL,), (-0.1,), 0, 0.0)


@dataclass(frozen=True, slots=True)
class DictatedTask(Task):
    """A request whose answer is a given text."""

    text: str

    def source(self, constraints, written, state, *, is_first):
        return Dictation(self.tokenizer.encode(self.text), constraints)


def shown_and_result(loaded, language, prefix, text, suffix):
    """Return every text that a client sees while `text` is generated, and the text of the result."""
    request = CompletionRequest(prefix, suffix, language, mode=Mode.BLOCK, max_tokens=1000, healing=False)
    prompt = prompt_of(loaded, request)
    grammar = open_grammar(request, prompt.healed, GRAMMARS)
    record = RunRecord(lambda: 0.0)
    task = DictatedTask(loaded.tokenizer, request, cursor_context(request), prompt, grammar, record, text)
    attempt = task.first_attempt()
    shown = list(task.stream(attempt, CancelToken()))
    result = task.finish(attempt)
    return shown, "" if isinstance(result, Dropped) else result.text


@pytest.mark.parametrize(
    ("language", "prefix", "text", "suffix"),
    [
        ("go", "package main\n\nfunc f(x []int) {\n\t", "for i := range x {\n\t\tprint(i)\n\t}", "\n\tse#lect {}\n}\n"),
        ("java", "class A {\n  void f() {\n    ", "int a = 1;\n    if (a > 1) { h(a); }\n    k(a);", "\n  }\n}}\n"),
        ("rust", "fn f() {\n    ", "let a = 1;\n    if a > 1 { h(a); }\n    k(a);", "\n}}\n"),
    ],
    ids=["a broken line", "a brace too many", "another brace too many"],
)
def test_defect_14_text_that_was_shown_stays_where_the_text_after_the_cursor_is_broken(
    tiny_model, language, prefix, text, suffix
):
    """There a shorter cut can fit the broken text better than what was shown."""
    shown, result = shown_and_result(tiny_model, language, prefix, text, suffix)
    assert shown
    assert [each for each in shown if not result.startswith(each)] == []
