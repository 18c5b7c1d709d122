"""The engine over vLLM gives the local engine's suggestions, from the recorded replies of the real vLLM 0.32."""

from __future__ import annotations

import json
import re
from contextlib import suppress

import psutil
import pytest

from completion.cancellation import CancelToken
from completion.engine import Engine
from completion.errors import CancelledError, RemoteServerError
from completion.model.loading import load_model
from completion.progress import silent
from completion.remote.address import RemoteAddress
from completion.remote.engine import RemoteEngine, RemoteModel
from completion.remote.model_server import Query
from completion.request import GrammarMode, Sampling
from tests.completion.remote.replay_server import RECORDED_VLLM, ReplayServer, fetched
from tests.completion.remote.test_remote_engine import CURSORS, forced_tokens, last, request_at
from tests.tiny_models import STACK

LEFT_OUT = 0.02
"""What tokens that vLLM leaves out under a regular expression add to the sum of probabilities; see `tiny_folder`."""
COMPLETIONS = "/v1/completions"
PLAIN = request_at(CURSORS[0], filters=False, grammar=GrammarMode.OFF)


@pytest.fixture
def vllm(vllm_process):
    replay = ReplayServer(vllm_process.url if vllm_process else "", recorded=RECORDED_VLLM)
    yield replay
    replay.close()


@pytest.fixture
def model(vllm, tiny_folder):
    return RemoteModel.connect(RemoteAddress(vllm.url, "vllm"), str(tiny_folder), silent, CancelToken())


@pytest.fixture
def engine(model):
    return RemoteEngine(model)


@pytest.fixture(scope="session")
def local_folder_engine(tiny_folder):
    return Engine(load_model(str(tiny_folder), backend="fp32"))


def completions(vllm):
    return [body for path, body in vllm.requests if path == COMPLETIONS]


@pytest.mark.parametrize("grammar", [GrammarMode.STRICT, GrammarMode.OFF])
@pytest.mark.parametrize("cursor", CURSORS)
def test_the_text_is_the_local_engines(engine, local_folder_engine, cursor, grammar):
    request = request_at(cursor, grammar=grammar, filters=False)
    theirs, ours = last(engine, request), last(local_folder_engine, request)
    assert [one.text for one in theirs.suggestions] == [one.text for one in ours.suggestions]
    assert theirs.stop_reason == ours.stop_reason
    for one, other in zip(theirs.suggestions, ours.suggestions, strict=True):
        forced = forced_tokens(one, request)
        theirs_after, ours_after = one.token_log_probabilities[forced:], other.token_log_probabilities[forced:]
        assert theirs_after == pytest.approx(ours_after, abs=LEFT_OUT)


def test_the_output_starts_with_the_healed_run(engine, vllm):
    cursor = STACK.index("self.items.app") + len("self.items.app")
    assert last(engine, request_at(cursor, filters=False)).suggestions[0].text
    _, typing, *_corrections = completions(vllm)
    assert typing["structured_outputs"] == {"regex": r"\.app(.|\n)*"}


@pytest.mark.parametrize("forced", ["", "\t\tre", "=='", "\r\n\\d+[^", "“né", "a|b(c)*.{2}$", "\x0b"])
def test_generated_tokens_start_with_the_forced_bytes_whatever_they_are(model, forced):
    tokens = [each.token for each in model.server.generate(Query([1, 2, 3], 24, forced.encode()), CancelToken())]
    written = b"".join(map(model.tokenizer.token_bytes, tokens))
    assert written.startswith(forced.encode())
    assert len(written) > len(forced.encode())


def test_each_token_has_its_log_probability_and_those_of_the_likeliest(model):
    found = list(model.server.generate(Query([1, 2, 3], 24), CancelToken()))
    assert len(found) == 24 or found[-1].token in model.tokenizer.stop_ids
    for each in found:
        assert 8 <= len(each.log_probabilities) <= 9
        assert each.token in each.log_probabilities
        assert max(each.log_probabilities.values()) <= 0


def test_typing_runs_before_preparations_and_all_requests_have_one_salt_of_the_process(engine, vllm, tiny_folder):
    engine.prepare(request_at(CURSORS[0]), CancelToken())
    last(engine, PLAIN)
    handshake, preparation, *typing = completions(vllm)
    assert (handshake["priority"], preparation["priority"], preparation["max_tokens"]) == (1, 1, 1)
    assert {body["priority"] for body in typing} == {0}
    [salt] = {body["cache_salt"] for body in completions(vllm)}
    assert len(salt) >= 43
    other = RemoteModel.connect(RemoteAddress(vllm.url, "vllm"), str(tiny_folder), silent, CancelToken())
    last(RemoteEngine(other), PLAIN)
    assert completions(vllm)[-1]["cache_salt"] != salt


def test_an_engine_names_one_session_by_which_a_router_finds_its_cached_prompts(engine, vllm, tiny_folder):
    last(engine, PLAIN)
    [session] = set(vllm.sessions)
    assert len(session) >= 16
    RemoteModel.connect(RemoteAddress(vllm.url, "vllm"), str(tiny_folder), silent, CancelToken())
    assert vllm.sessions[-1] != session


def test_the_facts_name_the_version_and_the_model(model):
    assert re.fullmatch(r"vLLM 0\.\d+\.\d+.*", model.facts.software)
    assert (model.facts.model, model.facts.context_tokens) == ("tiny", 4096)


def test_a_reply_that_breaks_off_goes_on_after_its_last_token(engine, vllm):
    whole = last(engine, PLAIN)
    before = len(completions(vllm))

    def once(reply):
        vllm.sends.clear()
        reply.send(reply.recorded[: len(reply.recorded) // 2])
        reply.reset()

    vllm.sends[COMPLETIONS] = once
    event = last(engine, PLAIN)
    assert [one.text for one in event.suggestions] == [one.text for one in whole.suggestions]
    first, second = completions(vllm)[before:][:2]
    assert second["prompt"][: len(first["prompt"])] == first["prompt"]
    assert second["max_tokens"] == first["max_tokens"] + len(first["prompt"]) - len(second["prompt"])
    assert len(second["prompt"]) > len(first["prompt"])


def test_a_request_that_the_server_refuses(model, vllm):
    with pytest.raises(RemoteServerError, match=r"refuses the request with HTTP 400: .*4096"):
        list(model.server.generate(Query([1] * 5000, 4), CancelToken()))
    with pytest.raises(RemoteServerError, match=r"HTTP 400: temperature must be in \[0, 2\]"):
        list(model.server.generate(Query([1, 2, 3], 16, sampling=Sampling(100.0, seed=1)), CancelToken()))
    vllm.token = "open"
    with pytest.raises(RemoteServerError, match=r"refuses the token \(HTTP 401\)"):
        list(model.server.generate(Query([1], 4), CancelToken()))


def test_a_cancel_closes_the_connection(engine, vllm):
    cancel = CancelToken()

    def hold(reply):
        reply.send(reply.recorded[: len(reply.recorded) // 2])
        cancel.cancel()
        reply.until_gone()

    vllm.sends[COMPLETIONS] = hold
    with pytest.raises(CancelledError):
        list(engine.complete(PLAIN, cancel))
    assert vllm.gone.wait(60)


def test_an_engine_that_dies_within_a_reply_that_began_well(engine, vllm, vllm_process):
    """The last test, since it ends the real vLLM. Its own words are an error inside a 200."""
    if vllm_process:
        vllm.record("engine_died", last_words(vllm_process))
    died = vllm.recorded("engine_died")
    assert died.startswith(b"HTTP/1.1 200 OK")
    vllm.sends[COMPLETIONS] = lambda reply: reply.send(died)
    with pytest.raises(RemoteServerError, match=r"failed: .*(EngineCore|engine|Internal)"):
        last(engine, PLAIN)


def last_words(server):
    """Return what a vLLM sends when its engine process is killed within a reply."""
    body = {"prompt": [1, 2, 3], "max_tokens": 3000, "stream": True, "ignore_eos": True, "return_token_ids": True}
    body |= {"logprobs": 8, "return_tokens_as_token_ids": True}
    processes = psutil.Process(server.pid).children(recursive=True)
    engine = next(one for one in processes if one.name() == "VLLM::EngineCore")

    def kill():
        with suppress(psutil.NoSuchProcess):  # the second part of the reply comes after its end
            engine.kill()

    return fetched(server.url, COMPLETIONS, json.dumps(body).encode(), meanwhile=kill)
