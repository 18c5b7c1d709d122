"""The files, languages and workspaces that the user switched off by command; the store has hashes of their names."""

from __future__ import annotations

import hashlib
import secrets
from pathlib import Path
from typing import Any, NamedTuple

from lsp_server.messages import OffScope
from lsp_server.settings.shared_file import Remembered

OFF_FILE = "off.json"
"""Name of the file in the state folder that remembers what is off."""


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
        self._off = Remembered(path, _parse, _Off(secrets.token_hex(16), frozenset()))
        self._until_closed: set[str] = set()

    def includes(self, scope: OffScope, name: str) -> bool:
        """Return whether a thing is switched off, by its URI or language identifier."""
        off = self._off.get()
        return name in self._until_closed or (bool(off.digests) and off.digest(scope, name) in off.digests)

    def switch_until_closed(self, uri: str, *, is_off: bool) -> None:
        """Switch a document that is on no disk: a later one of the same name is another one."""
        (self._until_closed.add if is_off else self._until_closed.discard)(uri)

    def switch(self, scope: OffScope, name: str, *, is_off: bool) -> None:
        """Switch a thing off or on.

        Raises:
            StorageError: It cannot be remembered. The switch holds in no other server and until this one ends.
        """

        def switched(off: _Off) -> tuple[_Off, object]:
            one = {off.digest(scope, name)}
            digests = off.digests | one if is_off else off.digests - one
            return _Off(off.salt, digests), {"salt": off.salt, "off": sorted(digests)}

        self._off.change(switched)
