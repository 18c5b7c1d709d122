"""End to end: a real client, the real server, the real host that it starts, and a real model."""

import asyncio

import psutil
import pytest
from lsprotocol import types

URI = "file:///nowhere/a.py"


def hosts_of(runtime):
    """Return the process numbers of the hosts that use the test's folder."""
    pids = []
    for process in psutil.process_iter(["cmdline"]):
        if "completion.host" in (process.info["cmdline"] or []):
            try:
                if process.environ().get("DRAFTLINE_RUNTIME_DIR", "").startswith(str(runtime)):
                    pids.append(process.pid)
            except psutil.Error:
                continue
    return pids


@pytest.mark.timeout(180)
async def test_a_tiny_model_completes_and_its_host_exits_after_its_last_client(start_client, runtime, tiny_qwen2):
    client = await start_client(model=str(tiny_qwen2), backend="transformers", streaming=True, max_tokens=8)
    status = await client.ready(timeout_s=120)
    assert status.kind == "ready", status.message
    client.open(URI, "def add(first, second):\n    return ")
    before = len(client.statuses)
    items = await client.complete(URI, 1, 11, invoked=True)
    for item in items:
        assert item.insert_text
        assert item.range.start == types.Position(1, 11)
    assert all(status.kind != "error" for status in client.statuses[before:])
    hosts = hosts_of(runtime)
    assert len(hosts) == 1
    await client.stop()
    await asyncio.to_thread(psutil.wait_procs, [psutil.Process(pid) for pid in hosts if psutil.pid_exists(pid)], 30)
    assert hosts_of(runtime) == []


@pytest.mark.real_model
@pytest.mark.timeout(300)
async def test_the_default_model_completes_a_line(start_client, runtime, monkeypatch):
    monkeypatch.delenv("DRAFTLINE_CACHE_DIR")
    client = await start_client(model="default", streaming=True, max_tokens=24)
    status = await client.ready(timeout_s=240)
    assert status.kind == "ready", status.message
    text = "def fibonacci(n):\n    if n < 2:\n        return n\n    return fibonacci(n - 1) + "
    client.open(URI, text)
    (item,) = await client.complete(URI, 3, 30)
    assert item.insert_text.startswith("fibonacci(n - 2)")
    assert client.partials[-1].items[0].insertText == item.insert_text


@pytest.mark.real_model
@pytest.mark.timeout(300)
async def test_the_line_after_an_accepted_one_is_suggested_at_once(start_client, runtime, monkeypatch):
    monkeypatch.delenv("DRAFTLINE_CACHE_DIR")
    client = await start_client(model="default", ahead=True, gate="off", max_tokens=64)
    assert (await client.ready(timeout_s=240)).kind == "ready"
    client.open(URI, "def fibonacci(n):\n    if n < 2:\n        return\n\n\nprint(fibonacci(10))\n")
    (item,) = await client.complete(URI, 2, 14)
    assert item.insert_text == " n"
    client.change(URI, 2, (2, 14), (2, 14), item.insert_text)
    await client.lsp.workspace_execute_command_async(
        types.ExecuteCommandParams(item.command.command, item.command.arguments)
    )
    (following,) = await client.complete(URI, 2, 16)
    assert following.insert_text.startswith("\n    else:\n        return fibonacci(n")
