"""The real server process with a real client, in front of a host whose engine the test paces."""

import asyncio

import httpx
import pytest
from lsprotocol import types

from completion.host_address import host_address
from lsp_server.persistence import CHECKPOINTS_S
from lsp_server.telemetry_schema import open_store, store_path
from tests.lsp_server.real_client import RealClient

URI = "file:///nowhere/a.py"
NOTEBOOK = "file:///n.ipynb"


async def steps(engine, count):
    """Let the engine take steps, each when it waits for one."""
    engine.permits.release(count)


async def test_what_the_server_says_it_can(paced, start_client):
    client = await start_client(encodings=("utf-8", "utf-16"))
    can = client.result.capabilities
    assert can.position_encoding == "utf-8"
    assert can.inline_completion_provider == types.InlineCompletionOptions()
    assert can.text_document_sync.change is types.TextDocumentSyncKind.Incremental
    assert list(can.execute_command_provider.commands) == ["draftline.accepted"]
    assert can.workspace.workspace_folders.supported
    assert can.notebook_document_sync is not None
    assert can.completion_provider is None


async def test_a_completion_with_its_range_and_command(paced, start_client):
    client = await start_client()
    status = await client.ready()
    assert (status.kind, status.model, status.device) == ("ready", "paced", "test")
    client.open(URI, "x = 😀")
    await steps(paced, 3)
    (item,) = await client.complete(URI, 0, 6)
    assert item.insert_text == " 0 1 2"
    assert item.range == types.Range(types.Position(0, 6), types.Position(0, 6))
    assert item.command.command == "draftline.accepted"
    assert item.command.arguments[1] == 0
    assert not client.partials


async def test_text_streams_before_it_is_done(paced, start_client):
    client = await start_client(streaming=True)
    await client.ready()
    client.open(URI, "x =")
    await steps(paced, 1)
    answer = asyncio.create_task(client.complete(URI, 0, 3))
    await client.until(lambda: client.partials)
    assert not answer.done()
    first = client.partials[0]
    assert (first.uri, first.version, first.position.character, first.done) == (URI, 1, 3, False)
    assert first.items[0].insertText == " 0"
    await steps(paced, 2)
    (item,) = await answer
    assert [part.items[0].insertText for part in client.partials] == [" 0", " 0 1", " 0 1 2", " 0 1 2"]
    assert client.partials[-1].done
    assert list(item.command.arguments) == [first.id, 0]


async def test_before_the_model_is_ready_there_is_an_empty_answer_and_no_dialog(start_client):
    client = await start_client(model="/nowhere/at-all")
    client.open(URI, "x =")
    assert await client.complete(URI, 0, 3, invoked=True) == []
    status = await client.ready()
    assert status.kind == "error"
    assert "/nowhere/at-all" in status.message
    assert client.lsp.messages == []


async def test_loading_shows_progress(paced, start_client):
    client = await start_client(progress=True)
    await client.ready()
    for reports in client.lsp.progress_reports.values():
        assert isinstance(reports[0].value, types.WorkDoneProgressBegin | types.WorkDoneProgressReport)
    assert any(status.kind == "starting" for status in client.statuses)


async def test_a_long_request_shows_as_busy_until_it_is_answered(paced, start_client):
    client = await start_client()
    await client.ready()
    client.open(URI, "x =")
    answer = asyncio.create_task(client.complete(URI, 0, 3))
    await client.until(lambda: client.statuses[-1].kind == "busy")
    await steps(paced, 3)
    assert len(await answer) == 1
    await client.until(lambda: client.statuses[-1].kind == "ready")


async def test_typing_on_while_text_is_generated_asks_the_engine_once(paced, start_client):
    client = await start_client(streaming=True)
    await client.ready()
    client.open(URI, "x =")
    await steps(paced, 1)
    older = asyncio.create_task(client.complete(URI, 0, 3))
    await client.until(lambda: client.partials)
    client.change(URI, 2, (0, 3), (0, 3), " 0")
    newer = asyncio.create_task(client.complete(URI, 0, 5))
    assert await older == []
    await steps(paced, 2)
    (item,) = await newer
    assert item.insert_text == " 1 2"
    assert paced.started == [URI]


async def test_a_cancelled_request_frees_the_engine(paced, start_client):
    client = await start_client(streaming=True, max_tokens=1000)
    await client.ready()
    client.open(URI, "x =")
    await steps(paced, 1)
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
    while not await asyncio.to_thread(paced.ended.acquire, timeout=0.1):
        await steps(paced, 1)
    assert paced.steps < before + 100


async def test_text_that_left_the_screen_while_it_grows_frees_the_engine(paced, start_client):
    client = await start_client(streaming=True, max_tokens=1000)
    await client.ready()
    client.open(URI, "x =")
    await steps(paced, 1)
    answer = asyncio.create_task(client.complete(URI, 0, 3))
    await client.until(lambda: client.partials)
    left = {"id": client.partials[0].id, "reason": "cursorMoved"}
    client.lsp.protocol.notify("draftline/didRejectCompletion", left)
    assert await asyncio.wait_for(answer, 10) == []


async def test_alternatives_follow_the_answer_and_are_there_for_who_asks_by_a_key(paced, start_client):
    client = await start_client(suggestions=3, streaming=True)
    await client.ready()
    client.open(URI, "x =")
    await steps(paced, 3)
    assert [item.insert_text for item in await client.complete(URI, 0, 3)] == [" 0 1 2"]
    await steps(paced, 3 + 2)  # the first text again, and the others
    await client.until(lambda: client.partials and len(client.partials[-1].items) == 3)
    assert len(await client.complete(URI, 0, 3, invoked=True)) == 3
    client.change(URI, 2, (0, 3), (0, 3), "?")
    await steps(paced, 3 + 4)
    assert len(await client.complete(URI, 0, 4, invoked=True)) == 5


async def test_quiet_after_acceptance_unless_asked(paced, start_client):
    client = await start_client(quiet_ms=60_000)
    await client.ready()
    client.open(URI, "x =")
    await steps(paced, 6)
    (item,) = await client.complete(URI, 0, 3)
    await client.lsp.workspace_execute_command_async(
        types.ExecuteCommandParams(item.command.command, item.command.arguments)
    )
    assert await client.complete(URI, 0, 3) == []
    assert len(await client.complete(URI, 0, 3, invoked=True)) == 1


async def test_events_are_counted_for_prometheus_and_recorded(paced, start_client, runtime):
    client = await start_client()
    await client.ready()
    client.open(URI, "x =")
    await steps(paced, 3)
    (item,) = await client.complete(URI, 0, 3)
    command = {"command": item.command.command, "arguments": list(item.command.arguments)}
    client.lsp.protocol.notify("textDocument/didShowCompletion", {"item": {"command": command}})
    client.change(URI, 2, (0, 3), (0, 3), item.insert_text)
    await client.lsp.workspace_execute_command_async(
        types.ExecuteCommandParams(item.command.command, item.command.arguments)
    )
    assert await client.complete("file:///never/opened.py", 0, 0) == []
    transport = httpx.AsyncHTTPTransport(uds=str(host_address("paced", "auto").socket_path))
    async with httpx.AsyncClient(transport=transport, base_url="http://draftline") as host:
        metrics = (await host.get("/metrics")).text
    assert 'draftline_client_events_total{type="view"} 1.0' in metrics
    assert 'draftline_client_events_total{type="select"} 1.0' in metrics
    await client.stop()
    store = open_store(store_path())
    fates = store.execute("SELECT shown, outcome, accepted_characters, model, steps FROM suggestions").fetchall()
    remains = store.execute("SELECT after_s, share FROM persistence ORDER BY 1").fetchall()
    refusals = store.execute("SELECT reason, requests FROM refusals").fetchall()
    store.close()
    assert fates == [(1, "accepted", 6, "paced", 3)]
    assert remains == [(after_s, 1.0) for after_s in CHECKPOINTS_S]
    assert refusals == [("not_open", 1)]


async def test_without_telemetry_no_store_is_made(paced, start_client, runtime):
    client = await start_client(telemetry=False)
    await client.ready()
    client.open(URI, "x =")
    await steps(paced, 3)
    assert len(await client.complete(URI, 0, 3)) == 1
    await client.stop()
    assert not store_path().exists()


async def test_a_client_without_inline_completion_gets_one_list_item(paced, start_client, runtime):
    client = await start_client(inline=False, suggestions=3)
    assert client.result.capabilities.completion_provider is not None
    await client.ready()
    client.open(URI, "x = val")
    await steps(paced, 3)
    found = await client.lsp.text_document_completion_async(
        types.CompletionParams(types.TextDocumentIdentifier(URI), types.Position(0, 7))
    )
    (item,) = found.items
    assert item.preselect
    assert item.label == "val 0 1 2"
    assert item.text_edit.new_text == "val 0 1 2"
    assert item.text_edit.range == types.Range(types.Position(0, 4), types.Position(0, 7))
    await client.stop()
    store = open_store(store_path())
    ((variant,),) = store.execute("SELECT variant FROM suggestions").fetchall()
    store.close()
    assert "suggestions" not in variant  # that a list shows one is no setting of the user's


async def test_settings_change_while_it_runs_and_the_status_names_the_cause(paced, start_client):
    client = await start_client()
    await client.ready()
    client.open(URI, "x =")
    client.lsp.workspace_did_change_configuration(types.DidChangeConfigurationParams({"draftline": {"enabled": False}}))
    assert await client.complete(URI, 0, 3, invoked=True) == []
    await client.until(lambda: client.statuses[-1].message == "Completion is switched off.")


async def test_a_folder_that_is_added_brings_its_settings(paced, start_client, tmp_path):
    (tmp_path / ".draftline.toml").write_text("enabled = false\n")
    client = await start_client()
    await client.ready()
    client.open(URI, "x =")
    added = types.WorkspaceFoldersChangeEvent([types.WorkspaceFolder(tmp_path.as_uri(), "added")], [])
    client.lsp.workspace_did_change_workspace_folders(types.DidChangeWorkspaceFoldersParams(added))
    assert await client.complete(URI, 0, 3, invoked=True) == []


async def test_what_is_read_again_as_a_folder_is_added_applies_at_once(paced, start_client, runtime, tmp_path):
    """A project may not switch recording off, its user may; the user's file is read again, too."""
    client = await start_client()
    await client.ready()
    (runtime / "config" / "draftline").mkdir(parents=True)
    (runtime / "config" / "draftline" / "config.toml").write_text("telemetry = false\n")
    added = types.WorkspaceFoldersChangeEvent([types.WorkspaceFolder(tmp_path.as_uri(), "added")], [])
    client.lsp.workspace_did_change_workspace_folders(types.DidChangeWorkspaceFoldersParams(added))
    client.open(URI, "x =")
    await steps(paced, 3)
    assert len(await client.complete(URI, 0, 3)) == 1
    await client.stop()
    store = open_store(store_path())
    recorded = store.execute("SELECT count(*) FROM suggestions").fetchone()
    store.close()
    assert recorded == (0,)


async def test_an_unknown_setting_is_named_with_the_nearest(paced, start_client):
    client = await start_client(max_tokns=3)
    await client.ready()
    said = [message.message for message in client.lsp.log_messages]
    assert said.count('initializationOptions: there is no setting "max_tokns". The nearest is "max_tokens".') == 1


async def test_a_resting_cursor_prepares_the_engine(paced, start_client):
    client = await start_client(prepare_ms=60_000)
    await client.ready()
    client.open(URI, "x =")
    client.lsp.protocol.notify("draftline/didMoveCursor", {"uri": URI, "position": {"line": 0, "character": 3}})
    await steps(paced, 1)
    assert await asyncio.to_thread(paced.ended.acquire, timeout=10)
    assert paced.prepared == [URI]


async def test_nothing_is_prepared_where_that_is_switched_off(paced, start_client):
    paced.gated = False
    client = await start_client(prepare_ms=0)
    await client.ready()
    client.open(URI, "x =")
    client.lsp.protocol.notify("draftline/didMoveCursor", {"uri": URI, "position": {"line": 0, "character": 3}})
    for _ in range(3):
        assert len(await client.complete(URI, 0, 3, invoked=True)) == 1
    assert paced.prepared == []


async def test_an_opened_file_an_edit_and_an_acceptance_prepare_the_engine(paced, start_client):
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
        assert await asyncio.to_thread(paced.readied.acquire, timeout=10)
        assert paced.prepared[-1] == uri
    assert len(paced.prepared) == 4


async def test_a_file_that_may_not_be_completed_is_not_prepared(paced, start_client):
    paced.gated = False
    client = await start_client(prepare_ms=1)
    await client.ready()
    client.open("file:///project/.env", "KEY=", "dotenv")
    client.change("file:///project/.env", 2, (0, 4), (0, 4), "1")
    for _ in range(3):  # each takes longer than the rest after which a cache is prepared
        assert await client.complete("file:///project/.env", 0, 5, invoked=True) == []
    client.open(URI, "x =")
    assert await asyncio.to_thread(paced.readied.acquire, timeout=10)
    assert set(paced.prepared) == {URI}


def open_notebook(client, texts):
    kind = types.NotebookCellKind.Code
    notebook = types.NotebookDocument(NOTEBOOK, "jupyter", 1, [types.NotebookCell(kind, uri) for uri in texts])
    cells = [types.TextDocumentItem(uri, "python", 1, text) for uri, text in texts.items()]
    client.lsp.notebook_document_did_open(types.DidOpenNotebookDocumentParams(notebook, cells))


async def test_a_cell_that_is_deleted_frees_the_engine(paced, start_client):
    client = await start_client(streaming=True, max_tokens=1000)
    await client.ready()
    open_notebook(client, {"c1": "import os", "c2": "os."})
    await steps(paced, 1)
    answer = asyncio.create_task(client.complete("c2", 0, 3))
    await client.until(lambda: client.partials)
    gone = types.NotebookDocumentCellChangeStructure(
        types.NotebookCellArrayChange(1, 1), did_close=[types.TextDocumentIdentifier("c2")]
    )
    change = types.NotebookDocumentChangeEvent(cells=types.NotebookDocumentCellChanges(gone))
    version = types.VersionedNotebookDocumentIdentifier(2, NOTEBOOK)
    client.lsp.notebook_document_did_change(types.DidChangeNotebookDocumentParams(version, change))
    assert await asyncio.wait_for(answer, 10) == []


async def test_cells_of_a_notebook_see_the_code_above(paced, start_client):
    client = await start_client()
    await client.ready()
    open_notebook(client, {"c1": "import os", "c2": "os."})
    await steps(paced, 3)
    (item,) = await client.complete("c2", 0, 3)
    assert item.insert_text == " 0 1 2"


async def test_the_index_is_fed_with_what_may_be_read(paced, start_client, tmp_path):
    (tmp_path / "a.py").write_text("open in the editor, old")
    (tmp_path / "b.py").write_text("beside it")
    (tmp_path / ".env").write_text("SECRET")
    (tmp_path / "generated.py").write_text("ignored")
    (tmp_path / ".gitignore").write_text("generated.py\n")
    client = await start_client(folders=[tmp_path])
    client.open((tmp_path / "a.py").as_uri(), "open in the editor")
    await client.ready()
    while not {"a.py", "b.py"} <= {file.path for update in paced.updates for file in update.changed}:
        assert await asyncio.to_thread(paced.ended.acquire, timeout=10)
    sent = {file.path: file for update in paced.updates for file in update.changed}
    assert sent["a.py"].text == "open in the editor"
    assert sent["a.py"].open
    assert sent["b.py"].text == "beside it"
    assert not {".env", "generated.py"} & sent.keys()
    (tmp_path / "b.py").unlink()
    event = types.FileEvent((tmp_path / "b.py").as_uri(), types.FileChangeType.Deleted)
    client.lsp.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams([event]))
    while not any("b.py" in update.removed for update in paced.updates):
        assert await asyncio.to_thread(paced.ended.acquire, timeout=10)


async def test_an_ignored_or_secret_document_gets_nothing(paced, start_client, tmp_path):
    (tmp_path / ".draftlineignore").write_text("private/\n")
    client = await start_client(folders=[tmp_path])
    await client.ready()
    for name, sentence in ((".env", "may hold secrets"), ("private/a.py", "ignore")):
        uri = (tmp_path / name).as_uri()
        client.open(uri, "KEY = ")
        assert await client.complete(uri, 0, 6, invoked=True) == []
        await client.until(lambda sentence=sentence: sentence in client.statuses[-1].message)
    assert paced.started == []


async def test_a_document_that_is_not_open_is_answered_with_nothing(paced, start_client):
    client = await start_client()
    await client.ready()
    assert await client.complete("file:///never/opened.py", 0, 0, invoked=True) == []


async def test_requests_in_two_documents_do_not_end_each_other(paced, start_client):
    client = await start_client()
    await client.ready()
    other = "file:///nowhere/b.py"
    client.open(URI, "x =")
    client.open(other, "y =")
    await steps(paced, 6)
    both = await asyncio.gather(client.complete(URI, 0, 3), client.complete(other, 0, 3))
    assert [len(found) for found in both] == [1, 1]


async def test_two_servers_share_the_host(paced, start_client):
    first, second = await start_client(), await start_client()
    await first.ready()
    await second.ready()
    await steps(paced, 6)
    for client in (first, second):
        client.open(URI, "x =")
        assert len(await client.complete(URI, 0, 3)) == 1
    assert isinstance(first, RealClient)
