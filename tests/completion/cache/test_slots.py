"""Which slots of a KV session are holes, left to the first step, or inexact."""

from __future__ import annotations

import numpy as np
import pytest

from completion.cache.kv_session import HOLE, KVSession
from completion.cancellation import CancelToken
from completion.errors import CancelledError
from completion.request import CacheMode
from tests.completion.cache.test_kv_session import SETTINGS, CancelAfter, next_logits, prompt_of

TEXT = [number * 37 % 300 for number in range(400)]


@pytest.fixture
def model(tiny_model):
    return tiny_model.model


def test_a_refresh_after_a_cancelled_edit_ends_before_the_slots_that_were_not_computed(model):
    session = KVSession(model, SETTINGS)
    session.prepare(prompt_of(TEXT), CacheMode.PIE, CancelToken())
    with pytest.raises(CancelledError):
        session.prepare(prompt_of([*TEXT[:50], *range(200, 264), *TEXT[50:]]), CacheMode.PIE, CancelAfter(1))
    hole = session.tokens.index(HOLE)
    assert int(np.argmax(session.edits > 0)) == hole == 50 + SETTINGS.chunk_tokens
    assert session.refresh(CancelToken()) == 0


def test_a_few_tokens_that_are_missing_at_the_end_are_left_to_the_first_step_and_others_are_not(model):
    session, few = KVSession(model, SETTINGS), 8
    session.prepare(prompt_of(TEXT[:300]), CacheMode.PIE, CancelToken(), few)
    assert len(session.tokens) == 299
    plan = session.prepare(prompt_of(TEXT[: 300 + few]), CacheMode.PIE, CancelToken(), few)
    assert (plan.kept, plan.computed, len(session.tokens)) == (299, few, 299)
    inside = prompt_of([*TEXT[:50], 7, *TEXT[50:299]])
    plan = session.prepare(inside, CacheMode.PIE, CancelToken(), few)
    assert plan.computed == 1 + SETTINGS.repair_tokens <= few
    assert session.tokens == list(inside.tokens[:-1])


def test_what_is_decoded_after_inexact_slots_is_inexact(model):
    session = KVSession(model, SETTINGS)
    for tokens, is_exact in ((TEXT, True), ([*TEXT[:50], 7, *TEXT[50:]], False)):
        prompt = prompt_of(tokens)
        session.prepare(prompt, CacheMode.PIE, CancelToken())
        next_logits(model, session, prompt)
        session.commit([0], [tokens[-1]])
        assert session.tokens == tokens
        assert (session.edits[-1] == 0) == is_exact
