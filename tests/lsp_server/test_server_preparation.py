"""When the real server lets the engine prepare its cache before a request."""

import asyncio

import pytest
from lsprotocol import types

from completion.host.process.clients import document_of
from lsp_server.documents.text_lines import Place
from lsp_server.server import create_server
from tests.lsp_server.real_client import steps
from tests.lsp_server.scripted_editor import settle

URI = "file:///nowhere/a.py"


async def test_a_moved_cursor_prepares_the_engine(paced, start_client):
    client = await start_client(prepare_ms=60_000)
    await client.ready()
    client.open(URI, "x =")
    client.lsp.protocol.notify("draftline/didMoveCursor", {"uri": URI, "position": {"line": 0, "character": 3}})
    steps(paced, 1)
    assert await asyncio.to_thread(paced.readied.acquire, timeout=60)
    assert [document_of(key) for key in paced.prepared] == [URI]


async def test_names_of_other_servers_reach_the_engine_with_the_next_request_there(paced, start_client):
    paced.gated = False
    client = await start_client(prepare_ms=0)
    await client.ready()
    client.open(URI, "x = order.t")
    told = {"uri": URI, "version": 1, "position": {"line": 0, "character": 10}, "names": ["total", "tax"]}
    client.lsp.protocol.notify("draftline/names", told)
    await client.complete(URI, 0, 11, invoked=True)
    client.change(URI, 2, (0, 11), (0, 11), " + y.")
    await client.complete(URI, 0, 16, invoked=True)
    assert [paced.names[0], paced.names[-1]] == [("total", "tax"), ()]


@pytest.mark.parametrize("is_closed", [False, True])
async def test_a_document_that_changes_or_closes_while_its_file_is_judged_is_not_prepared(runtime, is_closed):
    session, judged, prepared = create_server().session, asyncio.Event(), []

    async def prepare(request):
        prepared.append(request)

    session.policy._consult, session.engine.prepare = lambda _uri: judged.wait(), prepare
    document = session.documents.open(types.TextDocumentItem(URI, "python", 1, "x\ny\n"))
    preparing = asyncio.create_task(session._prepare(document, Place(1, 1)))
    await settle()
    if is_closed:
        session.documents.close(URI)
    else:
        whole = types.TextDocumentContentChangeWholeDocument("")
        session.documents.change(
            types.DidChangeTextDocumentParams(types.VersionedTextDocumentIdentifier(2, URI), [whole])
        )
    judged.set()
    await preparing
    assert prepared == []


async def test_nothing_is_prepared_with_prepare_ms_0(paced, start_client):
    paced.gated = False
    client = await start_client(prepare_ms=0)
    await client.ready()
    client.open(URI, "x =")
    client.lsp.protocol.notify("draftline/didMoveCursor", {"uri": URI, "position": {"line": 0, "character": 3}})
    for _ in range(3):
        assert len(await client.complete(URI, 0, 3, invoked=True)) == 1
    assert paced.prepared == []


async def test_an_opened_document_an_edit_and_an_acceptance_prepare_the_engine(paced, start_client):
    paced.gated = False
    client = await start_client(prepare_ms=1)
    await client.ready()
    accepted = types.ExecuteCommandParams("draftline.accepted", ["an id", 0])
    for uri, act in (
        (URI, lambda: client.open(URI, "x =")),
        ("file:///b.py", lambda: client.open("file:///b.py", "y =")),
        (URI, lambda: client.change(URI, 2, (0, 3), (0, 3), " 1")),
        (URI, lambda: client.lsp.workspace_execute_command(accepted)),
    ):
        act()
        assert await asyncio.to_thread(paced.readied.acquire, timeout=60)
        assert document_of(paced.prepared[-1]) == uri
    assert len(paced.prepared) == 4


async def test_a_document_whose_requests_are_refused_is_not_prepared(paced, start_client):
    paced.gated = False
    client = await start_client(prepare_ms=1)
    await client.ready()
    client.open("file:///project/.env", "KEY=", "dotenv")
    client.change("file:///project/.env", 2, (0, 4), (0, 4), "1")
    for _ in range(3):  # each takes longer than prepare_ms
        assert await client.complete("file:///project/.env", 0, 5, invoked=True) == []
    client.open(URI, "x =")
    assert await asyncio.to_thread(paced.readied.acquire, timeout=60)
    assert {document_of(key) for key in paced.prepared} == {URI}
