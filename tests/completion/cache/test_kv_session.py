"""A KV session whose slots are exact gives the logits of a fresh prefill, whatever happened to it before."""

from __future__ import annotations

import math
import random
import weakref
from dataclasses import replace

import numpy as np
import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel, Qwen2Config, Qwen2ForCausalLM

from completion.cache.kv_session import BACKGROUND_TOKENS, HOLE, KVSession, SessionSettings
from completion.cache.kv_sessions import IN_USE_S, KVSessions
from completion.cancellation import CancelToken
from completion.errors import CancelledError, PromptTooLongError
from completion.model.dense.dense_transformer import load_dense
from completion.model.dense.transformers_model import TransformersModel
from completion.prompt.healing import HealedPrefix
from completion.prompt.planner import Prompt
from completion.request import CacheMode

SETTINGS = SessionSettings(capacity=1024, spare_slots=64, chunk_tokens=16, repair_tokens=4)


def prompt_of(tokens) -> Prompt:
    return Prompt(tuple(tokens), tuple(tokens), HealedPrefix("", ""), ())


def next_logits(model, session, prompt):
    row = np.array([prompt.tokens[-1]], dtype=np.int32)
    return model.score(row, np.array([-1], dtype=np.int32), session.cache).row(0).copy()


def fresh_logits(model, prompt):
    session = KVSession(model, SETTINGS)
    session.prepare(prompt, CacheMode.OFF, CancelToken())
    return next_logits(model, session, prompt)


@pytest.fixture
def model(tiny_model):
    return tiny_model.model


@pytest.fixture
def text():
    return random.Random(3).choices(range(300), k=400)


class CancelAfter(CancelToken):
    """A token that is cancelled after a number of checks, as by a client that leaves while the prompt is computed."""

    def __init__(self, checks: int) -> None:
        super().__init__()
        self._checks_left = checks

    def raise_if_cancelled(self) -> None:
        if self._checks_left == 0:
            self.cancel()
        self._checks_left -= 1
        super().raise_if_cancelled()


@pytest.mark.parametrize("cache_mode", [CacheMode.EXACT, CacheMode.PIE])
def test_typing_at_the_end_is_exact_and_computes_what_was_typed(model, text, cache_mode):
    session = KVSession(model, SETTINGS)
    session.prepare(prompt_of(text[:300]), cache_mode, CancelToken())
    plan = session.prepare(prompt_of(text[:303]), cache_mode, CancelToken())
    assert (plan.kept, plan.computed) == (299, 3)
    assert not session.edits.any()
    # float32: only the order of sums differs between a chunk and single rows
    np.testing.assert_allclose(
        next_logits(model, session, prompt_of(text[:303])), fresh_logits(model, prompt_of(text[:303])), atol=1e-4
    )


def test_300_random_edits_in_exact_mode_give_the_logits_of_no_cache(model, text):
    rng = random.Random(5)
    session = KVSession(model, SETTINGS)
    tokens = list(text)
    for edit in range(300):
        at = rng.randrange(len(tokens) - 20)
        tokens[at : at + rng.randrange(4)] = rng.choices(range(300), k=rng.randrange(4))
        prompt = prompt_of(tokens[: rng.randrange(len(tokens) // 2, len(tokens))])
        session.prepare(prompt, CacheMode.EXACT, CancelToken())
        if edit % 10 == 0:
            np.testing.assert_allclose(next_logits(model, session, prompt), fresh_logits(model, prompt), atol=1e-4)


def test_a_refresh_makes_a_shifted_cache_exact(model, text):
    session = KVSession(model, SETTINGS)
    session.prepare(prompt_of(text), CacheMode.PIE, CancelToken())
    edited = prompt_of([*text[:50], 7, 8, *text[50:]])
    plan = session.prepare(edited, CacheMode.PIE, CancelToken())
    assert plan.shifted > 300
    assert session.edits.any()
    session.refresh(CancelToken())
    assert not session.edits.any()
    np.testing.assert_allclose(next_logits(model, session, edited), fresh_logits(model, edited), atol=1e-4)


def test_what_is_computed_between_two_insertions_is_inexact_until_a_refresh_has_reached_it(model, text):
    session = KVSession(model, SETTINGS)
    for position in (None, 50, 70):  # nothing, then a token before moved slots, then one between them
        if position is not None:
            text.insert(position, 7)
        session.prepare(prompt_of(text), CacheMode.PIE, CancelToken())
    with pytest.raises(CancelledError):
        session.refresh(CancelAfter(1))
    exact = int(np.argmax(session.edits > 0))
    assert 50 < exact <= 71
    assert session.edits[exact:].all()
    session.refresh(CancelToken())
    prompt = prompt_of(text)
    np.testing.assert_allclose(next_logits(model, session, prompt), fresh_logits(model, prompt), atol=1e-4)


def test_a_cancelled_refresh_leaves_a_valid_cache(model, text):
    session = KVSession(model, SETTINGS)
    session.prepare(prompt_of(text), CacheMode.PIE, CancelToken())
    edited = prompt_of([*text[:50], 7, *text[50:]])
    session.prepare(edited, CacheMode.PIE, CancelToken())
    with pytest.raises(CancelledError):
        session.refresh(CancelAfter(3))
    assert session.tokens == list(edited.tokens[:-1])
    exact = int(np.argmax(session.edits > 0))
    assert exact >= 50 + 3 * 16
    session.prepare(edited, CacheMode.EXACT, CancelToken())
    np.testing.assert_allclose(next_logits(model, session, edited), fresh_logits(model, edited), atol=1e-4)


def test_a_cancelled_prompt_is_continued_at_the_chunk_where_it_stopped(model, text):
    session = KVSession(model, SETTINGS)
    with pytest.raises(CancelledError):
        session.prepare(prompt_of(text), CacheMode.EXACT, CancelAfter(5))
    assert session.tokens.index(HOLE) == 5 * 16
    plan = session.prepare(prompt_of(text), CacheMode.EXACT, CancelToken())
    assert plan.kept == 5 * 16
    np.testing.assert_allclose(
        next_logits(model, session, prompt_of(text)), fresh_logits(model, prompt_of(text)), atol=1e-4
    )


def test_after_a_cancelled_edit_the_slots_that_were_not_computed_are_not_reused(model, text):
    session = KVSession(model, SETTINGS)
    session.prepare(prompt_of(text), CacheMode.PIE, CancelToken())
    edited = [*text[:50], *range(200, 264), *text[50:]]
    with pytest.raises(CancelledError):
        session.prepare(prompt_of(edited), CacheMode.PIE, CancelAfter(1))
    session.prepare(prompt_of(text), CacheMode.PIE, CancelToken())
    session.refresh(CancelToken())
    np.testing.assert_allclose(
        next_logits(model, session, prompt_of(text)), fresh_logits(model, prompt_of(text)), atol=1e-4
    )


def test_tokens_are_computed_again_after_the_maximum_of_edits(model, text):
    session = KVSession(model, SessionSettings(capacity=1024, spare_slots=64, repair_tokens=0, max_edits=3))
    tokens = list(text)
    computed = []
    for token in range(5):
        tokens.insert(10, token)
        computed.append(session.prepare(prompt_of(tokens), CacheMode.PIE, CancelToken()).computed)
    assert computed[1:4] == [1, 1, 1]
    assert computed[4] > 300


def test_four_documents_interleaved_give_what_each_gives_alone(model, text):
    sessions = KVSessions(model, SETTINGS)
    texts = {name: text[start:] + text[:start] for name, start in zip("abcd", range(0, 400, 100), strict=True)}
    for length in range(100, 400, 50):
        for name, tokens in texts.items():
            prompt = prompt_of(tokens[:length])
            session = sessions.open(name)
            session.prepare(prompt, CacheMode.EXACT, CancelToken())
            np.testing.assert_allclose(next_logits(model, session, prompt), fresh_logits(model, prompt), atol=1e-4)


def test_the_least_recently_used_session_is_closed_first_to_stay_within_the_budget(model, text):
    sessions = KVSessions(model, SessionSettings(capacity=1024, spare_slots=64, budget_bytes=1))
    first = sessions.open("a")
    first.prepare(prompt_of(text), CacheMode.EXACT, CancelToken())
    sessions.open("b").prepare(prompt_of(text), CacheMode.EXACT, CancelToken())
    sessions.open("b")
    assert len(sessions) == 1
    assert sessions.open("b").tokens == text[:-1]


def test_a_session_that_nobody_waits_for_is_closed_before_older_ones(model, text):
    alone = KVSession(model, SETTINGS)
    alone.prepare(prompt_of(text), CacheMode.EXACT, CancelToken())
    sessions = KVSessions(model, replace(SETTINGS, budget_bytes=2 * alone.cache.size_bytes))
    for document, in_background in (("old", False), ("spare", True), ("new", False), ("new", False)):
        sessions.open(document, in_background=in_background).prepare(prompt_of(text), CacheMode.EXACT, CancelToken())
    assert [bool(sessions.open(document).tokens) for document in ("old", "new", "spare")] == [True, True, False]


def test_the_memory_is_shared_between_the_documents_in_which_somebody_types(model, text):
    now = [0.0]
    sessions = KVSessions(model, replace(SETTINGS, shared=True), clock=lambda: now[0])
    assert sessions.tokens_each() == math.inf
    for document in "abcd":
        sessions.open(document).prepare(prompt_of(text), CacheMode.EXACT, CancelToken())
    sessions.open("spare", in_background=True).prepare(prompt_of(text), CacheMode.EXACT, CancelToken())
    of_four = sessions.tokens_each()
    assert of_four == pytest.approx(
        SETTINGS.budget_bytes / 4 * len(text) / sessions.open("a").cache.size_bytes, rel=0.01
    )
    now[0] += IN_USE_S
    sessions.open("a")
    assert sessions.tokens_each() == pytest.approx(4 * of_four)


def test_one_users_documents_have_no_bound_and_lose_their_memory_in_turn(model, text):
    alone = KVSession(model, SETTINGS)
    alone.prepare(prompt_of(text), CacheMode.EXACT, CancelToken())
    sessions = KVSessions(model, replace(SETTINGS, budget_bytes=2 * alone.cache.size_bytes))
    for document, tokens in (("old", text[:9]), ("large", text), ("new", text), ("new", text)):
        sessions.open(document).prepare(prompt_of(tokens), CacheMode.EXACT, CancelToken())
    assert sessions.tokens_each() == math.inf
    assert [bool(sessions.open(document).tokens) for document in ("large", "new", "old")] == [True, True, False]


def test_the_largest_of_several_users_documents_loses_its_memory(model, text):
    alone = KVSession(model, SETTINGS)
    alone.prepare(prompt_of(text), CacheMode.EXACT, CancelToken())
    settings = replace(SETTINGS, budget_bytes=2 * alone.cache.size_bytes, shared=True)
    sessions = KVSessions(model, settings, clock=lambda: 0.0)
    for document, tokens in (("old", text[:9]), ("large", text), ("new", text), ("new", text)):
        sessions.open(document).prepare(prompt_of(tokens), CacheMode.EXACT, CancelToken())
    assert [bool(sessions.open(document).tokens) for document in ("old", "new", "large")] == [True, True, False]


@pytest.mark.parametrize("pause_s", [0.0, IN_USE_S])
def test_a_user_with_many_documents_takes_no_memory_of_another_one(model, text, pause_s):
    alone, now = KVSession(model, SETTINGS), [0.0]
    alone.prepare(prompt_of(text), CacheMode.EXACT, CancelToken())
    settings = replace(SETTINGS, budget_bytes=4 * alone.cache.size_bytes, shared=True)
    sessions = KVSessions(model, settings, clock=lambda: now[0], owner_of=lambda key: key.partition("'s ")[0])
    sessions.open("bob's file").prepare(prompt_of(text), CacheMode.EXACT, CancelToken())
    now[0] += pause_s
    for number in range(12):
        sessions.open(f"ada's {number}").prepare(prompt_of(text[:-9]), CacheMode.EXACT, CancelToken())
    assert len(sessions) < 12
    held = [len(each.tokens) for each in (sessions.open("bob's file"), sessions.open("ada's 11"))]
    assert min(held) >= len(text) - 10
    assert sessions.tokens_each() > len(text)  # of two documents, in which somebody types


def test_a_short_document_takes_memory_for_its_tokens(model, text):
    long, short = (KVSession(model, SETTINGS) for _ in range(2))
    long.prepare(prompt_of(text * 2), CacheMode.EXACT, CancelToken())
    short.prepare(prompt_of(text[:20]), CacheMode.EXACT, CancelToken())
    assert long.cache.slots >= 800
    assert short.cache.slots == short.cache.growth_slots
    assert short.cache.size_bytes * long.cache.slots == long.cache.size_bytes * short.cache.slots


def test_forty_short_documents_stay_within_the_budget(model, text):
    alone = KVSession(model, SETTINGS)
    alone.prepare(prompt_of(text[:20]), CacheMode.EXACT, CancelToken())
    size = alone.cache.size_bytes
    sessions = KVSessions(model, replace(SETTINGS, budget_bytes=10 * size))
    opened = []
    for document in range(40):
        opened.append(sessions.open(str(document)))
        opened[-1].prepare(prompt_of(text[:20]), CacheMode.EXACT, CancelToken())
    sessions.open("39")
    assert len(sessions) == 10
    assert sum(session.cache.size_bytes for session in opened[-10:]) == 10 * size


def test_a_closed_document_holds_no_memory(model, text):
    sessions = KVSessions(model, SETTINGS)
    sessions.open("a").prepare(prompt_of(text), CacheMode.EXACT, CancelToken())
    keys = weakref.ref(sessions.open("a").cache.store.tensors["keys"])
    sessions.close("a")
    assert len(sessions) == 0
    assert keys() is None


def test_growing_token_by_token_copies_a_bounded_number_of_slots(model):
    cache, copied = model.new_cache(model.shape.max_positions), 0
    for needed in range(1, model.shape.max_positions + 1):
        before = cache.slots
        cache.reserve(needed)
        copied += before if cache.slots != before else 0
    assert cache.slots == model.shape.max_positions
    assert copied <= 4 * model.shape.max_positions


def test_a_prompt_longer_than_the_maximum_raises_an_error_that_names_the_budgets(model, text):
    settings = SessionSettings(capacity=128, spare_slots=64)
    session, longest = KVSession(model, settings), settings.max_prompt_tokens(model.shape.max_positions)
    assert session.prepare(prompt_of(text[:longest]), CacheMode.EXACT, CancelToken()).computed == longest - 1
    with pytest.raises(PromptTooLongError, match="budgets"):
        session.prepare(prompt_of(text[: longest + 1]), CacheMode.EXACT, CancelToken())


def test_at_most_one_chunk_is_computed_after_a_cancel(model, text):
    cancel = CancelAfter(1)
    session = KVSession(model, SETTINGS)
    with pytest.raises(CancelledError):
        session.prepare(prompt_of(text), CacheMode.EXACT, cancel)
    assert sum(token != HOLE for token in session.tokens) == SETTINGS.chunk_tokens


@pytest.mark.parametrize(("chunk_s", "expected"), [(0.0, [32] * 12 + [15]), (3600.0, [32, 128, 128, 111])])
def test_a_chunk_takes_no_longer_than_others_may_wait_for_it(model, text, chunk_s, expected):
    """The first one is small; how large the next ones are follows from its time, which nothing else depends on."""
    chunks, settings = [], SessionSettings(capacity=1024, spare_slots=64, chunk_s=chunk_s)
    session = KVSession(model, settings, lambda tokens, _seconds: chunks.append(tokens))
    session.prepare(prompt_of(text), CacheMode.EXACT, CancelToken())
    assert chunks == expected
    found = next_logits(model, session, prompt_of(text))
    np.testing.assert_allclose(found, fresh_logits(model, prompt_of(text)), atol=1e-4)


def test_a_session_in_the_background_abandons_the_chunk_that_a_cancel_interrupts(model, text):
    """The slots of that chunk are holes, though they had tokens, and a later prompt computes them."""
    prompt, edited = prompt_of(text), prompt_of([*text[:40], 7, *text[40:]])
    sessions = KVSessions(model, SETTINGS)
    session = sessions.open("a", in_background=True)
    session.prepare(prompt, CacheMode.PIE, CancelToken())
    checks_of_a_chunk = 1 + model.shape.layers
    with pytest.raises(CancelledError):
        session.prepare(edited, CacheMode.OFF, CancelAfter(checks_of_a_chunk + 2))
    assert session.tokens[:BACKGROUND_TOKENS] == list(edited.tokens[:BACKGROUND_TOKENS])
    assert set(session.tokens[BACKGROUND_TOKENS:]) == {HOLE}
    session.prepare(edited, CacheMode.EXACT, CancelToken())
    fresh = KVSession(model, SETTINGS)
    fresh.prepare(edited, CacheMode.OFF, CancelToken())
    np.testing.assert_allclose(next_logits(model, session, edited), next_logits(model, fresh, edited), atol=1e-4)


def test_a_session_in_which_somebody_types_keeps_the_chunk_that_a_cancel_interrupts(model, text):
    """The request that cancels most of them needs the same tokens."""
    session = KVSessions(model, SETTINGS).open("a")
    with pytest.raises(CancelledError):
        session.prepare(prompt_of(text), CacheMode.EXACT, CancelAfter(1))
    assert session.tokens[: SETTINGS.chunk_tokens] == text[: SETTINGS.chunk_tokens]


def test_a_family_whose_keys_cannot_be_shifted_computes_the_text_after_an_edit_again(tmp_path, caplog):
    config = GPT2Config(vocab_size=300, n_positions=256, n_embd=32, n_layer=2, n_head=2)
    GPT2LMHeadModel(config).save_pretrained(tmp_path)
    model = TransformersModel.load(tmp_path)
    session = KVSession(model, SessionSettings(capacity=256, spare_slots=16))
    tokens = list(range(100))
    session.prepare(prompt_of(tokens), CacheMode.PIE, CancelToken())
    edited = prompt_of([*tokens[:20], 7, *tokens[20:]])
    plan = session.prepare(edited, CacheMode.PIE, CancelToken())
    assert (plan.kept, plan.shifted, plan.computed) == (20, 0, 80)
    assert "computed again" in caplog.text
    fresh = KVSession(model, SessionSettings(capacity=256, spare_slots=16))
    fresh.prepare(edited, CacheMode.OFF, CancelToken())
    np.testing.assert_allclose(next_logits(model, session, edited), next_logits(model, fresh, edited), atol=1e-4)


def test_with_one_layer_reencoding_is_exact(tmp_path):
    # the first layer's keys and values depend on a token and its position only
    config = Qwen2Config(
        vocab_size=300, hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=512,
    )  # fmt: skip
    Qwen2ForCausalLM(config).save_pretrained(tmp_path)
    model = load_dense(tmp_path, torch.float32, 1)
    session = KVSession(model, SessionSettings(capacity=512, spare_slots=16, repair_tokens=0))
    tokens = list(range(200))
    session.prepare(prompt_of(tokens), CacheMode.PIE, CancelToken())
    edited = prompt_of([*tokens[120:], 7, 8, *tokens[10:120]])
    plan = session.prepare(edited, CacheMode.PIE, CancelToken())
    assert plan.shifted > 180
    fresh = KVSession(model, SessionSettings(capacity=512, spare_slots=16))
    fresh.prepare(edited, CacheMode.OFF, CancelToken())
    np.testing.assert_allclose(next_logits(model, session, edited), next_logits(model, fresh, edited), atol=1e-5)


def test_a_shift_by_zero_changes_no_bit(model, text):
    session = KVSession(model, SETTINGS)
    session.prepare(prompt_of(text), CacheMode.PIE, CancelToken())
    before = next_logits(model, session, prompt_of(text))
    session.cache.rearrange(np.arange(len(session.tokens), dtype=np.int32))
    assert np.array_equal(next_logits(model, session, prompt_of(text)), before)


def test_two_shifts_equal_one_shift_by_their_sum(model, text):
    # float32: a rotation by a + b differs from rotations by a and by b in rounding only
    def logits_after(*moves):
        session = KVSession(model, SETTINGS)
        session.prepare(prompt_of(text[:100]), CacheMode.PIE, CancelToken())
        length = len(session.tokens)
        for move in moves:
            session.cache.rearrange(np.concatenate((np.zeros(move, np.int32), np.arange(length, dtype=np.int32))))
            length += move
        return next_logits(model, session, prompt_of(text[:100]))

    np.testing.assert_allclose(logits_after(3, 4), logits_after(7), atol=1e-4)
