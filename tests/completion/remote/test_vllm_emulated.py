"""The engine over an emulated vLLM gives the local engine's suggestions."""

from __future__ import annotations

import pytest

from completion.cancellation import CancelToken
from completion.errors import CancelledError, RemoteServerError
from completion.model.loading import load_model
from completion.progress import silent
from completion.remote.address import RemoteAddress
from completion.remote.engine import RemoteEngine, RemoteModel
from completion.request import GrammarMode
from tests.completion.remote.test_remote_engine import CURSORS, forced_tokens, last, request_at
from tests.completion.remote.vllm_emulation import VERSION, VllmEmulation
from tests.tiny_models import STACK

PLAIN = request_at(CURSORS[0], filters=False, grammar=GrammarMode.OFF)


@pytest.fixture(scope="session")
def loaded(tiny_gguf):
    return load_model(f"{tiny_gguf}.folder", backend="fp32")


@pytest.fixture
def vllm(loaded):
    emulation = VllmEmulation(loaded)
    yield emulation
    emulation.close()


def connected(vllm, tiny_gguf):
    return RemoteModel.connect(RemoteAddress(vllm.url, "vllm"), f"{tiny_gguf}.folder", silent, CancelToken())


@pytest.fixture
def engine(vllm, tiny_gguf):
    return RemoteEngine(connected(vllm, tiny_gguf))


def completions(vllm):
    return [body for path, body in vllm.requests if path == "/v1/completions"]


@pytest.mark.parametrize("grammar", [GrammarMode.STRICT, GrammarMode.OFF])
@pytest.mark.parametrize("cursor", CURSORS)
def test_the_text_is_the_local_engines(engine, local, cursor, grammar):
    request = request_at(cursor, grammar=grammar, filters=False)
    theirs, ours = last(engine, request), last(local, request)
    assert [one.text for one in theirs.suggestions] == [one.text for one in ours.suggestions]
    assert theirs.stop_reason == ours.stop_reason
    for one, other in zip(theirs.suggestions, ours.suggestions, strict=True):
        forced = forced_tokens(one, request)
        assert one.token_log_probabilities[forced:] == pytest.approx(other.token_log_probabilities[forced:], abs=0.01)


def test_the_output_starts_with_the_healed_run(engine, vllm):
    cursor = STACK.index("self.items.app") + len("self.items.app")
    assert last(engine, request_at(cursor, filters=False)).suggestions[0].text
    _, typing, *_corrections = completions(vllm)
    assert typing["structured_outputs"] == {"regex": r"\.app(.|\n)*"}


def test_typing_runs_before_preparations_and_all_requests_have_one_salt_of_the_process(engine, vllm, tiny_gguf):
    engine.prepare(request_at(CURSORS[0]), CancelToken())
    last(engine, request_at(CURSORS[0], filters=False))
    handshake, preparation, *typing = completions(vllm)
    assert (handshake["priority"], preparation["priority"], preparation["max_tokens"]) == (1, 1, 1)
    assert {body["priority"] for body in typing} == {0}
    [salt] = {body["cache_salt"] for body in completions(vllm)}
    assert len(salt) >= 43
    last(RemoteEngine(connected(vllm, tiny_gguf)), request_at(CURSORS[0], filters=False))
    assert completions(vllm)[-1]["cache_salt"] != salt


def test_the_facts_name_the_version_and_the_model(vllm, tiny_gguf):
    facts = connected(vllm, tiny_gguf).facts
    assert (facts.software, facts.model, facts.context_tokens) == (f"vLLM {VERSION}", "tiny", 4096)


def test_an_error_inside_a_reply_that_began_well_is_shown_if_the_next_reply_has_one_too(engine, vllm):
    vllm.fails_after = [2, 2]
    with pytest.raises(RemoteServerError, match="failed: EngineCore encountered an issue"):
        last(engine, PLAIN)


def test_a_reply_that_breaks_off_goes_on_after_its_last_token(engine, vllm):
    whole = last(engine, PLAIN)
    before, vllm.fails_after = len(completions(vllm)), [3]
    event = last(engine, PLAIN)
    assert [one.text for one in event.suggestions] == [one.text for one in whole.suggestions]
    first, second, *_ = completions(vllm)[before:]
    assert second["max_tokens"] == first["max_tokens"] - 3


def test_a_cancel_closes_the_connection(engine, vllm):
    cancel = CancelToken()
    events = engine.complete(request_at(CURSORS[0], filters=False, grammar=GrammarMode.OFF, max_tokens=1000), cancel)
    next(events)
    cancel.cancel()
    with pytest.raises(CancelledError):
        list(events)
    assert vllm.gone.wait(60)
