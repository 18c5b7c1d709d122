"""The language client of the benchmarks with a real server, and the private folders of its engine."""

from pathlib import Path

import pytest

from benchmarks.engine_processes import engine_processes, private_folders, used_cpu_s
from benchmarks.language_client import ServerProcess


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
