"""The files of the host: folders that cannot be written, and files left over from a host that was killed."""

import os
import signal
import subprocess
import sys
from contextlib import AsyncExitStack, aclosing, suppress
from pathlib import Path

import psutil
import pytest

from completion.errors import EngineUnavailableError, StorageError
from completion.host.process.address import host_address
from completion.host.process.lifetime import serve
from completion.host.process.sockets import tcp_address
from completion.host.server import HostSettings
from completion.request import CompletionRequest
from lsp_server.engine.client import EngineClient
from lsp_server.engine.launcher import EngineOptions, HostLauncher, end
from tests.completion.host.paced_engine import PacedEngine

PROGRAM = (sys.executable, str(Path(__file__).with_name("staged_host.py")))
OPTIONS = EngineOptions(model="staged", program=PROGRAM, idle_s=600)
STAGES = ["started", "locked", "listening", "loading", "warm-up", "step"]


def blocked(path):
    """Create a folder at the path of a file. Unlike a read-only folder, it stops the superuser, too."""
    path.mkdir(parents=True, mode=0o700)
    return path


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("lock_path", "DRAFTLINE_RUNTIME_DIR"),
        ("endpoint_path", "DRAFTLINE_RUNTIME_DIR"),
    ],
)
def test_a_file_that_the_host_cannot_write_is_a_storage_error_with_what_to_do(runtime, name, variable):
    path = blocked(getattr(host_address("paced", "auto"), name))
    with pytest.raises(StorageError, match=f"{path} cannot be written .*set {variable} to another folder"):
        serve(HostSettings(model="paced"), PacedEngine().load, on_listening=lambda _: None)


@pytest.mark.skipif(os.getuid() == 0, reason="the superuser may write to a read-only folder")
@pytest.mark.parametrize("variable", ["DRAFTLINE_RUNTIME_DIR", "DRAFTLINE_STATE_DIR"])
def test_a_read_only_folder_is_a_storage_error(runtime, variable):
    folder = Path(os.environ[variable])
    folder.mkdir(mode=0o500, parents=True)
    with pytest.raises(StorageError, match=variable):
        serve(HostSettings(model="paced"), PacedEngine().load, on_listening=lambda _: None)
    folder.chmod(0o700)


def test_a_log_folder_that_cannot_be_made_is_a_storage_error(runtime):
    folder = runtime / "state" / "logs"
    folder.parent.mkdir(mode=0o700)
    folder.touch()
    with pytest.raises(StorageError, match=f"{folder} cannot be written .*DRAFTLINE_STATE_DIR"):
        host_address("paced", "auto")


async def test_a_file_for_the_hosts_output_that_cannot_be_written_is_an_error_in_the_status(runtime):
    logs = blocked(runtime / "state" / "elsewhere")
    (runtime / "state" / "logs").symlink_to(logs / "missing")
    client = EngineClient(OPTIONS)
    with pytest.raises(StorageError, match="DRAFTLINE_STATE_DIR"):
        await client.connect()
    assert (client.status.state, client.status.code) == ("error", "storage")
    await client.close()


async def test_a_program_that_does_not_exist_is_an_error_in_the_status(runtime):
    client = EngineClient(EngineOptions(program=("/nonexistent/python",)))
    with pytest.raises(EngineUnavailableError, match="/nonexistent/python cannot be started"):
        await client.connect()
    assert client.status.state == "error"
    await client.close()


def test_a_host_killed_while_it_creates_its_token_leaves_a_whole_token_or_none(tmp_path):
    """The host is killed at each system call that opens, links, renames or removes a file."""
    script = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from completion.host.process.sockets import tcp_address\n"
        "left = int(sys.argv[2])\n"
        "def audit(event, arguments):\n"
        "    global left\n"
        "    if event in ('open', 'os.link', 'os.rename', 'os.remove') and sys.argv[1] in str(arguments[0]):\n"
        "        left -= 1\n"
        "        if left < 0: os.kill(os.getpid(), signal.SIGKILL)\n"
        "sys.addaudithook(audit)\n"
        "tcp_address('127.0.0.1:1', None, Path(sys.argv[1]))\n"
    )
    for count in range(20):
        path = tmp_path / str(count) / "engine-token"
        path.parent.mkdir()
        done = subprocess.run([sys.executable, "-c", script, str(path), str(count)], capture_output=True, check=False)
        assert len(tcp_address("127.0.0.1:1", None, path).token) >= 32
        if done.returncode == 0:
            break
    assert (count, done.returncode) == (count, 0)
    assert count >= 3
    assert [each.name for each in path.parent.iterdir()] == ["engine-token"]


@pytest.fixture
async def clients(runtime, monkeypatch):
    monkeypatch.setenv("STAGED_HOST", str(runtime / "order"))
    async with AsyncExitStack() as stack:

        def make():
            client = EngineClient(OPTIONS)
            stack.push_async_callback(client.close)
            return client

        yield make
    end(HostLauncher(OPTIONS).processes(), 0.1)


@pytest.mark.parametrize("sent", ["KILL", "TERM"])
@pytest.mark.parametrize("stage", STAGES)
async def test_a_host_killed_or_terminated_at_any_stage_does_not_prevent_the_next_one(clients, runtime, stage, sent):
    (runtime / "order").write_text(f"{stage} {sent}")
    client = clients()
    with suppress(EngineUnavailableError):
        async with aclosing(client.complete(CompletionRequest("one", max_tokens=200))) as events:
            async for _ in events:
                pass
    assert not (runtime / "order").exists()
    async with aclosing(client.complete(CompletionRequest("two", max_tokens=1))) as events:
        assert [event.suggestions[0].text async for event in events] == [" 0", " 0"]
    [process] = HostLauncher(OPTIONS).processes()
    assert process.pid == client.status.pid
    await client.close()
    end([process], 10)
    address = host_address("staged", "auto")
    assert sorted(address.runtime_folder.iterdir()) == [address.lock_path]


async def test_a_host_killed_while_it_shuts_down_does_not_prevent_the_next_one(clients, runtime):
    (runtime / "order").write_text("closing KILL")
    client = clients()
    pid = (await client.connect()).pid
    os.kill(pid, signal.SIGTERM)
    with suppress(psutil.NoSuchProcess):
        psutil.Process(pid).wait(60)
    assert not (runtime / "order").exists()
    async with aclosing(client.complete(CompletionRequest("two", max_tokens=1))) as events:
        assert [event.suggestions[0].text async for event in events] == [" 0", " 0"]


@pytest.mark.skipif(sys.platform != "linux", reason="psutil tells limits of other processes only on Linux")
@pytest.mark.usefixtures("runtime", "core_dumps")
async def test_a_host_leaves_no_core_dump():
    options = EngineOptions(model="paced", program=(sys.executable, str(Path(__file__).with_name("paced_host.py"))))
    client = EngineClient(options)
    await client.connect()
    (process,) = HostLauncher(options).processes()
    limit, _ = process.rlimit(psutil.RLIMIT_CORE)
    await client.close()
    end([process], 10)
    assert limit == 0
