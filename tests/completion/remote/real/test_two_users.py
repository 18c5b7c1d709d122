"""Two users of one real vLLM: nothing that one of them writes reaches the other, by text, cache, logs or metrics."""

from __future__ import annotations

import re
import ssl
import urllib.request

import pytest

from completion.cancellation import CancelToken
from completion.remote.engine import RemoteEngine
from completion.remote.model_server import Query
from completion.remote.vllm import Vllm
from completion.request import CompletionRequest
from tests.completion.remote.real.test_real_vllm import after, text

CANARY = "canary_8f14e45f"
OWN = CompletionRequest(f"{CANARY} = 'keyword'\n" * 60 + "cana", "\n", "python", max_tokens=24, invoked=True)
pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]


@pytest.fixture
def ada(connect):
    return connect("ada")


@pytest.fixture
def bob(connect):
    return connect("bob")


def prefill(server, before):
    """How many tokens of prompts were computed, and how many were found in the cache."""
    names = ("vllm:request_prefill_kv_computed_tokens_sum", "vllm:prefix_cache_hits_total")
    computed, found = after(server, before, *names)
    return computed, found


def asked(model, server):
    """Send one request of the canary's prompt; an engine may send more, which find what its first one left."""
    before = server.metrics()
    assert len(list(model.server.generate(Query(model.tokenizer.encode(OWN.prefix), 1), CancelToken()))) == 1
    return prefill(server, before)


def test_a_prompt_that_another_user_has_sent_is_not_in_the_cache(ada, bob, server):
    asked(ada, server)
    computed, found = asked(bob, server)
    assert found == 0
    assert computed > 500
    again, found = asked(ada, server)
    assert found > 500
    assert again < 64
    print(f"the same prompt: {computed:.0f} tokens computed for another user, {again:.0f} for the same one")


def test_a_part_of_another_users_prompt_cannot_be_guessed_by_what_the_cache_has(ada, bob, server):
    """Whoever guesses another's text block by block learns nothing: no guess of any length is quicker than others."""
    text(RemoteEngine(ada), OWN)
    before = server.metrics()
    for lines in (5, 20, 59):
        guess = f"{CANARY} = 'keyword'\n" * lines
        fresh = Vllm(bob.server._connection, bob.tokenizer)  # a salt of its own, so that guesses do not find each other
        for _ in fresh.generate(Query(bob.tokenizer.encode(guess), 1), CancelToken()):
            pass
    assert prefill(server, before)[1] == 0


def test_no_text_of_one_user_is_suggested_to_another(ada, bob):
    text(RemoteEngine(ada), OWN)
    engine = RemoteEngine(bob)
    for end in range(1, len(CANARY) - 4):  # a random model writes any three characters
        typed = CompletionRequest(CANARY[:end], "\n", "python", max_tokens=24, suggestions=3, invoked=True)
        for event in engine.complete(typed, CancelToken()):
            assert not [one.text for one in event.suggestions if CANARY in CANARY[:end] + one.text]


def test_neither_logs_nor_metrics_hold_text_or_tokens(ada, server, log):
    text(RemoteEngine(ada), OWN)
    context = ssl._create_unverified_context()
    with urllib.request.urlopen(f"{server.url}/metrics", context=context) as reply:
        metrics = reply.read().decode()
    assert "vllm:prefix_cache_hits_total" in metrics
    tokens = ada.tokenizer.encode(f"{CANARY} = 'keyword'\n")
    for said in (metrics, log.read_text(errors="replace")):
        assert CANARY not in said
        assert not re.search(r"\D+".join(map(str, tokens)), said)
