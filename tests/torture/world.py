"""One attack's private folders, processes and reports, and what must be left of them afterwards: nothing."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sqlite3
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from tests.torture import instruments
from tests.torture.canaries import SECRET
from tests.torture.raw_client import LanguageClient
from tests.torture.tally import Round

_ERROR = re.compile(rb"(?: ERROR |Traceback)[^\n]*|^\w+Error[^\n]*", re.MULTILINE)
# h11 says LocalProtocolError where a reply comes after the wire is broken.
_NOT_REFUSED = re.compile(
    rb"Feature\w+Error: \w+Error[^\n]*|^Traceback|^(?!LocalProtocolError)\w+Error[^\n]*", re.MULTILINE
)
ROOT = Path(__file__).parents[2]
DEAF_BOUNDS_MS = {"deaf": 200.0}
BUSY_DEAF_BOUNDS_MS = {"computed": 200.0, "blocked": 1000.0}  # a slow disk blocks, too
SERVER_BYTES = 250_000_000
HOST_BYTES = 1_000_000_000
FAREWELL_S = 45.0  # a host that nobody found ends after 30
ANSWER_S = 30.0
READY_S = 60.0  # loading took 25 s where four rounds shared two cores
SETTINGS = {
    "model": "echo", "idleMinutes": 0.01, "debounceMs": 0, "quietMs": 0, "gate": "off", "prepareMs": 0,
    "suggestions": 1, "streaming": True, "threads": 1,
}  # fmt: skip
"""One thread: of several, each waits for the other's processor in turn, which counts as deaf in part."""


class World:
    """Private folders for servers and hosts of one round; used as a context, it checks what they leave.

    Attributes:
        watched: Whether deafness counts: not where processes are stopped on purpose.
        nonsense: Whether messages are malformed on purpose: that they are refused may stand in the log.
    """

    def __init__(
        self, tally: Round, *, echo: bool = True, watched: bool = True, nonsense: bool = False, **environment: str
    ) -> None:
        self.tally = tally
        self.watched = watched
        self.nonsense = nonsense
        self.folder = Path(tempfile.mkdtemp(prefix="dl-"))  # short: a socket's path has a limit
        self.clients: list[LanguageClient] = []
        self._home = {
            "DRAFTLINE_RUNTIME_DIR": str(self.folder / "run"),
            "DRAFTLINE_STATE_DIR": str(self.folder / "state"),
            "XDG_CONFIG_HOME": str(self.folder / "config"),
            "PYTHONPATH": f"{Path(__file__).parent / 'site'}{os.pathsep}{ROOT}",
            "PYTHONDONTWRITEBYTECODE": "1",
            instruments.FOLDER: str(self.folder),
        }
        self.environment = {**self._home, **({instruments.ENGINE: "0"} if echo else {}), **environment}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            for client in self.clients:
                client.close()
            if error is None:
                self._check_memory()
                self._check_end()
                self._check_reports()
                self._check_files()
        finally:
            for process in self.processes():
                process.kill()
            shutil.rmtree(self.folder, ignore_errors=True)

    def server(self, extra: Mapping[str, str] | None = None) -> LanguageClient:
        """Start a server; it is not initialized yet."""
        with (self.folder / f"server-{len(self.clients)}.stderr").open("ab") as stderr:
            client = LanguageClient({**self.environment, **(extra or {})}, stderr=stderr)
        self.clients.append(client)
        return client

    def ready(self, *, encoding: str = "utf-16", folders: tuple[Path, ...] = (), **settings: object) -> LanguageClient:
        """A server that is ready to suggest."""
        client = self.server()
        introduce(client, encoding=encoding, folders=folders, **settings)
        client.wait_for_status("ready", 4 * ANSWER_S)
        return client

    def leave(self, client: LanguageClient) -> None:
        """Shut a server down as an editor does; it must end by itself."""
        try:
            client.request("shutdown", None, ANSWER_S)
            client.notify("exit", {})
        except (TimeoutError, KeyError):
            self.tally.found("shutdown was not answered")
        except (EOFError, BrokenPipeError):
            self.tally.found(f"the server ended at shutdown, status {client.process.wait()}")
        if not client.close():
            self.tally.found("the server did not end after exit")
        elif client.process.returncode != 0:
            self.tally.found(f"the server ended with status {client.process.returncode}")

    def processes(self) -> list[psutil.Process]:
        """Whatever still runs in these folders."""
        return [process for process in psutil.process_iter() if self._is_ours(process)]

    def hosts(self) -> list[psutil.Process]:
        """The engine hosts among them."""
        return [process for process in self.processes() if "completion" in " ".join(_command(process))]

    def reports(self, name: str) -> Iterator[dict[str, object]]:
        """The lines of a report."""
        path = self.folder / name
        for line in path.read_text().splitlines() if path.exists() else ():
            yield json.loads(line)

    def logs(self) -> Iterator[tuple[str, bytes]]:
        """Every file that the product wrote, whole."""
        for path in [*self.folder.glob("*.stderr"), *(self.folder / "state").rglob("*")]:
            if path.is_file():
                yield path.relative_to(self.folder).as_posix(), path.read_bytes()

    def _is_ours(self, process: psutil.Process) -> bool:
        try:
            return process.environ().get(instruments.FOLDER) == str(self.folder) and (
                process.status() != psutil.STATUS_ZOMBIE
            )
        except psutil.Error:
            return False

    def _check_memory(self) -> None:
        for process in self.hosts():
            size = process.memory_info().rss
            if size > HOST_BYTES:
                self.tally.found(f"the host holds {size // 1_000_000} MB")

    def check_server_memory(self, client: LanguageClient) -> None:
        """Hold a server against its budget."""
        size = psutil.Process(client.process.pid).memory_info().rss
        if size > SERVER_BYTES:
            self.tally.found(f"the server holds {size // 1_000_000} MB")

    def _check_end(self) -> None:
        """All processes end by themselves soon after their last client."""
        _, alive = psutil.wait_procs(self.processes(), FAREWELL_S)
        for process in alive:
            self.tally.found(f"left behind: process {' '.join(_command(process))}")
        for path in (self.folder / "run").glob("*.sock"):
            if "kills" not in self.tally.counts:
                self.tally.found(f"left behind: socket {path.name}")

    def _check_reports(self) -> None:
        for leak in self.reports("leaks"):
            self.tally.found(str(leak["what"]))
        if self.watched:
            self._check_deafness()

    def _check_deafness(self) -> None:
        times = [(float(one["ms"]), str(one["kind"]), str(one["where"])) for one in self.reports("deaf")]  # type: ignore[arg-type]
        for counted, bound_ms in (BUSY_DEAF_BOUNDS_MS if self.tally.is_busy else DEAF_BOUNDS_MS).items():
            ms, where = max(((ms, where) for ms, kind, where in times if kind == counted), default=(0.0, ""))
            self.tally.deaf(ms, where)
            if ms > bound_ms:
                self.tally.found(f"{where} {counted} for {ms:.0f} ms")

    def _check_files(self) -> None:
        for name, data in self.logs():
            if SECRET.encode() in data or b"CANARYOF" in data:
                self.tally.found(f"a canary lies in {name}")
            for line in set((_NOT_REFUSED if self.nonsense else _ERROR).findall(data)):
                self.tally.found(f"{name}: {line.decode(errors='replace')[:200]}")
        state = self.folder / "state"
        strays = [path.name for path in state.rglob("*") if path.name.startswith("tmp") or ".npz" in path.name[:-4]]
        if strays and "kills" not in self.tally.counts:
            self.tally.found(f"left behind: {strays}")
        store = state / "telemetry.sqlite3"
        if store.exists():
            self._check_store(store)

    def _check_store(self, path: Path) -> None:
        connection = sqlite3.connect(path)
        (verdict,) = connection.execute("PRAGMA integrity_check").fetchone()
        connection.close()
        if verdict != "ok":
            self.tally.found(f"the telemetry store: {verdict}")


def introduce(
    client: LanguageClient, *, encoding: str = "utf-16", folders: tuple[Path, ...] = (), **settings: object
) -> None:
    """Say who the client is, as an editor does."""
    capabilities = {
        "general": {"positionEncodings": [encoding]},
        "textDocument": {"inlineCompletion": {}},
        "notebookDocument": {"synchronization": {}},
    }
    client.reply(
        client.ask(
            "initialize",
            {
                "processId": os.getpid(),
                "rootUri": None,
                "capabilities": capabilities,
                "workspaceFolders": [{"uri": folder.as_uri(), "name": folder.name} for folder in folders],
                "initializationOptions": {**SETTINGS, **settings},
            },
        ),
        2 * ANSWER_S,
    )
    client.notify("initialized", {})


def kill(pid: int, number: signal.Signals) -> bool:
    """Send one of our own processes a signal; whether it was still there."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def wait_gone(process: psutil.Process, timeout_s: float) -> bool:
    """Whether a process ends in this time."""
    deadline = time.monotonic() + timeout_s
    while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []
