"""The server's process: its imports, its output, its end, and its transports."""

import asyncio
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.lsp_server.real_client import COMMAND, environment

CANARY = "CANARY_d41d8cd9"
PARSE_ERROR, INVALID_REQUEST, INVALID_PARAMS = -32700, -32600, -32602
SERVER_NOT_INITIALIZED = -32002


def message(**fields):
    body = json.dumps({"jsonrpc": "2.0", **fields}).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def framed(body):
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def initialize(process_id=None, **options):
    params = {"processId": process_id, "rootUri": None, "capabilities": {}, "initializationOptions": options}
    return message(id=1, method="initialize", params=params)


async def read(stream):
    size = 0
    while line := (await stream.readline()).strip():
        if line.lower().startswith(b"content-length:"):
            size = int(line.split(b":")[1])
    return json.loads(await stream.readexactly(size))


async def reply(stream, id_):
    while True:
        received = await read(stream)
        if received.get("id") == id_ and "method" not in received:
            return received


@pytest.fixture
async def spawn(runtime):
    started = []

    async def start(*arguments, cwd=None):
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *COMMAND, *arguments, stdin=pipe, stdout=pipe, stderr=pipe, env=environment(), cwd=cwd
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.returncode is None:
            process.kill()
            await process.wait()


def test_the_server_does_not_import_the_models_libraries():
    script = (
        "import sys, lsp_server.transport, lsp_server.engine.client\n"
        "heavy = {'torch', 'transformers', 'numba', 'numpy', 'httpcore', 'httpx', 'starlette', 'pydantic', 'sqlite3'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment())
    assert done.stdout.strip() == "[]"


def test_edit_distances_are_not_loaded_before_an_accepted_text_is_compared():
    script = "import sys, lsp_server.session\nprint('rapidfuzz' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment())
    assert done.stdout.strip() == "False"


def test_the_classes_that_lsprotocol_makes_twice_are_not_in_memory_twice():
    script = "import gc, lsp_server.__main__\nprint(gc.collect())"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment())
    assert int(done.stdout) < 2_000  # of 17,000 objects


async def test_neither_the_server_nor_its_engine_executes_modules_of_the_workspace(spawn, tmp_path):
    executed = tmp_path / "executed"
    for name in ("lsp_server", "completion", "pygls", "numpy"):
        (tmp_path / f"{name}.py").write_text(f"open({str(executed)!r}, 'w').close()\n")
    process = await spawn("--stdio", cwd=tmp_path)
    process.stdin.write(initialize(model="/nowhere") + message(method="initialized", params={}))
    while (received := await read(process.stdout)).get("params", {}).get("kind") != "error":
        pass
    assert "/nowhere" in received["params"]["message"]
    assert not executed.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="psutil tells limits of other processes only on Linux")
@pytest.mark.usefixtures("core_dumps")
async def test_the_server_leaves_no_core_dump(spawn):
    process = await spawn("--stdio")
    process.stdin.write(initialize(os.getpid()))
    await reply(process.stdout, 1)
    assert psutil.Process(process.pid).rlimit(psutil.RLIMIT_CORE)[0] == 0


async def test_the_server_ends_when_its_input_closes(spawn):
    process = await spawn("--stdio")
    process.stdin.write(initialize(os.getpid()))
    assert (await reply(process.stdout, 1))["result"]["serverInfo"]["name"] == "draftline"
    process.stdin.close()
    assert await asyncio.wait_for(process.wait(), 60) == 0


async def test_the_server_ends_when_the_editor_has_ended_even_if_its_input_stays_open():
    start = "import signal, subprocess, sys\nsubprocess.Popen(sys.argv[1:])\nsignal.pause()"
    words = (sys.executable, "-c", start, *COMMAND, "--stdio")
    server_in, own_end = os.pipe()
    editor = await asyncio.create_subprocess_exec(*words, stdin=server_in, stdout=subprocess.PIPE, env=environment())
    os.write(own_end, initialize(editor.pid))
    await reply(editor.stdout, 1)
    editor.kill()
    await asyncio.wait_for(editor.stdout.read(), 60)  # the server has closed its output
    os.close(own_end)
    os.close(server_in)


async def test_exit_after_shutdown_gives_status_0_and_exit_alone_status_1(spawn):
    orderly, sudden = await spawn("--stdio"), await spawn("--stdio")
    orderly.stdin.write(initialize() + message(id=2, method="shutdown"))
    await reply(orderly.stdout, 2)
    orderly.stdin.write(message(method="exit"))
    assert await asyncio.wait_for(orderly.wait(), 60) == 0
    sudden.stdin.write(initialize() + message(method="exit"))
    assert await asyncio.wait_for(sudden.wait(), 60) == 1


async def test_the_log_contains_no_source_text_at_any_level_even_after_malformed_messages(spawn):
    process = await spawn("--stdio")
    document = {"uri": f"file:///{CANARY}.py", "languageId": "python", "version": 1, "text": CANARY}
    process.stdin.write(initialize(logLevel="debug", model="/nowhere"))
    await reply(process.stdout, 1)
    process.stdin.write(message(method="textDocument/didOpen", params={"textDocument": document}))
    process.stdin.write(
        message(method="textDocument/didOpen", params={"textDocument": {**document, "version": CANARY}})
    )
    process.stdin.write(message(method="textDocument/didOpen", params={"text": CANARY}))
    process.stdin.write(message(method="draftline/didRejectCompletion", params={"text": CANARY}))
    process.stdin.write(message(method=f"custom/{CANARY}", params={"text": CANARY}))
    process.stdin.write(framed(b'{"jsonrpc": "2.0", "method": "' + CANARY.encode()))
    process.stdin.write(message(id=2, method="textDocument/inlineCompletion", params={"text": CANARY}))
    process.stdin.write(message(id=3, method="shutdown"))
    await reply(process.stdout, 3)
    process.stdin.write(message(method="exit"))
    _, log = await process.communicate()
    assert CANARY not in log.decode()
    assert b'"id" is missing' in log


async def test_a_message_with_bytes_that_are_not_utf8_is_handled(spawn):
    process = await spawn("--stdio")
    process.stdin.write(initialize(model="/nowhere"))
    await reply(process.stdout, 1)
    document = json.dumps({"uri": "file:///a.py", "languageId": "python", "version": 1, "text": "X"}).encode()
    body = b'{"jsonrpc":"2.0","method":"textDocument/didOpen","params":{"textDocument":%b}}' % document
    process.stdin.write(framed(body.replace(b'"X"', b'"caf\xe9"')))
    place = {"textDocument": {"uri": "file:///a.py"}, "position": {"line": 0, "character": 1}}
    context = {"context": {"triggerKind": 1}}
    process.stdin.write(message(id=2, method="textDocument/inlineCompletion", params=place | context))
    sentences = []
    while True:
        received = await read(process.stdout)
        if received.get("method") == "draftline/status":
            sentences.append(received["params"]["message"])
        if received.get("id") == 2:
            break
    assert received["result"] == {"items": []}
    assert "The document is not valid UTF-8." in sentences


async def listening(spawn):
    """Start a server on TCP, and return its process, port and token."""
    process = await spawn("--tcp", "0")
    path = Path(re.search(rb"token in (\S+)", await process.stderr.readline())[1].decode())
    port = int(re.search(rb":(\d+)", await process.stderr.readline())[1])
    return process, port, await asyncio.to_thread(path.read_text)


@pytest.mark.parametrize("options", [{}, {"token": "guessed"}, {"token": 7}], ids=["none", "wrong", "no text"])
async def test_a_tcp_client_without_the_token_is_refused_and_disconnected(spawn, options):
    _, port, _ = await listening(spawn)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(initialize(**options) + message(id=2, method="workspace/executeCommand", params={"command": "x"}))
    assert (await reply(reader, 1))["error"]["code"] == INVALID_REQUEST
    assert await reader.read() == b""


async def test_a_web_pages_request_has_no_effect(spawn):
    _, port, _ = await listening(spawn)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    body = message(
        id=2, method="workspace/executeCommand", params={"command": "draftline.accepted", "arguments": ["x"]}
    )
    writer.write(b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\n" + body + initialize())
    assert (await reply(reader, 2))["error"]["code"] == SERVER_NOT_INITIALIZED
    assert (await reply(reader, 1))["error"]["code"] == INVALID_REQUEST
    assert await reader.read() == b""


async def test_only_the_user_can_read_the_token_file_and_a_large_first_message_is_ignored(spawn, runtime):
    _, port, token = await listening(spawn)
    assert (runtime / "state" / "server-token").stat().st_mode & 0o077 == 0
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"Content-Length: 2000000\r\n\r\n\r\n" + initialize(token=token.strip()))
    assert "result" in await reply(reader, 1)
    writer.close()


async def test_every_tcp_client_has_its_own_session(spawn):
    process, port, token = await listening(spawn)
    connections = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
    for reader, writer in connections:
        writer.write(initialize(token=token.strip()))
        assert "result" in await reply(reader, 1)
    first, second = connections
    first[1].write(message(id=2, method="shutdown"))
    await reply(first[0], 2)
    first[1].write(message(method="exit"))
    assert await first[0].read() == b""
    second[1].write(message(id=2, method="shutdown"))
    assert (await reply(second[0], 2))["result"] is None
    assert process.returncode is None
    second[1].close()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [((), b"--stdio"), (("--tcp", "65536"), b"from 0 to 65535"), (("--tcp", "localhost:80"), b"from 0 to 65535")],
)
async def test_wrong_arguments_are_explained(spawn, arguments, words):
    process = await spawn(*arguments)
    _, printed = await process.communicate()
    assert process.returncode == 2
    assert words in printed


async def test_a_port_in_use_is_one_sentence_with_what_to_do(spawn):
    _, port, _ = await listening(spawn)
    process = await spawn("--tcp", str(port))
    _, printed = await process.communicate()
    assert process.returncode == 1
    last = printed.splitlines()[-1].decode()
    assert last.startswith(f"draftline: Cannot listen on 127.0.0.1:{port} (")
    assert last.endswith("Choose another port with --tcp PORT.")
    assert b"Traceback" not in printed


@pytest.mark.parametrize("kind", ["of no process", "of another process that ends"])
async def test_a_process_id_from_another_container_does_not_end_the_server(spawn, kind):
    """`docker exec` and WSL: the client's number means another process here, or none."""
    stranger = await asyncio.create_subprocess_exec(sys.executable, "-c", "input()", stdin=subprocess.PIPE)
    if kind == "of no process":
        await stranger.communicate(b"\n")
    server = await spawn("--stdio")
    server.stdin.write(initialize(stranger.pid) + message(method="initialized", params={}))
    await reply(server.stdout, 1)
    if stranger.returncode is None:
        await stranger.communicate(b"\n")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(server.wait(), 2)
    server.stdin.write(message(id=2, method="shutdown", params=None))
    await reply(server.stdout, 2)
