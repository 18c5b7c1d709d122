"""Superposed drafts: mixtures of one token are that token, whoever computed its row; the first suggestion stays."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from completion.alternatives import further_suggestions
from completion.alternatives.superposed import superposed_drafts
from completion.cancellation import NEVER, CancelToken
from completion.decoding.attempt import Attempt
from completion.decoding.joint_passes import JointPasses
from completion.decoding.local_task import LocalTask
from completion.ending.early_stop import EarlyStop
from completion.engine import Engine
from completion.errors import CancelledError
from completion.grammar.joining import Missing
from completion.model.loading import load_model
from completion.request import Alternatives, GrammarMode, Mode, Suggestion
from tests.completion.tasks import DOCUMENT, task_at

CURSORS = range(6, len(DOCUMENT), 17)


@pytest.fixture(scope="module")
def loaded(tiny_qwen2):
    return load_model(str(tiny_qwen2), backend="fp32", threads=1)


def decoded(task: LocalTask) -> Attempt:
    first = task.first_attempt()
    for _ in task.stream(first, CancelToken()):
        continue
    return first


@pytest.mark.parametrize("drafting", [False, True])
def test_rows_of_the_first_suggestion_are_those_of_the_mixtures_that_are_its_tokens(loaded, drafting):
    for cursor in CURSORS:
        task = task_at(loaded, cursor, drafting=drafting)
        first = decoded(task)
        nothing_known = replace(first, top_tokens=first.top_tokens[:1])
        found, computed = (superposed_drafts(task, each, 4, 16, CancelToken()) for each in (first, nothing_known))
        assert [draft.tokens for draft in found] == [draft.tokens for draft in computed], cursor
        for draft, other in zip(found, computed, strict=True):
            np.testing.assert_allclose(draft.log_probabilities, other.log_probabilities, atol=1e-3)


def test_guesses_change_no_draft(loaded):
    for cursor in CURSORS:
        tasks = [task_at(loaded, cursor, drafting=drafting) for drafting in (False, True)]
        plain, guessed = (superposed_drafts(task, decoded(task), 4, 16, CancelToken()) for task in tasks)
        assert [draft.tokens for draft in plain] == [draft.tokens for draft in guessed], cursor


@pytest.mark.parametrize("backend", ["fp32", "transformers"])
def test_a_one_hot_mixture_is_exact(tiny_qwen2, backend):
    model = load_model(str(tiny_qwen2), backend=backend, threads=1).model
    mixed, plain = model.new_cache(64), model.new_cache(64)
    tokens = np.array([5, 60, 7, 300], dtype=np.int32)
    parents = np.array([-1, 0, 0, 2], dtype=np.int32)
    pairs = np.stack([tokens[::-1], tokens], axis=1)
    weights = np.tile(np.array([0.0, 1.0], dtype=np.float32), (4, 1))
    found, expected = model.superpose(pairs, weights, parents, mixed), model.score(tokens, parents, plain)
    for row in range(4):
        np.testing.assert_array_equal(found.row(row), expected.row(row))


def test_a_mixture_reads_the_weighted_sum_of_embeddings(tiny_qwen2):
    model, oracle = (
        load_model(str(tiny_qwen2), backend=backend, threads=1).model for backend in ("fp32", "transformers")
    )
    tokens, parents = np.array([[5, 60], [7, 300]], dtype=np.int32), np.array([-1, 0], dtype=np.int32)
    weights = np.array([[0.25, 0.75], [0.6, 0.4]], dtype=np.float32)
    found, expected = (one.superpose(tokens, weights, parents, one.new_cache(16)) for one in (model, oracle))
    for row in range(2):
        np.testing.assert_allclose(found.row(row), expected.row(row), atol=1e-3)


def test_a_first_token_has_its_probability_among_those_that_the_forced_bytes_allow(loaded):
    forced = others = 0
    for cursor in CURSORS:
        task = task_at(loaded, cursor, healing=True)
        first = decoded(task)
        prompt = np.array(task.prompt.tokens, dtype=np.int32)
        slots = np.arange(len(prompt), dtype=np.int32)
        row = loaded.model.prefill(prompt, slots, loaded.model.new_cache(512), [len(prompt) - 1]).row(0)
        constraints = task.constraints()
        allowed = constraints.candidates(constraints.start)
        total = np.logaddexp.reduce((row if allowed is None else row[allowed]).astype(np.float64))
        drafts = superposed_drafts(task, first, 4, 16, CancelToken())
        assert len({draft.tokens for draft in drafts}) == len(drafts)
        for draft in drafts:
            assert draft.log_probabilities[0] == pytest.approx(row[draft.tokens[0]] - total, abs=1e-3)
        forced += bool(task.prompt.forced)
        known = {*first.top_tokens[0].tokens.tolist(), first.source.tokens[0]}
        others += not known.issuperset(draft.tokens[0] for draft in drafts)
    assert forced
    assert others


class CancelledInAPass(JointPasses):
    def __init__(self, model):
        super().__init__(model)
        self.superpose = self.cancelled

    def cancelled(self, tokens, weights, parents, cache, cancel=NEVER):
        cancel.cancel()
        return self.model.superpose(tokens, weights, parents, cache, cancel)


@pytest.mark.parametrize("passes", [JointPasses, CancelledInAPass])
def test_superposed_drafts_restore_the_session(loaded, passes):
    cancelled = 0
    for cursor in CURSORS:
        task = replace(task_at(loaded, cursor), model=passes(loaded.model))
        first, cancel = decoded(task), CancelToken()
        before = list(task.session.tokens)
        try:
            superposed_drafts(task, first, 4, 16, cancel)
        except CancelledError:
            cancelled += 1
        assert task.session.tokens == before
        assert (task.session.cache.length, task.session.cache.kept) == (len(before), 0)
    assert bool(cancelled) == (passes is CancelledInAPass)


def test_the_first_suggestion_comes_first_and_is_the_one_without_alternatives(loaded):
    engine = Engine(loaded)
    for cursor in CURSORS:
        request = task_at(loaded, cursor, alternatives=Alternatives.SUPERPOSED).request
        *_, alone = engine.complete(replace(request, suggestions=1), CancelToken())
        texts = [[each.text for each in event.suggestions] for event in engine.complete(request, CancelToken())]
        whole = [each for each in texts if each[:1] == [suggestion.text for suggestion in alone.suggestions]]
        assert texts[-1] == whole[-1]
        assert len(whole[0]) <= 1


@pytest.mark.parametrize("alternatives", list(Alternatives))
def test_every_suggestion_obeys_the_grammar_and_the_text_before_the_cursor(loaded, alternatives):
    engine, shown = Engine(loaded), 0
    for cursor in CURSORS:
        request = task_at(loaded, cursor, grammar=GrammarMode.STRICT, alternatives=alternatives).request
        *_, event = engine.complete(request, CancelToken())
        task = task_at(loaded, cursor)
        for suggestion in event.suggestions:
            data, grammar = task.prompt.forced + suggestion.text.encode(), task.grammar
            # `def name[T`, which the limit cuts, is not whole
            assert grammar.longest_passing_cut(data, 0, Missing.ANYTHING) == len(data), (cursor, suggestion.text)
            shown += 1
    assert shown > 0


def test_a_manual_request_gets_no_hopeless_draft_that_is_less_likely_than_the_first_suggestion(loaded):
    options = {"invoked": True, "filters": True, "mode": Mode.LINE, "max_tokens": 48}
    for cursor in CURSORS:
        task = task_at(loaded, cursor, alternatives=Alternatives.SUPERPOSED, **options)
        first = decoded(task)
        for found in further_suggestions.alternatives(task, first, [Suggestion("nothing like it")], CancelToken()):
            values = found.token_log_probabilities
            for tokens in range(1, len(values) + 1):
                total = sum(values[:tokens])
                is_hopeless = EarlyStop.shipped().is_hopeless(tokens, total)
                assert not is_hopeless or total >= sum(first.log_probabilities[:tokens]) - 1e-3, (cursor, found.text)
