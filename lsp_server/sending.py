"""What may leave this computer: applies the user's decisions about workspaces to files and folders."""

from __future__ import annotations

from collections.abc import Callable

from lsp_server.documents.workspace_folders import Folder, WorkspaceFolders, path_of
from lsp_server.empty_reason import EmptyReason
from lsp_server.engine.consent import Consent
from lsp_server.settings.config import remote_address
from lsp_server.settings.table import Settings


class Sending:
    """Says what may be sent to the server of `engine_url`. The first use in a workspace asks the user.

    Args:
        settings: Returns the current settings.
        folders: The folders of the workspace.
        consent: The user's decisions.
    """

    def __init__(self, settings: Callable[[], Settings], folders: WorkspaceFolders, consent: Consent) -> None:
        self._settings = settings
        self._folders = folders
        self._consent = consent

    def may_send(self, uri: str) -> bool:
        """Return whether text of a file may be sent, as far as its workspace decides."""
        path = path_of(uri)
        folder = self._folders.folder_of(path) if path else None
        if folder is not None:
            return self._consent.allows(folder.uri, folder.path)
        return self._consent.allows("", path.parent if path else None)

    def may_feed(self, folder: Folder) -> bool:
        """Return whether the engine may get the files of a folder: always, if it runs on this computer."""
        return not self.has_host or self._consent.allows(folder.uri, folder.path)

    def refusal(self, uri: str) -> EmptyReason | None:
        """Return why a file gets no suggestions: only the server could make them, and it may not get the text."""
        remote = remote_address(self._settings())
        needs_server = bool(remote.url) and not remote.is_second
        return EmptyReason.NOT_SENT if needs_server and not self.may_send(uri) else None

    @property
    def has_host(self) -> bool:
        """Whether the engine runs on another machine."""
        return remote_address(self._settings()).is_host
