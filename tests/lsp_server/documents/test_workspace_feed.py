"""The workspace feed sends files to the engine, but never secret or ignored ones."""

import asyncio
import os
import tempfile
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lsprotocol import types

from completion.errors import EngineSilentError, EngineUnavailableError
from completion.host.errors import QueueFullError
from completion.request import Closing, WorkspaceUpdate
from completion.workspace.secret_files import is_secret
from lsp_server.documents import workspace_feed, workspace_search
from lsp_server.documents.documents import DocumentStore
from lsp_server.documents.file_policy import FilePolicy
from lsp_server.documents.workspace_feed import WorkspaceFeed
from lsp_server.documents.workspace_folders import Folder, WorkspaceFolders
from lsp_server.documents.workspace_search import MAX_FILE_BYTES
from lsp_server.empty_reason import EmptyReason
from lsp_server.settings.table import Settings

SECRET_NAMES = [
    ".env", ".env.local", ".envrc", "prod.env", ".ENV", "server.pem", "private.key", "id_rsa", "id_ed25519",
    "credentials", "aws_credentials.json", "secrets.yaml", ".netrc", ".npmrc", "terraform.tfstate", "x.p12",
    "key.properties", "terraform.rc", ".terraformrc", "prod.pkrvars.hcl",
    "server.pem~", "#server.pem#", ".npmrc.bak", "prod.env.old", "prod.tfvars.orig~",
]  # fmt: skip


class Recorder:
    """Receives the messages of a feed in place of the engine."""

    def __init__(self):
        self.messages = []
        self.fails = False
        self.refuses = []

    async def __call__(self, message):
        if self.fails:
            raise EngineUnavailableError("gone")
        if self.refuses and (error := self.refuses.pop(0)):
            raise error
        self.messages.append(message)

    @property
    def updates(self):
        return [message for message in self.messages if isinstance(message, WorkspaceUpdate)]

    @property
    def sent(self):
        return {file.path: file.text for update in self.updates for file in update.changed}

    @property
    def removed(self):
        return [path for update in self.updates for path in update.removed]


def make_feed(root, changing=None, **changes):
    """Return a feed with its documents and its engine. `changing` are settings that the test changes later."""
    folders, documents, recorder = WorkspaceFolders(), DocumentStore(), Recorder()
    folders.add([types.WorkspaceFolder(root.as_uri(), "project")])
    feed = WorkspaceFeed(folders, documents, recorder, lambda _uri: Settings(**changes, **(changing or {})), pause_s=0)
    return feed, documents, recorder


def write(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def may_hold_secrets(path):
    return FilePolicy(path.parent).refusal(path) is EmptyReason.SECRET_FILE


def changed(path):
    return types.FileEvent(path.as_uri(), types.FileChangeType.Changed)


@pytest.mark.parametrize("name", SECRET_NAMES)
def test_secret_files_are_recognised_by_name_in_any_folder(name):
    assert may_hold_secrets(Path("/home/me/project") / name)
    assert may_hold_secrets(Path("/home/me/project/deep/down") / name)


@pytest.mark.parametrize(
    "name",
    ["environment.py", "keys.py", "token.ts", "credit.py", "env.py", "Makefile", "a.gitkeep", "a.py~", "a.py.bak"],
)
def test_source_files_are_not_secret(name):
    assert not may_hold_secrets(Path("/home/me/project") / name)


def test_every_file_in_a_secret_folder_is_secret():
    assert may_hold_secrets(Path("/home/me/.ssh/config"))
    assert may_hold_secrets(Path("/home/me/.aws/config"))


def test_a_link_to_a_secret_file_is_secret(tmp_path):
    (tmp_path / ".env").write_text("x")
    (tmp_path / "notes.txt").symlink_to(tmp_path / ".env")
    assert may_hold_secrets(tmp_path / "notes.txt")


FILES = st.dictionaries(
    st.lists(
        st.sampled_from([*SECRET_NAMES, "a.py", "b.ts", "src", "build", "node_modules", ".ssh", "notes.md"]),
        min_size=1,
        max_size=3,
    ).map("/".join),
    st.just("text"),
    max_size=8,
)


@settings(max_examples=40)
@given(FILES, st.sets(st.sampled_from(["build/", "*.ts", "/src", "!a.py", "notes.md"])))
async def test_secret_and_ignored_files_are_never_sent(files, rules):
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        kept = {path: text for path, text in files.items() if not any(other.startswith(path + "/") for other in files)}
        write(root, {**kept, ".draftlineignore": "\n".join(sorted(rules))})
        feed, documents, recorder = make_feed(root)
        for path in kept:
            documents.open(types.TextDocumentItem((root / path).as_uri(), "python", 1, "open text"))
        await feed.scan()
        await feed.files_changed(
            [types.FileEvent((root / path).as_uri(), types.FileChangeType.Changed) for path in kept]
        )
        await feed.idle()
        policy = FilePolicy(root)
        for path in recorder.sent:
            assert not is_secret(path)
            assert policy.refusal(root / path) is None
        for path in kept:
            allowed = policy.refusal(root / path) is None
            assert not allowed or "node_modules" in path or path in recorder.sent


async def test_a_link_to_itself_does_not_affect_other_files(tmp_path):
    """Resolving such a link raises."""
    write(tmp_path, {f"f{number}.py": "x" for number in range(50)})
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    feed, _, recorder = make_feed(tmp_path)
    await feed.scan()
    await feed.files_changed([changed(tmp_path / "loop"), changed(tmp_path / "loop" / "x.py")])
    await feed.idle()
    assert len(recorder.sent) == 50


def test_a_chain_of_a_thousand_links_does_not_raise(tmp_path):
    for number in range(1500):
        (tmp_path / f"link{number}").symlink_to(f"missing/../link{number + 1}")
    (tmp_path / "link1500").write_text("x")
    assert not may_hold_secrets(tmp_path / "link0")


@pytest.mark.parametrize(
    "uri", ["file:///a%00.py", "file:///a\0.py", "file:///a\ud800.py", "file://[a/b.py", "file:a.py"]
)
async def test_a_uri_that_is_no_valid_path_has_no_file(tmp_path, uri):
    feed, documents, recorder = make_feed(tmp_path)
    write(tmp_path, {"a.py": "a"})
    feed.changed(documents.open(types.TextDocumentItem(uri, "python", 1, "x")))
    await feed.scan()
    await feed.files_changed([types.FileEvent(uri, types.FileChangeType.Changed)])
    await feed.idle()
    assert recorder.sent == {"a.py": "a"}
    assert feed.refusal_of(uri) is None
    assert feed.refusal_of(uri.replace("a", ".env")) is EmptyReason.SECRET_FILE


async def test_a_changed_file_reached_through_a_link_or_outside_the_workspace_is_not_read(tmp_path):
    """Else a link to `/etc` would send `/etc/passwd` to the engine."""
    write(tmp_path, {"project/a.py": "a", "outside/b.py": "b"})
    (tmp_path / "project" / "linked").symlink_to(tmp_path / "outside")
    feed, _, recorder = make_feed(tmp_path / "project")
    root = (tmp_path / "project").as_uri()
    names = ("linked/b.py", "../outside/b.py", "%2e%2e/outside/b.py", "a.py")
    await feed.files_changed([types.FileEvent(f"{root}/{name}", types.FileChangeType.Changed) for name in names])
    await feed.idle()
    assert recorder.sent == {"a.py": "a"}


async def test_a_pipe_among_the_changed_files_does_not_block(tmp_path):
    """A thread that opens a pipe waits for its writer, and the process cannot exit."""
    os.mkfifo(tmp_path / "pipe.py")
    write(tmp_path, {"a.py": "a"})
    feed, _, recorder = make_feed(tmp_path)
    await feed.files_changed([changed(tmp_path / "pipe.py"), changed(tmp_path / "a.py")])
    await feed.scan()
    await feed.idle()
    assert recorder.sent == {"a.py": "a"}


@pytest.mark.parametrize("target", ["/dev/zero", "/proc/self/environ", "pipe", ".gitignore"])
async def test_an_ignore_file_that_is_a_link_is_not_read(tmp_path, target):
    """A link to a device would fill the memory, and one to a pipe would stop the event loop."""
    write(tmp_path, {"a.py": "a", "b.log": "b", ".draftlineignore": "*.log"})
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / ".gitignore").symlink_to(target)
    feed, _, recorder = make_feed(tmp_path)
    await feed.scan()
    await feed.idle()
    assert recorder.sent == {"a.py": "a", ".draftlineignore": "*.log"}


async def test_source_files_in_a_folder_named_secrets_are_sent_and_data_files_are_not(tmp_path):
    write(tmp_path, {"secrets/store.py": "code", "secrets/prod.yml": "password: x", ".ssh/a.py": "x"})
    feed, _, recorder = make_feed(tmp_path)
    await feed.scan()
    await feed.idle()
    assert recorder.sent == {"secrets/store.py": "code"}


async def test_the_files_of_a_workspace_whose_folder_is_named_like_secrets_are_sent(tmp_path):
    root = tmp_path / "secret-santa"
    write(root, {"package.json": "{}", "draw.ts": "code", "secrets/prod.yml": "password: x"})
    feed, _, recorder = make_feed(root)
    await feed.scan()
    await feed.idle()
    assert recorder.sent == {"package.json": "{}", "draw.ts": "code"}
    assert feed.refusal_of((root / "package.json").as_uri()) is None


async def test_open_documents_are_sent_first_then_files_in_their_folders(tmp_path):
    write(tmp_path, {"far/z.py": "z", "near/b.py": "b", "near/a.py": "old", "top.py": "t"})
    feed, documents, recorder = make_feed(tmp_path)
    documents.open(types.TextDocumentItem((tmp_path / "near/a.py").as_uri(), "python", 1, "new"))
    await feed.scan()
    await feed.idle()
    order = [file.path for update in recorder.updates for file in update.changed]
    assert order[:2] == ["near/a.py", "near/b.py"]
    assert sorted(order) == ["far/z.py", "near/a.py", "near/b.py", "top.py"]
    assert recorder.sent["near/a.py"] == "new"


async def test_files_next_to_a_document_that_is_opened_later_take_the_place_of_others_in_a_large_workspace(tmp_path):
    """A workspace with more files than the engine gets: where the work goes on, the code around it must be known."""
    write(tmp_path, {f"{folder}/{number}.py": folder for folder in ("here", "next", "other") for number in range(3)})
    write(tmp_path, {"next/.env": "secret"})
    for number in range(3):
        os.utime(tmp_path / f"next/{number}.py", (0, 0))  # the oldest files, which a scan leaves out first
    feed, documents, engine = make_feed(tmp_path, index_files=6)
    feed.opened(open_document(documents, tmp_path / "here/0.py", "typed"))
    await feed.scan()
    await feed.idle()
    assert {name.partition("/")[0] for name in engine.sent} == {"here", "other"}
    feed.opened(open_document(documents, tmp_path / "next/0.py", "typed"))
    await feed.idle()
    kept = engine.sent.keys() - set(engine.removed)
    assert kept == {f"{folder}/{number}.py" for folder in ("here", "next") for number in range(3)}


async def test_large_binary_linked_and_non_utf8_files_are_not_sent(tmp_path):
    write(tmp_path, {"big.py": "x" * (MAX_FILE_BYTES + 1), "ok.py": "ok"})
    (tmp_path / "b.bin").write_bytes(b"MZ\0")
    (tmp_path / "latin.py").write_bytes(b"caf\xe9")
    outside = tmp_path.parent / "outside.py"
    outside.write_text("outside")
    (tmp_path / "link.py").symlink_to(outside)
    feed, _, recorder = make_feed(tmp_path)
    await feed.scan()
    await feed.idle()
    assert recorder.sent == {"ok.py": "ok"}


async def test_index_files_limits_the_number_of_files_and_0_sends_nothing(tmp_path):
    write(tmp_path, {f"f{number}.py": "x" for number in range(20)})
    feed, _, recorder = make_feed(tmp_path, index_files=5)
    await feed.scan()
    await feed.idle()
    assert len(recorder.sent) == 5
    await feed.files_changed([changed(path) for path in sorted(tmp_path.iterdir())])
    await feed.idle()
    assert len(recorder.sent) == 5
    feed, documents, recorder = make_feed(tmp_path, index_files=0)
    feed.changed(documents.open(types.TextDocumentItem((tmp_path / "f1.py").as_uri(), "python", 1, "new")))
    await feed.scan()
    await feed.idle()
    assert not recorder.sent


async def test_a_scan_withdraws_what_is_more_than_index_files(tmp_path):
    write(tmp_path, {f"f{number}.py": "x" for number in range(4)})
    changes = {"index_files": 4}
    feed, documents, recorder = make_feed(tmp_path, changes)
    for count, removed in ((4, 0), (2, 2), (0, 4)):
        changes["index_files"] = count
        await feed.scan()
        await feed.idle()
        assert len(recorder.removed) == removed
        documents.open(types.TextDocumentItem((tmp_path / recorder.updates[0].changed[0].path).as_uri(), "", 1, "new"))


async def test_newer_binary_files_take_no_room_from_source_files(tmp_path):
    write(tmp_path, {f"src/{number}.py": "x" for number in range(10)})
    for number in range(20):
        (tmp_path / f"{number}.PNG").write_bytes(b"\x89PNG\0")
        os.utime(tmp_path / f"{number}.PNG", (4e9, 4e9))
    feed, _, recorder = make_feed(tmp_path, index_files=10)
    await feed.scan()
    await feed.idle()
    assert len(recorder.sent) == 10
    await feed.files_changed([changed(tmp_path / f"{number}.PNG") for number in range(20)])
    await feed.idle()
    assert not recorder.removed


async def test_a_file_that_does_not_fit_into_the_total_size_does_not_keep_smaller_ones_out(tmp_path, monkeypatch):
    monkeypatch.setattr(workspace_search, "MAX_SCAN_BYTES", 100)
    write(tmp_path, {"a.py": "a" * 60, "b.py": "b" * 60, "c.py": "c" * 30})
    for age, name in enumerate(("a.py", "b.py", "c.py")):
        os.utime(tmp_path / name, (1e9 - age, 1e9 - age))
    feed, _, recorder = make_feed(tmp_path)
    await feed.scan()
    await feed.idle()
    assert recorder.sent.keys() == {"a.py", "c.py"}


async def test_a_folder_with_very_many_files_does_not_keep_the_others_out(tmp_path):
    write(tmp_path, {f"{number}.txt": "x" for number in range(200)})
    write(tmp_path, {f"data/{number}.txt": "x" for number in range(200)})
    write(tmp_path, {"src/deep/a.py": "a"})
    feed, _, recorder = make_feed(tmp_path, index_files=10)  # a scan looks at 200 entries
    os.utime(tmp_path / "src/deep/a.py", (4e9, 4e9))
    await feed.scan()
    await feed.idle()
    assert "src/deep/a.py" in recorder.sent


async def test_a_folder_with_many_files_is_searched_whole_if_there_is_nothing_else(tmp_path):
    write(tmp_path, {f"{number}.txt": "x" for number in range(190)})
    write(tmp_path, {"newest.txt": "x"})
    feed, _, recorder = make_feed(tmp_path, index_files=10)  # a scan looks at 200 entries
    os.utime(tmp_path / "newest.txt", (4e9, 4e9))
    await feed.scan()
    await feed.idle()
    assert "newest.txt" in recorder.sent


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="only Linux has such a folder")
def test_the_folders_of_the_kernel_are_not_searched_with_the_root_folder(tmp_path):
    root = Folder("file:///", Path("/"), "")
    write(tmp_path, {"a.py": ""})
    found = workspace_search.search({root: FilePolicy(root.path)}, {tmp_path}, set(), 200, lambda: True)
    assert tmp_path / "a.py" in [file.path for file in found]
    assert not {"proc", "sys", "dev", "run"} & {file.path.parts[1] for file in found}


def test_of_the_home_folder_only_those_hidden_folders_are_searched_that_open_documents_are_in(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    write(tmp_path, {".profile": "", "src/.hidden/a.py": "", ".npm/cache/b.json": "", ".config/gh/hosts.yml": ""})
    write(tmp_path, {".config/nvim/init.lua": "", ".config/nvim/lua/c.lua": ""})

    def found(folder, *near):
        root = Folder(folder.as_uri(), folder, "")
        policies = {root: FilePolicy(folder)}
        return {file.name for file in workspace_search.search(policies, set(near), set(), 100, lambda: True)}

    always = {".profile", "src/.hidden/a.py"}
    assert found(tmp_path) == always
    assert found(tmp_path, tmp_path / ".config" / "nvim") == {*always, ".config/nvim/init.lua"}
    assert found(tmp_path / ".config") == {"gh/hosts.yml", "nvim/init.lua", "nvim/lua/c.lua"}


async def test_what_programs_write_into_hidden_folders_of_the_home_folder_is_not_sent(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    feed, _, engine = make_feed(tmp_path)
    write(tmp_path, {".npm/b.json": "x", ".new/c.json": "x", ".profile": "x", "src/.hidden/a.py": "x"})
    created = [".npm/b.json", ".new", ".new/c.json", ".profile", "src/.hidden/a.py"]
    await feed.files_changed(
        [types.FileEvent((tmp_path / name).as_uri(), types.FileChangeType.Created) for name in created]
    )
    await feed.idle()
    assert set(engine.sent) == {".profile", "src/.hidden/a.py"}


async def test_the_folders_of_open_documents_are_searched_before_all_others(tmp_path):
    write(tmp_path, {f"data/{part}/{number}.txt": "x" for part in range(20) for number in range(20)})
    write(tmp_path, {"src/far/a.py": "a", "src/near/b.py": "b", "src/near/c.py": "c"})
    feed, documents, recorder = make_feed(tmp_path, index_files=10)  # a scan looks at 200 entries
    open_document(documents, tmp_path / "src/near/b.py", "typed")
    await feed.scan()
    await feed.idle()
    assert list(recorder.sent)[:2] == ["src/near/b.py", "src/near/c.py"]


async def test_files_that_become_ignored_or_are_deleted_are_withdrawn(tmp_path):
    write(tmp_path, {"a.py": "a", "b.py": "b"})
    feed, _, recorder = make_feed(tmp_path)
    await feed.scan()
    await feed.idle()
    write(tmp_path, {".gitignore": "a.py\n"})
    await feed.files_changed([types.FileEvent((tmp_path / ".gitignore").as_uri(), types.FileChangeType.Created)])
    await feed.idle()
    (tmp_path / "b.py").unlink()
    await feed.files_changed([types.FileEvent((tmp_path / "b.py").as_uri(), types.FileChangeType.Deleted)])
    await feed.idle()
    assert recorder.removed == ["a.py", "b.py"]


async def test_an_ignore_file_counts_as_soon_as_it_is_written_although_the_client_reports_no_files(tmp_path):
    """Neovim on Linux watches no files."""
    write(tmp_path, {"customers/deep/x.py": "NAMES = 1", "a.py": "a"})
    feed, documents, recorder = make_feed(tmp_path)
    await feed.scan()
    await feed.idle()
    document = documents.open(types.TextDocumentItem((tmp_path / "customers/deep/x.py").as_uri(), "python", 1, "new"))
    assert feed.refusal_of(document.uri) is None
    write(tmp_path, {".draftlineignore": "customers/\n"})
    feed.changed(document)
    await feed.idle()
    assert feed.refusal_of(document.uri) is EmptyReason.IGNORED_FILE
    assert recorder.sent["customers/deep/x.py"] == "NAMES = 1"
    assert "customers/deep/x.py" in recorder.removed
    (tmp_path / ".draftlineignore").unlink()
    assert feed.refusal_of(document.uri) is None
    await feed.idle()
    assert recorder.sent["customers/deep/x.py"] == "new"


async def test_close_stops_the_scan_that_a_changed_ignore_file_started(tmp_path):
    write(tmp_path, {"a.py": "a", "b.py": "b"})
    feed, _, recorder = make_feed(tmp_path)
    await feed.scan()
    await feed.idle()
    recorder.messages.clear()
    write(tmp_path, {".gitignore": "b.py\n"})
    assert feed.refusal_of((tmp_path / "b.py").as_uri()) is EmptyReason.IGNORED_FILE
    await feed.close()
    await feed.idle()
    assert recorder.messages == []


async def test_the_files_of_a_folder_are_withdrawn_with_it_and_sent_with_it_although_one_event_names_the_folder_only(
    tmp_path,
):
    write(tmp_path, {"old/a.py": "a", "old/deep/b.py": "b", "older.py": "kept"})
    feed, _, recorder = make_feed(tmp_path)
    await feed.scan()
    await feed.idle()
    (tmp_path / "old").rename(tmp_path / "new")
    kinds = {"old": types.FileChangeType.Deleted, "new": types.FileChangeType.Created}
    for name, kind in kinds.items():
        await feed.files_changed([types.FileEvent((tmp_path / name).as_uri(), kind)])
        await feed.idle()
        assert sorted(recorder.removed) == ["old/a.py", "old/deep/b.py"]
    assert recorder.sent.keys() == {"old/a.py", "old/deep/b.py", "older.py", "new/a.py", "new/deep/b.py"}


async def test_thousands_of_created_files_take_little_of_the_event_loops_time(tmp_path):
    """Whoever checks out a branch goes on typing. docs/security.md: a turn may use 200 ms of processor time."""
    write(tmp_path, {"pkg/sub/a.py": "a", ".git/HEAD": "", ".gitignore": "*.log\n/build\n"})
    feed, _, _ = make_feed(tmp_path)
    names = [f"pkg/sub/{number}.py" for number in range(5000)] + ["pkg/sub/a.py"]
    events = [types.FileEvent((tmp_path / name).as_uri(), types.FileChangeType.Created) for name in names]
    before = time.thread_time()
    await feed.files_changed(events)
    assert time.thread_time() - before < 0.2
    await feed.close()


async def test_changes_after_close_send_nothing(tmp_path):
    write(tmp_path, {"a.py": "a"})
    feed, _, recorder = make_feed(tmp_path)
    changes = asyncio.create_task(feed.files_changed([changed(tmp_path / "a.py")]))
    await asyncio.sleep(0)  # the changes' thread has started
    await feed.close()
    await changes
    await feed.idle()
    assert recorder.messages == []


async def test_a_closed_document_is_sent_as_it_is_on_disk(tmp_path):
    write(tmp_path, {"a.py": "saved"})
    feed, documents, recorder = make_feed(tmp_path)
    document = documents.open(types.TextDocumentItem((tmp_path / "a.py").as_uri(), "python", 1, "typed"))
    feed.changed(document)
    await feed.idle()
    documents.close(document.uri)
    feed.changed(document)
    await feed.idle()
    assert [(file.text, file.open) for update in recorder.updates for file in update.changed] == [
        ("typed", True), ("saved", False)
    ]  # fmt: skip


async def test_sending_stops_when_the_engine_fails_and_the_next_scan_sends_everything(tmp_path):
    write(tmp_path, {"a.py": "a"})
    feed, _, recorder = make_feed(tmp_path)
    recorder.fails = True
    await feed.scan()
    await feed.idle()
    recorder.fails = False
    await feed.scan()
    await feed.idle()
    assert recorder.sent == {"a.py": "a"}


async def test_what_a_full_queue_refuses_is_sent_later_with_the_rest(tmp_path):
    """One host serves many windows and, in a room, many users."""
    names = [f"f{number}.py" for number in range(100)]
    write(tmp_path, dict.fromkeys(names, "x"))
    feed, _, recorder = make_feed(tmp_path)
    recorder.refuses = [None, QueueFullError("128 requests wait"), QueueFullError("128 requests wait")]
    await feed.scan()
    await feed.idle()
    assert recorder.sent.keys() == set(names)
    for name in names:
        (tmp_path / name).unlink()
    recorder.refuses = [QueueFullError("128 requests wait")]
    await feed.scan()
    await feed.idle()
    assert sorted(recorder.removed) == sorted(names)


async def test_what_an_engine_that_lives_did_not_answer_is_sent_again_as_it_is_then(tmp_path):
    write(tmp_path, {"a.py": "a", "b.py": "b"})
    feed, documents, recorder = make_feed(tmp_path)
    await feed.scan()
    await feed.idle()
    (tmp_path / "b.py").unlink()
    feed.changed(documents.open(types.TextDocumentItem((tmp_path / "a.py").as_uri(), "python", 1, "typed")))
    await feed.files_changed([changed(tmp_path / "b.py")])
    recorder.refuses = [EngineSilentError("no answer within 120 s")] * 3
    await feed.idle()
    assert recorder.sent["a.py"] == "typed"
    assert recorder.removed == ["b.py"]


async def test_closings_that_an_engine_did_not_answer_are_sent_again(tmp_path):
    feed, documents, recorder = make_feed(tmp_path)
    uri = (tmp_path / "a.py").as_uri()
    document = documents.open(types.TextDocumentItem(uri, "python", 1, "a"))
    documents.close(uri)
    recorder.refuses = [EngineSilentError("no answer")]
    feed.closed(document)
    feed.folders_closed(["file:///gone"])
    await feed.idle()
    assert recorder.messages[0] == Closing((uri,), ("file:///gone",))


async def test_an_engine_that_never_answers_is_left_alone_until_the_next_change(tmp_path):
    write(tmp_path, {"a.py": "a"})
    feed, _, recorder = make_feed(tmp_path)
    recorder.refuses = [EngineSilentError("no answer")] * 50
    await feed.scan()
    await feed.idle()
    assert 40 < len(recorder.refuses) < 49
    recorder.refuses = []
    await feed.files_changed([changed(tmp_path / "a.py")])
    await feed.idle()
    assert recorder.sent == {"a.py": "a"}


async def test_no_file_outside_the_folders_is_read(tmp_path):
    inside = tmp_path / "project"
    write(tmp_path, {"project/a.py": "a", "elsewhere.py": "x"})
    feed, _, recorder = make_feed(inside)
    await feed.files_changed([types.FileEvent((tmp_path / "elsewhere.py").as_uri(), types.FileChangeType.Changed)])
    await feed.scan()
    await feed.idle()
    assert recorder.sent == {"a.py": "a"}


@pytest.mark.parametrize("inside", ["node_modules/app", ".venv/src/app"])
async def test_a_workspace_that_lies_in_a_folder_of_packages_is_sent_without_its_own_such_folders(tmp_path, inside):
    write(tmp_path / inside, {"a.py": "a", "node_modules/b.js": "b"})
    feed, _, recorder = make_feed(tmp_path / inside)
    await feed.scan()
    await feed.files_changed([changed(tmp_path / inside / name) for name in ("a.py", "node_modules/b.js")])
    await feed.idle()
    assert recorder.sent == {"a.py": "a"}


async def test_a_file_that_is_deleted_during_the_scan_is_left_out(tmp_path, monkeypatch):
    write(tmp_path, {"a.py": "a = 1\n", "b.py": "b = 1\n"})
    entries = workspace_search._entries

    def list_then_delete(folder, max_entries):
        found = entries(folder, max_entries)
        (tmp_path / "b.py").unlink(missing_ok=True)
        return found

    monkeypatch.setattr(workspace_search, "_entries", list_then_delete)
    feed, _, recorder = make_feed(tmp_path)
    await feed.scan()
    await feed.idle()
    assert recorder.sent == {"a.py": "a = 1\n"}


async def test_a_closed_folder_is_forgotten_before_anything_else_is_sent(tmp_path):
    write(tmp_path, {"a.py": "a", "b.py": "b"})
    feed, _, recorder = make_feed(tmp_path)
    await feed.scan()
    await feed.idle()
    feed.folders_closed([tmp_path.as_uri()])
    await feed.scan()
    await feed.idle()
    first, closing, *after = recorder.messages
    assert closing == Closing(workspaces=(tmp_path.as_uri(),))
    assert [update.changed for update in after] == [first.changed]  # the store of folders still has the folder open


async def test_a_closed_document_is_forgotten_unless_it_is_open_again(tmp_path):
    feed, documents, recorder = make_feed(tmp_path, index_files=0)
    for uri in ("untitled:1", "untitled:2"):
        documents.open(types.TextDocumentItem(uri, "python", 1, "text"))
        feed.closed(documents.close(uri))
    documents.open(types.TextDocumentItem("untitled:2", "python", 1, "text"))
    await feed.idle()
    assert recorder.messages == [Closing(documents=("untitled:1",))]


async def test_close_stops_a_scan_that_runs(tmp_path):
    write(tmp_path, {f"m{number}.py": "x = 1\n" for number in range(50)})
    feed, _, recorder = make_feed(tmp_path)
    scan = asyncio.create_task(feed.scan())
    await asyncio.sleep(0)  # the scan's thread has started
    await feed.close()
    await scan
    await feed.idle()
    assert recorder.messages == []


async def test_a_newer_scan_replaces_an_older_one(tmp_path):
    write(tmp_path, {"a.py": "x = 1\n"})
    feed, _, recorder = make_feed(tmp_path)
    await asyncio.gather(*(feed.scan() for _ in range(5)))
    await feed.idle()
    assert len(recorder.messages) == 1


def return_late(monkeypatch, name):
    """Let a function of the feed return only when the test sets an event. Return an event that it is done, and that."""
    real, done, may_return = getattr(workspace_feed, name), threading.Event(), threading.Event()

    def late(*arguments):
        result = real(*arguments)
        done.set()
        may_return.wait(60)
        return result

    monkeypatch.setattr(workspace_feed, name, late)
    return done, may_return


async def test_a_scan_keeps_what_was_opened_or_created_while_it_ran(tmp_path, monkeypatch):
    """An editor restores its tabs during the first scan."""
    write(tmp_path, {"project/a.py": "a", "project/big.py": "x" * (MAX_FILE_BYTES + 1), "loose.py": "disk"})
    feed, documents, engine = make_feed(tmp_path / "project")
    searched, may_return = return_late(monkeypatch, "search")
    scan = asyncio.create_task(feed.scan())
    await asyncio.to_thread(searched.wait)
    write(tmp_path, {"project/new.py": "new"})
    for name in ("loose.py", "project/big.py"):
        feed.changed(open_document(documents, tmp_path / name, "typed"))
    await feed.files_changed([changed(tmp_path / "project/new.py")])
    await feed.idle()
    may_return.set()
    await scan
    await feed.idle()
    assert engine.sent == {"a.py": "a", "big.py": "typed", "loose.py": "typed", "new.py": "new"}
    assert not engine.removed


async def test_a_scan_withdraws_what_was_read_before_it_and_sent_while_it_ran_although_it_is_ignored(
    tmp_path, monkeypatch
):
    write(tmp_path, {"a.log": "a"})
    feed, _, engine = make_feed(tmp_path)
    searched, may_finish = return_late(monkeypatch, "search")
    read, may_send = return_late(monkeypatch, "read_text")
    await feed.files_changed([changed(tmp_path / "a.log")])
    await asyncio.to_thread(read.wait)
    write(tmp_path, {".draftlineignore": "*.log"})
    scan = asyncio.create_task(feed.scan())
    await asyncio.to_thread(searched.wait)
    may_send.set()
    await feed.idle()
    assert engine.sent == {"a.log": "a"}
    may_finish.set()
    await scan
    await feed.idle()
    assert engine.removed == ["a.log"]


def open_document(documents, path, text, version=1):
    return documents.open(types.TextDocumentItem(path.as_uri(), types.LanguageKind.Python, version, text))


async def test_open_documents_outside_every_folder_are_sent_for_their_own_folder_and_nothing_else_is(tmp_path):
    write(tmp_path, {"project/a.py": "inside\n", "loose/b.py": "disk\n", "loose/c.py": "disk\n"})
    feed, documents, engine = make_feed(tmp_path / "project")
    path = tmp_path / "loose" / "b.py"
    feed.changed(open_document(documents, path, "typed\n"))
    await feed.idle()
    (update,) = engine.updates
    assert (update.workspace, update.changed[0].path, update.changed[0].text) == (
        path.parent.as_uri(),
        "b.py",
        "typed\n",
    )
    await feed.scan()
    await feed.idle()
    assert engine.sent == {"b.py": "typed\n", "a.py": "inside\n"}
    assert not engine.removed


async def test_a_closed_loose_document_is_forgotten_and_with_the_last_one_its_folder(tmp_path):
    write(tmp_path, {"loose/b.py": "disk\n", "loose/c.py": "disk\n", "project/a.py": ""})
    feed, documents, engine = make_feed(tmp_path / "project")
    folder = tmp_path / "loose"
    for name in ("b.py", "c.py"):
        feed.changed(open_document(documents, folder / name, "typed\n"))
    await feed.idle()
    feed.closed(documents.close((folder / "b.py").as_uri()))
    await feed.idle()
    assert engine.removed == ["b.py"]
    feed.closed(documents.close((folder / "c.py").as_uri()))
    await feed.idle()
    assert engine.messages[-1] == Closing(((folder / "c.py").as_uri(),), (folder.as_uri(),))
    assert "disk\n" not in engine.sent.values()


async def test_a_loose_document_moves_to_a_folder_that_is_opened_around_it(tmp_path):
    write(tmp_path, {"loose/b.py": "disk\n", "project/a.py": ""})
    folders, documents, engine = WorkspaceFolders(), DocumentStore(), Recorder()
    feed = WorkspaceFeed(folders, documents, engine, lambda _uri: Settings(), pause_s=0)
    feed.changed(open_document(documents, tmp_path / "loose/b.py", "typed\n"))
    await feed.idle()
    folders.add([types.WorkspaceFolder(tmp_path.as_uri(), "all")])
    await feed.scan()
    await feed.idle()
    assert WorkspaceUpdate((tmp_path / "loose").as_uri(), (), ("b.py",)) in engine.updates
    assert engine.sent["loose/b.py"] == "typed\n"


@pytest.mark.parametrize("name", ["loose/.env", ".ssh/notes.py"])
async def test_a_loose_secret_file_is_not_sent(tmp_path, name):
    write(tmp_path, {name: "", "project/a.py": ""})
    feed, documents, engine = make_feed(tmp_path / "project")
    feed.changed(open_document(documents, tmp_path / name, "token\n"))
    await feed.idle()
    assert not engine.messages


@pytest.mark.parametrize("uri", ["git:{}?HEAD", "vscode-remote://wsl%2Bubuntu{}", "gitlens://abc{}#L1"])
async def test_what_another_scheme_shows_of_an_ignored_or_secret_file_is_refused_as_the_file_is(tmp_path, uri):
    write(tmp_path, {".gitignore": "private/\n", "private/a.py": "a", "b.py": "b", ".env": "A=1"})
    feed, _, _ = make_feed(tmp_path)
    names = ["private/a.py", "b.py", ".env", "private/gone.py"]
    refused = [feed.refusal_of(uri.format((tmp_path / name).as_uri().removeprefix("file://"))) for name in names]
    ignored = EmptyReason.IGNORED_FILE
    assert refused == [ignored, None, EmptyReason.SECRET_FILE, ignored]
    assert feed.refusal_of(uri.format("/elsewhere/private/a.py")) is None
    await feed.close()


async def test_a_loose_document_that_its_folder_or_its_repository_ignores_is_refused_and_not_sent(tmp_path):
    write(tmp_path, {"notes/.draftlineignore": "*.md\n", "notes/a.md": "", "notes/b.py": "", "project/a.py": ""})
    write(tmp_path, {"other/.gitignore": "local/\n", "other/.git/HEAD": "", "other/local/c.py": "", "other/d.py": ""})
    feed, documents, engine = make_feed(tmp_path / "project")
    for name in ("notes/a.md", "notes/b.py", "other/local/c.py", "other/d.py"):
        feed.changed(open_document(documents, tmp_path / name, "typed\n"))
    await feed.idle()
    assert engine.sent == {"b.py": "typed\n", "d.py": "typed\n"}
    for name in ("notes/a.md", "other/local/c.py"):
        assert feed.refusal_of((tmp_path / name).as_uri()) is EmptyReason.IGNORED_FILE
    (tmp_path / "notes" / ".draftlineignore").write_text("b.py\n")
    assert feed.refusal_of((tmp_path / "notes/b.py").as_uri()) is EmptyReason.IGNORED_FILE
    await feed.idle()
    assert engine.removed == ["b.py"]


async def test_files_that_change_on_disk_are_sent_again_although_the_client_does_not_say_so(tmp_path):
    write(tmp_path, {"a.py": "old", "b.py": "same", "c.py": "gone", "d.py": "disk"})
    folders, documents, engine = WorkspaceFolders(), DocumentStore(), Recorder()
    folders.add([types.WorkspaceFolder(tmp_path.as_uri(), "project")])
    feed = WorkspaceFeed(folders, documents, engine, lambda _uri: Settings(), pause_s=0, check_s=0)
    document = open_document(documents, tmp_path / "d.py", "typed")
    await feed.scan()
    await feed.idle()
    engine.messages.clear()
    write(tmp_path, {"a.py": "of another branch", "d.py": "of another branch"})
    (tmp_path / "c.py").unlink()
    feed.changed(document)
    await feed.idle()
    assert engine.sent == {"a.py": "of another branch", "d.py": "typed"}
    assert engine.removed == ["c.py"]
    engine.messages.clear()
    feed.changed(document)
    await feed.idle()
    assert engine.sent == {"d.py": "typed"}


async def test_a_folder_that_gets_another_name_is_found_although_the_client_does_not_say_so(tmp_path):
    write(tmp_path, {"old/a.py": "a", "old/deep/b.py": "b", "d.py": "disk"})
    folders, documents, engine = WorkspaceFolders(), DocumentStore(), Recorder()
    folders.add([types.WorkspaceFolder(tmp_path.as_uri(), "project")])
    feed = WorkspaceFeed(folders, documents, engine, lambda _uri: Settings(), pause_s=0, check_s=0)
    document = open_document(documents, tmp_path / "d.py", "typed")
    await feed.scan()
    await feed.idle()
    engine.messages.clear()
    (tmp_path / "old").rename(tmp_path / "new")
    feed.changed(document)
    await feed.idle()
    assert engine.sent == {"d.py": "typed", "new/a.py": "a", "new/deep/b.py": "b"}
    assert sorted(engine.removed) == ["old/a.py", "old/deep/b.py"]
