"""Which text the real server sends to the engine: notebooks and the workspace, but no secret files."""

import asyncio
import os
from fnmatch import fnmatchcase

from lsprotocol import types

from completion.host.process.clients import document_of
from completion.request import Closing
from tests.lsp_server.real_client import steps


async def test_deleting_a_cell_ends_its_request(paced, start_client):
    client = await start_client(streaming=True, max_tokens=1000)
    await client.ready()
    client.open_notebook({"c1": "import os", "c2": "os."})
    steps(paced, 1)
    answer = asyncio.create_task(client.complete("c2", 0, 3))
    await client.until(lambda: client.partials)
    gone = types.NotebookDocumentCellChangeStructure(
        types.NotebookCellArrayChange(1, 1), did_close=[types.TextDocumentIdentifier("c2")]
    )
    client.change_notebook(2, types.NotebookDocumentCellChanges(gone))
    assert await asyncio.wait_for(answer, 60) == []


async def test_a_notebook_cell_gets_a_completion(paced, start_client):
    client = await start_client()
    await client.ready()
    client.open_notebook({"c1": "import os", "c2": "os."})
    steps(paced, 3)
    (item,) = await client.complete("c2", 0, 3)
    assert item.insert_text == " 0 1 2"


async def test_the_engine_gets_the_files_that_may_be_read(paced, start_client, tmp_path):
    (tmp_path / "a.py").write_text("open in the editor, old")
    (tmp_path / "b.py").write_text("beside it")
    (tmp_path / ".env").write_text("SECRET")
    (tmp_path / "generated.py").write_text("ignored")
    (tmp_path / ".gitignore").write_text("generated.py\n")
    client = await start_client(folders=[tmp_path])
    client.open((tmp_path / "a.py").as_uri(), "open in the editor")
    await client.ready()
    while not {"a.py", "b.py"} <= {file.path for update in paced.updates for file in update.changed}:
        assert await asyncio.to_thread(paced.ended.acquire, timeout=60)
    sent = {file.path: file for update in paced.updates for file in update.changed}
    assert sent["a.py"].text == "open in the editor"
    assert sent["a.py"].open
    assert sent["b.py"].text == "beside it"
    assert not {".env", "generated.py"} & sent.keys()
    (tmp_path / "b.py").unlink()
    event = types.FileEvent((tmp_path / "b.py").as_uri(), types.FileChangeType.Deleted)
    client.lsp.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams([event]))
    while not any("b.py" in update.removed for update in paced.updates):
        assert await asyncio.to_thread(paced.ended.acquire, timeout=60)


async def test_a_client_watches_code_ignore_files_and_settings_and_nothing_else(paced, start_client, tmp_path):
    client = await start_client(folders=[tmp_path], watches=True)
    await client.until(lambda: client.watched)
    names = [[f"{start}{one}{end}" for one in ones.split(",")] for start, ones, end in map(braces, client.watched)]
    globs = [glob for some in names for glob in some]
    assert all(glob.startswith("**/") for glob in globs)
    seen = ["a.py", "b.test.ts", "c.rs", "d.ps1", ".gitignore", ".draftlineignore", ".draftline.toml"]
    unseen = ["HEAD", "index.lock", "logo.png", "trace.log", "a.pyc", "app.wasm", "bun.lockb"]
    assert [one for one in seen + unseen if any(fnmatchcase(f"pkg/{one}", glob) for glob in globs)] == seen


def braces(glob):
    """Return what is before, within and after the braces of a glob."""
    start, _, rest = glob.partition("{")
    within, _, end = rest.partition("}")
    return start, within, end


async def test_a_saved_file_counts_as_changed_for_a_client_that_watches_no_files(paced, start_client, tmp_path):
    (tmp_path / "a.py").write_text("a")
    client = await start_client(folders=[tmp_path])
    await client.ready()
    while not paced.updates:
        assert await asyncio.to_thread(paced.ended.acquire, timeout=60)
    for name in (".draftlineignore", "b.py"):
        (tmp_path / name).write_text("a.py\n")
        named = types.TextDocumentIdentifier((tmp_path / name).as_uri())
        client.lsp.text_document_did_save(types.DidSaveTextDocumentParams(named))
    while not any("a.py" in update.removed for update in paced.updates):
        assert await asyncio.to_thread(paced.ended.acquire, timeout=60)
    assert client.result.capabilities.text_document_sync.save


async def test_an_ignored_or_secret_document_gets_no_suggestion(paced, start_client, tmp_path):
    (tmp_path / ".draftlineignore").write_text("private/\n")
    client = await start_client(folders=[tmp_path])
    await client.ready()
    for name, sentence in ((".env", "its name is one of secrets"), ("private/a.py", "ignore")):
        uri = (tmp_path / name).as_uri()
        client.open(uri, "KEY = ")
        assert await client.complete(uri, 0, 6, invoked=True) == []
        await client.until(lambda sentence=sentence: sentence in client.statuses[-1].message)
    assert paced.started == []


async def test_the_status_says_a_files_reason_until_another_file_is_completed(paced, start_client, tmp_path):
    client = await start_client(folders=[tmp_path])
    ready = await client.ready()
    secret = ".env is never read, because its name is one of secrets."
    for name, sentence in ((".env", secret), ("a.py", ready.message)):
        client.open((tmp_path / name).as_uri(), "KEY = ")
        steps(paced, 3)
        await client.complete((tmp_path / name).as_uri(), 0, 6)
        await client.until(lambda sentence=sentence: client.statuses[-1].message.startswith(sentence))
    assert client.statuses[-1].kind == "ready"


async def test_a_document_whose_uri_is_no_valid_path_is_completed_and_other_files_are_indexed(
    paced, start_client, tmp_path
):
    (tmp_path / "a.py").write_text("a")
    client = await start_client(folders=[tmp_path])
    await client.ready()
    for uri in ("file:///a%00b.py", "file:///a\ud800.py", "file://[a.py"):
        client.open(uri, "x = ")
        steps(paced, 3)
        (item,) = await client.complete(uri, 0, 4)
        assert item.insert_text == " 0 1 2"
    while "a.py" not in {file.path for update in paced.updates for file in update.changed}:
        assert await asyncio.to_thread(paced.ended.acquire, timeout=60)


async def test_a_pipe_in_the_workspace_delays_neither_the_index_nor_the_shutdown(paced, start_client, tmp_path):
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / ".gitignore").symlink_to("pipe.py")
    (tmp_path / ".draftline.toml").symlink_to("pipe.py")
    (tmp_path / "a.py").write_text("a")
    client = await start_client(folders=[tmp_path])
    await client.ready()
    event = types.FileEvent((tmp_path / "pipe.py").as_uri(), types.FileChangeType.Changed)
    client.lsp.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams([event]))
    while "a.py" not in {file.path for update in paced.updates for file in update.changed}:
        assert await asyncio.to_thread(paced.ended.acquire, timeout=60)
    await client.stop()


async def test_the_engine_forgets_what_is_closed(paced, start_client, tmp_path):
    (tmp_path / "a.py").write_text("text")
    client = await start_client(folders=[tmp_path])
    await client.ready()
    uri, folder = (tmp_path / "a.py").as_uri(), types.WorkspaceFolder(tmp_path.as_uri(), "project")
    for document in (uri, "untitled:1"):
        client.open(document, "text")
        steps(paced, 3)
        assert await client.complete(document, 0, 4)
        client.lsp.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(document)))
    client.lsp.workspace_did_change_workspace_folders(
        types.DidChangeWorkspaceFoldersParams(types.WorkspaceFoldersChangeEvent(added=[], removed=[folder]))
    )
    found = Closing()
    while not {uri, "untitled:1"} <= {*found.documents} or not found.workspaces:
        assert await asyncio.to_thread(paced.forgot.acquire, timeout=60)
        found = Closing(
            tuple(document_of(key) for closing in paced.forgotten for key in closing.documents),
            tuple(key for closing in paced.forgotten for key in closing.workspaces),
        )
    assert found.workspaces == (tmp_path.as_uri(),)


async def test_the_engine_forgets_what_an_editor_used_that_is_gone(paced, start_client, tmp_path):
    (tmp_path / "a.py").write_text("text")
    client = await start_client(folders=[tmp_path])
    client.open((tmp_path / "a.py").as_uri(), "text")
    await client.ready()
    while not paced.updates:
        assert await asyncio.to_thread(paced.ended.acquire, timeout=60)
    await client.stop()
    assert await asyncio.to_thread(paced.forgot.acquire, timeout=60)
    assert tmp_path.as_uri() in paced.forgotten[0].workspaces


async def test_a_secret_in_a_document_stops_completion_with_a_sentence_and_the_user_may_override_it(
    paced, start_client, tmp_path
):
    paced.gated = False
    path, named = tmp_path / "app.yml", tmp_path / "secrets.yml"
    text = 'database:\n  password: "q9Zk2LmX7vTf4RbN8sWd"\nx ='
    for file in (path, named):
        file.write_text(text)
    client = await start_client(folders=(tmp_path,))
    await client.ready()
    for file, why in ((path, "it seems to hold a password"), (named, "its name is one of secrets")):
        client.open(file.as_uri(), text)
        assert await client.complete(file.as_uri(), 2, 3, invoked=True) == []
        said = f"{file.name} is never read, because {why}. If it holds none, name it in `not_secret`"
        await client.until(lambda said=said: client.statuses[-1].message.startswith(said))
    settings = {"draftline": {"notSecret": [str(tmp_path)], "model": "paced"}}
    client.lsp.workspace_did_change_configuration(types.DidChangeConfigurationParams(settings))
    for file in (path, named):
        assert await client.complete(file.as_uri(), 2, 3, invoked=True)
