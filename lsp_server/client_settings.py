"""The settings of one client: read from every place that has some; what is wrong in them is said once."""

from __future__ import annotations

import logging
from typing import Any

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from lsp_server.client_registration import SECTION, ask_for_settings
from lsp_server.documents.workspace_folders import WorkspaceFolders
from lsp_server.server_log import set_level
from lsp_server.settings.config import Source, load, user_file
from lsp_server.settings.experiment import Arm, CurrentExperiment, experiment_path
from lsp_server.settings.table import Settings

_log = logging.getLogger(__name__)


class ClientSettings:
    """What the editor said at its start and since, the project's and the user's files, and a running experiment.

    Attributes:
        now: The settings of now, without an experiment.
    """

    def __init__(self, server: LanguageServer, folders: WorkspaceFolders) -> None:
        self.now, _ = load(user_file(), [], [])
        self._server = server
        self._folders = folders
        self._initial: dict[str, Any] = {}
        self._pushed: dict[str, Any] = {}
        self._complaints: set[str] = set()
        self._experiment = CurrentExperiment(experiment_path())

    def initialize(self, options: object) -> None:
        """Take the client's `initializationOptions`."""
        self._initial = options if isinstance(options, dict) else {}
        self.load()

    async def changed(self, pushed: object) -> None:
        """The client's settings changed: take what it pushes, or ask for them."""
        if isinstance(pushed, dict) and isinstance(pushed.get(SECTION), dict):
            self._pushed = pushed[SECTION]
            self.load()
        else:
            await self.pull()

    async def pull(self) -> None:
        """Ask the client for its settings."""
        pulled = await ask_for_settings(self._server)
        if pulled is not None:
            self._pushed = pulled
        self.load()

    def load(self) -> None:
        """Read the files, and put everything together."""
        editor = [Source("initializationOptions", self._initial), Source("workspace/configuration", self._pushed)]
        self.now, complaints = load(user_file(), [folder.path for folder in self._folders], editor)
        set_level(self.now.log_level)
        for complaint in [one for one in complaints if one not in self._complaints]:
            self._complaints.add(complaint)
            _log.warning("%s", complaint)
            self._server.window_log_message(types.LogMessageParams(types.MessageType.Warning, complaint))

    def of(self, uri: str) -> tuple[Settings, Arm]:
        """The settings that a document's next request is answered by, and the side of an experiment they belong to."""
        return self._experiment.settings_of(uri, self.now)
