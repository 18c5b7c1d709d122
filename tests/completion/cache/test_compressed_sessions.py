"""Documents that are rounded to 8 bits to make room: what they save, what they keep, and who is never rounded."""

from __future__ import annotations

import random

import numpy as np
import pytest
from transformers import Qwen2Config, Qwen2ForCausalLM

from completion.cache.kv_session import KVSession, SessionSettings
from completion.cache.kv_sessions import IN_USE_S, KVSessions
from completion.cancellation import CancelToken
from completion.model.int8.packed_weights import load_packed
from completion.model.int8.quantized import QuantizedTransformer
from completion.model.transformer import has_int8_instructions
from completion.prompt.healing import HealedPrefix
from completion.prompt.planner import Prompt
from completion.request import CacheMode
from tests.completion.model.conftest import SIZES

TEXT = random.Random(3).choices(range(300), k=400)
pytestmark = pytest.mark.skipif(not has_int8_instructions(), reason="this processor lacks AVX2")


def prompt_of(tokens) -> Prompt:
    return Prompt(tuple(tokens), tuple(tokens), HealedPrefix("", ""), ())


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("qwen2")
    Qwen2ForCausalLM(Qwen2Config(**SIZES)).save_pretrained(folder)
    return QuantizedTransformer(load_packed(folder, tmp_path_factory.mktemp("packed")), 2)


def prepared(session, tokens=TEXT, mode=CacheMode.PIE):
    return session.prepare(prompt_of(tokens), mode, CancelToken())


def sessions_with_room(model, documents):
    """Sessions with room for a number of documents of TEXT at full size."""
    alone = KVSession(model, SessionSettings(capacity=512, spare_slots=64))
    prepared(alone)
    budget = int(documents * alone.cache.size_bytes)
    return KVSessions(model, SessionSettings(capacity=512, spare_slots=64, budget_bytes=budget)), budget


def held_bytes(sessions):
    return sum(size for _, size in sessions.held().spans)


def test_twice_as_many_documents_stay_and_computing_starts_at_what_was_typed(model):
    sessions, budget = sessions_with_room(model, 3)
    for document in "abcde":
        prepared(sessions.open(document))
    sessions.open("e")
    assert len(sessions) == 5
    assert held_bytes(sessions) <= budget
    session = sessions.open("a")
    assert session.tokens == TEXT[:-1]
    plan = prepared(session, [*TEXT, 7, 8])
    assert (plan.kept, plan.computed) == (399, 2)


def test_a_document_in_use_is_never_rounded(model):
    sessions, _ = sessions_with_room(model, 1)
    with sessions.pinned("a"):
        first = sessions.open("a")
        prepared(first)
        with sessions.pinned("a"):
            prepared(sessions.open("b"))
        prepared(sessions.open("c"))
        assert not first.edits.any()
    prepared(sessions.open("c"))
    assert first.edits.all()


def test_a_rounded_document_is_exact_after_a_refresh(model):
    sessions, _ = sessions_with_room(model, 1)
    first, fresh = sessions.open("a"), KVSession(model, SessionSettings(capacity=512, spare_slots=64))
    prepared(first)
    for _ in range(2):
        prepared(sessions.open("b"))
    assert set(first.edits) == {1}
    assert first.cache.size_bytes > 0
    prepared(first)
    assert first.refresh(CancelToken()) == 399
    prepared(fresh)
    row, root = np.array(TEXT[-1:], np.int32), np.array([-1], np.int32)
    found, expected = (model.score(row, root, each.cache).row(0).copy() for each in (first, fresh))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("mode", [CacheMode.EXACT, CacheMode.OFF])
def test_a_document_whose_requests_want_an_exact_cache_is_closed_instead(model, mode):
    sessions, _ = sessions_with_room(model, 1)
    first = sessions.open("a")
    prepared(first, mode=mode)
    prepared(sessions.open("b"))
    sessions.open("b")
    assert not first.edits.any()
    assert sessions.open("a").tokens == []


def test_a_document_in_which_nobody_types_any_more_gives_back_the_room_that_its_prompts_needed(model):
    now = [0.0]
    sessions = KVSessions(model, SessionSettings(capacity=512, spare_slots=64), clock=lambda: now[0])
    first = sessions.open("a")
    prepared(first)
    prepared(first, TEXT[:100])
    held = first.cache.size_bytes
    for pause_s, shrinks in ((IN_USE_S, False), (1.0, True)):
        now[0] += pause_s
        sessions.open("b")
        assert (first.cache.size_bytes < held / 2) is shrinks
    assert prepared(first, TEXT[:100]).computed == 0


def test_spare_documents_are_closed_before_others_are_rounded(model):
    sessions, _ = sessions_with_room(model, 2)
    first = sessions.open("a")
    prepared(first)
    prepared(sessions.open("spare", in_background=True))
    prepared(sessions.open("b"))
    sessions.open("b")
    assert not first.edits.any()
    assert len(sessions) == 2


def test_where_rounding_is_not_enough_the_least_recently_used_document_is_closed(model):
    sessions, budget = sessions_with_room(model, 1.5)
    for document in "abcde":
        prepared(sessions.open(document))
    sessions.open("e")
    assert held_bytes(sessions) <= budget
    assert [bool(sessions.open(document).tokens) for document in "ea"] == [True, False]


def test_a_document_that_is_rounded_again_and_again_stays_cached(model):
    session = KVSession(model, SessionSettings(capacity=512, spare_slots=64, max_edits=3))
    computed = []
    for _ in range(5):
        computed.append(prepared(session).computed)
        assert session.compress()
    assert computed == [399, 0, 0, 0, 0]
    assert set(session.edits) == {1}


def test_what_is_computed_after_slots_that_were_rounded_before_its_turn_is_inexact(model):
    turns = []

    def turn(_cancel):
        turns.append(len(session.tokens))
        if len(turns) == 2:
            assert session.compress()

    session = KVSession(model, SessionSettings(capacity=512, spare_slots=64, chunk_tokens=64), take_turn=turn)
    prepared(session, TEXT[:100])
    assert not session.edits.any()
    prepared(session, TEXT)
    assert turns == [99, len(TEXT) - 1]  # once a prompt
    assert session.edits.all()
    session.prepare(prompt_of(TEXT), CacheMode.PIE, CancelToken())
    assert len(turns) == 2  # nothing was computed
    assert session.refresh(CancelToken()) == len(TEXT) - 1
