"""The language client of the benchmarks with a real server, and the private folders of its engine."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from benchmarks.engine_processes import engine_processes, private_folders, used_cpu_s
from benchmarks.language_client import ServerProcess
from completion.syntax.parsing.process import ParserProcess
from lsp_server.messages import STATUS


async def test_an_engine_that_fails_ends_the_benchmark_with_the_servers_message():
    with private_folders() as environment:
        server = ServerProcess({"model": "/there/is/no/such/model"})
        await server.start(environment)
        try:
            assert server.process is not None
            assert used_cpu_s([server.process]) > 0
            with pytest.raises(SystemExit, match="/there/is/no/such/model"):
                await server.wait_for_engine()
        finally:
            await server.stop()


def test_private_folders_are_removed_at_the_end():
    with private_folders() as environment:
        folder = Path(environment["DRAFTLINE_RUNTIME_DIR"]).parent
        assert folder.is_dir()
        assert engine_processes(environment) == []
    assert not folder.exists()


def test_the_child_that_parses_is_a_process_of_the_engine_and_ends_with_it(monkeypatch):
    parser = ParserProcess()
    with private_folders() as environment:
        monkeypatch.setenv("DRAFTLINE_RUNTIME_DIR", environment["DRAFTLINE_RUNTIME_DIR"])
        assert parser(len, "text") == 4
        (child,) = engine_processes(environment)
        assert child.parent() == psutil.Process()
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE
    parser.close()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not tell what ended children used")
def test_what_children_that_ended_used_counts():
    here, earlier = [psutil.Process()], os.times()
    before_s = used_cpu_s(here)
    subprocess.run([sys.executable, "-c", "sum(range(10_000_000))"], check=True)
    used_s = os.times().children_user - earlier.children_user
    assert used_s > 0.05
    assert used_cpu_s(here) - before_s >= used_s - 0.02


async def test_a_server_that_ends_or_loses_its_engine_ends_the_benchmark():
    with private_folders() as environment:
        server = ServerProcess({"model": "/there/is/no/such/model"})
        await server.start(environment)
        try:
            server.check()
            for kind, message in (("ready", ""), ("busy", ""), ("ready", "")):
                notified(server, kind, message)
            server.check()
            notified(server, "starting", "The connection was lost.")
            notified(server, "ready", "")
            with pytest.raises(SystemExit, match="The connection was lost"):
                server.check()
            assert server.process is not None
            server.process.kill()
            await server.client._server.wait()
            with pytest.raises(SystemExit, match="language server ended"):
                server.check()
        finally:
            await server.stop()


def notified(server, kind, message):
    """Let the client get a status, as from the server."""
    server.client.protocol.fm.features[STATUS](SimpleNamespace(kind=kind, message=message))
