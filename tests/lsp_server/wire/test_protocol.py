"""The real server process gets messages that are malformed, out of order, cancelled or too long."""

import asyncio
import os

import pytest

from tests.lsp_server.test_process import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    SERVER_NOT_INITIALIZED,
    framed,
    initialize,
    message,
    read,
    reply,
    spawn,  # noqa: F401 - a fixture
)

DOCUMENT = {"uri": "file:///a.py"}


def inline_completion(id_, line):
    """Return a request whose `line` is the given JSON."""
    params = {"textDocument": DOCUMENT, "position": {"line": 0, "character": 0}, "context": {"triggerKind": 1}}
    body = message(id=id_, method="textDocument/inlineCompletion", params=params).partition(b"\r\n\r\n")[2]
    return framed(body.replace(b'"line": 0', b'"line": ' + line))


@pytest.fixture
async def server(spawn):  # noqa: F811
    process = await spawn("--stdio")
    process.stdin.write(initialize(os.getpid(), model="/nowhere"))
    await reply(process.stdout, 1)
    return process


async def still_answers(process, id_=99):
    process.stdin.write(inline_completion(id_, b"0"))
    assert (await reply(process.stdout, id_))["result"] == {"items": []}


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (b"1" + b"0" * 18, INVALID_PARAMS),
        (b"-" + b"9" * 300, INVALID_PARAMS),
        (b"9" * 5_000, INVALID_PARAMS),
        (b'"x"', INVALID_PARAMS),
    ],
    ids=["19 digits", "negative", "5,000 digits", "no number"],
)
async def test_a_huge_integer_is_answered_with_invalid_params(server, number, code):
    server.stdin.write(inline_completion(2, number))
    assert (await reply(server.stdout, 2))["error"]["code"] == code
    await still_answers(server)


@pytest.mark.parametrize("depth", [900, 5_000, 100_000])
@pytest.mark.parametrize("where", ["position", "settings"])
async def test_deep_json_is_answered_and_the_server_lives(server, depth, where):
    deep = b"[" * depth + b"]" * depth
    if where == "position":
        server.stdin.write(inline_completion(2, deep))
        received = await next_reply(server.stdout)
        assert (received["id"], received["error"]["code"]) in {(None, PARSE_ERROR), (2, INVALID_PARAMS)}
    else:
        body = b'{"jsonrpc":"2.0","method":"workspace/didChangeConfiguration","params":{"settings":{"draftline":'
        server.stdin.write(framed(body + b'{"max_tokens":' + deep + b"}}}}"))
    await still_answers(server)


async def next_reply(stream):
    while "method" in (received := await read(stream)):
        pass
    return received


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", PARSE_ERROR),
        (b"[1, 2]", INVALID_REQUEST),
        (b'"text"', INVALID_REQUEST),
        (b"{}", INVALID_REQUEST),
        (b'{"jsonrpc": "2.0", "id": 1, "method": {}}', INVALID_REQUEST),
    ],
)
async def test_invalid_json_rpc_is_answered_with_an_error_without_an_id(server, body, code):
    server.stdin.write(framed(body))
    received = await next_reply(server.stdout)
    assert (received["id"], received["error"]["code"]) == (None, code)
    await still_answers(server)


async def test_a_header_line_over_64_kb_is_skipped(server):
    server.stdin.write(b"X-Padding: " + b"x" * 1_000_000 + b"\r\n")
    await still_answers(server)
    server.stdin.write(b"Content-Length: " + b"9" * 5_000 + b"\r\n\r\n")
    await still_answers(server, 100)


async def test_requests_before_initialize_and_a_second_initialize_are_refused(spawn):  # noqa: F811
    process = await spawn("--stdio")
    process.stdin.write(inline_completion(7, b"0"))
    assert (await reply(process.stdout, 7))["error"]["code"] == SERVER_NOT_INITIALIZED
    process.stdin.write(initialize(model="/nowhere"))
    assert "result" in await reply(process.stdout, 1)
    process.stdin.write(initialize(model="/nowhere"))
    assert (await reply(process.stdout, 1))["error"]["code"] == INVALID_REQUEST
    await still_answers(process)


async def test_a_request_after_shutdown_is_an_invalid_request(server):
    late = (inline_completion(3, b"0"), message(id=4, method="shutdown"), message(id=5, method="no/such/method"))
    server.stdin.write(b"".join((message(id=2, method="shutdown"), *late)))
    replies = {received["id"]: received for received in [await next_reply(server.stdout) for _ in range(4)]}
    assert replies[2]["result"] is None
    assert [replies[id_]["error"]["code"] for id_ in (3, 4, 5)] == [INVALID_REQUEST] * 3
    server.stdin.write(message(method="exit"))
    assert await asyncio.wait_for(server.wait(), 60) == 0


async def test_a_response_that_nobody_waits_for_leaves_no_invalid_state_error_in_the_log(spawn):  # noqa: F811
    process = await spawn("--stdio")
    params = {"processId": None, "rootUri": None, "capabilities": {"window": {"workDoneProgress": True}}}
    params["initializationOptions"] = {"model": "/nowhere"}
    process.stdin.write(message(id=1, method="initialize", params=params))
    await reply(process.stdout, 1)
    process.stdin.write(message(method="initialized", params={}))
    created = await request(process.stdout, "window/workDoneProgress/create")
    while (await request(process.stdout, "draftline/status"))["params"]["kind"] != "error":
        pass  # the server cancels its progress bar when the engine cannot start
    process.stdin.write(message(id=created["id"], result=None))
    await still_answers(process)
    assert b"InvalidStateError" not in await end(process)


async def test_cancelled_commands_do_not_disturb_the_shutdown(server):
    command = {"command": "draftline.accepted", "arguments": ["x"]}
    commands = [message(id=id_, method="workspace/executeCommand", params=command) for id_ in range(10, 30)]
    cancels = [message(method="$/cancelRequest", params={"id": id_}) for id_ in range(10, 30)]
    answers = [message(id=id_, result=None) for id_ in range(10, 30)]  # to requests that the server never sent
    server.stdin.write(b"".join((*commands, *cancels, *commands, *answers)))
    await still_answers(server)
    server.stdin.write(b"".join(commands))
    log = await end(server)
    assert b"InvalidStateError" not in log
    assert b"changed size" not in log


async def end(process):
    """Shut a server down properly, and return its log."""
    process.stdin.write(message(id=2, method="shutdown"))
    assert (await reply(process.stdout, 2))["result"] is None
    process.stdin.write(message(method="exit"))
    _, log = await process.communicate()
    assert process.returncode == 0
    return log


async def request(stream, method):
    """Return the server's next message of a method."""
    while (received := await read(stream)).get("method") != method:
        pass
    return received
