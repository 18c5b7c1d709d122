"""The real server generates the suggestion after the one on the screen before the client requests it."""

import asyncio

import pytest
from lsprotocol import types

from tests.lsp_server.real_client import steps

URI = "file:///nowhere/a.py"


async def acquire(semaphore):
    assert await asyncio.to_thread(semaphore.acquire, timeout=60)


async def shown(client, paced):
    """Open a document and return the completion that the client shows in it."""
    await client.ready()
    client.open(URI, "x =")
    steps(paced, 1)
    (item,) = await client.complete(URI, 0, 3)
    assert item.insert_text == " 0"
    await acquire(paced.ended)
    return item


async def accept(client, item, character, version):
    """Insert an item, report it, and request the next, as VS Code does. Return the new items."""
    at = (0, character)
    client.change(URI, version, at, at, item.insert_text)
    await client.lsp.workspace_execute_command_async(
        types.ExecuteCommandParams(item.command.command, item.command.arguments)
    )
    return await client.complete(URI, 0, character + len(item.insert_text))


async def test_tab_after_tab_the_next_suggestion_is_already_there(paced, start_client):
    client = await start_client(ahead=True, max_tokens=1, index_files=0)  # an update would count as an end
    item = await shown(client, paced)
    for number in (1, 2):
        await acquire(paced.began)  # of the suggestion on the screen
        steps(paced, 1)
        await acquire(paced.ended)  # of the next one, which nobody has requested
        assert paced.prefixes[-1] == "x =" + " 0" * number
        (item,) = await accept(client, item, 1 + 2 * number, version=1 + number)
        assert item.insert_text == " 0"
    assert len(paced.prefixes) <= 4  # the last one's next may have begun


async def test_a_key_that_departs_ends_it_before_its_text_is_complete(paced, start_client):
    client = await start_client(ahead=True, max_tokens=100, index_files=0)  # an update would count as an end
    await client.ready()
    client.open(URI, "x =")
    steps(paced, 100)
    await client.complete(URI, 0, 3)
    for semaphore in (paced.began, paced.ended, paced.began):
        await acquire(semaphore)  # the suggestion, its end, and the next one, which has no permit for a step
    client.change(URI, 2, (0, 3), (0, 3), "y")
    task = asyncio.create_task(client.complete(URI, 0, 4))
    while not await asyncio.to_thread(paced.ended.acquire, timeout=0.5):
        steps(paced, 1)
    assert paced.steps < 200
    steps(paced, 100)
    (item,) = await task
    assert paced.prefixes == ["x =", "x =" + item.insert_text, "x =y"]


async def test_after_a_change_in_the_cells_above_it_is_asked_anew(paced, start_client):
    client = await start_client(ahead=True, max_tokens=1)
    await client.ready()
    client.open_notebook({"above": "import os", "cell": "x ="})
    steps(paced, 1)
    (item,) = await client.complete("cell", 0, 3)
    client.change_cell("above", 2, (0, 7), (0, 9), "re")
    client.change_cell("cell", 2, (0, 3), (0, 3), item.insert_text)
    steps(paced, 2)  # one for what may have begun in advance
    await client.complete("cell", 0, 3 + len(item.insert_text))
    assert f"import re\n\nx ={item.insert_text}" in paced.prefixes


@pytest.mark.parametrize("off", ["manual", "snooze"])
async def test_an_acceptance_where_it_is_off_sends_no_request(paced, start_client, off):
    options = {"manual": {"trigger": "manual"}, "snooze": {}}[off]
    client = await start_client(**{"ahead": True, "max_tokens": 1, **options})
    await client.ready()
    client.open(URI, "x =")
    if off == "snooze":
        await client.lsp.workspace_execute_command_async(types.ExecuteCommandParams("draftline.snooze", [5]))
    steps(paced, 1)
    (item,) = await client.complete(URI, 0, 3, invoked=True)
    assert await accept(client, item, 3, version=2) == []
    client.open("file:///other.py", "z =")
    steps(paced, 1)
    await client.complete("file:///other.py", 0, 3, invoked=True)
    assert paced.prefixes == ["x =", "z ="]
