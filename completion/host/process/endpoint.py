"""Where a host listens for its user's programs: a Unix socket, or TCP on loopback with a token in a private file.

Both have the same path. A client looks at what is there, so only the host chooses. Imports only the standard library
and light modules, because the language server uses it before any model is loaded.
"""

from __future__ import annotations

import json
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from completion.paths import check_private
from drafting.state_files import write_state

LOOPBACK = "127.0.0.1"


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
