"""The files, languages and workspaces that the user switched off by command; the store has hashes of their names."""

from __future__ import annotations

import hashlib
import secrets
from pathlib import Path
from typing import Any, NamedTuple

from completion.errors import StorageError
from completion.paths import state_dir
from lsp_server.messages import OffScope
from lsp_server.settings.shared_file import SharedFile


class _Off(NamedTuple):
    """The salt of the hashes, and the hash of each thing that is off."""

    salt: str
    digests: frozenset[str]

    def digest(self, scope: OffScope, name: str) -> str:
        return hashlib.sha256(f"{self.salt}\0{scope}\0{name}".encode("utf-8", "replace")).hexdigest()


def _parse(found: Any) -> _Off:  # noqa: ANN401 - untyped JSON
    return _Off(str(found["salt"]), frozenset(map(str, found["off"])))


class SwitchedOff:
    """What is switched off, for all servers of this user and until it is switched on again.

    Args:
        path: The file that remembers it; None if there is no folder for it: then the server remembers it.
    """

    def __init__(self, path: Path | None) -> None:
        self._memory = _Off(secrets.token_hex(16), frozenset())
        self._file = SharedFile(path, _parse, self._memory) if path else None

    def includes(self, scope: OffScope, name: str) -> bool:
        """Return whether a thing is switched off, by its URI or language identifier."""
        off = self._get()
        return bool(off.digests) and off.digest(scope, name) in off.digests

    def switch(self, scope: OffScope, name: str, *, is_off: bool) -> None:
        """Switch a thing off or on.

        Raises:
            StorageError: It cannot be remembered. The switch holds in no other server and until this one ends.
        """
        off = self._get()
        one = {off.digest(scope, name)}
        self._memory = _Off(off.salt, off.digests | one if is_off else off.digests - one)
        if self._file is not None:
            try:
                self._file.write({"salt": off.salt, "off": sorted(self._memory.digests)})
            except StorageError:
                self._file = None
                raise

    def _get(self) -> _Off:
        return self._memory if self._file is None else self._file.get()


def off_path() -> Path | None:
    """Return the path of the file; None if its folder cannot be made."""
    try:
        return state_dir() / "off.json"
    except StorageError:
        return None
