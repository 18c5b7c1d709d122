"""What may leave this computer: applies the user's rules and decisions about workspaces to files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lsp_server.documents.workspace_folders import Folder, FolderFile, WorkspaceFolders
from lsp_server.empty_reason import EmptyReason
from lsp_server.engine.consent import Consent, allows_part, by_rules
from lsp_server.settings.config import remote_address
from lsp_server.settings.table import Settings
from lsp_server.wire.document_uri import path_of


@dataclass(frozen=True, slots=True)
class Sending:
    """Says what may be sent to the server of `engine_url`. The first use in a workspace asks the user."""

    settings: Callable[[], Settings]
    folders: WorkspaceFolders
    consent: Consent

    def may_send(self, uri: str) -> bool:
        """Return whether text of a file may be sent, by the settings or, without a rule for it, by its workspace."""
        path = path_of(uri)
        return self._allows(self.folders.folder_of(path) if path else None, path)

    def may_share(self, uri: str) -> bool:
        """Return whether text of a file may go to a model server beside a local model: only if the user has such a one.

        Who lets an engine on another machine have the text has not allowed that it goes on from there.
        """
        return remote_address(self.settings()).is_second and self.may_send(uri)

    def may_feed(self, file: FolderFile) -> bool:
        """Return whether the engine may get a file of the workspace.

        An engine on another machine gets what may be sent. One on this computer makes prompts for a model server, with
        snippets of the files that it gets. So it gets none that may not be sent where prompts of others may. The user
        is asked about files of no workspace at a request in one of them, not when one is open.
        """
        folder, settings = self.folders.folder_of(file.path), self.settings()
        if remote_address(settings).is_host:
            return self._allows(folder, file.path, asks=folder is not None)
        if not settings.engine_url:
            return True
        rules = settings.engine_send
        chosen = by_rules(rules, file.path)
        if chosen is None and allows_part(rules, file.folder.path):
            chosen = self._allows(folder, file.path, asks=folder is not None)
        return chosen is not False

    def refusal(self, uri: str) -> EmptyReason | None:
        """Return why a file gets no suggestions: only the server could make them, and it may not get the text."""
        remote = remote_address(self.settings())
        needs_server = bool(remote.url) and not remote.is_second
        return EmptyReason.NOT_SENT if needs_server and not self.may_send(uri) else None

    def _allows(self, folder: Folder | None, path: Path | None, *, asks: bool = True) -> bool:
        uri, name = (folder.uri, folder.path.name) if folder is not None else ("", "")
        return self.consent.allows(uri, name, path, asks=asks)
