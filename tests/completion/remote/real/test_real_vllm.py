"""The engine over the real vLLM with the default model: its text, its failures, what users see of each other."""

from __future__ import annotations

import os
import signal

import pytest

from benchmarks.team.agreement import cursors, errors, exact, kept, texts
from completion.cancellation import CancelToken
from completion.engine import Engine, product_settings
from completion.errors import CancelledError, RemoteServerError
from completion.model.loading import load_model
from completion.remote import connection
from completion.remote.engine import RemoteEngine
from completion.remote.model_server import Query
from completion.request import CompletionRequest, GrammarMode
from tests.completion.remote.real.relay import Relay
from tests.tiny_models import write_tiny_model

CURSORS = int(os.environ.get("DRAFTLINE_CURSORS", "24"))
SOURCE = "def mean(values):\n    total = 0\n    for value in values:\n        tot"
REQUEST = CompletionRequest(SOURCE, "\n    return total / len(values)\n", "python", max_tokens=48, invoked=True)
pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]


@pytest.fixture(scope="session")
def local():
    return Engine(load_model("default"), product_settings())


def text(engine, request=REQUEST):
    *_, last = engine.complete(request, CancelToken())
    return last.suggestions[0].text if last.suggestions else ""


def after(server, before, *names):
    """How much metrics have grown."""
    now = server.metrics()
    return [now[name] - before[name] for name in names]


@pytest.mark.parametrize("in_word", [False, True])
def test_as_many_cursors_as_locally_get_what_the_author_wrote(connect, local, in_word):
    tasks = cursors(CURSORS, 1, None, in_word=in_word)
    assert len(tasks) == CURSORS
    ours, theirs = exact(tasks, texts(local, tasks)), exact(tasks, texts(RemoteEngine(connect()), tasks))
    print(f"exact matches of {CURSORS} cursors, in words: {in_word}: {ours} locally, {theirs} on vLLM")
    assert theirs >= ours - max(1, (0.02 if in_word else 0.01) * CURSORS)


def test_the_servers_text_starts_with_the_forced_bytes_at_every_cursor(connect):
    tasks = cursors(max(CURSORS, 50), 2, None, in_word=True)
    assert kept(connect(), tasks) == len(tasks)


def test_the_grammar_prevents_errors(connect):
    found = errors(RemoteEngine(connect()), max(1, CURSORS // 24), None)
    without, strict = found[GrammarMode.OFF].worse, found[GrammarMode.STRICT].worse
    print(f"errors in {found[GrammarMode.OFF].records} completions: {without} without, {strict} with the grammar")
    assert without > 0
    assert strict <= 0.1 * without


def test_a_key_that_appends_computes_few_tokens(connect, server):
    engine, source = RemoteEngine(connect()), SOURCE * 40
    typed = "al += value * value"
    text(engine, CompletionRequest(source, REQUEST.suffix, "python", max_tokens=8, invoked=True))
    before = server.metrics()
    for end in range(1, len(typed)):
        text(engine, CompletionRequest(source + typed[:end], REQUEST.suffix, "python", max_tokens=8, invoked=True))
    name = "vllm:request_prefill_kv_computed_tokens"
    [requests, computed] = after(server, before, f"{name}_count", f"{name}_sum")
    assert requests >= len(typed) - 1
    assert computed <= 32 * requests


def test_a_cancel_ends_the_servers_work(connect, server):
    engine, cancel, before = RemoteEngine(connect()), CancelToken(), server.metrics()
    events = engine.complete(CompletionRequest(SOURCE, "", "python", max_tokens=2000, filters=False), cancel)
    next(events)
    cancel.cancel()
    with pytest.raises(CancelledError):
        list(events)
    while server.metrics()["vllm:num_requests_running"]:
        pass
    [generated] = after(server, before, "vllm:generation_tokens_total")
    assert generated < 1000


def test_another_user_neither_gets_nor_finds_what_the_first_one_wrote(connect, server, log):
    canary = "canary_8f14e45f"
    request = CompletionRequest(f"{canary} = 'keyword'\n" * 60 + "cana", "\n", "python", max_tokens=24, invoked=True)
    ada, bob = RemoteEngine(connect("ada")), RemoteEngine(connect("bob"))
    text(ada, request)
    before = server.metrics()
    text(bob, request)
    assert after(server, before, "vllm:prefix_cache_hits_total") == [0]
    text(ada, request)
    assert after(server, before, "vllm:prefix_cache_hits_total")[0] > 500
    assert canary not in text(bob, CompletionRequest("cana", "\n", "python", max_tokens=24, invoked=True))
    assert canary not in str(server.metrics().keys())
    assert canary not in log.read_text(errors="replace")


def test_wrong_tokens_certificates_and_models_are_a_sentence_each(connect, server, tmp_path):
    with pytest.raises(RemoteServerError, match=r"refuses the token \(HTTP 401\). Correct the engine's token_file"):
        connect("mallory")
    with pytest.raises(RemoteServerError, match=r"The certificate of https://.* is not trusted"):
        connect(ca_file="")
    with pytest.raises(RemoteServerError, match="has other tokens than the tokenizer of `model`"):
        connect(model=str(write_tiny_model(tmp_path / "tiny")))
    with pytest.raises(RemoteServerError, match=r"cannot be read|ended in the middle|No server answers"):
        connect(url=server.url.replace("https", "http"))
    assert connect("bob").facts.software.startswith("vLLM 0.")


def test_a_connection_that_breaks_within_fifty_replies_is_never_seen(connect, server):
    relay = Relay(server.url)
    engine = RemoteEngine(connect(url=relay.url))
    whole = text(engine)
    for number in range(50):
        relay.breaks = [3000 + 200 * number]
        assert text(engine) == whole
    relay.close()


def test_silence_is_a_sentence_and_the_next_request_works(connect, server, monkeypatch):
    engine = RemoteEngine(connect())
    whole = text(engine)
    monkeypatch.setattr(connection, "SILENCE_S", 0.5)
    server.send(signal.SIGSTOP)
    try:
        with pytest.raises(RemoteServerError, match=r"silent for 0.5 s|No server answers"):
            text(engine)
    finally:
        server.send(signal.SIGCONT)
    monkeypatch.undo()
    assert text(engine) == whole


def test_a_server_that_is_killed_is_a_sentence(connect, server):
    generated = connect().server.generate(Query([1, 2, 3], 2000), CancelToken())
    next(generated)
    server.send(signal.SIGKILL)
    with pytest.raises(RemoteServerError, match="ended in the middle of its reply"):
        list(generated)
    with pytest.raises(RemoteServerError, match="No server answers at"):
        connect()
