"""Hosts that hang, because they are stopped: every wait ends in time, and the host is replaced."""

import asyncio
import os
import signal
import sys
from contextlib import AsyncExitStack, aclosing, suppress
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from completion.errors import EngineUnavailableError
from completion.host.process.address import host_address
from completion.request import Closing, CompletionRequest, WorkspaceUpdate
from lsp_server.cli.main import main
from lsp_server.engine.client import EngineClient
from lsp_server.engine.launcher import EngineOptions, HostGoneError, HostLauncher, end
from lsp_server.engine.watch import Patience

PROGRAM = (sys.executable, str(Path(__file__).with_name("staged_host.py")))
OPTIONS = EngineOptions(model="staged", program=PROGRAM, idle_s=600)
SHORT = Patience(start_s=60.0, quiet_s=0.05, answer_s=0.5, end_s=10.0)
REQUEST = CompletionRequest("one", max_tokens=2)


@pytest.fixture
def order(runtime, monkeypatch):
    """The file that tells the next host which signal to send itself, and at which stage."""
    monkeypatch.setenv("STAGED_HOST", str(runtime / "order"))
    return runtime / "order"


@pytest.fixture
async def clients(order):
    """Create clients with short time limits; the hosts that they start are ended afterwards."""
    async with AsyncExitStack() as stack:

        def make(patience=SHORT, options=OPTIONS, **arguments):
            statuses = []
            client = EngineClient(options, statuses.append, patience=patience, **arguments)
            stack.push_async_callback(client.close)
            return client, statuses

        yield make
    end(hosts(), 0.1)


def hosts():
    """Return every process of the staged host that uses this test's folders, listening or not."""
    folder = os.environ["DRAFTLINE_RUNTIME_DIR"]
    return [process for process in psutil.process_iter() if is_host(process, folder)]


def is_host(process, folder):
    try:
        return PROGRAM[1] in process.cmdline() and process.environ().get("DRAFTLINE_RUNTIME_DIR") == folder
    except psutil.Error:
        return False


async def suggested(client, request=REQUEST):
    async with aclosing(client.complete(request)) as events:
        return [event.suggestions[0].text async for event in events if event.suggestions]


def stop(pid):
    os.kill(pid, signal.SIGSTOP)


def is_reported_hung(statuses, pid):
    return any(status.state == "starting" and f"process {pid}) hangs" in status.sentence for status in statuses)


async def test_a_request_to_a_stopped_host_is_served_by_a_new_one_as_status_and_log_report(clients, caplog):
    client, statuses = clients()
    pid = (await client.connect()).pid
    stop(pid)
    assert await suggested(client) == [" 0", " 0 1", " 0 1"]
    assert client.status.pid != pid
    assert is_reported_hung(statuses, pid)
    assert f"process {pid}) hangs" in caplog.text
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


async def test_a_new_client_replaces_a_host_that_was_stopped(clients):
    first, _ = clients()
    pid = (await first.connect()).pid
    stop(pid)
    second, statuses = clients()
    assert (await second.connect()).pid != pid
    assert is_reported_hung(statuses, pid)


async def test_a_host_stopped_during_a_stream_ends_the_stream_without_error(clients):
    client, statuses = clients()
    pid = (await client.connect()).pid
    shown = []
    async with aclosing(client.complete(CompletionRequest("one", max_tokens=4000))) as events:
        async for event in events:
            shown.append(event)
            if len(shown) == 2:
                stop(pid)
    assert not shown[-1].done
    assert is_reported_hung(statuses, pid)
    assert await suggested(client) == [" 0", " 0 1", " 0 1"]


async def test_a_preparation_and_an_update_to_a_stopped_host_fail_and_the_client_connects_to_a_new_one(clients):
    client, _ = clients()
    for send in (client.prepare, client.update_workspace):
        pid = (await client.connect()).pid
        stop(pid)
        with pytest.raises(HostGoneError):
            await send(REQUEST if send == client.prepare else WorkspaceUpdate("w"))
        assert (await client.connect()).pid != pid


async def test_two_clients_whose_host_hangs_share_one_new_host(clients):
    (first, _), (second, _) = clients(), clients()
    pid = (await first.connect()).pid
    await second.connect()
    stop(pid)
    assert await asyncio.gather(suggested(first), suggested(second)) == 2 * [[" 0", " 0 1", " 0 1"]]
    assert first.status.pid == second.status.pid != pid


async def test_a_host_whose_model_computes_a_long_step_is_not_replaced(clients):
    """The step takes longer than the interval between several health checks."""
    client, statuses = clients(Patience(start_s=60.0, quiet_s=0.02, answer_s=5.0, end_s=10.0))
    pid = (await client.connect()).pid
    assert await suggested(client, CompletionRequest("one", language="long step", max_tokens=1)) == [" 0", " 0"]
    assert client.status.pid == pid
    assert not any("hangs" in status.sentence for status in statuses)


async def test_a_client_that_was_stopped_itself_does_not_end_a_healthy_host(clients, runtime):
    """When the client continues, all its timers have expired, while the host's answers wait in the socket."""
    patience = replace(SHORT, answer_s=2.0)  # in which a healthy host answers, on a busy machine too
    client, statuses = clients(patience)
    pid = (await client.connect()).pid
    request = asyncio.create_task(suggested(client, CompletionRequest("one", max_tokens=100)))
    while not request.done():
        await asyncio.wait([request], timeout=0.06)
        continued = asyncio.get_running_loop().time() + 1.2 * patience.answer_s
        while asyncio.get_running_loop().time() < continued:
            pass  # block the event loop, as in a stopped process
    assert (await request)[-1].endswith(" 99")
    assert client.status.pid == pid
    assert not any("hangs" in status.sentence for status in statuses)


@pytest.mark.parametrize("stage", ["listening", "loading", "warm-up"])
async def test_a_host_stopped_before_it_is_ready_is_replaced(clients, order, stage):
    order.write_text(f"{stage} STOP")
    client, statuses = clients()
    with suppress(HostGoneError):  # a client that saw the host load gets an error; its next request starts another host
        await client.connect()
    assert any("hangs" in status.sentence for status in statuses)
    assert await suggested(client) == [" 0", " 0 1", " 0 1"]


@pytest.mark.parametrize("stage", ["started", "locked"])
async def test_a_host_stopped_before_it_listens_is_replaced_without_waiting_for_the_start_limit(clients, order, stage):
    """Issue 19: such a host refuses connections, as one that does not exist."""
    order.write_text(f"{stage} STOP")
    client, statuses = clients(clock=lambda: 0.0)
    async with asyncio.timeout(60):
        assert await suggested(client) == [" 0", " 0 1", " 0 1"]
    assert any("hangs" in status.sentence for status in statuses)
    assert [process.pid for process in await asyncio.to_thread(hosts)] == [client.status.pid]


async def test_another_clients_host_stopped_before_it_listens_is_replaced(clients, order):
    order.write_text("locked STOP")
    HostLauncher(OPTIONS).ensure_running()
    async with asyncio.timeout(60):
        while not any(process.status() == psutil.STATUS_STOPPED for process in await asyncio.to_thread(hosts)):
            pass
        client, statuses = clients(clock=lambda: 0.0)
        assert await suggested(client) == [" 0", " 0 1", " 0 1"]
    assert any("hangs" in status.sentence for status in statuses)


async def test_a_host_stopped_while_it_closes_is_replaced(clients, order):
    order.write_text("closing STOP")
    client, _ = clients(clock=lambda: 0.0)
    pid = (await client.connect()).pid
    os.kill(pid, signal.SIGTERM)
    async with asyncio.timeout(60):
        while psutil.Process(pid).status() != psutil.STATUS_STOPPED:
            pass
        assert await suggested(client) == [" 0", " 0 1", " 0 1"]
    assert client.status.pid != pid


async def test_a_host_that_does_not_get_as_far_as_its_lock_is_ended_after_the_start_limit(clients, order):
    now = [0.0]
    marker = order.with_name("started")
    script = f"import pathlib, signal; pathlib.Path({str(marker)!r}).touch(); signal.pause()"
    options = replace(OPTIONS, program=(sys.executable, "-c", script, PROGRAM[1]))
    client, statuses = clients(
        Patience(start_s=3.0, quiet_s=0.05, answer_s=0.1, end_s=10.0), options, clock=lambda: now[0]
    )
    connecting = asyncio.create_task(client.connect())
    async with asyncio.timeout(60):
        while not await asyncio.to_thread(marker.exists):
            pass
    now[0] = 3.0
    with pytest.raises(HostGoneError, match=r"did not answer within 3 s and was ended.*Its log"):
        await connecting
    assert statuses[-1].state == "error"
    assert not hosts()


def counted(script, starts):
    """Return options for a host that runs a script, and writes down that it starts."""
    script = f"open({str(starts)!r}, 'a').write('x')\n{script}"
    return replace(OPTIONS, program=(sys.executable, "-c", script, PROGRAM[1]))


async def test_a_host_that_is_killed_before_it_answers_is_not_started_for_every_key(clients, tmp_path):
    now = [0.0]
    options = counted("import os; os.kill(os.getpid(), 9)", tmp_path / "starts")
    client, _ = clients(options=options, clock=lambda: now[0])
    for second, starts in ((0.0, 4), (1.0, 4), (60.0, 7)):
        now[0] = second
        with pytest.raises(EngineUnavailableError, match=r"ended 3 times before it answered.*Its output"):
            await client.connect()
        assert len((tmp_path / "starts").read_text()) <= starts


async def test_a_host_that_is_killed_whenever_it_loads_is_not_started_for_every_key(clients, tmp_path):
    """As where memory is short: each start would load the model again."""
    script = (
        "import signal, sys\n"
        "from completion.host.process.lifetime import parse_settings, serve\n"
        "serve(parse_settings(sys.argv[2:]), lambda _: signal.pause(), on_listening=lambda _: None)"
    )
    client, _ = clients(options=counted(script, tmp_path / "starts"), clock=lambda: 0.0)
    for _ in range(3):
        connecting = asyncio.create_task(client.connect())
        async with asyncio.timeout(60):
            while client.status.state != "loading":
                await asyncio.wait([connecting], timeout=0.01)
        os.kill(client.status.pid, signal.SIGKILL)
        with pytest.raises(EngineUnavailableError, match="ended while it loaded"):
            await connecting
    with pytest.raises(EngineUnavailableError, match="ended while it loaded"):
        await client.connect()
    assert len((tmp_path / "starts").read_text()) == 3


async def test_a_closing_sent_to_a_stopped_host_fails_and_the_host_is_ended(clients):
    client, statuses = clients()
    pid = (await client.connect()).pid
    await suggested(client, replace(REQUEST, document="d"))
    stop(pid)
    async with asyncio.timeout(60):
        with pytest.raises(HostGoneError):
            await client.forget(Closing(documents=("d",)))
    assert is_reported_hung(statuses, pid)


async def test_serve_stop_ends_a_stopped_host(clients, runtime, capsys):
    client, _ = clients(options=EngineOptions(program=(*PROGRAM, "serve")))
    pid = (await client.connect()).pid
    stop(pid)
    assert await asyncio.to_thread(main, ["serve", "--stop"]) == 0
    assert f"process {pid}" in capsys.readouterr().out
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    assert await asyncio.to_thread(main, ["serve", "--stop"]) == 1


async def test_another_program_that_has_the_lock_file_open_does_not_count_as_a_host(clients):
    client, _ = clients()
    pid = (await client.connect()).pid
    script = "import sys; lock = open(sys.argv[1]); print('open', flush=True); sys.stdin.read()"
    lock_path = str(host_address("staged", "auto").lock_path)
    other = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, lock_path, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    await other.stdout.readline()
    assert [process.pid for process in HostLauncher(OPTIONS).processes()] == [pid]
    other.stdin.close()
    await other.wait()


async def test_the_health_of_a_stopped_host_is_none(clients):
    client, _ = clients()
    pid = (await client.connect()).pid
    stop(pid)
    assert await client.health() is None
