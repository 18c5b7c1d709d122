"""The question about a workspace before anything of it is sent: a real client, a real server, and a real host."""

from __future__ import annotations

import asyncio
import json

import pytest
from lsprotocol import types

from completion.host.process.address import host_address
from completion.host.process.clients import document_of
from completion.host.process.sockets import TcpAddress, own_socket, tcp_socket
from completion.host.server import HostServer, HostSettings
from completion.remote.address import RemoteAddress
from lsp_server.empty_reason import EmptyReason
from lsp_server.engine.consent import KEEP, SEND
from tests.completion.host.conftest import running_host
from tests.completion.host.paced_engine import PacedEngine
from tests.lsp_server.real_client import RealClient

TOKEN = "a-token-of-enough-length"
NOT_SENT = EmptyReason.NOT_SENT.sentence


class RecordingEngine(PacedEngine):
    """The paced engine, which remembers which texts may go to a model server."""

    def __init__(self) -> None:
        super().__init__()
        self.remote = []

    def complete(self, request, cancel):
        self.remote.append(request.remote)
        yield from super().complete(request, cancel)


@pytest.fixture
async def room(runtime):
    """Start an engine host on TCP, and yield its engine and the settings that name it."""
    with tcp_socket(TcpAddress("127.0.0.1", 0, TOKEN)) as probe:
        address = TcpAddress("127.0.0.1", probe.getsockname()[1], TOKEN)
    file, engine = runtime / "token", PacedEngine()
    file.write_text(TOKEN)
    url = f"http://127.0.0.1:{address.port}"
    async with running_host(runtime, engine.load, HostSettings(tcp=address)):
        yield engine, {"engine_url": url, "engine_kind": "draftline", "engine_token_file": str(file)}


@pytest.fixture
def workspace(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "a.py").write_text("x =")
    (folder / "b.py").write_text("y = 1\n")
    return folder


@pytest.fixture
async def asked(start_client):
    """Return a function that starts a client which answers questions with a title, or leaves them open with ""."""
    left_open = asyncio.Event()

    async def start(answer, folders, **options):
        client = RealClient()
        client.answer_questions(answer, left_open)
        return await start_client(client, folders=folders, **options)

    yield start
    left_open.set()


async def suggestions(client, folder, name="a.py"):
    uri = (folder / name).as_uri()
    client.open(uri, "x =")
    return await client.complete(uri, 0, 3, invoked=True)


async def served(client, folder, number=0):
    """Request suggestions until there are some: the answer to a question arrives beside the requests."""
    while True:
        number += 1
        uri = (folder / f"new{number}.py").as_uri()
        client.open(uri, "x =")
        if found := await client.complete(uri, 0, 3, invoked=True):
            return found


def sent(engine):
    return engine.started or engine.updates or engine.prepared


async def test_nothing_is_sent_before_the_answer_and_the_question_comes_once(room, asked, workspace):
    engine, settings = room
    client = await asked("", [workspace], **settings)
    await client.ready()
    for name in ("a.py", "b.py", "c.py"):
        assert await suggestions(client, workspace, name) == []
    await client.until(lambda: client.statuses[-1].message == NOT_SENT)
    await client.until(lambda: client.questions)
    (question,) = client.questions
    assert [action.title for action in question.actions] == [SEND, KEEP]
    assert "“project”" in question.message
    assert settings["engine_url"] in question.message
    assert not sent(engine)


async def test_after_the_permission_the_workspace_is_sent_and_the_next_server_does_not_ask(
    room, asked, workspace, runtime
):
    engine, settings = room
    client = await asked(SEND, [workspace], **settings)
    await client.ready()
    assert await served(client, workspace)
    await client.until(lambda: "Your text goes to" in client.statuses[-1].message)
    while not {"a.py", "b.py"} <= {file.path for update in engine.updates for file in update.changed}:
        assert await asyncio.to_thread(engine.ended.acquire, timeout=60)
    await client.stop()
    remembered = json.loads((runtime / "state" / "consent.json").read_text())
    assert list(remembered["answers"].values()) == [True]
    assert "project" not in json.dumps(remembered)
    after = await asked(KEEP, [workspace], **settings)
    await after.ready()
    assert await suggestions(after, workspace)
    assert after.questions == []


async def test_a_refusal_is_remembered(room, asked, workspace):
    engine, settings = room
    client = await asked(KEEP, [workspace], **settings)
    await client.ready()
    assert await suggestions(client, workspace) == []
    await client.until(lambda: client.questions)
    await client.stop()
    after = await asked(SEND, [workspace], **settings)
    await after.ready()
    assert await suggestions(after, workspace) == []
    await after.until(lambda: after.statuses[-1].message == NOT_SENT)
    assert after.questions == []
    assert not sent(engine)


async def test_a_dismissed_question_comes_again_with_the_next_server_only(room, asked, workspace):
    engine, settings = room
    for answer in ("no such answer", SEND):
        client = await asked(answer, [workspace], **settings)
        await client.ready()
        for name in ("a.py", "b.py"):  # the search for files may have asked before the first request
            assert await suggestions(client, workspace, name) == [] or answer == SEND
            await client.until(lambda client=client: client.questions)
        assert len(client.questions) == 1
        assert not sent(engine) or answer == SEND
        await client.stop()


async def test_a_client_that_cannot_ask_sends_nothing_and_the_status_says_what_to_do(room, start_client, workspace):
    engine, settings = room
    client = await start_client(folders=[workspace], **settings)
    await client.ready()
    assert await suggestions(client, workspace) == []
    await client.until(lambda: client.statuses[-1].message == NOT_SENT)
    assert await suggestions(client, workspace, "b.py") == []
    assert "engine_send" in NOT_SENT
    assert not sent(engine)


async def test_each_workspace_has_a_question_of_its_own(room, asked, workspace, tmp_path):
    engine, settings = room
    other = tmp_path / "other"
    other.mkdir()
    client = await asked("", [workspace, other], engine_send=[str(other)], **settings)
    await client.ready()
    assert await suggestions(client, workspace) == []
    assert await suggestions(client, other)
    await client.until(lambda: client.questions)
    assert ["“project”" in one.message for one in client.questions] == [True]
    assert all(document.startswith(other.as_uri()) for document in engine.started)
    assert {update.workspace.partition("\0")[0] for update in engine.updates} <= {other.as_uri()}


async def test_the_users_settings_answer_in_place_of_the_question(room, asked, workspace):
    engine, settings = room
    client = await asked("", [workspace], engine_send=["*", f"!{workspace}"], **settings)
    await client.ready()
    assert await suggestions(client, workspace) == []
    assert not sent(engine)
    configuration = {"draftline": {"engine_send": ["*"]}}
    client.lsp.workspace_did_change_configuration(types.DidChangeConfigurationParams(configuration))
    assert await suggestions(client, workspace, "b.py")
    assert client.questions == []


async def test_a_project_cannot_allow_that_its_text_is_sent(room, asked, workspace):
    engine, settings = room
    (workspace / ".draftline.toml").write_text('engine_send = ["*"]\n')
    client = await asked("", [workspace], **settings)
    await client.ready()
    assert await suggestions(client, workspace) == []
    assert not sent(engine)
    assert any('a project cannot set "engine_send"' in one.message for one in client.lsp.log_messages)


async def test_beside_a_local_model_suggestions_come_before_the_answer_and_only_allowed_text_may_be_sent(
    runtime, asked, workspace
):
    engine, remote = RecordingEngine(), RemoteAddress("https://gpu.example", mode="local_first")
    own = own_socket(host_address("paced", "auto", remote.arguments()).endpoint_path)
    server = HostServer(HostSettings(model="paced"), engine.load, own.token)
    task = asyncio.create_task(server.run([own.listener]))
    try:
        client = await asked(SEND, [workspace], engine_url=remote.url, engine_mode=remote.mode)
        await client.ready()
        assert await suggestions(client, workspace)
        assert engine.remote == [False]
        await client.until(lambda: client.questions)
        number = 0
        while not engine.remote[-1]:
            number += 1
            assert await served(client, workspace, 10 * number)
        await client.stop()
    finally:
        server.stop()
        await task


async def test_of_what_is_closed_the_engine_hears_only_what_it_has_heard_of(room, asked, workspace, tmp_path):
    engine, settings = room
    other = tmp_path / "other"
    other.mkdir()
    client = await asked(KEEP, [workspace, other], engine_send=[str(other)], **settings)
    await client.ready()
    assert await suggestions(client, workspace) == []
    assert await suggestions(client, other)
    for folder in (workspace, other):
        closed = types.TextDocumentIdentifier((folder / "a.py").as_uri())
        client.lsp.text_document_did_close(types.DidCloseTextDocumentParams(closed))
    assert await asyncio.to_thread(engine.forgot.acquire, timeout=60)
    (closing,) = engine.forgotten
    assert [document_of(key) for key in closing.documents] == [(other / "a.py").as_uri()]
