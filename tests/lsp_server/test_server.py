"""The real server process with a real client and a real host, whose engine the test paces."""

import asyncio

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams

from completion.host.process.clients import document_of
from lsp_server.telemetry.persistence import CHECKPOINTS_S
from lsp_server.telemetry.store import open_store, store_path
from tests.lsp_server.real_client import RealClient, steps

URI = "file:///nowhere/a.py"


async def test_the_capabilities_of_the_server(paced, start_client):
    client = await start_client(encodings=("utf-8", "utf-16"))
    can = client.result.capabilities
    assert can.position_encoding == "utf-8"
    assert can.inline_completion_provider == types.InlineCompletionOptions()
    assert can.text_document_sync.change is types.TextDocumentSyncKind.Incremental
    names = ("accepted", "snooze", "resume", "getModel", "switch", "nextEditAccepted", "nextEditRefused")
    own = {f"draftline.{name}" for name in names}
    assert set(can.execute_command_provider.commands) == own
    assert can.workspace.workspace_folders.supported
    assert can.notebook_document_sync is not None
    assert can.completion_provider is None


async def test_a_completion_with_its_range_and_command(paced, start_client):
    client = await start_client()
    status = await client.ready()
    assert (status.kind, status.model, status.device) == ("ready", "paced", "test")
    client.open(URI, "x = 😀")
    steps(paced, 3)
    (item,) = await client.complete(URI, 0, 6)
    assert item.insert_text == " 0 1 2"
    assert item.range == types.Range(types.Position(0, 6), types.Position(0, 6))
    assert item.command.command == "draftline.accepted"
    assert item.command.arguments[1] == 0
    assert not client.partials


async def test_the_engine_gets_the_edits_before_the_request(paced, start_client):
    client = await start_client()
    await client.ready()
    client.open(URI, "one = 1\n\n\ntwo = 2\nthree = 3\n")
    client.change(URI, 2, (0, 6), (0, 7), "10")
    client.change(URI, 3, (3, 0), (3, 7), "")
    steps(paced, 3)
    await client.complete(URI, 3, 0, invoked=True)
    assert paced.histories[-1] == "@@\n-one = 1\n+one = 10\n@@\n-two = 2\n"


@pytest.mark.parametrize("uri", [URI, "file:///project/%28auth%29/a+b.py", "file:///project/(auth)/a%2bb.py"])
async def test_text_streams_before_it_is_done_under_the_uri_that_the_client_writes(paced, start_client, uri):
    client = await start_client(streaming=True)
    await client.ready()
    client.open(uri, "x =")
    steps(paced, 1)
    answer = asyncio.create_task(client.complete(uri, 0, 3))
    await client.until(lambda: client.partials)
    assert not answer.done()
    first = client.partials[0]
    assert (first.uri, first.version, first.position.character, first.done) == (uri, 1, 3, False)
    assert first.items[0].insertText == " 0"
    steps(paced, 2)
    (item,) = await answer
    assert [part.items[0].insertText for part in client.partials] == [" 0", " 0 1", " 0 1 2", " 0 1 2"]
    assert client.partials[-1].done
    assert list(item.command.arguments) == [first.id, 0]


async def test_without_a_model_the_answer_is_empty_and_no_dialog_appears(start_client):
    client = await start_client(model="/nowhere/at-all")
    client.open(URI, "x =")
    assert await client.complete(URI, 0, 3, invoked=True) == []
    status = await client.ready()
    assert status.kind == "error"
    assert "/nowhere/at-all" in status.message
    assert client.lsp.messages == []


async def test_a_long_request_shows_as_busy_until_it_is_answered(paced, start_client):
    client = await start_client()
    await client.ready()
    client.open(URI, "x =")
    answer = asyncio.create_task(client.complete(URI, 0, 3))
    await client.until(lambda: client.statuses[-1].kind == "busy")
    steps(paced, 3)
    assert len(await answer) == 1
    await client.until(lambda: client.statuses[-1].kind == "ready")


async def test_typing_the_generated_text_sends_one_request_to_the_engine(paced, start_client):
    client = await start_client(streaming=True)
    await client.ready()
    client.open(URI, "x =")
    steps(paced, 1)
    older = asyncio.create_task(client.complete(URI, 0, 3))
    await client.until(lambda: client.partials)
    client.change(URI, 2, (0, 3), (0, 3), " 0")
    newer = asyncio.create_task(client.complete(URI, 0, 5))
    assert await older == []
    steps(paced, 2)
    (item,) = await newer
    assert item.insert_text == " 1 2"
    assert [document_of(key) for key in paced.started] == [URI]


async def test_cancelling_a_request_stops_the_engine(paced, start_client):
    client = await start_client(streaming=True, max_tokens=1000)
    await client.ready()
    client.open(URI, "x =")
    steps(paced, 1)
    request = asyncio.ensure_future(
        client.lsp.protocol.send_request_async(
            types.TEXT_DOCUMENT_INLINE_COMPLETION,
            types.InlineCompletionParams(
                types.InlineCompletionContext(types.InlineCompletionTriggerKind.Automatic),
                types.TextDocumentIdentifier(URI),
                types.Position(0, 3),
            ),
            msg_id="mine",
        )
    )
    await client.until(lambda: client.partials)
    client.lsp.cancel_request(types.CancelParams("mine"))
    with pytest.raises(Exception, match="canceled"):
        await request
    before = paced.steps
    while not await asyncio.to_thread(paced.ended.acquire, timeout=0.5):
        steps(paced, 1)
    assert paced.steps < before + 100


async def test_a_suggestion_that_left_the_screen_ends_its_request(paced, start_client):
    client = await start_client(streaming=True, max_tokens=1000)
    await client.ready()
    client.open(URI, "x =")
    steps(paced, 1)
    answer = asyncio.create_task(client.complete(URI, 0, 3))
    await client.until(lambda: client.partials)
    rejection = {"id": client.partials[0].id, "reason": "cursorMoved"}
    client.lsp.protocol.notify("draftline/didRejectCompletion", rejection)
    assert await asyncio.wait_for(answer, 60) == []


async def test_alternatives_follow_the_answer_and_a_manual_request_gets_them(paced, start_client):
    client = await start_client(suggestions=3, streaming=True)
    await client.ready()
    client.open(URI, "x =")
    steps(paced, 3)
    assert [item.insert_text for item in await client.complete(URI, 0, 3)] == [" 0 1 2"]
    steps(paced, 3 + 2)  # the first suggestion again, and its alternatives
    await client.until(lambda: client.partials and len(client.partials[-1].items) == 3)
    assert len(await client.complete(URI, 0, 3, invoked=True)) == 3
    client.change(URI, 2, (0, 3), (0, 3), "?")
    steps(paced, 3 + 4)
    assert len(await client.complete(URI, 0, 4, invoked=True)) == 5


async def test_after_an_acceptance_automatic_requests_are_answered_after_a_dismissal_only_manual_ones(
    paced, start_client
):
    client = await start_client(quiet_ms=60_000)
    await client.ready()
    client.open(URI, "x =")
    steps(paced, 9)
    (item,) = await client.complete(URI, 0, 3)
    await client.lsp.workspace_execute_command_async(
        types.ExecuteCommandParams(item.command.command, item.command.arguments)
    )
    (item,) = await client.complete(URI, 0, 3)
    rejection = {"id": item.command.arguments[0], "reason": "dismissed"}
    client.lsp.protocol.notify("draftline/didRejectCompletion", rejection)
    assert await client.complete(URI, 0, 3) == []
    assert len(await client.complete(URI, 0, 3, invoked=True)) == 1


async def test_the_outcome_of_a_suggestion_and_a_refusal_are_recorded(paced, start_client, runtime):
    client = await start_client()
    await client.ready()
    client.open(URI, "x =")
    steps(paced, 3)
    (item,) = await client.complete(URI, 0, 3)
    command = {"command": item.command.command, "arguments": list(item.command.arguments)}
    client.lsp.protocol.notify("textDocument/didShowCompletion", {"item": {"command": command}})
    client.change(URI, 2, (0, 3), (0, 3), item.insert_text)
    await client.lsp.workspace_execute_command_async(
        types.ExecuteCommandParams(item.command.command, item.command.arguments)
    )
    assert await client.complete("file:///never/opened.py", 0, 0) == []
    await client.stop()
    store = open_store(store_path())
    fates = store.execute("SELECT shown, outcome, accepted_characters, model, steps FROM suggestions").fetchall()
    remains = store.execute("SELECT after_s, share FROM persistence ORDER BY 1").fetchall()
    refusals = store.execute("SELECT reason, requests FROM refusals").fetchall()
    store.close()
    assert fates == [(1, "accepted", 6, "paced", 3)]
    assert remains == [(after_s, 1.0) for after_s in CHECKPOINTS_S]
    assert refusals == [("not_open", 1)]


async def test_without_telemetry_no_store_is_created(paced, start_client, runtime):
    client = await start_client(telemetry=False)
    await client.ready()
    client.open(URI, "x =")
    steps(paced, 3)
    assert len(await client.complete(URI, 0, 3)) == 1
    await client.stop()
    assert not store_path().exists()


async def test_a_client_without_inline_completion_gets_one_list_item(paced, start_client, runtime):
    client = await start_client(inline=False, suggestions=3)
    assert client.result.capabilities.completion_provider is not None
    await client.ready()
    client.open(URI, "x = val")
    steps(paced, 3)
    found = await client.lsp.text_document_completion_async(
        types.CompletionParams(types.TextDocumentIdentifier(URI), types.Position(0, 7))
    )
    (item,) = found.items
    assert item.label == "val 0 1 2"
    assert item.text_edit.new_text == "val 0 1 2"
    assert item.text_edit.range == types.Range(types.Position(0, 4), types.Position(0, 7))
    await client.stop()
    store = open_store(store_path())
    ((variant,),) = store.execute("SELECT variant FROM suggestions").fetchall()
    store.close()
    assert "suggestions" not in variant  # a list always shows one, whatever the user's setting


async def test_a_request_in_a_document_that_is_not_open_has_an_empty_answer(paced, start_client):
    client = await start_client()
    await client.ready()
    assert await client.complete("file:///never/opened.py", 0, 0, invoked=True) == []


async def test_requests_in_two_documents_do_not_end_each_other(paced, start_client):
    client = await start_client()
    await client.ready()
    other = "file:///nowhere/b.py"
    client.open(URI, "x =")
    client.open(other, "y =")
    steps(paced, 6)
    both = await asyncio.gather(client.complete(URI, 0, 3), client.complete(other, 0, 3))
    assert [len(found) for found in both] == [1, 1]


async def test_two_servers_share_the_host(paced, start_client):
    first, second = await start_client(), await start_client()
    await first.ready()
    await second.ready()
    steps(paced, 6)
    for client in (first, second):
        client.open(URI, "x =")
        assert len(await client.complete(URI, 0, 3)) == 1
    assert isinstance(first, RealClient)


def edit_params(**changed):
    range_ = {"start": {"line": 0, "character": 0}, "end": {"line": 1, "character": 0}}
    return {"id": "e1", "uri": URI, "version": 1, "range": range_, "instruction": "rename x"} | changed


async def test_an_edit_streams_and_is_dropped_when_the_document_changes(paced, start_client):
    client = await start_client()
    await client.ready()
    client.open(URI, "x = 1\ny = x\n")
    edit = asyncio.create_task(client.lsp.protocol.send_request_async("draftline/edit", edit_params()))
    steps(paced, 2)
    await client.until(lambda: any(one.text == " 0 1" for one in client.partial_edits))
    assert {one.id for one in client.partial_edits} == {"e1"}
    client.change(URI, 2, (0, 0), (0, 1), "z")
    while not edit.done():  # the engine may step before the server reads the change
        steps(paced, 1)
        await asyncio.wait([edit], timeout=0.1)
    outcome = await edit
    assert (outcome.text, outcome.reason) == ("", "The document changed after the request.")


async def test_a_cancelled_edit_frees_the_engine(paced, start_client):
    client = await start_client()
    await client.ready()
    client.open(URI, "x = 1\n")
    request = client.lsp.protocol.send_request_async("draftline/edit", edit_params(), msg_id="mine")
    edit = asyncio.ensure_future(request)
    steps(paced, 1)
    await client.until(lambda: client.partial_edits)
    client.lsp.cancel_request(types.CancelParams("mine"))
    with pytest.raises(JsonRpcException):
        await edit
    before = paced.steps
    while not await asyncio.to_thread(paced.ended.acquire, timeout=0.5):
        steps(paced, 1)
    assert paced.steps < before + 100


async def test_an_edit_without_an_instruction_is_refused(paced, start_client):
    client = await start_client()
    await client.ready()
    client.open(URI, "x = 1\n")
    for changed in ({"instruction": " "}, {"version": None}, {"range": {"start": {}}}):
        with pytest.raises(JsonRpcInvalidParams, match=r"^draftline/edit: "):
            await client.lsp.protocol.send_request_async("draftline/edit", edit_params(**changed))
