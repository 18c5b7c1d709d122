"""Superposed drafts: a single one is the greedy text, one-hot mixtures are exact, and so are the probabilities."""

from __future__ import annotations

import numpy as np
import pytest

from completion.alternatives import further_suggestions
from completion.alternatives.superposed import superposed_drafts
from completion.cancellation import CancelToken
from completion.decoding.local_task import LocalTask
from completion.ending.early_stop import EarlyStop
from completion.engine import Engine
from completion.grammar.joining import Missing
from completion.model.loading import load_model
from completion.request import Alternatives, GrammarMode, Mode, Suggestion
from tests.completion.tasks import DOCUMENT, task_at

CURSORS = range(6, len(DOCUMENT), 17)


@pytest.fixture(scope="module")
def loaded(tiny_qwen2):
    return load_model(str(tiny_qwen2), backend="fp32", threads=1)


def greedy(task: LocalTask) -> list[int]:
    attempt = task.first_attempt()
    for _ in attempt.stream(CancelToken()):
        continue
    task.session.truncate(len(task.prompt.tokens) - 1)
    return attempt.source.tokens


@pytest.mark.parametrize("grammar", list(GrammarMode))
def test_a_single_draft_is_the_greedy_text(loaded, grammar):
    for cursor in CURSORS:
        task = task_at(loaded, cursor, grammar=grammar, drafting=False)
        plain = greedy(task)
        (draft,) = superposed_drafts(task, 1, 16, CancelToken())
        assert list(draft.tokens) == plain, cursor


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


def test_probabilities_are_those_of_decoding_also_within_the_forced_bytes(loaded):
    forced = 0
    for cursor in CURSORS:
        task = task_at(loaded, cursor, drafting=False, healing=True)
        attempt = task.first_attempt()
        for _ in attempt.stream(CancelToken()):
            continue
        task.session.truncate(len(task.prompt.tokens) - 1)
        (draft,) = superposed_drafts(task, 1, 16, CancelToken())
        count = len(attempt.log_probabilities)
        np.testing.assert_allclose(draft.log_probabilities[:count], attempt.log_probabilities, atol=1e-4)
        forced += bool(task.prompt.forced)
    assert forced


def test_probabilities_are_exact_and_order_the_drafts(loaded):
    for cursor in CURSORS:
        task = task_at(loaded, cursor)
        drafts = superposed_drafts(task, 4, 16, CancelToken())
        sums = [sum(draft.log_probabilities) for draft in drafts]
        assert sums == sorted(sums, reverse=True)
        assert len({draft.tokens for draft in drafts}) == len(drafts)
        for draft in drafts:
            tokens = np.array([*task.prompt.tokens, *draft.tokens], dtype=np.int32)
            before, slots = len(task.prompt.tokens), np.arange(len(tokens), dtype=np.int32)
            rows = range(before - 1, len(tokens) - 1)
            logits = loaded.model.prefill(tokens, slots, loaded.model.new_cache(512), rows)
            allowed = task.constraints().candidates_along(draft.tokens)
            for index, token in enumerate(draft.tokens):
                row = logits.row(index).astype(np.float64)
                exact = row[token] - np.logaddexp.reduce(row if allowed[index] is None else row[allowed[index]])
                assert draft.log_probabilities[index] == pytest.approx(exact, abs=1e-3)


def test_superposed_drafts_restore_the_session(loaded):
    task = task_at(loaded, 60)
    before = list(task.session.tokens)
    superposed_drafts(task, 3, 16, CancelToken())
    assert task.session.tokens == before
    assert (task.session.cache.length, task.session.cache.kept) == (len(before), 0)


@pytest.mark.parametrize("alternatives", list(Alternatives))
def test_every_suggestion_obeys_the_grammar_and_the_text_before_the_cursor(loaded, alternatives):
    engine, shown = Engine(loaded), 0
    for cursor in CURSORS:
        request = task_at(loaded, cursor, grammar=GrammarMode.STRICT, alternatives=alternatives).request
        *_, event = engine.complete(request, CancelToken())
        task = task_at(loaded, cursor)
        for suggestion in event.suggestions:
            data, grammar = task.prompt.forced + suggestion.text.encode(), task.grammar
            is_whole = grammar.longest_passing_cut(data, 0) == len(data)
            # `def name[T`, which the limit cuts, is not whole
            assert is_whole or grammar.sound_when_joined(data, Missing.ANYTHING), (cursor, suggestion.text)
            shown += 1
    assert shown > 0


def test_a_manual_request_gets_no_hopeless_draft_that_is_less_likely_than_the_first_suggestion(loaded):
    options = {"invoked": True, "filters": True, "mode": Mode.LINE, "max_tokens": 48}
    for cursor in CURSORS:
        task = task_at(loaded, cursor, alternatives=Alternatives.SUPERPOSED, **options)
        first = task.first_attempt()
        for _ in task.stream(first, CancelToken()):
            continue
        for found in further_suggestions.alternatives(task, first, [Suggestion("nothing like it")], CancelToken()):
            values = found.token_log_probabilities
            for tokens in range(1, len(values) + 1):
                total = sum(values[:tokens])
                is_hopeless = EarlyStop.shipped().is_hopeless(tokens, total)
                assert not is_hopeless or total >= sum(first.log_probabilities[:tokens]) - 1e-3, (cursor, found.text)
