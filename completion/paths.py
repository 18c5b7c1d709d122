"""draftline's version, and the folders of its files: caches, sockets, learned state. A variable moves each.

A user's home may be shared by machines, so what belongs to one of them is in a folder of its own there. A user without
a home, as in many containers, has a private folder among the temporary files.

No file holds source text, and a crash leaves none that does.
"""

from __future__ import annotations

import hashlib
import os
import platform
import stat
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from platformdirs import PlatformDirs

from completion.errors import PermissionsError, StorageError

_DIRS = PlatformDirs("draftline", appauthor=False)


def version() -> str:
    """Return the installed version, or "source" if draftline runs from a checkout that is not installed."""
    from importlib import metadata  # noqa: PLC0415 - its import would delay the answer to `initialize`

    try:
        return metadata.version("draftline")
    except metadata.PackageNotFoundError:
        return "source"


def cache_dir() -> Path:
    """Return the folder of converted models and packed weights, which can be deleted. DRAFTLINE_CACHE_DIR moves it."""
    return _folder("DRAFTLINE_CACHE_DIR", lambda: _of_user("cache"))


def shared_models_dir() -> Path | None:
    """Return the folder that DRAFTLINE_MODEL_DIR names: another cache folder, whose models are read and never changed.

    Containers that are made anew share one, so that none of them downloads and prepares a model again.
    """
    named = os.environ.get("DRAFTLINE_MODEL_DIR")
    return expanded(named) if named else None


def state_dir() -> Path:
    """Return the folder of telemetry and drafter statistics. DRAFTLINE_STATE_DIR moves it."""
    return _folder("DRAFTLINE_STATE_DIR", lambda: _of_user("state"))


def machine_state_dir() -> Path:
    """Return the folder of state that one machine writes: its own below the state folder if that is on a network disk.

    SQLite's write-ahead log and a rotated log file are wrong where two machines write them.
    """
    folder = state_dir()
    if is_on_network_disk(folder):
        folder /= _machine()
        with writing_to(folder, "DRAFTLINE_STATE_DIR"):
            folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def config_dir() -> Path:
    """Return the folder of the user's own settings, which need not exist."""
    return _of_user("config")


def runtime_dir() -> Path:
    """Return the folder of the host's socket and lock, which has mode 0700. DRAFTLINE_RUNTIME_DIR moves it."""
    return _folder("DRAFTLINE_RUNTIME_DIR", _own_runtime_dir)


@contextmanager
def writing_to(folder: Path, variable: str) -> Iterator[None]:
    """Turn the system's error about a file in one of draftline's own folders into one that says what to do.

    An environment variable moves the folder.

    Raises:
        StorageError: The folder or a file in it cannot be created or written.
    """
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"{error.filename or folder} cannot be written ({error.strerror}). "
            f"Make it writable, or set {variable} to another folder."
        ) from error


def write_no_core_dump() -> None:
    """Keep the system from writing this process's memory, which has source text, to a file if the process crashes."""
    if sys.platform != "win32":
        import resource  # noqa: PLC0415 - Windows has no such module

        _, highest = resource.getrlimit(resource.RLIMIT_CORE)
        resource.setrlimit(resource.RLIMIT_CORE, (0, highest))


def expanded(path: str) -> Path:
    """Return a path with a home folder in the place of a leading `~` or `~user`; as it is if there is no such user."""
    return Path(os.path.expanduser(path))  # noqa: PTH111 - pathlib raises RuntimeError without such a user


def model_path(model: str) -> Path | None:
    """Return the path that names a model; None for a plain name and for a hub id.

    These never mean a folder: the working directory may be the user's project, which may have one of that name.
    """
    path = expanded(model)
    is_path = path.is_absolute() or model.startswith(".") or path.suffix.lower() == ".gguf" or len(path.parts) > 2
    return path if is_path else None


def module_environment() -> dict[str, str]:
    """Return an environment in which `python -P -m` finds draftline's packages, as this process does."""
    root = str(Path(__file__).parents[1])
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))}


def _own_runtime_dir() -> Path:
    """Return the system's folder for sockets, or one in the user's home, because other users can write to /tmp."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # platformdirs warns once in a process when it falls back to /tmp
        path = _DIRS.user_runtime_path
    shared = {"/tmp", os.environ.get("TMPDIR", "/tmp")}  # noqa: S108 - the folders to avoid
    return state_dir() / "run" / _machine() if any(path.is_relative_to(folder) for folder in shared) else path


def _machine() -> str:
    """Return a short name for this machine, or container."""
    return hashlib.sha256(platform.node().encode("utf-8", "surrogateescape")).hexdigest()[:8]


def is_on_network_disk(path: Path) -> bool:
    """Return whether a folder is mounted from another machine: what is mounted there names it, or a share."""
    import psutil  # noqa: PLC0415 - importing it takes 20 ms

    real = Path(os.path.realpath(path))
    mounts = [one for one in psutil.disk_partitions(all=True) if real.is_relative_to(one.mountpoint)]
    nearest = max(mounts, key=lambda one: len(one.mountpoint), default=None)
    if sys.platform == "win32":
        is_remote = str(real).startswith("\\\\") or (nearest is not None and "remote" in nearest.opts)
    else:
        is_remote = nearest is not None and (":" in nearest.device or nearest.device.startswith("//"))
    return is_remote


def check_private(path: Path) -> None:
    """Check that no other user owns or can access a folder, socket or token file.

    Raises:
        PermissionsError: The owner is another user, group or others have a permission, or the path is a symbolic link.
    """
    facts = path.lstat()
    if stat.S_ISLNK(facts.st_mode):
        raise PermissionsError(f"{path} is a symbolic link. Give the path of its target instead: {path.resolve()}")
    if sys.platform != "win32":  # there the folder's access list protects it; owner and mode bits have no meaning
        if facts.st_uid != os.getuid():
            raise PermissionsError(
                f"{path} belongs to user {facts.st_uid}, not to you. Remove it or choose another path."
            )
        mode = stat.S_IMODE(facts.st_mode)
        if mode & 0o077:
            wanted = "700" if stat.S_ISDIR(facts.st_mode) else "600"
            raise PermissionsError(f"Other users can access {path} (mode {mode:o}). Run: chmod {wanted} '{path}'")


def _of_user(kind: str) -> Path:
    """Return a folder in the user's home, or for a user without one, in a private folder of the temporary files."""
    with suppress(RuntimeError):  # versions of platformdirs differ: some return a path that begins with "~"
        path: Path = getattr(_DIRS, f"user_{kind}_path")
        if path.is_absolute():
            return path
    user = ""
    if sys.platform != "win32":
        user = str(os.getuid())
    if not user:
        raise StorageError("This user has no home folder. Set USERPROFILE to a folder.")
    own = Path(tempfile.gettempdir()) / f"draftline-{user}"
    with writing_to(own, "HOME"):
        own.mkdir(mode=0o700, exist_ok=True)
    check_private(own)
    return own / kind


def _folder(variable: str, default: Callable[[], Path]) -> Path:
    given = os.environ.get(variable)
    path = expanded(given) if given else default()
    if not path.is_absolute():  # each process of draftline would take another folder
        raise StorageError(f"The folder {path} depends on where draftline starts. Set {variable} to a whole path.")
    with writing_to(path, variable):
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
    return path
