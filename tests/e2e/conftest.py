"""The engine that the editors' tests share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the editors' tests time: the first of them sets the editor and the model up."""
    for item in items:
        if item.get_closest_marker("neovim") or item.get_closest_marker("vscode"):
            item.add_marker(pytest.mark.timeout(900))


class EngineRoom:
    """One engine for all tests of the session, in folders of its own."""

    def __init__(self, folder: Path) -> None:
        folders = {"DRAFTLINE_RUNTIME_DIR": str(folder / "run"), "DRAFTLINE_STATE_DIR": str(folder / "state")}
        self.environment = {**folders, "PYTHONPATH": str(REPOSITORY)}

    def hosts(self) -> list[psutil.Process]:
        """Return the processes that serve this session's socket and are no language server."""
        return [one for one in self._processes() if not any("lsp_server" in word for word in one.cmdline())]

    def close(self) -> None:
        """End what is left of this session's processes."""
        for process in self._processes():
            process.kill()

    def _processes(self) -> list[psutil.Process]:
        mine = []
        for process in psutil.process_iter():
            try:
                runtime = process.environ().get("DRAFTLINE_RUNTIME_DIR")
                if runtime == self.environment["DRAFTLINE_RUNTIME_DIR"] and "python" in process.name():
                    mine.append(process)
            except (psutil.NoSuchProcess, psutil.AccessDenied):
                continue
        return mine


@pytest.fixture(scope="session")
def engine_room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineRoom]:
    """Return where this session's engine runs; whatever runs there at the end is ended."""
    room = EngineRoom(tmp_path_factory.mktemp("engine"))
    yield room
    room.close()
