"""Settings of the real server process: the client's, a folder's and the user's, changed while it runs."""

import asyncio

import psutil
import pytest
from lsprotocol import types

from lsp_server.empty_reason import EmptyReason
from lsp_server.telemetry.store import open_store, store_path
from tests.lsp_server.real_client import RealClient, steps

URI = "file:///nowhere/a.py"


async def test_a_changed_setting_applies_at_once_and_the_status_names_the_reason(paced, start_client):
    client = await start_client()
    await client.ready()
    client.open(URI, "x =")
    client.lsp.workspace_did_change_configuration(types.DidChangeConfigurationParams({"draftline": {"enabled": False}}))
    assert await client.complete(URI, 0, 3, invoked=True) == []
    await client.until(lambda: client.statuses[-1].quiet == "Completion is switched off.")


async def test_a_state_folder_that_cannot_be_made_is_named_and_does_not_silence_the_server(runtime, start_client):
    (runtime / "state").write_text("a file in the place of the folder")
    client = await start_client()
    client.open(URI, "x =")
    assert await client.complete(URI, 0, 3, invoked=True) == []
    await client.until(lambda: any("DRAFTLINE_STATE_DIR" in one.message for one in client.lsp.log_messages))


async def test_the_settings_of_an_added_folder_apply_to_its_documents_only(paced, start_client, tmp_path):
    (tmp_path / ".draftline.toml").write_text("enabled = false\n")
    client = await start_client()
    await client.ready()
    paced.gated = False
    inside = (tmp_path / "a.py").as_uri()
    for uri in (URI, inside):
        client.open(uri, "x =")
    added = types.WorkspaceFoldersChangeEvent([types.WorkspaceFolder(tmp_path.as_uri(), "added")], [])
    client.lsp.workspace_did_change_workspace_folders(types.DidChangeWorkspaceFoldersParams(added))
    assert await client.complete(inside, 0, 3, invoked=True) == []
    await client.until(lambda: client.statuses[-1].quiet == "Completion is switched off.")
    assert await client.complete(URI, 0, 3, invoked=True)


async def test_each_folder_has_the_settings_that_the_editor_scopes_to_it(paced, start_client, tmp_path):
    """VS Code's settings of a folder, which it gives for the `scopeUri` of the folder only."""
    one, two = tmp_path / "one", tmp_path / "c++"
    for folder in (one, two):
        folder.mkdir()
    client = RealClient()
    client.lsp.set_configuration({"draftline": {"enabled": False}}, scope_uri=two.as_uri())
    await start_client(client, folders=(one, two))
    await client.ready()
    paced.gated = False
    for folder in (one, two):
        client.open((folder / "a.py").as_uri(), "x =")
    assert await client.complete((one / "a.py").as_uri(), 0, 3)
    assert await client.complete((two / "a.py").as_uri(), 0, 3, invoked=True) == []


async def test_the_users_file_is_read_again_when_a_folder_is_added_and_applies_at_once(
    paced, start_client, runtime, tmp_path
):
    """The setting is in the user's file, because a project's file may not switch telemetry off."""
    client = await start_client()
    await client.ready()
    (runtime / "config" / "draftline").mkdir(parents=True)
    (runtime / "config" / "draftline" / "config.toml").write_text("telemetry = false\n")
    added = types.WorkspaceFoldersChangeEvent([types.WorkspaceFolder(tmp_path.as_uri(), "added")], [])
    client.lsp.workspace_did_change_workspace_folders(types.DidChangeWorkspaceFoldersParams(added))
    client.open(URI, "x =")
    steps(paced, 3)
    assert len(await client.complete(URI, 0, 3)) == 1
    await client.stop()
    store = open_store(store_path())
    recorded = store.execute("SELECT count(*) FROM suggestions").fetchone()
    store.close()
    assert recorded == (0,)


@pytest.mark.parametrize("saved", ["config/draftline/config.toml", "dotfiles/draftline.toml"])
async def test_the_users_file_applies_as_soon_as_the_editor_saves_it_or_the_file_that_it_links_to(
    paced, start_client, runtime, saved
):
    for folder in ("config/draftline", "dotfiles"):
        (runtime / folder).mkdir(parents=True)
    (runtime / "dotfiles/draftline.toml").write_text("")
    (runtime / "config/draftline/config.toml").symlink_to(runtime / "dotfiles/draftline.toml")
    client = await start_client()
    await client.ready()
    client.open(URI, "x =")
    (runtime / saved).write_text("trigger = 'manual'\n")
    named = types.TextDocumentIdentifier((runtime / saved).as_uri())
    client.lsp.text_document_did_save(types.DidSaveTextDocumentParams(named))
    await client.until(lambda: client.statuses[-1].quiet == EmptyReason.MANUAL.sentence)
    assert await client.complete(URI, 0, 3) == []


@pytest.mark.parametrize("by_file", [False, True])
async def test_the_engine_loses_and_gets_files_as_index_files_changes(paced, start_client, tmp_path, by_file):
    def index_files(count):
        if by_file:
            (tmp_path / ".draftline.toml").write_text(f"index_files = {count}\n")
            event = types.FileEvent((tmp_path / ".draftline.toml").as_uri(), types.FileChangeType.Changed)
            client.lsp.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams([event]))
        else:
            configuration = {"draftline": {"indexFiles": count}}
            client.lsp.workspace_did_change_configuration(types.DidChangeConfigurationParams(configuration))

    (tmp_path / "a.py").write_text("a")
    client = await start_client(folders=[tmp_path])
    await client.ready()
    client.open((tmp_path / "b.py").as_uri(), "b")
    while {"a.py", "b.py"} - {file.path for update in paced.updates for file in update.changed}:
        assert await asyncio.to_thread(paced.ended.acquire, timeout=60)
    index_files(0)
    while {"a.py", "b.py"} - {path for update in paced.updates for path in update.removed}:
        assert await asyncio.to_thread(paced.ended.acquire, timeout=60)
    paced.updates.clear()
    index_files(9)
    while {"a.py", "b.py"} - {file.path for update in paced.updates for file in update.changed}:
        assert await asyncio.to_thread(paced.ended.acquire, timeout=60)


async def test_an_unknown_setting_is_reported_once_with_the_nearest_name(paced, start_client):
    client = await start_client(max_tokns=3)
    await client.ready()
    logged = [message.message for message in client.lsp.log_messages]
    assert logged.count('initializationOptions: there is no setting "max_tokns". The nearest is "max_tokens".') == 1


async def test_many_quick_changes_of_settings_leave_no_socket_open(paced, start_client):
    client = await start_client()
    await client.ready()
    client.open(URI, "x =")
    steps(paced, 3)
    assert len(await client.complete(URI, 0, 3, invoked=True)) == 1
    process = psutil.Process(client.lsp._server.pid)
    before = len(process.net_connections("unix"))
    for threads in range(1, 41):
        settings = {"draftline": {"threads": threads, "telemetry": threads % 2 == 0}}
        client.lsp.workspace_did_change_configuration(types.DidChangeConfigurationParams(settings))
    steps(paced, 1000)
    while not await client.complete(URI, 0, 3, invoked=True):
        pass  # the last connection is not ready yet
    await client.lsp.workspace_execute_command_async(types.ExecuteCommandParams("draftline.accepted", ["unknown"]))
    assert len(process.net_connections("unix")) <= before + 1
