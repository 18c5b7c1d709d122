"""The limits follow from the measured costs of steps: a GPU's are wide, a processor's stay as they are."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest

from completion.cancellation import CancelToken
from completion.completer import Completer
from completion.decoding import step_costs
from completion.decoding.step_costs import MAX_NODES, PROCESSOR_NODES, limits, load_or_measure_costs
from completion.engine import Engine, EngineSettings
from completion.model.causal_model import ScorePass
from completion.prompt.pace import COLD_PROMPT_S, PromptBudget, PromptPace
from completion.request import CompletionRequest, GrammarMode
from drafting.calibration import default_calibration
from drafting.draft_budget import StepCosts
from drafting.session import Drafters

PROCESSOR = StepCosts({0: 21.0, 4: 31.0, 8: 42.0, 16: 66.0}, PROCESSOR_NODES)
GPU = StepCosts({0: 3.1, 16: 3.3, 63: 3.9}, MAX_NODES)
OLD_GPU = StepCosts({0: 9.0, 16: 13.0, 63: 31.0}, MAX_NODES)


def test_a_processor_keeps_its_limits_and_a_gpu_gets_longer_prompts_and_joint_requests():
    assert limits(PROCESSOR, 8) == limits(OLD_GPU, 8) == (1, 8)
    assert limits(PROCESSOR, 1) == (1, 1)
    assert limits(GPU, 1) == (8, 8)


@pytest.mark.parametrize(("tokens_per_s", "times"), [(700, 1), (5_000, 1), (5_200, 2), (15_000, 4), (50_000, 8)])
def test_the_pace_decides_how_long_a_prompt_is(tokens_per_s, times):
    pace, plain = PromptPace(PromptBudget(), 4.0, longer=8), PromptPace(PromptBudget(), 4.0)
    assert pace.budget() == plain.budget() == PromptBudget()  # before the first prompt
    for each in (pace, plain):
        each.note(128, 128 / tokens_per_s)
    assert pace.budget() == PromptBudget().scaled(times)
    assert pace.budget().tokens <= COLD_PROMPT_S * tokens_per_s or times == 1
    assert pace.budget(most_tokens=1536) == plain.budget() == PromptBudget()


@pytest.mark.parametrize(
    ("device", "row_ms", "nodes"), [("cpu", 0.0, 16), ("cuda:0", 0.0, 63), ("cuda:0", 1.0, 16)], ids=str
)
def test_larger_trees_are_measured_for_a_gpu_with_free_rows(monkeypatch, tmp_path, tiny_model, device, row_ms, nodes):
    monkeypatch.setenv("DRAFTLINE_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(time, "perf_counter", clock := Clock())
    score, loaded = tiny_model.model.score, replace(tiny_model, device=device)

    def timed(tokens, *rest):
        clock.now += 1e-3 * (3 + row_ms * len(tokens))
        return score(tokens, *rest)

    monkeypatch.setattr(tiny_model.model, "score", timed)
    assert load_or_measure_costs(loaded, 16).max_nodes == nodes
    monkeypatch.setattr(step_costs, "measure_costs", None)
    assert load_or_measure_costs(loaded, 16).max_nodes == nodes  # as saved


class Clock:
    """A clock that the test moves."""

    now = 0.0

    def __call__(self):
        return self.now


def engine_of(loaded, costs, **settings) -> Completer:
    vocabulary = loaded.tokenizer.vocabulary_size
    return Engine(loaded, EngineSettings(**settings), Drafters(default_calibration(), costs, vocabulary))


def test_a_torch_model_with_the_costs_of_a_gpu_drafts_large_trees_and_keeps_its_text(tiny_model):
    engine = engine_of(tiny_model, GPU)
    assert engine.passes.joint_requests == 8
    assert engine_of(tiny_model, PROCESSOR).passes.joint_requests == tiny_model.model.joint_requests == 1
    prefix = "".join(f"def f{n}(a, b):\n    return a + b * {n}\n\n" for n in range(300))
    request = CompletionRequest(prefix, "\n", "python", max_tokens=48, grammar=GrammarMode.OFF, filters=False)
    *_, drafted = engine.complete(request, CancelToken())
    *_, plain = engine.complete(replace(request, drafting=False), CancelToken())
    assert [s.text for s in drafted.suggestions] == [s.text for s in plain.suggestions]
    assert drafted.statistics.drafted_tokens > PROCESSOR_NODES


def test_a_quick_engine_reads_prompts_of_more_than_the_default_length(tiny_model):
    budget = PromptBudget(128, 32, 32)
    engine = engine_of(tiny_model, GPU, budget=budget)
    slow = engine_of(tiny_model, PROCESSOR, budget=budget)
    prefix = "".join(f"def f{n}(a, b):\n    return a + b * {n}\n\n" for n in range(300))
    lengths = []
    for each in (engine, slow):
        for _ in range(16):
            each._pace.note(128, 128 / 1e6)
        request = CompletionRequest(prefix, "\n", "python", max_tokens=2, grammar=GrammarMode.OFF)
        *_, last = each.complete(request, CancelToken())
        lengths.append(last.statistics.prompt_tokens)
    assert lengths[1] <= budget.tokens + 64
    assert lengths[0] > 4 * lengths[1]


def test_trees_of_several_documents_are_scored_in_one_pass_as_one_by_one(tiny_model):
    model, rng = tiny_model.model, np.random.default_rng(3)
    alone, together = [], []
    passes = []
    for length in (5, 40, 130):
        past = rng.integers(0, 384, length).astype(np.int32)
        caches = [model.new_cache(400) for _ in range(2)]
        for cache in caches:
            model.prefill(past, np.arange(length, dtype=np.int32), cache)
        nodes = rng.integers(0, 384, 6).astype(np.int32)
        parents = np.array([-1, 0, 1, 0, 3, -1], dtype=np.int32)
        alone.append(model.score(nodes, parents, caches[0], skipped=1))
        passes.append(ScorePass(nodes, parents, caches[1], 1))
    together = model.score_together(passes)
    for one, other in zip(alone, together, strict=True):
        assert other.pass_rows == 18
        np.testing.assert_array_equal(other.argmax(), one.argmax())
        for row in range(5):
            np.testing.assert_allclose(other.row(row), one.row(row), atol=5e-4)
