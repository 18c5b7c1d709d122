"""Folders of draftline's files: caches, the engine's socket, learned state. An environment variable moves each.

No file holds source text, and a crash leaves none that does.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from platformdirs import PlatformDirs

from completion.errors import StorageError

_DIRS = PlatformDirs("draftline", appauthor=False)


def cache_dir() -> Path:
    """Return the folder of converted models and packed weights, which can be deleted. DRAFTLINE_CACHE_DIR moves it."""
    return _folder("DRAFTLINE_CACHE_DIR", lambda: _DIRS.user_cache_path)


def state_dir() -> Path:
    """Return the folder of telemetry and drafter statistics. DRAFTLINE_STATE_DIR moves it."""
    return _folder("DRAFTLINE_STATE_DIR", lambda: _DIRS.user_state_path)


def runtime_dir() -> Path:
    """Return the folder of the host's socket and lock, which has mode 0700. DRAFTLINE_RUNTIME_DIR moves it."""
    return _folder("DRAFTLINE_RUNTIME_DIR", _own_runtime_dir)


@contextmanager
def writing_to(folder: Path, variable: str) -> Iterator[None]:
    """Turn the system's error about one of draftline's own files into one that says what to do.

    Args:
        folder: Folder that the block writes to.
        variable: Environment variable that moves this folder.

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
    return state_dir() / "run" if any(path.is_relative_to(folder) for folder in shared) else path


def _folder(variable: str, default: Callable[[], Path]) -> Path:
    given = os.environ.get(variable)
    path = expanded(given) if given else default()
    if not path.is_absolute():  # each process of draftline would take another folder
        raise StorageError(f"The folder {path} depends on where draftline starts. Set {variable} to a whole path.")
    with writing_to(path, variable):
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
    return path
