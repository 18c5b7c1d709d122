"""The engine's answer to a request for next edits, with a real model and grammar."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from completion.cache.kv_session import KVSession, SessionSettings
from completion.cancellation import CancelToken
from completion.edits import LineEdit, NextEdit, NextEditRequest
from completion.engine import Engine
from completion.errors import CancelledError
from completion.model.loading import LoadedModel
from completion.next_edit.finder import next_edits, without_overlaps, worth_judging
from completion.next_edit.gate import Gate, GateWeights
from completion.next_edit.judge import Judge
from completion.prompt.fim_format import detect_format
from completion.prompt.planner import PromptPlanner
from completion.request import Closing, CompletionRequest
from completion.syntax.parsing import IN_PROCESS

Find = Callable[[NextEditRequest, Gate], tuple[NextEdit, ...]]

REQUEST = NextEditRequest(
    ("import zstandard", "", "x = zstd.open(1)", "y = zstd.read(x)"),
    (LineEdit(0, ("import zstd",), ("import zstandard",)),),
    "python",
    "a.py",
    "a document",
)


@pytest.fixture
def engine(tiny_model: LoadedModel) -> Engine:
    return Engine(tiny_model)


def test_edits_name_lines_of_the_document_and_their_probability(engine: Engine) -> None:
    for edit in engine.next_edits(REQUEST, CancelToken()).edits:
        assert REQUEST.lines[edit.line : edit.line + len(edit.old)] == edit.old
        assert "zstd" not in "".join(edit.new)
        assert 0 < edit.probability < 1


def test_without_edits_there_is_no_next_one(engine: Engine) -> None:
    assert engine.next_edits(replace(REQUEST, edits=()), CancelToken()).edits == ()


def test_the_cache_of_the_documents_completions_stays_as_it_is(engine: Engine) -> None:
    request = CompletionRequest("x = ", "\n", "python", document=REQUEST.document, max_tokens=2)
    first = list(engine.complete(request, CancelToken()))[-1]
    engine.next_edits(REQUEST, CancelToken())
    second = list(engine.complete(request, CancelToken()))[-1]
    assert [each.text for each in first.suggestions] == [each.text for each in second.suggestions]
    assert second.statistics is not None
    assert second.statistics.computed_tokens <= 1
    engine.forget(Closing((REQUEST.document,)))


def test_a_cancelled_request_ends(engine: Engine) -> None:
    cancel = CancelToken()
    cancel.cancel()
    with pytest.raises(CancelledError):
        engine.next_edits(REQUEST, cancel)


UNSURE = Gate(GateWeights({}, -1.5), GateWeights({}, 2.0))  # the model judges everything, and everything is shown


@pytest.fixture
def find(tiny_model: LoadedModel) -> Find:
    planner = PromptPlanner(tiny_model.tokenizer, detect_format(tiny_model.tokenizer.special, "tiny"))
    judge = Judge(tiny_model.model, tiny_model.tokenizer, planner)

    def found(request: NextEditRequest, gate: Gate) -> tuple[NextEdit, ...]:
        session = KVSession(tiny_model.model, SessionSettings())
        edits = next_edits(request, judge, gate, session, IN_PROCESS, CancelToken())
        assert bool(session.tokens) == (gate is UNSURE)
        return edits

    return found


def test_the_model_judges_place_by_place_until_an_edit_is_shown(find: Find) -> None:
    assert [edit.line for edit in find(REQUEST, UNSURE)] == [2]


def test_edits_that_the_rules_are_sure_of_are_found_without_the_model(find: Find) -> None:
    sure = Gate(GateWeights({}, 1.0), GateWeights({}, -9.0))
    assert [(edit.line, round(edit.probability, 2)) for edit in find(REQUEST, sure)] == [(2, 0.73), (3, 0.73)]


def test_a_refused_edit_is_not_found_and_those_after_it_are(find: Find) -> None:
    [first] = find(REQUEST, UNSURE)
    [second] = find(replace(REQUEST, refused=(first.fingerprint,)), UNSURE)
    assert second.line == 3


def test_of_edits_of_the_same_line_the_likeliest_is_kept() -> None:
    low, high, apart = (NextEdit(line, ("a", "b"), ("c",), chance) for line, chance in ((1, 0.5), (2, 0.9), (4, 0.3)))
    assert without_overlaps([low, high, apart]) == [high, apart]


def test_the_model_judges_the_likeliest_proposals_in_their_order() -> None:
    assert worth_judging([0.09, 0.09, 0.09, 0.5, 0.01, 0.2, 0.2, 0.2, 0.2]) == [0, 3, 5, 6, 7, 8]
    assert worth_judging([0.01, 0.5]) == [1]


def test_a_manual_request_gets_the_likeliest_edit_where_an_automatic_one_gets_none(tiny_model: LoadedModel) -> None:
    planner = PromptPlanner(tiny_model.tokenizer, detect_format(tiny_model.tokenizer.special, "tiny"))
    judge = Judge(tiny_model.model, tiny_model.tokenizer, planner)

    def lines(bias: float, *, invoked: bool) -> list[int]:
        gate, session = (
            Gate(GateWeights({}, -1.5), GateWeights({}, bias)),
            KVSession(tiny_model.model, SessionSettings()),
        )
        request = replace(REQUEST, invoked=invoked)
        return [edit.line for edit in next_edits(request, judge, gate, session, IN_PROCESS, CancelToken())]

    assert lines(-1.2, invoked=False) == []
    assert lines(-1.2, invoked=True) == [2]
    assert lines(-4.0, invoked=True) == []
