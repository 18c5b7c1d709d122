"""The engine that the tests of the editors share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Raise the timeout of editor tests: the first of them unpacks the editor and converts the model."""
    for item in items:
        if item.get_closest_marker("neovim") or item.get_closest_marker("vscode"):
            item.add_marker(pytest.mark.timeout(900))


class EngineRoom:
    """One engine for all tests of the session, with its own folders."""

    def __init__(self, folder: Path) -> None:
        folders = {"DRAFTLINE_RUNTIME_DIR": str(folder / "run"), "DRAFTLINE_STATE_DIR": str(folder / "state")}
        self.environment = {**folders, "PYTHONPATH": str(REPOSITORY)}

    def hosts(self) -> list[psutil.Process]:
        """Return this session's engine hosts."""
        return [one for one in self._processes() if "completion.host" in one.cmdline()]

    def close(self) -> None:
        """End the remaining processes of this session."""
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
    """Return the folders of this session's engine, and end its processes afterwards."""
    room = EngineRoom(tmp_path_factory.mktemp("engine"))
    yield room
    room.close()
