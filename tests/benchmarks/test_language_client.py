"""The language client of the benchmarks with a real server, and the private folders of its engine."""

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from benchmarks.engine_processes import engine_processes, private_folders, used_cpu_s
from benchmarks.language_client import ServerProcess
from completion.paths import module_environment


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


def test_the_process_that_parses_for_an_engine_is_one_of_its_processes_and_ends_with_the_folders():
    command = [sys.executable, "-P", "-m", "completion.syntax.parser_child", "0", "0"]
    with private_folders() as others:
        with private_folders() as environment:
            variables = module_environment() | environment
            parser = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, env=variables)
            assert engine_processes(environment) == [psutil.Process(parser.pid)]
            assert engine_processes(others) == []
        assert not psutil.pid_exists(parser.pid)
        parser.communicate()


def test_processor_time_counts_children_that_ended():
    subprocess.run([sys.executable, "-c", "sum(range(10**7))"], check=True)
    own_s = sum(psutil.Process().cpu_times()[:2])
    assert used_cpu_s([psutil.Process()]) > own_s + 0.05
