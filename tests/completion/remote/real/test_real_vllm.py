"""The engine over the real vLLM: what a key costs, how a request ends, and what is said when the server fails."""

from __future__ import annotations

import signal

import pytest

from benchmarks.team.agreement import cancelled_ms
from completion.cancellation import CancelToken
from completion.errors import CancelledError, RemoteServerError
from completion.remote import connection
from completion.remote.engine import RemoteEngine
from completion.remote.model_server import Query
from completion.request import CompletionRequest
from tests.tiny_models import write_tiny_model

SOURCE = "def mean(values):\n    total = 0\n    for value in values:\n        tot"
REQUEST = CompletionRequest(SOURCE, "\n    return total / len(values)\n", "python", max_tokens=48, invoked=True)
pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]


def text(engine, request=REQUEST):
    *_, last = engine.complete(request, CancelToken())
    return last.suggestions[0].text if last.suggestions else ""


def after(server, before, *names):
    """How much metrics have grown."""
    now = server.metrics()
    return [now[name] - before[name] for name in names]


def test_a_key_that_appends_computes_few_tokens(connect, server):
    engine, source = RemoteEngine(connect()), SOURCE * 40
    typed = "al += value * value"
    text(engine, CompletionRequest(source, REQUEST.suffix, "python", max_tokens=8, invoked=True))
    before = server.metrics()
    for end in range(1, len(typed)):  # one token each: the server counts no request that its client ends
        text(engine, CompletionRequest(source + typed[:end], REQUEST.suffix, "python", max_tokens=1, invoked=True))
    name = "vllm:request_prefill_kv_computed_tokens"
    [requests, computed] = after(server, before, f"{name}_count", f"{name}_sum")
    assert requests > len(typed) // 2
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


def test_the_servers_metrics_tell_how_soon_it_ends_a_request_whose_client_has_left(connect, server):
    found = sorted(cancelled_ms(connect(), server.url, 20))
    print(f"vLLM runs nothing {found[10]:.0f} ms (median), {found[-1]:.0f} ms (most) after each of 20 disconnects")
    assert len(found) == 20


def other_tokens(folder):
    """A model whose tokens are not the server's, neither those of the default model nor those of the tiny one."""
    tokenizer = write_tiny_model(folder / "tiny") / "tokenizer.json"
    tokenizer.write_text(tokenizer.read_text(encoding="utf-8").replace('"A"', '"\\u0000A"'), encoding="utf-8")
    return tokenizer.parent


def test_wrong_tokens_certificates_and_models_are_a_sentence_each(connect, server, tmp_path):
    with pytest.raises(RemoteServerError, match=r"refuses the token \(HTTP 401\). Correct the engine's token_file"):
        connect("mallory")
    with pytest.raises(RemoteServerError, match=r"The certificate of https://.* is not trusted"):
        connect(ca_file="")
    with pytest.raises(RemoteServerError, match="has other tokens than the tokenizer of `model`"):
        connect(model=str(other_tokens(tmp_path)))
    with pytest.raises(RemoteServerError, match=r"cannot be read|ended in the middle|No server answers"):
        connect(url=server.url.replace("https", "http"))
    assert connect("bob").facts.software.startswith("vLLM 0.")


def test_a_connection_that_breaks_within_fifty_replies_is_never_seen(connect, relay):
    engine = RemoteEngine(connect(url=relay.url))
    whole = text(engine)
    for number in range(50):
        relay.breaks = [3000 + 200 * number]
        assert text(engine) == whole


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
    server.stop()
    server.start()
