"""Small JSON files in the state folder that all servers of this user read and replace."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from completion.errors import StorageError
from completion.paths import state_dir, writing_to
from drafting.state_files import read_state, write_state

if TYPE_CHECKING:
    from filelock import FileLock

OFF_FILE = "off.json"
"""Name of the file in the state folder that remembers what is switched off by command."""

_LOCK_S = 5.0
T = TypeVar("T")


class Remembered(Generic[T]):
    """The value of a JSON file for all servers; this server's own value where there is no file that can be written.

    The file is read again only if its modification time has changed.

    Args:
        path: The file; None if there is no folder for it.
        parse: Turns the file's JSON into the value. It may raise any error of Python about types, keys and values.
        first: The value if the file is missing, or cannot be used and is set aside.
    """

    def __init__(self, path: Path | None, parse: Callable[[Any], T], first: T) -> None:
        self._path = path
        self._parse = parse
        self._first = first
        self._seen: tuple[int, int] | None = None
        self._value = first

    def get(self) -> T:
        """Return the value."""
        if self._path is None:
            return self._value
        try:
            found = self._path.stat()
        except OSError:
            self._seen, self._value = None, self._first
            return self._first
        if self._seen != (found.st_mtime_ns, found.st_ino):
            self._seen = found.st_mtime_ns, found.st_ino
            value = read_state(self._path, lambda data: (self._parse(json.loads(data)),))
            self._value = self._first if value is None else value[0]
        return self._value

    def change(self, changed: Callable[[T], tuple[T, object]]) -> None:
        """Change the value as it is now; no other server changes it meanwhile.

        Args:
            changed: Returns the new value and its JSON.

        Raises:
            StorageError: The file cannot be written. The value holds in no other server and until this one ends.
        """
        self._value, _ = changed(self.get())  # for this server, if the file cannot be written
        if self._path is None:
            return
        try:
            with writing_to(self._path, "DRAFTLINE_STATE_DIR"), _locked(self._path):
                self._value, as_json = changed(self.get())
                write_state(self._path, json.dumps(as_json).encode())
        except StorageError:
            self._path = None
            raise


class _Hashed(NamedTuple):
    """The salt of the hashes, and the answers by them."""

    salt: str
    answers: dict[str, bool]

    @classmethod
    def parsed(cls, found: Any) -> _Hashed:  # noqa: ANN401 - untyped JSON
        answers = found["answers"] if "off" not in found else dict.fromkeys(found["off"], True)  # of earlier versions
        return cls(str(found["salt"]), {str(key): value is True for key, value in answers.items()})

    def digest(self, name: Sequence[str]) -> str:
        return hashlib.sha256("\0".join((self.salt, *name)).encode("utf-8", "replace")).hexdigest()


class HashedAnswers:
    """The user's answers about things, of whose names the file has only salted hashes.

    Args:
        path: The file; None if there is no folder for it: then this server remembers them.
    """

    def __init__(self, path: Path | None) -> None:
        self._hashed = Remembered(path, _Hashed.parsed, _Hashed(secrets.token_hex(16), {}))

    def get(self, *name: str) -> bool | None:
        """Return the answer about a thing; None without one."""
        hashed = self._hashed.get()
        return hashed.answers.get(hashed.digest(name)) if hashed.answers else None

    def set(self, *name: str, answer: bool | None) -> None:
        """Remember the answer about a thing; None forgets it.

        Raises:
            StorageError: It cannot be remembered. The answer holds in no other server and until this one ends.
        """

        def changed(hashed: _Hashed) -> tuple[_Hashed, object]:
            answers = hashed.answers | {hashed.digest(name): answer}
            known = {digest: one for digest, one in answers.items() if one is not None}
            return hashed._replace(answers=known), {"salt": hashed.salt, "answers": known}

        self._hashed.change(changed)


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
