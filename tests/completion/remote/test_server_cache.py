"""A model server that is slow gets shorter prompts, by what its first tokens took."""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter

import pytest

from completion.cancellation import CancelToken
from completion.model.loading import load_model
from completion.progress import silent
from completion.prompt.pace import SHARES, PromptBudget
from completion.remote.address import RemoteAddress
from completion.remote.engine import RemoteEngine, RemoteModel
from completion.remote.server_cache import ServerCache
from completion.request import Closing, CompletionRequest
from tests.completion.remote.vllm_emulation import VllmEmulation

LARGEST = PromptBudget()
LENGTH = attrgetter("tokens")
DOCUMENT = "file:///a.py"


class Server:
    """The time that a server needs: a way there and back, and a time for each token that it has not cached."""

    def __init__(self, wait_s, tokens_per_s, full_prompt_s=4.0, cold_prompt_s=0.6):
        self.now, self.wait_s, self.tokens_per_s = 0.0, wait_s, tokens_per_s
        self.cache = ServerCache(LARGEST, full_prompt_s, cold_prompt_s, lambda: self.now)

    def send(self, prompt, name=DOCUMENT, told=None):
        self.cache.open(name, "python")
        lacking, computed = self.cache.lacking(name, prompt), self.cache.sent(name, prompt)
        self.now += self.wait_s + lacking / self.tokens_per_s
        return computed(told)


def tokens(count, start=0):
    return tuple(range(start, start + count))


def test_what_an_earlier_prompt_begins_with_counts_as_cached():
    server = Server(0.1, 1_000)
    assert server.send(tokens(500)) == 0
    assert server.send((*tokens(400), 7)) == 400
    assert server.cache.lacking(DOCUMENT, (*tokens(500), 9, 9)) == 2
    assert server.cache.lacking("file:///other.py", tokens(500)) == 500
    server.cache.close([DOCUMENT])
    assert server.cache.lacking(DOCUMENT, tokens(500)) == 500


def test_what_the_server_tells_of_its_cache_counts():
    server = Server(0.1, 1_000)
    server.send(tokens(500))
    assert server.send(tokens(500), told=3) == 3


@pytest.mark.parametrize(("tokens_per_s", "is_cold"), [(200, True), (2_000, False), (20_000, False)])
def test_a_prompt_is_cold_where_the_server_would_take_too_long_for_it(tokens_per_s, is_cold):
    server = Server(0.3, tokens_per_s)
    assert not server.cache.is_cold(DOCUMENT, tokens(1_000))
    server.send(tokens(1_000))
    server.send(tokens(1_001))
    far = tokens(1_000, 50_000)
    assert server.cache.is_cold(DOCUMENT, far) == is_cold
    assert not server.cache.is_cold(DOCUMENT, (*tokens(1_001), 1, 2))


def test_the_way_to_a_quick_server_does_not_make_it_slow():
    server = Server(0.5, 20_000)
    for key in range(5):
        server.send(tokens(1_000 + key))
    for jump in range(20):
        server.send(tokens(224, 10_000 * (jump + 1)))
    assert not server.cache.is_cold(DOCUMENT, tokens(1_500, 500_000))


@pytest.mark.parametrize(("tokens_per_s", "share"), [(100, SHARES[-1]), (200, 0.5), (1_000, 1.0)])
def test_a_prompt_that_is_computed_anyway_gets_the_budget_for_the_speed(tokens_per_s, share):
    server = Server(0.0, tokens_per_s)
    server.cache.open(DOCUMENT, "python")
    assert server.cache.budget(DOCUMENT) == LARGEST
    server.send(tokens(1_000))
    assert not server.cache.renew_budget(DOCUMENT, tokens(1_001), LENGTH)
    assert server.cache.budget(DOCUMENT) == LARGEST
    assert server.cache.renew_budget(DOCUMENT, tokens(1_000, 50_000), LENGTH) == (share < 1)
    assert server.cache.budget(DOCUMENT) == LARGEST.scaled(share)


@pytest.fixture(scope="module")
def vllm(tiny_gguf):
    emulation = VllmEmulation(load_model(f"{tiny_gguf}.folder", backend="fp32"))
    yield emulation
    emulation.close()


def test_after_a_jump_a_slow_server_gets_a_short_prompt_until_the_full_one_is_prepared(vllm, tiny_gguf):
    def sent():
        return [body["prompt"] for path, body in vllm.requests if path == "/v1/completions"]

    def ask(request):
        before = len(sent())
        assert list(engine.complete(request, CancelToken()))[-1].done
        return sent()[before]

    address = RemoteAddress(vllm.url, "vllm")
    model = RemoteModel.connect(address, f"{tiny_gguf}.folder", silent, CancelToken())
    engine = RemoteEngine(model, cold_prompt_s=0.0)
    lines = [f"value_{number} = first({number}, second)\n" for number in range(400)]

    def at(line, typed=""):
        request = CompletionRequest("".join(lines[:line]) + typed, "".join(lines[line:]), "python", document=DOCUMENT)
        return replace(request, max_tokens=4, filters=False)

    full = len(ask(at(300)))
    jumped = ask(at(150))
    assert len(jumped) < full / 3
    assert len(ask(at(150, "value"))) < full / 3
    engine.prepare(at(150), CancelToken())
    prepared = sent()[-1]
    typed = ask(at(150, "value_"))
    assert typed == prepared  # the word is healed
    assert len(typed) > full / 2
    engine.forget(Closing((DOCUMENT,)))
    engine.close()
