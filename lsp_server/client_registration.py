"""Requests of the server to the client after `initialized`: settings, and notifications of changes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

SECTION = "draftline"
_ANSWER_S = 5.0
"""Maximum time for the client to answer with its settings, in seconds."""


def register(server: LanguageServer, watched: Sequence[str]) -> None:
    """Register for the notifications that a client sends only on request: settings and files on disk.

    Args:
        server: The server.
        watched: Globs of the files.
    """
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


async def ask_for_settings(server: LanguageServer, folders: Sequence[str]) -> dict[str, dict[str, Any]] | None:
    """Return the client's settings of the section "draftline" by folder, by "" those for all; None without an answer.

    Args:
        server: The server.
        folders: URIs of the folders, each of which may have settings of its own.
    """
    workspace = server.client_capabilities.workspace
    if not (workspace and workspace.configuration):
        return None
    scopes = ("", *folders)
    params = types.ConfigurationParams([types.ConfigurationItem(scope or None, SECTION) for scope in scopes])
    try:
        answer = await asyncio.wait_for(server.workspace_configuration_async(params), _ANSWER_S)
    except (JsonRpcException, TimeoutError):
        return None
    found = {scope: one for scope, one in zip(scopes, answer or (), strict=False) if isinstance(one, dict)}
    return found or None


async def ask_to_choose(server: LanguageServer, message: str, answers: Sequence[str]) -> str | None:
    """Return the answer that the user chooses; None if they choose none, or the client cannot ask."""
    actions = [types.MessageActionItem(title=answer) for answer in answers]
    params = types.ShowMessageRequestParams(types.MessageType.Info, message, actions)
    try:
        chosen = await server.window_show_message_request_async(params)
    except JsonRpcException:
        return None
    return chosen.title if chosen is not None else None


def _is_dynamic(capability: Any) -> bool:  # noqa: ANN401 - several capability types have the field
    return bool(capability and capability.dynamic_registration)
