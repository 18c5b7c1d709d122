"""Which files may be read: secrets and ignored files never leave, whatever the tree looks like."""

import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from lsprotocol import types

from completion.errors import EngineUnavailableError
from lsp_server.documents import workspace_feed as workspace_files
from lsp_server.documents.documents import DocumentStore
from lsp_server.documents.file_policy import FilePolicy, may_hold_secrets
from lsp_server.documents.workspace_feed import FILE_BYTES, WorkspaceFeed
from lsp_server.documents.workspace_folders import WorkspaceFolders
from lsp_server.empty_reason import EmptyReason
from lsp_server.settings.table import Settings

SECRET_NAMES = [
    ".env", ".env.local", ".envrc", "prod.env", ".ENV", "server.pem", "private.key", "id_rsa", "id_ed25519",
    "credentials", "aws_credentials.json", "secrets.yaml", ".netrc", ".npmrc", "terraform.tfstate", "x.p12",
]  # fmt: skip


class Recorder:
    """Takes the updates of a feed, as the engine does."""

    def __init__(self):
        self.updates = []
        self.fails = False

    async def __call__(self, update):
        if self.fails:
            raise EngineUnavailableError("gone")
        self.updates.append(update)

    @property
    def sent(self):
        return {file.path: file.text for update in self.updates for file in update.changed}

    @property
    def removed(self):
        return [path for update in self.updates for path in update.removed]


def make_feed(root, **changes):
    folders, documents, recorder = WorkspaceFolders(), DocumentStore(), Recorder()
    folders.add([types.WorkspaceFolder(root.as_uri(), "project")])
    feed = WorkspaceFeed(folders, documents, recorder, lambda: Settings(**changes), rest_s=0)
    return feed, documents, recorder


def write(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.mark.parametrize("name", SECRET_NAMES)
def test_secrets_are_known_by_name_in_any_folder(name):
    assert may_hold_secrets(Path("/home/me/project") / name)
    assert may_hold_secrets(Path("/home/me/project/deep/down") / name)


@pytest.mark.parametrize(
    "name", ["environment.py", "keys.py", "token.ts", "credit.py", "env.py", "Makefile", "a.gitkeep"]
)
def test_plain_source_is_no_secret(name):
    assert not may_hold_secrets(Path("/home/me/project") / name)


def test_whatever_lies_in_a_folder_of_secrets_is_one():
    assert may_hold_secrets(Path("/home/me/.ssh/config"))
    assert may_hold_secrets(Path("/home/me/.aws/config"))


def test_a_link_to_a_secret_is_a_secret(tmp_path):
    (tmp_path / ".env").write_text("x")
    (tmp_path / "notes.txt").symlink_to(tmp_path / ".env")
    assert may_hold_secrets(tmp_path / "notes.txt")


NAMES = st.sampled_from(["a", "b", "build", "x.py", "y.log", "Z.txt", "dir"])
# "dir" by itself is a folder there, and git reads rules for folders differently
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join).filter(lambda path: path != "dir")
RULES = st.lists(
    st.sampled_from(
        ["build/", "/a", "*", "!*/", "*.log", "!y.log", "dir/*", "**/b", "a/**/x.py", "!/dir/x.py", "Z.*", "a/b/"]
    ),
    max_size=4,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sets(PATHS, max_size=6), RULES, RULES)
@example({"build/x.py", "dir/build/x.py"}, ["build/"], ["!x.py"])
def test_ignore_rules_are_read_as_git_reads_them(paths, top_rules, nested_rules):
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        subprocess.run(["git", "init", "-q", str(root)], check=True)
        (root / "dir").mkdir()
        (root / ".gitignore").write_text("\n".join(top_rules))
        (root / "dir" / ".gitignore").write_text("\n".join(nested_rules))
        policy = FilePolicy(root)
        if not paths:
            return
        said = subprocess.run(
            ["git", "-C", str(root), "check-ignore", "--no-index", *paths], capture_output=True, text=True, check=False
        )
        expected = set(said.stdout.splitlines())
        ours = {path for path in paths if policy.refusal(root / path) is EmptyReason.IGNORED_FILE}
        assert ours == expected


FILES = st.dictionaries(
    st.lists(
        st.sampled_from([*SECRET_NAMES, "a.py", "b.ts", "src", "build", "node_modules", ".ssh", "notes.md"]),
        min_size=1,
        max_size=3,
    ).map("/".join),
    st.just("text"),
    max_size=8,
)


@settings(max_examples=40, deadline=None)
@given(FILES, st.sets(st.sampled_from(["build/", "*.ts", "/src", "!a.py", "notes.md"])))
async def test_secrets_and_ignored_files_never_leave(files, rules):
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
            assert not any(may_hold_secrets(Path(part)) for part in Path(path).parts)
            assert policy.refusal(root / path) is None
        for path in kept:
            allowed = policy.refusal(root / path) is None
            assert not allowed or "node_modules" in path or path in recorder.sent


async def test_open_documents_come_first_then_their_neighbours(tmp_path):
    write(tmp_path, {"far/z.py": "z", "near/b.py": "b", "near/a.py": "old", "top.py": "t"})
    feed, documents, recorder = make_feed(tmp_path)
    documents.open(types.TextDocumentItem((tmp_path / "near/a.py").as_uri(), "python", 1, "new"))
    await feed.scan()
    await feed.idle()
    order = [file.path for update in recorder.updates for file in update.changed]
    assert order[:2] == ["near/a.py", "near/b.py"]
    assert sorted(order) == ["far/z.py", "near/a.py", "near/b.py", "top.py"]
    assert recorder.sent["near/a.py"] == "new"


async def test_large_binary_and_foreign_files_are_left_out(tmp_path):
    write(tmp_path, {"big.py": "x" * (FILE_BYTES + 1), "ok.py": "ok"})
    (tmp_path / "b.bin").write_bytes(b"MZ\0")
    (tmp_path / "latin.py").write_bytes(b"caf\xe9")
    outside = tmp_path.parent / "outside.py"
    outside.write_text("outside")
    (tmp_path / "link.py").symlink_to(outside)
    feed, _, recorder = make_feed(tmp_path)
    await feed.scan()
    await feed.idle()
    assert recorder.sent == {"ok.py": "ok"}


async def test_the_number_of_files_is_bounded_and_zero_sends_nothing(tmp_path):
    write(tmp_path, {f"f{number}.py": "x" for number in range(20)})
    feed, _, recorder = make_feed(tmp_path, index_files=5)
    await feed.scan()
    await feed.idle()
    assert len(recorder.sent) == 5
    changed = types.FileChangeType.Changed
    await feed.files_changed([types.FileEvent(path.as_uri(), changed) for path in sorted(tmp_path.iterdir())])
    await feed.idle()
    assert len(recorder.sent) == 5
    feed, documents, recorder = make_feed(tmp_path, index_files=0)
    feed.changed(documents.open(types.TextDocumentItem((tmp_path / "f1.py").as_uri(), "python", 1, "new")))
    await feed.scan()
    await feed.idle()
    assert not recorder.sent


async def test_what_becomes_ignored_or_is_deleted_is_withdrawn(tmp_path):
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


async def test_a_closed_document_is_sent_as_it_lies_on_disk(tmp_path):
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


async def test_an_engine_that_is_gone_ends_the_sending_and_a_new_one_is_told_everything(tmp_path):
    write(tmp_path, {"a.py": "a"})
    feed, _, recorder = make_feed(tmp_path)
    recorder.fails = True
    await feed.scan()
    await feed.idle()
    recorder.fails = False
    await feed.scan()
    await feed.idle()
    assert recorder.sent == {"a.py": "a"}


async def test_nothing_is_read_outside_the_folders(tmp_path):
    inside = tmp_path / "project"
    write(tmp_path, {"project/a.py": "a", "elsewhere.py": "x"})
    feed, _, recorder = make_feed(inside)
    await feed.files_changed([types.FileEvent((tmp_path / "elsewhere.py").as_uri(), types.FileChangeType.Changed)])
    await feed.scan()
    await feed.idle()
    assert recorder.sent == {"a.py": "a"}


async def test_a_file_that_goes_while_the_folder_is_read_is_left_out(tmp_path, monkeypatch):
    write(tmp_path, {"a.py": "a = 1\n", "b.py": "b = 1\n"})
    entries = workspace_files._entries

    def entries_that_age(folder):
        found = entries(folder)
        (tmp_path / "b.py").unlink(missing_ok=True)
        return found

    monkeypatch.setattr(workspace_files, "_entries", entries_that_age)
    feed, _, recorder = make_feed(tmp_path)
    await feed.scan()
    await feed.idle()
    assert recorder.sent == {"a.py": "a = 1\n"}
