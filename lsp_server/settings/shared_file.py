"""Small JSON files in the state folder that all servers of this user read and replace."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from completion.errors import StorageError
from completion.paths import state_dir, writing_to
from drafting.state_files import read_state, write_state

if TYPE_CHECKING:
    from filelock import FileLock

_LOCK_S = 5.0
T = TypeVar("T")


class SharedFile(Generic[T]):
    """The value of a JSON file. It is read again only if the file's modification time has changed.

    Args:
        path: The file.
        parse: Turns the file's JSON into the value. It may raise any error of Python about types, keys and values.
        missing: The value if the file is missing, or cannot be used and is set aside.
    """

    def __init__(self, path: Path, parse: Callable[[Any], T], missing: T) -> None:
        self.path = path
        self._parse = parse
        self._missing = missing
        self._seen: tuple[int, int] | None = None
        self._value = missing

    def get(self) -> T:
        """Return the file's value."""
        try:
            found = self.path.stat()
        except OSError:
            self._seen, self._value = None, self._missing
            return self._missing
        if self._seen != (found.st_mtime_ns, found.st_ino):
            self._seen = found.st_mtime_ns, found.st_ino
            value = read_state(self.path, lambda data: (self._parse(json.loads(data)),))
            self._value = self._missing if value is None else value[0]
        return self._value

    def write(self, value: object) -> None:
        """Replace the file by a JSON value.

        Raises:
            StorageError: It cannot be written.
        """
        with writing_to(self.path, "DRAFTLINE_STATE_DIR"):
            write_state(self.path, json.dumps(value).encode())


class Remembered(Generic[T]):
    """A value that a shared file remembers for all servers; this server alone where the file cannot be written.

    Args:
        path: The file; None if there is no folder for it.
        parse: Turns the file's JSON into the value, as for a `SharedFile`.
        first: The value before the first change.
    """

    def __init__(self, path: Path | None, parse: Callable[[Any], T], first: T) -> None:
        self._value = first
        self._file = SharedFile(path, parse, first) if path else None

    def get(self) -> T:
        """Return the value."""
        return self._value if self._file is None else self._file.get()

    def change(self, changed: Callable[[T], tuple[T, object]]) -> None:
        """Change the value as it is now; no other server changes it meanwhile.

        Args:
            changed: Returns the new value and its JSON.

        Raises:
            StorageError: The file cannot be written. The value holds in no other server and until this one ends.
        """
        if self._file is None:
            self._value, _ = changed(self._value)
            return
        self._value, _ = changed(self.get())  # for this server, if the file cannot be written
        try:
            with writing_to(self._file.path, "DRAFTLINE_STATE_DIR"), _locked(self._file.path):
                self._value, as_json = changed(self._file.get())
                self._file.write(as_json)
        except StorageError:
            self._file = None
            raise


def _locked(path: Path) -> FileLock:
    """Return the lock of a file. Whoever writes holds it for a moment, so a longer wait is an error of the disk."""
    from filelock import FileLock  # noqa: PLC0415 - importing it takes 30 ms, and few servers ever write

    return FileLock(path.with_name(f"{path.name}.lock"), timeout=_LOCK_S, mode=0o600)


def state_file(name: str) -> Path | None:
    """Return the path of a file in the state folder; None if the folder cannot be made."""
    try:
        return state_dir() / name
    except StorageError:
        return None
