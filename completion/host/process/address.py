"""Where the engine host of a user and model listens, and whether that place belongs to the user alone.

Only the standard library and light modules are imported: the language server uses this before any model is touched.
"""

from __future__ import annotations

import hashlib
import os
import socket
import stat
from dataclasses import dataclass
from pathlib import Path

from completion.errors import EngineUnavailableError, PermissionsError
from completion.paths import runtime_dir, state_dir, writing_to
from completion.version import version

DEFAULT_MODEL_NAME = "default"
# The shortest limit of the systems we know: sun_path has 104 bytes on macOS, 108 on Linux, with a closing zero.
_SOCKET_PATH_BYTES = 103


@dataclass(frozen=True, slots=True)
class HostAddress:
    """The files of one host: its socket, its lock and its log."""

    name: str
    runtime_folder: Path
    log_folder: Path

    @property
    def socket_path(self) -> Path:
        """Where the host listens."""
        return self.runtime_folder / f"{self.name}.sock"

    @property
    def lock_path(self) -> Path:
        """Held by the host while it lives: decides the race of two starters."""
        return self.runtime_folder / f"{self.name}.lock"

    @property
    def log_path(self) -> Path:
        """The host's log; rotated, without source text."""
        return self.log_folder / f"{self.name}.log"

    @property
    def crash_path(self) -> Path:
        """What the host's process printed: import errors, crashes in native code."""
        return self.log_folder / f"{self.name}.stderr"


def host_address(model: str, backend: str) -> HostAddress:
    """Find the files of the host that serves this model; an upgraded draftline gets its own host.

    Raises:
        PermissionsError: The folder is not the user's alone.
        EngineUnavailableError: The system has no Unix sockets, or the socket's path is too long for it.
        StorageError: A folder cannot be made.
    """
    if not hasattr(socket, "AF_UNIX"):
        raise EngineUnavailableError(
            "Python has no Unix sockets on this system, and the engine is only reached through one. On Windows, run "
            "draftline and the editor's server in WSL."
        )
    key = hashlib.sha256("\0".join((version(), normal_model(model), backend)).encode()).hexdigest()[:12]
    folder = runtime_dir()
    check_private(folder)
    logs = state_dir() / "logs"
    with writing_to(logs, "DRAFTLINE_STATE_DIR"):
        logs.mkdir(mode=0o700, exist_ok=True)
    address = HostAddress(name=f"engine-{key}", runtime_folder=folder, log_folder=logs)
    if len(os.fsencode(address.socket_path)) > _SOCKET_PATH_BYTES:
        raise EngineUnavailableError(
            f"The socket's path {address.socket_path} is longer than {_SOCKET_PATH_BYTES} bytes. "
            "Set DRAFTLINE_RUNTIME_DIR to a folder with a shorter path."
        )
    return address


def normal_model(model: str) -> str:
    """The same name for the same model: a path is made absolute, a bare name stays.

    An editor starts us in the user's project: a folder there that happens to have a model's name is not meant.
    """
    path = Path(model).expanduser()
    is_path = len(path.parts) > 1 or model.startswith(".") or path.suffix.lower() == ".gguf"
    return str(path.resolve()) if is_path and path.exists() else model


def check_private(path: Path) -> None:
    """Refuse a folder, socket or token file that another user owns or may use.

    Raises:
        PermissionsError: The owner is another user, or group or others have any permission.
    """
    if os.name == "nt":  # a Windows profile folder is private by its access list; mode bits say nothing there
        return
    facts = path.lstat()
    if stat.S_ISLNK(facts.st_mode):
        raise PermissionsError(f"{path} is a link. Name the place it leads to ({path.resolve()}) instead.")
    if facts.st_uid != os.getuid():
        raise PermissionsError(f"{path} belongs to user {facts.st_uid}, not to you. Remove it or choose another place.")
    mode = stat.S_IMODE(facts.st_mode)
    if mode & 0o077:
        wanted = "700" if stat.S_ISDIR(facts.st_mode) else "600"
        raise PermissionsError(f"{path} is open to other users (mode {mode:o}). Run: chmod {wanted} '{path}'")
