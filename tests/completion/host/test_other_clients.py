"""Requests as the clients of llama.cpp, OpenAI and Tabby send them."""

import asyncio
import json

import httpx
import numpy as np
import openai
import pytest

from completion.host.dialects.openai import CompletionBody, completion_request
from completion.host.dialects.reply_text import StopStrings, plain_text
from completion.host.dialects.schema import sampling_of
from completion.host.process.sockets import TcpAddress, tcp_socket
from completion.host.server import HostSettings
from completion.model.sampling import draw
from completion.request import MAX_TOKENS_LIMIT, Layout, Suggestion
from tests.completion.host.dialects.test_ollama import RecordingEngine
from tests.completion.host.paced_engine import PacedEngine

TOKEN = "a-token-of-enough-length"


def llama_vim_request(**changed):
    """Return llama.vim's request for a completion, with all its fields."""
    fields = ["content", "truncated", "tokens_cached"]
    for phase in ("prompt", "predicted"):
        fields += [f"timings/{phase}_{name}" for name in ("n", "ms", "per_token_ms", "per_second")]
    return {
        "id_slot": 0,
        "input_prefix": "def one():\n    return 1\n\n",
        "input_suffix": "\n\nprint(two())\n",
        "input_extra": [{"text": "def zero(): ...", "time": 12.5, "filename": "zero.py"}],
        "prompt": "def two():",
        "n_predict": 3,
        "stop": [],
        "n_indent": 0,
        "top_k": 40,
        "top_p": 0.9,
        "samplers": ["top_k", "top_p", "infill"],
        "stream": False,
        "cache_prompt": True,
        "t_max_prompt_ms": 500,
        "t_max_predict_ms": 1000,
        "response_fields": fields,
    } | changed


async def test_llama_vim_gets_exactly_the_response_fields_that_it_requests(start_host):
    client = await start_host(PacedEngine())
    reply = (await client.post("/infill", json=llama_vim_request())).json()
    assert reply["content"] == " 0 1 2"
    assert reply["truncated"] is False
    assert reply["timings/predicted_n"] == 3
    assert set(reply) == set(llama_vim_request()["response_fields"])


async def test_llama_vims_warm_up_request_prepares_the_cache_and_is_answered_at_once(start_host):
    engine = PacedEngine()
    client = await start_host(engine)
    reply = await client.post("/infill", json=llama_vim_request(n_predict=0, response_fields=[""]))
    assert (reply.status_code, reply.json()) == (200, {})
    assert await asyncio.to_thread(engine.ended.acquire, timeout=60)
    assert len(engine.prepared) == 1


async def test_infill_streams_and_ends_with_stop(start_host):
    client = await start_host(PacedEngine())
    async with client.stream("POST", "/infill", json=llama_vim_request(stream=True, response_fields=[])) as reply:
        chunks = [json.loads(line[6:]) async for line in reply.aiter_lines() if line.startswith("data: ")]
    assert "".join(chunk["content"] for chunk in chunks) == " 0 1 2"
    assert [chunk["stop"] for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    assert chunks[-1]["stop_type"] == "limit"


async def test_infill_stops_before_a_stop_string_and_frees_the_engine(start_host):
    engine = PacedEngine(gated=True)
    engine.permits.release(5)  # for " 0 1 2 3 4"
    client = await start_host(engine)
    reply = await client.post("/infill", json=llama_vim_request(stop=[" 3 4"], n_predict=100))
    assert reply.json()["content"] == " 0 1 2"
    engine.permits.release(100)
    assert await asyncio.to_thread(engine.ended.acquire, timeout=60)
    assert engine.steps < 100


async def test_props_have_the_context_length_and_the_model(start_host):
    props = (await (await start_host(PacedEngine())).get("/props")).json()
    assert props["default_generation_settings"]["n_ctx"] == 1000
    assert props["model_alias"] == "paced"


@pytest.fixture
async def openai_client(start_host):
    with tcp_socket(TcpAddress("127.0.0.1", 0, TOKEN)) as probe:
        address = TcpAddress("127.0.0.1", probe.getsockname()[1], TOKEN)
    await start_host(PacedEngine(), HostSettings(tcp=address))
    async with openai.AsyncOpenAI(
        base_url=f"http://127.0.0.1:{address.port}/v1", api_key=TOKEN, max_retries=0
    ) as client:
        yield client


async def test_the_openai_package_completes_with_a_suffix(openai_client):
    answer = await openai_client.completions.create(
        model="any", prompt="def f(x):\n    return ", suffix="\n", max_tokens=3, temperature=0
    )
    assert answer.choices[0].text == " 0 1 2"
    assert answer.choices[0].finish_reason == "length"
    assert answer.model == "paced"
    assert answer.usage.completion_tokens == 3


async def test_the_openai_package_streams(openai_client):
    stream = await openai_client.completions.create(
        model="any", prompt="x = ", max_tokens=4, stream=True, stream_options={"include_usage": True}
    )
    chunks = [chunk async for chunk in stream]
    texts = [choice.text for chunk in chunks for choice in chunk.choices]
    assert len(texts) >= 4
    assert "".join(texts) == " 0 1 2 3"
    assert [c.finish_reason for chunk in chunks for c in chunk.choices][-1] == "length"
    assert chunks[-1].usage.total_tokens > 0
    assert len({chunk.id for chunk in chunks}) == 1


async def test_the_openai_package_stops_at_stop_strings(openai_client):
    for stream in (False, True):
        answer = await openai_client.completions.create(
            model="any", prompt="x", max_tokens=50, stop=[" 2 3", "none"], stream=stream
        )
        choices = [c async for chunk in answer for c in [chunk.choices[0]]] if stream else answer.choices
        assert "".join(choice.text for choice in choices) == " 0 1"
        assert choices[-1].finish_reason == "stop"


async def test_the_openai_package_gets_errors_with_code_and_message(openai_client):
    with pytest.raises(openai.BadRequestError) as refused:
        await openai_client.completions.create(model="any", prompt=["a", "b"], max_tokens=1)
    assert refused.value.body["code"] == "invalid_request"
    assert "2 prompts" in refused.value.body["message"]
    with pytest.raises(openai.BadRequestError):
        await openai_client.completions.create(model="any", prompt="a", logprobs=3)
    with pytest.raises(openai.BadRequestError):
        await openai_client.completions.create(model="any", prompt="too long", max_tokens=1)
    with pytest.raises(openai.APIError):
        async for _ in await openai_client.completions.create(model="any", prompt="too long", stream=True):
            pass
    with pytest.raises(openai.AuthenticationError):
        await openai_client.with_options(api_key="wrong").completions.create(model="any", prompt="a")


async def test_the_openai_package_lists_the_model(openai_client):
    assert [model.id async for model in openai_client.models.list()] == ["paced"]


def test_a_prompt_without_suffix_uses_the_prefix_only_layout():
    assert completion_request(CompletionBody(prompt="a")).layout is Layout.PREFIX_ONLY
    assert completion_request(CompletionBody(prompt="a", suffix="")).layout is None


@pytest.mark.parametrize(
    "prompt",
    ["<|fim_prefix|>before<|fim_suffix|>after<|fim_middle|>", "<fim_prefix>before<fim_suffix>after<fim_middle>"],
)
def test_a_prompt_that_contains_a_models_fim_tokens_is_split_into_prefix_and_suffix(prompt):
    request = completion_request(CompletionBody(prompt=prompt))
    assert (request.prefix, request.suffix, request.layout) == ("before", "after", None)


async def test_a_client_that_disconnects_cancels_an_unstreamed_reply(start_host):
    engine = PacedEngine(gated=True)
    client = await start_host(engine)
    for path, request in (
        ("/infill", llama_vim_request(n_predict=100)),
        ("/v1/completions", {"prompt": "x", "max_tokens": 1000}),
        ("/v1/completions", {"segments": {"prefix": "x"}}),
    ):
        reply = asyncio.create_task(client.post(path, json=request))
        assert await asyncio.to_thread(engine.began.acquire, timeout=60)
        reply.cancel()
        await asyncio.gather(reply, return_exceptions=True)
        while (await client.get("/health")).json()["busy"]:
            pass
        steps = engine.steps
        engine.permits.release()
        assert await asyncio.to_thread(engine.ended.acquire, timeout=60)
        assert engine.steps <= steps + 1


async def test_tabbys_segments_are_completed(start_host):
    client = await start_host(PacedEngine())
    request = {
        "language": "python",
        "segments": {
            "prefix": "def fib(n):\n    ",
            "suffix": "\n",
            "filepath": "fib.py",
            "git_url": "https://example.org/me/numbers.git",
            "declarations": [{"filepath": "a.py", "body": "def a(): ..."}],
            "clipboard": "copied",
        },
        "user": "someone",
    }
    reply = await client.post("/v1/completions", json=request)
    assert reply.status_code == 200
    assert reply.json()["id"].startswith("cmpl-")
    assert reply.json()["choices"][0]["text"].startswith(" 0 1 2")


async def test_all_of_tabbys_snippets_reach_the_engine_the_best_at_the_end(start_host):
    engine = RecordingEngine()
    client = await start_host(engine)
    kinds = ("declarations", "relevant_snippets_from_changed_files", "relevant_snippets_from_recently_opened_files")
    snippets = {kind: [{"filepath": f"{kind}.py", "body": "x", "score": 1}] for kind in kinds}
    for segments in (snippets, dict.fromkeys(kinds)):
        reply = await client.post("/v1/completions", json={"segments": {"prefix": "y = ", **segments}})
        assert reply.status_code == 200, reply.text
    paths = [[file.path for file in request.context] for request in engine.requests]
    assert paths == [[f"{kind}.py" for kind in reversed(kinds)], []]


async def test_tabbys_events_are_counted_by_known_type(start_host):
    client = await start_host(PacedEngine())
    for kind in ("view", "select", "select", "secret_source"):
        event = {"type": kind, "completion_id": "cmpl-1", "choice_index": 0}
        assert (await client.post("/v1/events?select_kind=line", json=event)).status_code == 200
    metrics = (await client.get("/metrics")).text
    assert 'draftline_client_events_total{type="select"} 2.0' in metrics
    assert 'draftline_client_events_total{type="other"} 1.0' in metrics
    assert "secret_source" not in metrics
    assert (await client.get("/v1/health")).json()["model"] == "paced"


@pytest.mark.parametrize(
    ("path", "fields", "seed"),
    [
        ("/infill", {"input_prefix": "x"}, "seed"),
        ("/completion", {"prompt": "x"}, "seed"),
        ("/v1/completions", {"prompt": "x"}, "seed"),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}]}, "seed"),
        ("/v1/fim/completions", {"prompt": "x"}, "random_seed"),
        ("/v1/completions", {"segments": {"prefix": "x"}}, "seed"),
    ],
)
async def test_any_seed_and_the_smallest_nucleus_are_accepted_as_other_servers_do(start_host, path, fields, seed):
    client = await start_host(PacedEngine())
    reply = await client.post(path, json={**fields, "temperature": 0.5, "top_p": 0, seed: -1})
    assert reply.status_code == 200, reply.text


@pytest.mark.parametrize(
    ("path", "fields", "usual"),
    [
        ("/v1/completions", {"prompt": "x"}, 128),
        ("/v1/fim/completions", {"prompt": "x"}, 128),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}]}, MAX_TOKENS_LIMIT),
    ],
)
async def test_twinnys_no_limit_and_one_beyond_the_engines_are_limits_as_in_other_servers(
    start_host, path, fields, usual
):
    engine = RecordingEngine()
    client = await start_host(engine)
    for limit in (None, -1, 3, 100_000):
        reply = await client.post(path, json={**fields, "max_tokens": limit, "stop": " 2"})
        assert reply.status_code == 200, reply.text
    assert [request.max_tokens for request in engine.requests] == [usual, usual, 3, MAX_TOKENS_LIMIT]
    assert (await client.post(path, json={**fields, "max_tokens": -2})).status_code == 400


async def test_ollamas_options_may_name_any_seed_and_the_smallest_nucleus(start_host):
    client = await start_host(PacedEngine())
    options = {"temperature": 0.5, "top_p": 0, "seed": -1}
    reply = await client.post("/api/generate", json={"prompt": "x", "stream": False, "options": options})
    assert reply.status_code == 200, reply.text


@pytest.mark.parametrize("wrong", [{"top_p": -0.5}, {"top_p": 1.5}])
async def test_a_nucleus_out_of_every_servers_range_is_refused_by_name(start_host, wrong):
    client = await start_host(PacedEngine())
    reply = await client.post("/v1/completions", json={"prompt": "x", **wrong})
    assert (reply.status_code, reply.json()["error"]["message"].startswith("top_p is")) == (400, True)


def test_with_the_smallest_nucleus_the_likeliest_token_is_drawn():
    sampling = sampling_of(temperature=1.0, top_p=0.0, seed=-1)
    row = np.linspace(0, 1, 700, dtype=np.float32)
    assert {draw(row, sampling, position) for position in range(20)} == {699}


async def test_errors_have_the_status_and_the_form_of_their_interface(start_host):
    client: httpx.AsyncClient = await start_host(PacedEngine())
    for path, wrong in (
        ("/infill", {"input_prefix": 3}),
        ("/completion", {"prompt": ["a", "b"]}),
        ("/completion", {"prompt": [1, 2]}),
        ("/completion", {"prompt": "too long"}),
    ):
        reply = await client.post(path, json=wrong)
        assert (reply.status_code, reply.json()["error"]["code"]) == (400, 400), (path, wrong)
        assert reply.json()["error"]["type"] == "invalid_request_error"
    for path, wrong in (
        ("/v1/completions", {"prompt": [1, 2]}),
        ("/v1/completions", {}),
        ("/v1/completions", {"segments": {"suffix": "x"}}),
        ("/v1/completions", {"prompt": "x", "max_tokens": 0}),
        ("/v1/completions", [1]),
        ("/beta/completions", {"prompt": "x", "temperature": "warm"}),
    ):
        reply = await client.post(path, json=wrong)
        assert (reply.status_code, reply.json()["error"]["code"]) == (400, "invalid_request"), (path, wrong)
    for path in ("/v1/complete", "/v1/events"):
        reply = await client.post(path, json={})
        assert (reply.status_code, reply.json()["code"]) == (422, "invalid_request"), path
    mistral = await client.post("/v1/fim/completions", json={"prompt": 1})
    assert (mistral.status_code, mistral.json()["object"]) == (400, "error")
    assert "prompt" in mistral.json()["message"]
    ollama = await client.post("/api/generate", json={"prompt": "x", "options": {"temperature": "warm"}})
    assert ollama.status_code == 400
    assert "options.temperature" in ollama.json()["error"]
    unknown = await client.post("/api/chat", json={})
    assert (unknown.status_code, list(unknown.json())) == (404, ["error"])


@pytest.mark.parametrize(
    ("text", "done", "visible", "stopped"),
    [
        ("abc", False, "abc", False),
        ("abcEN", False, "abc", False),
        ("abcEN", True, "abcEN", False),
        ("abcENDx", False, "abc", True),
        ("abENcEND", True, "abENc", True),
        ("EEN", False, "E", False),
    ],
)
def test_an_end_that_may_become_a_stop_string_is_hidden(text, done, visible, stopped):
    assert StopStrings(["END", "zzz"]).text_before(text, done=done) == (visible, stopped)


def test_plain_text_does_not_repeat_the_closing_bracket_after_the_cursor():
    assert plain_text(Suggestion("a, b)", replace_after=1), ")\n") == "a, b"
    assert plain_text(Suggestion("a, b);", replace_after=1), ")\n") == "a, b"
    assert plain_text(Suggestion("a, b"), ")\n") == "a, b"
    assert plain_text(Suggestion("a )", replace_after=2), " )\n") == "a"
    assert plain_text(Suggestion("a)", replace_after=2), " )\n") == "a"
