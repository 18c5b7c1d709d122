"""The settings of one client, combined from all sources; each mistake in them is reported once."""

from __future__ import annotations

import logging
from typing import Any

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from completion.errors import StorageError
from lsp_server.client_registration import SECTION, ask_for_settings
from lsp_server.documents.workspace_folders import WorkspaceFolders
from lsp_server.server_log import set_level
from lsp_server.settings.config import Source, load, user_file
from lsp_server.settings.experiment import NO_ARM, Arm, CurrentExperiment, experiment_path
from lsp_server.settings.table import Settings

_log = logging.getLogger(__name__)


class ClientSettings:
    """The settings of the editor, of the project's files and of the user's file, and a running experiment.

    Attributes:
        now: The current settings, without an experiment.
    """

    def __init__(self, server: LanguageServer, folders: WorkspaceFolders) -> None:
        self.now, _ = load(user_file(), [], [])
        self._server = server
        self._folders = folders
        self._initial: dict[str, Any] = {}
        self._pushed: dict[str, Any] = {}
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
            self._pushed = pushed[SECTION]
            self.load()
        else:
            await self.pull()

    async def pull(self) -> None:
        """Request the client's settings and load all settings."""
        pulled = await ask_for_settings(self._server)
        if pulled is not None:
            self._pushed = pulled
        self.load()

    def load(self) -> None:
        """Read the files and combine all sources; log each new mistake and send it to the client."""
        editor = [Source("initializationOptions", self._initial), Source("workspace/configuration", self._pushed)]
        self.now, complaints = load(user_file(), [folder.path for folder in self._folders], editor)
        set_level(self.now.log_level)
        for complaint in [one for one in (*self._storage_faults, *complaints) if one not in self._complaints]:
            self._complaints.add(complaint)
            _log.warning("%s", complaint)
            self._server.window_log_message(types.LogMessageParams(types.MessageType.Warning, complaint))

    def of(self, uri: str) -> tuple[Settings, Arm]:
        """Return the settings for a document's next request, and the arm of the experiment that they belong to."""
        return (self.now, NO_ARM) if self._experiment is None else self._experiment.settings_of(uri, self.now)
