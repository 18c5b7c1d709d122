"""Where a user's engine host for one model is: its files, which no other user can access, and what it listens on.

That is a Unix socket, or TCP on loopback with a token in a private file. Both have the same path. A client looks at
what is there, so only the host chooses. Imports only the standard library and light modules, because the language
server uses it before any model is loaded.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from completion.paths import check_private, machine_state_dir, model_path, runtime_dir, version, writing_to
from drafting.state_files import write_state

DEFAULT_MODEL_NAME = "default"
LOOPBACK = "127.0.0.1"
ALREADY_RUNNING = 75
"""Exit status of a host if another process already serves this model: EX_TEMPFAIL of sysexits.h."""
LOADING_FAILED = 70
"""Exit status of a host if the model failed to load: EX_SOFTWARE of sysexits.h. The clients have received the error."""
_KEEP_ALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPALIVE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}
"""TCP's probes of an idle connection: the seconds until the first, which macOS calls by the second name, those between
two, and how many without an answer end it. Within the systems' own two hours an editor would show a host as ready that
has lost its power."""


@dataclass(frozen=True, slots=True)
class HostAddress:
    """The files of one host."""

    name: str
    runtime_folder: Path
    log_folder: Path

    @property
    def endpoint_path(self) -> Path:
        """The Unix socket that the host listens on, or the file that says where it listens on TCP."""
        return self.runtime_folder / f"{self.name}.sock"

    @property
    def lock_path(self) -> Path:
        """The lock that a host holds while it runs, so that two clients that start one at once get a single host."""
        return self.runtime_folder / f"{self.name}.lock"

    @property
    def fatal_path(self) -> Path:
        """The record of what the host serves, which tells its successor on what it ended."""
        return self.runtime_folder / f"{self.name}.fatal"

    @property
    def log_path(self) -> Path:
        """The host's log file, which is rotated and never contains source text."""
        return self.log_folder / f"{self.name}.log"

    @property
    def crash_path(self) -> Path:
        """The host's standard error: import errors, crashes in native code."""
        return self.log_folder / f"{self.name}.stderr"


def host_address(model: str, backend: str, remote: Sequence[str] = ()) -> HostAddress:
    """Return the files of the host that serves this model. Each version of draftline has a host of its own.

    `remote` has the arguments that name the model server, if the model runs there.

    Raises:
        PermissionsError: Another user owns the folder or can access it.
        StorageError: A folder cannot be created.
    """
    facts = "\0".join((version(), normal_model(model), backend, *remote))
    key = hashlib.sha256(facts.encode("utf-8", "surrogatepass")).hexdigest()[:12]  # of a name that is no UTF-8, too
    folder = runtime_dir()
    check_private(folder)
    logs = machine_state_dir() / "logs"
    with writing_to(logs, "DRAFTLINE_STATE_DIR"):
        logs.mkdir(mode=0o700, exist_ok=True)
    return HostAddress(name=f"engine-{key}", runtime_folder=folder, log_folder=logs)


def normal_model(model: str) -> str:
    """Return one spelling for each model: a path becomes absolute, a plain name or hub id stays."""
    path = model_path(model)
    return model if path is None else os.path.realpath(path)  # `Path.resolve` raises where links lead in a circle


def keep_alive_options() -> list[tuple[int, int, int]]:
    """Return level, name and value of the options of a TCP socket; connections have those of their listener."""
    known = [(getattr(socket, name), value) for name, value in _KEEP_ALIVE.items() if hasattr(socket, name)]
    times = [(socket.IPPROTO_TCP, option, value) for option, value in known]
    return [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1), *times]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """What a client needs to connect to a host.

    Attributes:
        url: The start of the URL of every request.
        token: The bearer token of every request; "" for a Unix socket.
        socket_path: The Unix socket, None for TCP.
        ca_file: File with the certificates that sign the host's; "" for those of the system.
    """

    url: str = "http://draftline"
    token: str = ""
    socket_path: Path | None = None
    ca_file: str = ""


def endpoint_at(path: Path) -> Endpoint | None:
    """Return where the host of a path listens, None if none does.

    The file of a host that was killed still names its port, on which another user's program may listen by now. So the
    process that wrote the file must be one of this user and must listen on that port.

    Raises:
        PermissionsError: Another user owns the socket or the file, or can access it.
    """
    try:
        check_private(path)
        if stat.S_ISSOCK(path.lstat().st_mode):
            return Endpoint(socket_path=path)
        found = json.loads(path.read_bytes())
        if not _listens(found["pid"], found["port"]):
            return None
        return Endpoint(f"http://{LOOPBACK}:{found['port']}", found["token"])
    except (FileNotFoundError, IsADirectoryError, ValueError, LookupError, TypeError):
        return None  # no host, or something that no host wrote and the next host replaces


def write_endpoint(path: Path, port: int, token: str) -> None:
    """Write where this process listens, to a file that only this user can read and that appears whole."""
    path.unlink(missing_ok=True)  # a file or socket of a host that was killed
    write_state(path, json.dumps({"pid": os.getpid(), "port": port, "token": token}).encode())


def _listens(process_id: int, port: int) -> bool:
    """Return whether a process of this user listens on a TCP port."""
    import psutil  # noqa: PLC0415 - importing it takes 20 ms, and a Unix socket does without it

    try:
        process = psutil.Process(process_id)
        return process.username() == psutil.Process().username() and any(
            each.status == psutil.CONN_LISTEN and each.laddr.port == port for each in process.net_connections("tcp4")
        )
    except psutil.Error:
        return False
