"""OpenAI's chat: whole and streamed replies, fields, and clear errors."""

import asyncio
import json

import openai
import pytest

from completion.engine import Engine
from completion.host.engine_protocol import LoadedEngine
from completion.host.process.clients import KEPT_CONVERSATIONS
from completion.host.process.sockets import TcpAddress, tcp_socket
from completion.host.server import HostSettings
from completion.model.loading import load_model
from completion.request import MAX_TOKENS_LIMIT, Closing, Message
from tests.completion.chat_models import chat_model
from tests.completion.host.dialects.test_ollama import RecordingEngine
from tests.completion.host.dialects.test_replays import StandIn
from tests.completion.host.paced_engine import PacedEngine
from tests.completion.host.test_requests import acquire, until_waiting

ADDRESS = "/v1/chat/completions"
HELLO = {"messages": [{"role": "user", "content": "Hello"}]}
TOKEN = "a-token-of-enough-length"


@pytest.fixture
async def openai_client(start_host):
    with tcp_socket(TcpAddress("127.0.0.1", 0, TOKEN)) as probe:
        address = TcpAddress("127.0.0.1", probe.getsockname()[1], TOKEN)
    await start_host(PacedEngine(), HostSettings(tcp=address))
    base_url = f"http://127.0.0.1:{address.port}/v1"
    async with openai.AsyncOpenAI(base_url=base_url, api_key=TOKEN, max_retries=0) as client:
        yield client.chat.completions


async def test_the_openai_package_gets_a_reply(openai_client):
    answer = await openai_client.create(model="any", messages=HELLO["messages"], max_completion_tokens=3)
    assert (answer.choices[0].message.role, answer.choices[0].message.content) == ("assistant", " 0 1 2")
    assert answer.choices[0].finish_reason == "length"
    assert (answer.object, answer.model, answer.usage.completion_tokens) == ("chat.completion", "paced", 3)


async def test_the_openai_package_streams(openai_client):
    stream = await openai_client.create(
        model="any", messages=HELLO["messages"], max_tokens=4, stream=True, stream_options={"include_usage": True}
    )
    chunks = [chunk async for chunk in stream]
    deltas = [choice.delta for chunk in chunks for choice in chunk.choices]
    assert "".join(delta.content for delta in deltas) == " 0 1 2 3"
    assert [delta.role for delta in deltas] == ["assistant"] + [None] * (len(deltas) - 1)
    assert len(deltas) >= 4
    assert [choice.finish_reason for chunk in chunks for choice in chunk.choices][-1] == "length"
    assert chunks[-1].usage.completion_tokens == 4
    assert len({chunk.id for chunk in chunks}) == 1


async def test_fields_reach_the_engine_and_a_stop_string_ends_the_reply(start_host):
    engine = RecordingEngine()
    client = await start_host(engine)
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    messages = [{"role": "developer", "content": "D"}, {"role": "user", "content": parts, "name": "ada"}]
    options = {"temperature": 0.3, "top_p": 0.8, "seed": 5, "stop": " 2 3", "response_format": {"type": "text"}}
    reply = await client.post(ADDRESS, json={"messages": messages, "model": "x", **options})
    assert reply.json()["choices"][0]["message"]["content"] == " 0 1"
    assert reply.json()["choices"][0]["finish_reason"] == "stop"
    (request,) = engine.requests
    assert request.messages == (Message("system", "D"), Message("user", "ab"))
    assert (request.prefix, request.suffix, request.max_tokens) == ("", "", MAX_TOKENS_LIMIT)
    assert (request.sampling.temperature, request.sampling.top_p, request.sampling.seed) == (0.3, 0.8, 5)


async def test_llama_vims_warm_up_is_answered_at_once_and_generates_nothing(start_host):
    engine = RecordingEngine()
    client = await start_host(engine)
    warm_up = {"id_slot": 1, "samplers": [], "n_predict": 0, "stream": False, "cache_prompt": True}
    reply = await client.post(ADDRESS, json=HELLO | warm_up | {"response_fields": [""]})
    assert (reply.status_code, reply.json()["choices"][0]["message"]["content"]) == (200, "")
    assert (await client.post(ADDRESS, json=HELLO | {"n_predict": 2})).json()["usage"]["completion_tokens"] == 2
    assert [request.max_tokens for request in engine.requests] == [2]


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ({}, "messages: Field required"),
        ({"messages": []}, "messages: List should have at least 1 item"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages.0.role"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]}, "content"),
        (HELLO | {"n": 2}, "n is 2"),
        (HELLO | {"tools": [{"type": "function"}], "logprobs": True}, "tools and logprobs cannot be served"),
        (HELLO | {"response_format": {"type": "json_object"}}, "response_format cannot be served"),
        (HELLO | {"max_tokens": 0}, "max_tokens is 0"),
        (HELLO | {"temperature": -1}, "temperature is -1"),
    ],
)
async def test_a_wrong_body_is_refused_by_name(start_host, body, complaint):
    reply = await (await start_host(PacedEngine())).post(ADDRESS, json=body)
    error = reply.json()["error"]
    assert (reply.status_code, error["type"]) == (400, "invalid_request_error")
    assert complaint in error["message"]


async def test_draftlines_own_interface_takes_a_conversation_without_a_suffix(start_host):
    client = await start_host(PacedEngine())
    body = {"prefix": "", "messages": HELLO["messages"], "max_tokens": 2}
    assert (await client.post("/v1/complete", json=body)).status_code == 200
    reply = await client.post("/v1/complete", json=body | {"suffix": "x"})
    assert (reply.status_code, "no suffix" in reply.json()["message"]) == (422, True)


async def test_a_model_replies_whole_and_streamed_alike(start_host, tiny_qwen2, tmp_path):
    loaded = load_model(str(chat_model(tiny_qwen2, tmp_path / "chat")), backend="fp32")
    client = await start_host(StandIn(LoadedEngine(Engine(loaded), "tiny", "cpu", 4096)))
    body = HELLO | {"max_tokens": 30}
    whole = (await client.post(ADDRESS, json=body)).json()["choices"][0]["message"]["content"]
    async with client.stream("POST", ADDRESS, json=body | {"stream": True}) as reply:
        data = [line.removeprefix("data: ") async for line in reply.aiter_lines() if line]
    assert data[-1] == "[DONE]"
    assert whole
    assert "".join(json.loads(each)["choices"][0]["delta"]["content"] for each in data[:-1]) == whole


async def test_a_follow_up_question_computes_only_what_is_new_also_after_a_suggestion(start_host, tiny_qwen2, tmp_path):
    loaded = load_model(str(chat_model(tiny_qwen2, tmp_path / "chat")), backend="fp32")
    client = await start_host(StandIn(LoadedEngine(Engine(loaded), "tiny", "cpu", 4096)))
    first = (await client.post(ADDRESS, json=HELLO | {"max_tokens": 8})).json()
    assert (await client.post("/infill", json={"input_prefix": "x = ", "n_predict": 2})).status_code == 200
    follow_up = [*HELLO["messages"], first["choices"][0]["message"], {"role": "user", "content": "And now?"}]
    assert await kept_tokens(client) == 0
    assert (await client.post(ADDRESS, json={"messages": follow_up, "max_tokens": 2})).status_code == 200
    assert await kept_tokens(client) >= first["usage"]["prompt_tokens"] - 1


async def kept_tokens(client):
    served = 'draftline_prompt_tokens_total{served="kept"} '
    lines = (await client.get("/metrics")).text.splitlines()
    return float(next((line.removeprefix(served) for line in lines if line.startswith(served)), 0))


async def test_two_requests_of_one_conversation_do_not_end_each_other(start_host):
    engine = PacedEngine(gated=True)
    client = await start_host(engine)
    first = asyncio.create_task(client.post(ADDRESS, json=HELLO | {"max_tokens": 3}))
    await acquire(engine.began)
    second = asyncio.create_task(client.post(ADDRESS, json=HELLO | {"max_tokens": 3}))
    await until_waiting(client, 1)
    engine.permits.release(6)
    texts = [(await reply).json()["choices"][0]["message"]["content"] for reply in (first, second)]
    assert texts == [" 0 1 2"] * 2


async def test_the_engine_keeps_a_users_last_conversations_only(start_host):
    engine = PacedEngine()
    client = await start_host(engine)
    for name in ("oldest", "older", *map(str, range(KEPT_CONVERSATIONS - 2)), "oldest", "newest"):
        for question in (name, name + " once more"):
            system = {"role": "system", "content": "Be brief."}
            talk = [system, {"role": "user", "content": name}, {"role": "user", "content": question}]
            assert (await client.post(ADDRESS, json={"messages": talk, "max_tokens": 1})).status_code == 200
    await acquire(engine.forgot)
    assert len(set(engine.started)) == KEPT_CONVERSATIONS + 1
    assert engine.forgotten == [Closing(documents=(engine.started[2],))]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_model_without_a_template_says_so(start_host, tiny_model, stream):
    client = await start_host(StandIn(LoadedEngine(Engine(tiny_model), "tiny", "cpu", 4096)))
    reply = await client.post(ADDRESS, json=HELLO | {"stream": stream})
    assert reply.status_code == (200 if stream else 400)  # a stream has begun before the engine looks at the request
    assert "no chat template" in reply.text
    assert '"code": "conversation"' in reply.text or '"code":"conversation"' in reply.text
