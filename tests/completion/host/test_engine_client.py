"""The client with real host processes: sharing, races, killed hosts, leases, permissions, logs."""

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import AsyncExitStack, aclosing, suppress
from pathlib import Path

import psutil
import pytest
from httpcore._async.http11 import AsyncHTTP11Connection

from completion.errors import (
    DocumentRefusedError,
    DraftlineError,
    EngineUnavailableError,
    PermissionsError,
    PromptTooLongError,
)
from completion.host.process.address import endpoint_at, host_address
from completion.host.process.sockets import own_socket
from completion.request import CompletionRequest, WorkspaceFile, WorkspaceUpdate
from lsp_server.engine.client import EngineClient
from lsp_server.engine.http import EngineConnection
from lsp_server.engine.launcher import EngineOptions

PROGRAM = (sys.executable, str(Path(__file__).with_name("paced_host.py")))
OPTIONS = EngineOptions(model="paced", program=PROGRAM, idle_s=600)


@pytest.fixture
async def clients(runtime):
    """Create clients; the hosts that they start are ended afterwards."""
    pids = set()
    async with AsyncExitStack() as stack:

        def make(options=OPTIONS, **arguments):
            client = EngineClient(options, lambda status: status.pid and pids.add(status.pid), **arguments)
            stack.push_async_callback(client.close)
            return client

        yield make
    for pid in filter(psutil.pid_exists, pids):
        os.kill(pid, signal.SIGKILL)


async def suggested(client, request):
    async with aclosing(client.complete(request)) as events:
        return [event.suggestions[0].text async for event in events if event.suggestions]


async def wait_for_end(pid, timeout_s=60):
    if psutil.pid_exists(pid):
        with suppress(psutil.NoSuchProcess):
            await asyncio.to_thread(psutil.Process(pid).wait, timeout_s)


def test_importing_the_client_loads_neither_the_model_nor_httpx():
    script = (
        "import sys, lsp_server.engine.client\n"
        "print([name for name in ('torch', 'transformers', 'numba', 'httpx', 'starlette') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


async def test_the_first_request_starts_a_host_and_streams(clients):
    assert await suggested(clients(), CompletionRequest("one", max_tokens=2)) == [" 0", " 0 1", " 0 1"]


async def test_two_clients_share_one_host(clients):
    first, second = clients(), clients()
    await first.connect()
    await second.connect()
    assert first.status.pid == second.status.pid


async def test_clients_that_start_at_the_same_time_share_one_host(clients, runtime):
    many = [clients() for _ in range(3)]
    states = await asyncio.gather(*(client.connect() for client in many))
    assert len({status.pid for status in states}) == 1
    running = psutil.process_iter(["cmdline", "environ"])  # None for what ends meanwhile, as the losers do
    hosts = [p for p in running if str(PROGRAM[1]) in (p.info["cmdline"] or [])]
    ours = [p for p in hosts if str(runtime) in (p.info["environ"] or {}).get("DRAFTLINE_RUNTIME_DIR", "")]
    losers = [p for p in ours if p.pid != states[0].pid]
    for loser in losers:
        await wait_for_end(loser.pid)
    assert states[0].pid in {p.pid for p in ours}


async def test_a_host_killed_after_the_first_text_ends_the_stream_without_error_and_the_next_request_succeeds(clients):
    client = clients()
    pid = (await client.connect()).pid
    shown = []
    async with aclosing(client.complete(CompletionRequest("one", max_tokens=4000))) as events:
        async for event in events:
            shown.append(event)
            if len(shown) == 2:
                os.kill(pid, signal.SIGKILL)
    assert not shown[-1].done
    assert await suggested(client, CompletionRequest("one", max_tokens=1)) == [" 0", " 0"]
    assert client.status.pid != pid


async def test_a_host_killed_before_the_first_text_is_replaced_and_the_request_repeated(clients):
    client = clients()
    pid = (await client.connect()).pid
    busy = clients()
    async with aclosing(busy.complete(CompletionRequest("busy", document="a", max_tokens=4000))) as running:
        await anext(running)
        waiting = asyncio.create_task(suggested(client, CompletionRequest("one", document="b", max_tokens=1)))
        os.kill(pid, signal.SIGKILL)
        assert await waiting == [" 0", " 0"]
    assert client.status.pid != pid


async def test_the_host_of_a_killed_client_exits_after_the_idle_time(clients, runtime):
    script = (
        "import asyncio, sys\n"
        "from lsp_server.engine.client import EngineClient\n"
        "from lsp_server.engine.launcher import EngineOptions\n"
        "async def main():\n"
        "    client = EngineClient(EngineOptions(model='paced', program=tuple(sys.argv[1:]), idle_s=0.3))\n"
        "    print((await client.connect()).pid, flush=True)\n"
        "    await asyncio.Event().wait()\n"
        "asyncio.run(main())\n"
    )
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", script, *PROGRAM, stdout=subprocess.PIPE)
    pid = int(await process.stdout.readline())
    assert psutil.pid_exists(pid)
    process.kill()
    await process.communicate()
    await wait_for_end(pid)
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    assert not host_address("paced", "auto").endpoint_path.exists()


async def test_a_lease_keeps_the_host_alive_beyond_the_idle_time(clients):
    client = clients(EngineOptions(model="paced", program=PROGRAM, idle_s=0.05))
    pid = (await client.connect()).pid
    await suggested(client, CompletionRequest("one", max_tokens=100))  # takes four times the idle time
    assert (await client.health())["pid"] == pid


async def test_a_terminated_host_is_replaced_by_a_new_one(clients):
    client = clients()
    pid = (await client.connect()).pid
    os.kill(pid, signal.SIGTERM)
    await wait_for_end(pid)
    assert await suggested(client, CompletionRequest("one", max_tokens=1)) == [" 0", " 0"]
    assert client.status.pid != pid


async def test_errors_of_the_engine_keep_their_type(clients):
    with pytest.raises(PromptTooLongError, match="Send less text"):
        await suggested(clients(), CompletionRequest("too long"))


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (CompletionRequest("one", language=5), "invalid_request"),  # as from an editor that names no language
        (CompletionRequest("crash", max_tokens=2), "internal"),
    ],
)
async def test_a_request_that_fails_leaves_the_connection_to_the_others(clients, request_, code):
    client = clients()
    await client.connect()
    async with aclosing(client.complete(CompletionRequest("one", document="a", max_tokens=2))) as events:
        await anext(events)
        with pytest.raises(DraftlineError) as raised:
            await suggested(client, request_)
        assert (raised.value.code, client.status.state) == (code, "ready")
        assert [event.suggestions[0].text async for event in events][-1] == " 0 1"


async def test_a_host_that_cannot_start_is_an_error_that_quotes_its_output(clients, runtime):
    client = clients(EngineOptions(model="paced", program=(sys.executable, "-c", "raise SystemExit('no memory')")))
    with pytest.raises(EngineUnavailableError, match="no memory"):
        await client.connect()
    assert client.status.state == "error"


async def test_a_host_that_cannot_start_is_not_started_again_for_some_time(clients, runtime):
    now = [0.0]
    marker = runtime / "starts"
    program = (sys.executable, "-c", f"open({str(marker)!r}, 'a').write('x'); raise SystemExit('broken')")
    client = clients(EngineOptions(model="paced", program=program), clock=lambda: now[0])
    for _ in range(2):
        with pytest.raises(EngineUnavailableError, match="broken"):
            await client.connect()
    assert marker.read_text() == "x"
    now[0] = 60.0
    with pytest.raises(EngineUnavailableError, match="broken"):
        await client.connect()
    assert marker.read_text() == "xx"


async def test_preparations_and_workspace_updates_are_accepted(clients):
    client = clients()
    await client.prepare(CompletionRequest("not connected yet"))
    await client.update_workspace(WorkspaceUpdate("w", removed=("a.py",)))
    await client.prepare(CompletionRequest("one"))


async def test_a_folder_that_other_users_can_access_is_refused(clients, runtime):
    folder = host_address("paced", "auto").runtime_folder
    folder.chmod(0o755)
    with pytest.raises(PermissionsError, match=r"mode 755.*chmod 700"):
        await clients().connect()


async def test_a_socket_that_other_users_can_access_is_refused(clients):
    client = clients()
    await client.connect()
    path = host_address("paced", "auto").endpoint_path
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o666)
    with pytest.raises(PermissionsError, match=r"mode 666.*chmod 600"):
        await clients().connect()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
async def test_a_folder_of_another_user_is_refused(clients, runtime):
    os.chown(host_address("paced", "auto").runtime_folder, 12345, 12345)
    with pytest.raises(PermissionsError, match="belongs to user 12345"):
        await clients().connect()


async def test_the_logs_at_the_default_level_contain_no_source_text(clients, runtime):
    secret = "xylophone_secret"
    client = clients()
    request = CompletionRequest(f"def {secret}", suffix=secret, path=secret, document=secret, max_tokens=2)
    await suggested(client, request)
    with pytest.raises(DraftlineError, match="failed with ValueError"):
        await suggested(client, CompletionRequest("crash", suffix=secret))
    await client.prepare(CompletionRequest(secret))
    await client.update_workspace(WorkspaceUpdate(secret, removed=(secret,)))
    await suggested(client, request)
    logs = [path for path in (runtime / "state" / "logs").iterdir() if path.is_file()]
    written = "".join(path.read_text() for path in logs)
    assert "A request failed" in written
    assert "ValueError" in written
    assert secret not in written


async def test_a_cancelled_request_frees_the_host(clients):
    client = clients()
    async with aclosing(client.complete(CompletionRequest("one", max_tokens=4000))) as events:
        await anext(events)
    assert await suggested(client, CompletionRequest("one", max_tokens=1)) == [" 0", " 0"]
    while (await client.health())["busy"]:
        pass


async def test_a_host_without_a_model_reports_the_reason_exits_and_can_be_started_again(clients, runtime):
    now = [0.0]
    program = (*PROGRAM[:1], str(Path(__file__).with_name("modelless_host.py")))
    client = clients(EngineOptions(model="modelless", program=program), clock=lambda: now[0])
    pids = []
    for _ in range(2):
        with pytest.raises(EngineUnavailableError, match="Install the extra") as failure:
            await client.connect()
        assert failure.value.code == "model_not_found"
        [line] = [line for line in (runtime / "pids").read_text().split() if line not in pids]
        pids.append(line)
        await wait_for_end(int(line))
        assert not host_address("modelless", "auto").endpoint_path.exists()
        now[0] += 60.0


async def test_a_host_that_never_replies_does_not_keep_a_client_from_closing(runtime):
    is_received = asyncio.Event()

    async def swallow(reader, _writer):
        await reader.readuntil(b"\r\n\r\n")
        is_received.set()

    async with await asyncio.start_server(swallow, sock=own_socket(runtime / "s").listener):
        connection = EngineConnection(endpoint_at(runtime / "s"))
        request = asyncio.create_task(anext(connection.complete(CompletionRequest("one"))))
        await asyncio.wait_for(is_received.wait(), 60)
        request.cancel()
        await asyncio.wait_for(connection.close(), 60)


async def test_requests_cancelled_between_connecting_and_sending_leave_no_connection_in_the_pool(clients, monkeypatch):
    """The pool holds a hundred connections. Once all of them are lost, no request is sent any more."""
    client = clients()
    await client.connect()
    pool = client.live()._pool

    def unsent():
        return [each for each in pool.connections if each._connection and each._connection._state.name == "NEW"]

    make = AsyncHTTP11Connection.__init__

    def make_and_cancel(*arguments, **named):
        make(*arguments, **named)
        request.cancel()

    with monkeypatch.context() as patched:
        patched.setattr(AsyncHTTP11Connection, "__init__", make_and_cancel)
        for _ in range(5):
            request = asyncio.create_task(suggested(client, CompletionRequest("one", document="d", max_tokens=3)))
            await asyncio.wait([request])
            assert request.cancelled()
    assert await suggested(client, CompletionRequest("one", max_tokens=2)) == [" 0", " 0 1", " 0 1"]
    assert not unsent()


async def end_hosts(client, send):
    """Send the same to two hosts, which end on it, and return the process number of a third."""
    for _ in range(2):
        pid = (await client.connect()).pid
        with suppress(EngineUnavailableError):  # the host may end before it answers
            await send()
        async with asyncio.timeout(60):
            while client.status.pid == pid:
                await client.health()
    return (await client.connect()).pid


async def until_idle(client):
    async with asyncio.timeout(60):
        while (await client.health())["busy"]:
            pass


async def test_a_document_on_which_two_hosts_died_while_they_completed_it_is_refused(clients):
    client = clients()
    with pytest.raises(EngineUnavailableError):
        await suggested(client, CompletionRequest("fatal", document="hostile"))
    pid = (await client.connect()).pid
    for prefix in ("fatal", "fatal, typed on"):
        with pytest.raises(DocumentRefusedError, match="2 engines ended"):
            await suggested(client, CompletionRequest(prefix, document="hostile"))
    assert await suggested(client, CompletionRequest("other", document="other", max_tokens=1)) == [" 0", " 0"]
    assert client.status.pid == pid


async def test_a_document_on_which_two_hosts_died_while_they_prepared_it_is_refused_in_every_window(clients):
    """Issue 19: nothing waits for a preparation, so only the host itself can tell on what it ended."""
    client, fatal = clients(), CompletionRequest("fatal", document="hostile")
    pid = await end_hosts(client, lambda: client.prepare(fatal))
    await client.prepare(fatal)
    await until_idle(client)
    with pytest.raises(DocumentRefusedError, match="2 engines ended"):
        await suggested(clients(), fatal)
    assert client.status.pid == pid


async def test_a_file_on_which_two_hosts_died_while_they_indexed_it_is_left_out(clients):
    client = clients()
    update = WorkspaceUpdate(
        "w", (WorkspaceFile("good.py", ""), WorkspaceFile("bad.py", "fatal"), WorkspaceFile("c.py", ""))
    )
    pid = await end_hosts(client, lambda: client.update_workspace(update))
    await client.update_workspace(update)
    await until_idle(client)
    assert client.status.pid == pid
