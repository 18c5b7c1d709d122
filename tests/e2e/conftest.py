"""The engine that the tests of the editors share."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from lsp_server.telemetry.store import open_store

_POLL_S = 0.1
REPOSITORY = Path(__file__).resolve().parents[2]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Raise the timeout of editor tests: the first of them unpacks the editor and converts the model."""
    for item in items:
        if item.get_closest_marker("neovim") or item.get_closest_marker("vscode"):
            item.add_marker(pytest.mark.timeout(900))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Say with a failure why the latest requests showed what they did."""
    report = yield
    room = getattr(item, "funcargs", {}).get("engine_room")
    if report.failed and isinstance(room, EngineRoom):
        report.sections.append(("the latest requests", room.latest_requests()))
    return report


class EngineRoom:
    """One engine for all tests of the session, with its own folders."""

    def __init__(self, folder: Path) -> None:
        folders = {"DRAFTLINE_RUNTIME_DIR": str(folder / "run"), "DRAFTLINE_STATE_DIR": str(folder / "state")}
        self.environment = {**folders, "PYTHONPATH": str(REPOSITORY)}

    def hosts(self) -> list[psutil.Process]:
        """Return this session's engine hosts."""
        return [one for one in self._processes() if "completion.host" in one.cmdline()]

    def completions(self, outcome: str = "") -> int:
        """Return the number of completions that the hosts have ended, by their own metrics; all, or of one outcome."""
        sockets = Path(self.environment["DRAFTLINE_RUNTIME_DIR"]).glob("*.sock")
        return sum(self._count(socket, outcome) for socket in sockets)

    @staticmethod
    def _count(socket: Path, outcome: str) -> int:
        transport = httpx.HTTPTransport(uds=str(socket), verify=False)
        with httpx.Client(transport=transport, base_url="http://host") as client:
            text = client.get("/metrics").text
        counted = rf'^draftline_requests_total\{{kind="complete",outcome="{outcome or "[a-z_]+"}"\}} (\d+)'
        found = re.findall(counted, text, re.MULTILINE)
        return sum(map(int, found))

    def wait_for_completions(self, outcome: str, count: int, timeout_s: float = 60) -> None:
        """Wait until more than `count` completions ended; "" stands for all outcomes."""
        _wait(lambda: self.completions(outcome) > count, f"no completion ended as {outcome!r}", timeout_s)

    def kept_away(self, reason: str) -> int:
        """Return how many requests of all servers showed nothing for a reason, by their telemetry."""
        with self._store() as store:
            refused = "SELECT coalesce(sum(requests), 0) FROM refusals WHERE reason = ?"
            empty = "SELECT count(*) FROM suggestions WHERE reason = ?"
            return sum(store.execute(query, (reason,)).fetchone()[0] for query in (refused, empty))

    def wait_for_kept_away(self, reason: str, count: int, timeout_s: float = 30) -> None:
        """Wait until more than `count` requests showed nothing for a reason."""
        _wait(lambda: self.kept_away(reason) > count, f"no request was refused as {reason!r}", timeout_s)

    def outcomes(self, outcome: str) -> int:
        """Return how many suggestions of all servers had an outcome, by their telemetry."""
        with self._store() as store:
            query = "SELECT count(*) FROM suggestions WHERE outcome = ?"
            return store.execute(query, (outcome,)).fetchone()[0]

    def wait_for_outcome(self, outcome: str, count: int, timeout_s: float = 30) -> None:
        """Wait until more than `count` suggestions had an outcome."""
        _wait(lambda: self.outcomes(outcome) > count, f"no suggestion was {outcome!r}", timeout_s)

    def latest_requests(self, count: int = 12) -> str:
        """Return a line for each of the latest requests of all servers, by their telemetry: no text, but its fate."""
        columns = "id, reason, detail, stop_reason, suggestions, characters, wait_ms, answer_ms, shown, outcome"
        if not self._store_path.exists():
            return "none"
        with self._store() as store:
            rows = store.execute(f"SELECT {columns} FROM suggestions ORDER BY at DESC LIMIT ?", (count,)).fetchall()
            refused = store.execute("SELECT reason, sum(requests) FROM refusals GROUP BY reason").fetchall()
        return "\n".join([columns, *(", ".join(map(str, row)) for row in reversed(rows)), f"refused: {refused}"])

    def close(self) -> None:
        """End the remaining processes of this session."""
        for process in self._processes():
            process.kill()

    @property
    def _store_path(self) -> Path:
        return Path(self.environment["DRAFTLINE_STATE_DIR"]) / "telemetry.sqlite3"

    def _store(self) -> closing[sqlite3.Connection]:
        return closing(open_store(self._store_path))

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


def _wait(condition: Callable[[], bool], otherwise: str, timeout_s: float) -> None:
    """Ask for what no event tells, ten times a second: the processors are the editor's and the engine's."""
    deadline, pause = time.monotonic() + timeout_s, threading.Event()
    while not condition():
        assert time.monotonic() < deadline, otherwise
        pause.wait(_POLL_S)


@pytest.fixture(scope="session")
def engine_room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineRoom]:
    """Return the folders of this session's engine, and end its processes afterwards."""
    room = EngineRoom(tmp_path_factory.mktemp("engine"))
    yield room
    room.close()


@dataclass(frozen=True)
class Released:
    """An environment with the wheel of dist/ and its model, and variables that keep it apart from this checkout."""

    environment: Path
    variables: dict[str, str]

    def program(self, name: str) -> Path:
        """Return the path of a program of the environment."""
        return self.environment / "bin" / name

    def run(self, name: str, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment in a folder."""
        command, environment = [self.program(name), *arguments], {**os.environ, **self.variables}
        return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="session")
def dist() -> Path:
    """Return the folder that `make dist` wrote."""
    folder = REPOSITORY / "dist"
    assert (folder / "draftline.nvim").is_dir(), "dist/ has no release. Run: make dist"
    return folder


@pytest.fixture(scope="session")
def wheel(dist: Path) -> Path:
    """Return the wheel of the release."""
    [one] = dist.glob("*.whl")
    return one


@pytest.fixture(scope="session")
def released(wheel: Path) -> Iterator[Released]:
    """Install the wheel and the default model in a fresh environment. Its engine ends with the session."""
    root = Path(tempfile.mkdtemp(prefix="dl-"))  # short: a socket's path has a limit
    folders = {f"DRAFTLINE_{name}_DIR": str(root / name.lower()) for name in ("RUNTIME", "STATE", "CACHE")}
    one = Released(root / "environment", {**folders, "XDG_CONFIG_HOME": str(root / "config"), "PYTHONPATH": ""})
    subprocess.run([sys.executable, "-m", "venv", one.environment], check=True)
    installed = one.run("python", "-m", "pip", "install", "--quiet", f"{wheel}[default-model]", folder=root)
    assert installed.returncode == 0, installed.stderr
    yield one
    one.run("draftline", "serve", "--stop", folder=root)
    shutil.rmtree(root)
