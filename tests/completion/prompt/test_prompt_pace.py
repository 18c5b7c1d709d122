"""Prompt budgets follow the machine's speed, and a document keeps its budget while its KV session holds tokens."""

import math

import pytest

from completion.cache.kv_session import SessionSettings
from completion.cancellation import CancelToken
from completion.engine import Engine, EngineSettings
from completion.prompt.pace import PromptBudget, PromptPace
from completion.request import CompletionRequest

BUDGET = PromptBudget(prefix_tokens=512, suffix_tokens=128, context_tokens=128)
LARGEST = PromptBudget(prefix_tokens=800, suffix_tokens=200, context_tokens=500)


def prompt_tokens(engine, document, prefix):
    request = CompletionRequest(prefix, document=document, max_tokens=1, grammar="off", drafting=False)
    return next(event.statistics for event in engine.complete(request, CancelToken()) if event.done).prompt_tokens


def pace_of(tokens_per_s, full_prompt_s=1.5):
    pace = PromptPace(LARGEST, full_prompt_s)
    for _ in range(20):
        pace.note(128, 128 / tokens_per_s)
    return pace


@pytest.mark.parametrize(
    ("tokens_per_s", "share"), [(1300, 1), (1000, 1), (999, 0.75), (600, 0.5), (250, 0.25), (1, 0.25)]
)
def test_a_slow_machine_gets_a_smaller_prompt(tokens_per_s, share):
    assert pace_of(tokens_per_s).budget() == LARGEST.scaled(share)


def test_a_machine_of_unknown_speed_gets_the_largest_budget():
    assert PromptPace(LARGEST, 1.5).budget() == LARGEST


@pytest.mark.parametrize(("share_of_memory", "share"), [(1, 1), (0.99, 0.75), (0.6, 0.5), (0.01, 0.25)])
def test_little_memory_gives_a_smaller_prompt_on_a_fast_machine(share_of_memory, share):
    pace = pace_of(100_000)
    assert pace.budget(most_tokens=share_of_memory * LARGEST.tokens) == LARGEST.scaled(share)


@pytest.mark.parametrize(
    ("tokens_per_s", "tokens", "share"),
    [(600, 900, 1), (600, 901, 0.75), (499, 700, 0.75), (499, 1200, 0.5), (250, 100, 0.5), (1, 100, 0.25)],
)
def test_a_short_document_gets_a_budget_that_it_does_not_fill_if_it_may_grow_to_twice_the_time(
    tokens_per_s, tokens, share
):
    """A prompt has at most the document's tokens, and at most three quarters of its budget."""
    budget = pace_of(tokens_per_s).budget(lambda budget: min(tokens, 3 * budget.tokens // 4))
    assert budget == LARGEST.scaled(share)


def test_without_a_maximum_time_the_budget_never_shrinks():
    assert pace_of(1, math.inf).budget() == LARGEST


def test_small_chunks_and_a_single_slow_one_do_not_change_the_budget():
    pace = pace_of(2000)
    pace.note(128, 60.0)
    for _ in range(100):
        pace.note(8, 1.0)
    assert pace.budget() == LARGEST


def test_a_document_keeps_its_budget_while_its_session_holds_tokens(tiny_model):
    """The maximum time is shorter than any prompt, so the second document's prompts are a quarter as long."""
    engine = Engine(tiny_model, EngineSettings(budget=BUDGET, full_prompt_s=1e-9))
    text = "value = value + 1\n" * 400
    first = prompt_tokens(engine, "first", text)
    assert prompt_tokens(engine, "first", text + "v") >= first
    assert prompt_tokens(engine, "second", text) < first / 2


def test_the_prompt_of_a_short_document_is_whole_on_a_machine_that_is_too_slow_for_those_of_long_ones(tiny_model):
    """Chunks of 16 tokens do not count, so the machine computes the 400 tokens a second that are noted."""
    settings = EngineSettings(budget=BUDGET, full_prompt_s=1.0, sessions=SessionSettings(chunk_tokens=16))
    engine, text = Engine(tiny_model, settings), "value = value + 1\n" * 48
    whole = prompt_tokens(engine, "unknown speed", text)
    engine._pace.note(400, 1.0)
    assert BUDGET.scaled(0.5).prefix_tokens < whole <= 400
    assert prompt_tokens(engine, "short", text) == whole
    assert prompt_tokens(engine, "long", 40 * text) <= BUDGET.scaled(0.5).tokens
