"""Settings of the real server process: the user's, a folder's, changed while it runs."""

import psutil
from lsprotocol import types

from lsp_server.telemetry.schema import open_store, store_path
from tests.lsp_server.real_client import steps

URI = "file:///nowhere/a.py"


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
    steps(paced, 3)
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


async def test_defect_14_many_quick_changes_of_settings_leave_no_socket_open(paced, start_client):
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
        pass  # the last of the connections is not there yet
    await client.lsp.workspace_execute_command_async(types.ExecuteCommandParams("draftline.accepted", ["unknown"]))
    assert len(process.net_connections("unix")) <= before + 1
