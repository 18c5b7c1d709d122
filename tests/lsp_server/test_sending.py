"""What may leave this computer, by file: in requests, and in what the engine gets of the workspace."""

from dataclasses import replace

import pytest
from lsprotocol import types

from lsp_server.documents.documents import DocumentStore
from lsp_server.documents.workspace_feed import WorkspaceFeed
from lsp_server.documents.workspace_folders import WorkspaceFolders
from lsp_server.empty_reason import EmptyReason
from lsp_server.engine.consent import KEEP, SEND, Consent
from lsp_server.sending import Sending
from lsp_server.settings.shared_file import HashedAnswers
from lsp_server.settings.table import DEFAULTS
from tests.lsp_server.documents.test_workspace_feed import Recorder, write
from tests.lsp_server.scripted_editor import settle

HOST, SERVER = {"engine_kind": "draftline"}, {"engine_kind": "llama-server"}
LOCAL_FIRST = {**SERVER, "engine_mode": "local_first"}


class Workspace:
    """A workspace with a folder of customers, whose user gives one answer to every question."""

    def __init__(self, root, answer, **settings):
        write(root, {"a.py": "a", "lib/b.py": "b", "customers/c.py": "c"})
        self.root, self.answer, self.questions = root, answer, 0
        self.settings = replace(DEFAULTS, engine_url="https://gpu.example", **settings)
        folders, self.documents, self.recorder = WorkspaceFolders(), DocumentStore(), Recorder()
        folders.add([types.WorkspaceFolder(root.as_uri(), "app")])
        consent = Consent(HashedAnswers(None), lambda: self.settings, self._ask, lambda _fault: None)
        self.sending = Sending(lambda: self.settings, folders, consent)
        self.feed = WorkspaceFeed(
            folders,
            self.documents,
            self.recorder,
            lambda _uri: self.settings,
            pause_s=0,
            may_send=self.sending.may_feed,
        )

    async def _ask(self, _message, _answers):
        self.questions += 1
        return self.answer

    def may_send(self, name):
        return self.sending.may_send((self.root / name).as_uri())

    async def fed(self):
        """Return the files that the engine gets after an answer."""
        self.may_send("a.py")
        for _ in range(2):
            await self.feed.scan()
            await self.feed.idle()
            await settle()
        return self.recorder.sent.keys() - set(self.recorder.removed)


@pytest.mark.parametrize("engine", [HOST, SERVER, LOCAL_FIRST])
async def test_a_rule_forbids_a_part_of_an_allowed_workspace(tmp_path, engine):
    rules = ("*", f"!{tmp_path}/customers")
    workspace = Workspace(tmp_path, SEND, engine_send=rules, **engine)
    assert workspace.may_send("a.py")
    assert not workspace.may_send("customers/c.py")
    refusal = workspace.sending.refusal((tmp_path / "customers/c.py").as_uri())
    assert refusal is (None if engine is LOCAL_FIRST else EmptyReason.NOT_SENT)
    assert await workspace.fed() == {"a.py", "lib/b.py"}


@pytest.mark.parametrize("engine", [HOST, SERVER, LOCAL_FIRST])
async def test_edits_of_a_forbidden_open_file_do_not_reach_the_engine(tmp_path, engine):
    workspace = Workspace(tmp_path, SEND, engine_send=("*", f"!{tmp_path}/customers"), **engine)
    uri = (tmp_path / "customers/c.py").as_uri()
    for text in ("c", "CANARY"):
        workspace.feed.changed(workspace.documents.open(types.TextDocumentItem(uri, "python", 1, text)))
        await workspace.feed.idle()
    assert workspace.recorder.messages == []


@pytest.mark.parametrize("answer", [SEND, KEEP])
async def test_a_loose_document_reaches_an_engine_elsewhere_only_after_the_answer_for_files_without_a_workspace(
    tmp_path, answer
):
    write(tmp_path, {"loose/d.py": "d"})
    workspace = Workspace(tmp_path / "app", answer, **HOST)
    uri = (tmp_path / "loose/d.py").as_uri()
    document = workspace.documents.open(types.TextDocumentItem(uri, "python", 1, "typed"))
    workspace.feed.changed(document)
    await workspace.feed.idle()
    await settle()
    assert workspace.questions == 0
    assert not workspace.sending.may_send(uri)
    await settle()
    assert workspace.questions == 1
    assert workspace.recorder.messages == []
    workspace.feed.changed(document)
    await workspace.feed.idle()
    assert list(workspace.recorder.sent) == ["d.py"] * (answer == SEND)


@pytest.mark.parametrize(
    ("engine", "answer", "fed"),
    [
        (HOST, SEND, {"a.py", "lib/b.py", "customers/c.py"}),
        (HOST, KEEP, {"lib/b.py"}),
        (LOCAL_FIRST, SEND, {"a.py", "lib/b.py", "customers/c.py"}),
        (LOCAL_FIRST, KEEP, {"lib/b.py"}),
    ],
)
async def test_where_a_rule_allows_a_part_the_answer_decides_about_the_rest(tmp_path, engine, answer, fed):
    workspace = Workspace(tmp_path, answer, engine_send=(f"{tmp_path}/lib",), **engine)
    assert workspace.may_send("lib/b.py")
    assert await workspace.fed() == fed
    assert workspace.may_send("a.py") == (answer == SEND)


async def test_a_local_model_gets_the_whole_workspace_if_nothing_of_it_is_sent(tmp_path):
    workspace = Workspace(tmp_path, KEEP, **LOCAL_FIRST)
    assert await workspace.fed() == {"a.py", "lib/b.py", "customers/c.py"}
    assert not workspace.may_send("a.py")


async def test_what_a_new_rule_forbids_is_withdrawn(tmp_path):
    workspace = Workspace(tmp_path, SEND, engine_send=("*",), **SERVER)
    assert "customers/c.py" in await workspace.fed()
    workspace.settings = replace(workspace.settings, engine_send=("*", f"!{tmp_path}/customers"))
    assert await workspace.fed() == {"a.py", "lib/b.py"}


@pytest.mark.parametrize("engine", [HOST, SERVER, LOCAL_FIRST])
def test_only_a_model_server_beside_the_users_own_local_model_gets_what_may_be_sent(tmp_path, engine):
    """Who allows a host of a room has not allowed the model server that this host may have beside its model."""
    workspace = Workspace(tmp_path, SEND, engine_send=("*", f"!{tmp_path}/customers"), **engine)
    assert workspace.sending.may_share((tmp_path / "a.py").as_uri()) == (engine is LOCAL_FIRST)
    assert not workspace.sending.may_share((tmp_path / "customers/c.py").as_uri())
