"""The settings of one client, combined from all sources; each mistake in them is reported once."""

from __future__ import annotations

import logging
from typing import Any

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from completion.errors import StorageError
from lsp_server.client_registration import SECTION, ask_for_settings
from lsp_server.documents.documents import Document
from lsp_server.documents.workspace_folders import WorkspaceFolders
from lsp_server.server_log import set_level
from lsp_server.settings.config import Source, load, user_file
from lsp_server.settings.experiment import NO_ARM, Arm, CurrentExperiment, experiment_path
from lsp_server.settings.table import Settings
from lsp_server.wire.document_uri import path_of

_log = logging.getLogger(__name__)


class ClientSettings:
    """The settings of the editor, of the projects' files and of the user's file, and a running experiment.

    Attributes:
        now: The current settings of the user and of the editor for all folders, without an experiment.
    """

    def __init__(self, server: LanguageServer, folders: WorkspaceFolders) -> None:
        self.now, _ = load(user_file(), None, [])
        self._server = server
        self._folders = folders
        self._initial: dict[str, Any] = {}
        self._pushed: dict[str, dict[str, Any]] = {}
        self._of_folder: dict[str, Settings] = {}
        self._complaints: set[str] = set()
        self._experiment: CurrentExperiment | None = None
        self._storage_faults: list[str] = []
        try:
            self._experiment = CurrentExperiment(experiment_path())
        except StorageError as error:
            self._storage_faults.append(str(error))

    def initialize(self, options: object) -> None:
        """Store the client's `initializationOptions` and load all settings."""
        self._initial = options if isinstance(options, dict) else {}
        self.load()

    async def changed(self, pushed: object) -> None:
        """Handle a change of the client's settings: use the pushed ones, or request them."""
        if isinstance(pushed, dict) and isinstance(pushed.get(SECTION), dict):
            self._pushed = {"": pushed[SECTION]}
            self.load()
        else:
            await self.pull()

    async def pull(self) -> None:
        """Request the client's settings and load all settings."""
        pulled = await ask_for_settings(self._server, [folder.uri for folder in self._folders])
        if pulled is not None:
            self._pushed = pulled
        self.load()

    def load(self) -> None:
        """Read the files and combine all sources; log each new mistake and send it to the client."""
        self.now, complaints = load(user_file(), None, self._of_editor(""))
        for folder in self._folders:
            self._of_folder[folder.uri], found = load(user_file(), folder.path, self._of_editor(folder.uri))
            complaints += found
        set_level(self.now.log_level)
        for complaint in dict.fromkeys((*self._storage_faults, *complaints)):
            if complaint in self._complaints:
                continue
            self._complaints.add(complaint)
            _log.warning("%s", complaint)
            self._server.window_log_message(types.LogMessageParams(types.MessageType.Warning, complaint))

    def of(self, uri: str) -> Settings:
        """Return the settings for a file or folder: those of the folder that it is in, else of all folders."""
        path = path_of(uri)
        folder = self._folders.folder_of(path) if path else None
        return self._of_folder.get(folder.uri, self.now) if folder else self.now

    def for_request(self, document: Document) -> tuple[Settings, Arm]:
        """Return the settings for a document's next request, and the arm of the experiment that they belong to."""
        settings = self.of(document.home)
        return (settings, NO_ARM) if self._experiment is None else self._experiment.settings_of(document.uri, settings)

    def _of_editor(self, folder: str) -> list[Source]:
        pushed = self._pushed.get(folder, self._pushed.get("", {}))
        return [Source("initializationOptions", self._initial), Source("workspace/configuration", pushed)]
