"""The files, languages and workspaces that the user switched off by command; the store has hashes of their names."""

from __future__ import annotations

from pathlib import Path

from lsp_server.messages import OffScope
from lsp_server.settings.shared_file import HashedAnswers

OFF_FILE = "off.json"
"""Name of the file in the state folder that remembers what is off."""


class SwitchedOff:
    """What is switched off, for all servers of this user and until it is switched on again.

    Args:
        path: The file that remembers it; None if there is no folder for it: then the server remembers it.
    """

    def __init__(self, path: Path | None) -> None:
        self._off = HashedAnswers(path)
        self._until_closed: set[str] = set()

    def includes(self, scope: OffScope, name: str) -> bool:
        """Return whether a thing is switched off, by its URI or language identifier."""
        return name in self._until_closed or self._off.get(scope, name) is True

    def switch_until_closed(self, uri: str, *, is_off: bool) -> None:
        """Switch a document that is on no disk: a later one of the same name is another one."""
        (self._until_closed.add if is_off else self._until_closed.discard)(uri)

    def switch(self, scope: OffScope, name: str, *, is_off: bool) -> None:
        """Switch a thing off or on.

        Raises:
            StorageError: It cannot be remembered. The switch holds in no other server and until this one ends.
        """
        self._off.set(scope, name, answer=is_off or None)
