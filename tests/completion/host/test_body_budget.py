"""What a body may cost: whatever it contains, it is refused or served within a budget of time and memory."""

import asyncio
import json
import time
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from completion.host.errors import BodyInvalidError
from completion.host.process.address import endpoint_at
from completion.host.process.guard import Budget, JsonCount, UnfinishedBodies
from completion.host.server import HostSettings
from tests.completion.host.conftest import raw_connection
from tests.completion.host.paced_engine import PacedEngine
from tests.completion.host.test_hostile_bodies import ADDRESSES, is_refusal, with_field

LARGE = HostSettings().body_limit_bytes - 1000
LISTS = {
    "/v1/complete": ("context", "messages", "unknown"),
    "/v1/prepare": ("context",),
    "/v1/next-edit": ("lines", "edits", "diagnostics", "refused"),
    "/v1/workspace": ("changed", "removed"),
    "/v1/close": ("documents", "workspaces"),
    "/infill": ("input_extra", "stop", "samplers", "response_fields", "unknown"),
    "/completion": ("prompt", "stop"),
    "/v1/completions": ("prompt", "stop", "unknown"),
    "/v1/completions#tabby": ("segments.declarations",),
    "/v1/chat/completions": ("messages", "tools"),
    "/v1/fim/completions": ("stop", "prompt"),
    "/api/generate": ("images", "options.stop", "context"),
    "/v1/events": ("type",),
}
ITEMS = ({}, [], 1, "", None, {"text": ""}, {"path": "a", "text": ""}, {"role": "user", "content": [{}]}, [[1]])
SECONDS = 0.5
"""Processor time that a body may take, of host and client together; 4 MB of `{}` took 8 s."""

TEXTS = st.text(alphabet=st.sampled_from('a,:[]{}"\\é\n'), max_size=6)
VALUES = st.recursive(
    st.none() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)


def counts(value):
    """Return the values, keys and depth of a JSON value: a container counts as its first item does."""
    if not isinstance(value, dict | list):
        return 0, 0, 0
    inner = [counts(each) for each in (value.values() if isinstance(value, dict) else value)]
    keys = len(value) if isinstance(value, dict) else 0
    values = max(1, len(value)) + sum(each[0] for each in inner)
    return values, keys + sum(each[1] for each in inner), 1 + max((each[2] for each in inner), default=0)


def fits(text, budget, size):
    count = JsonCount(budget)
    try:
        for start in range(0, len(text), size):
            count.add(text[start : start + size])
    except BodyInvalidError:
        return False
    return True


@given(VALUES, st.integers(1, 9), st.booleans())
def test_what_a_text_contains_is_counted_exactly_however_it_arrives(value, size, is_ascii):
    text = json.dumps(value, ensure_ascii=is_ascii).encode()
    found = counts(value)
    assert fits(text, Budget(*found), size)
    for index in range(3):
        less = [limit - (place == index) for place, limit in enumerate(found)]
        assert min(less) < 0 or not fits(text, Budget(*less), size)


@pytest.mark.parametrize("address", LISTS)
async def test_large_bodies_of_small_items_take_no_more_time_than_their_size_is_worth(start_host, address):
    client = await start_host(PacedEngine())
    for field in LISTS[address]:
        for item in ITEMS:
            text = json.dumps(item)
            many = f"[{','.join([text] * (LARGE // (len(text) + 1)))}]"
            body = json.dumps(with_field(ADDRESSES.get(address, {}), field, "@")).replace('"@"', many).encode()
            before = time.process_time()
            reply = await client.post(address, content=body)
            assert is_refusal(reply) or reply.status_code in (200, 202), (field, text, reply.text)
            assert time.process_time() - before < SECONDS, (field, text)


@pytest.mark.parametrize("address", ["/v1/complete", "/v1/workspace", "/v1/close", "/infill"])
async def test_many_keys_take_no_more_time_than_their_size_is_worth(start_host, address):
    client = await start_host(PacedEngine())
    keys = {f"k{number}": 1 for number in range(300_000)}
    for body in (keys, ADDRESSES.get(address, {}) | {"context": [keys]}):
        before = time.process_time()
        assert is_refusal(await client.post(address, json=body))
        assert time.process_time() - before < 2 * SECONDS


async def test_a_list_of_wrong_items_is_refused_for_its_first_one(start_host):
    client = await start_host(PacedEngine())
    message = (await client.post("/v1/next-edit", json={"lines": [1] * 1000, "edits": []})).json()["message"]
    assert message.count("lines.") == 1
    message = (await client.post("/infill", json={"input_extra": [{}] * 1000})).json()["error"]["message"]
    assert message.count("input_extra.") == 1


async def half_body(runtime, size):
    """Send a large part of a body over a Unix socket, as far as the host reads; return the connection."""
    connection = raw_connection(endpoint_at(runtime / "test.sock"))
    connection.setblocking(False)
    head = f"POST /v1/complete HTTP/1.1\r\nHost: a\r\nContent-Length: {size + 1}\r\n\r\n".encode()
    with suppress(BrokenPipeError, ConnectionResetError):
        await asyncio.get_running_loop().sock_sendall(connection, head + b" " * size)
    return connection


async def test_half_bodies_are_bounded_together_and_stop_no_usual_request(start_host, runtime, monkeypatch):
    monkeypatch.delenv("DRAFTLINE_TRANSPORT", raising=False)  # TCP holds some MB of each that the host has not read yet
    client = await start_host(PacedEngine())
    most = UnfinishedBodies().limit_bytes // LARGE
    held = [await half_body(runtime, size) for size in (*[LARGE] * (most - 1), 3 * LARGE // 4)]
    refused = await half_body(runtime, LARGE)
    assert b" 429 " in await asyncio.get_running_loop().sock_recv(refused, 100)
    small = {"prefix": "one", "max_tokens": 1}
    assert (await client.post("/v1/complete", json=small)).status_code == 200
    large = small | {"suffix": "x" * LARGE}
    assert (await client.post("/v1/complete", json=large)).status_code == 429
    for connection in (*held, refused):
        connection.close()
    for _ in range(100):
        if (status := (await client.post("/v1/complete", json=large)).status_code) == 200:
            break
    assert status == 200
