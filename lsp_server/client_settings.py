"""The settings of one client, combined from all sources, and what else the server requests of a client."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

from completion.errors import StorageError
from lsp_server.documents.documents import Document
from lsp_server.documents.workspace_folders import WorkspaceFolders
from lsp_server.server_log import set_level
from lsp_server.settings.config import Source, load, user_file
from lsp_server.settings.experiment import NO_ARM, Arm, CurrentExperiment, experiment_path
from lsp_server.settings.table import Settings
from lsp_server.wire.document_uri import path_of

_log = logging.getLogger(__name__)

SECTION = "draftline"
_ANSWER_S = 5.0
"""Maximum time for the client to answer with its settings, in seconds."""


class ClientSettings:
    """The settings of the editor, of the projects' files and of the user's file, and a running experiment.

    Each mistake in them is reported once.

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
        """Request the client's settings, those of each folder apart, and load all settings."""
        workspace = self._server.client_capabilities.workspace
        if workspace and workspace.configuration:
            scopes = ("", *(folder.uri for folder in self._folders))
            params = types.ConfigurationParams([types.ConfigurationItem(scope or None, SECTION) for scope in scopes])
            with suppress(JsonRpcException, TimeoutError):
                answer = await asyncio.wait_for(self._server.workspace_configuration_async(params), _ANSWER_S)
                found = {scope: one for scope, one in zip(scopes, answer or (), strict=False) if isinstance(one, dict)}
                self._pushed = found or self._pushed
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
        return (settings, NO_ARM) if self._experiment is None else self._experiment.settings_of(document.home, settings)

    def _of_editor(self, folder: str) -> list[Source]:
        pushed = self._pushed.get(folder, self._pushed.get("", {}))
        return [Source("initializationOptions", self._initial), Source("workspace/configuration", pushed)]


def register(server: LanguageServer, watched: Sequence[str]) -> None:
    """Register for notifications that a client sends only on request: of settings, and of files by their globs."""
    workspace = server.client_capabilities.workspace
    wanted = []
    if workspace and _is_dynamic(workspace.did_change_configuration):
        options: Any = types.DidChangeConfigurationRegistrationOptions(section=SECTION)
        wanted.append(types.Registration("settings", types.WORKSPACE_DID_CHANGE_CONFIGURATION, options))
    if workspace and _is_dynamic(workspace.did_change_watched_files):
        watchers = [types.FileSystemWatcher(glob) for glob in watched]
        options = types.DidChangeWatchedFilesRegistrationOptions(watchers)
        wanted.append(types.Registration("files", types.WORKSPACE_DID_CHANGE_WATCHED_FILES, options))
    if wanted:
        server.client_register_capability(types.RegistrationParams(wanted))


def _is_dynamic(capability: Any) -> bool:  # noqa: ANN401 - several capability types have the field
    return bool(capability and capability.dynamic_registration)


async def ask_to_choose(server: LanguageServer, message: str, answers: Sequence[str]) -> str | None:
    """Return the answer that the user chooses; None if they choose none, or the client cannot ask."""
    actions = [types.MessageActionItem(title=answer) for answer in answers]
    params = types.ShowMessageRequestParams(types.MessageType.Info, message, actions)
    try:
        chosen = await server.window_show_message_request_async(params)
    except JsonRpcException:
        return None
    return chosen.title if chosen is not None else None
