"""Reads from a client's events which files on disk the engine must get again, lose or get for the first time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from lsprotocol import types

from lsp_server.documents.file_policy import FilePolicy
from lsp_server.documents.rules.noise import is_noise
from lsp_server.documents.rules.repository import is_rule_file
from lsp_server.documents.workspace_folders import Folder, FolderFile, WorkspaceFolders
from lsp_server.documents.workspace_search import has_entries, is_of_programs
from lsp_server.wire.document_uri import path_of


def read_changes(
    events: Sequence[types.FileEvent],
    folders: WorkspaceFolders,
    policy: Callable[[Folder], FilePolicy],
    sent: frozenset[FolderFile],
) -> tuple[list[FolderFile], list[FolderFile]] | None:
    """Return the files that the engine has and that changed or are gone, perhaps with their folder, and new ones.

    None if the workspace must be searched: an ignore file changed, or a folder appeared, of whose files a client may
    report none. It may run on a thread: whoever checks out a branch causes thousands of events.

    Args:
        events: The client's events.
        folders: The workspace folders.
        policy: Returns the policy that decides on a folder's files.
        sent: Files that the engine has.
    """
    paths = {path: event.type for event in events if (path := path_of(event.uri))}
    files = {file: kind for path, kind in paths.items() if (file := folders.file_at(path))}
    created = [file for file, kind in files.items() if kind is types.FileChangeType.Created]
    is_rule_changed = any(map(is_rule_file, paths))  # a repository's may lie above its folder
    if is_rule_changed or any(_is_new_folder(file, policy) for file in created):
        return None
    deleted = {file.path for file, kind in files.items() if kind is types.FileChangeType.Deleted}
    new = [file for file in files if file not in sent and not _is_useless(file)]
    return [*sent.intersection(files), *_below(deleted, sent)], new


def _is_useless(file: FolderFile) -> bool:
    """Return whether a search would leave a file out."""
    return is_noise(file.name) or is_of_programs(file.path.parent, file.folder.path)


def _is_new_folder(file: FolderFile, policy: Callable[[Folder], FilePolicy]) -> bool:
    """Return whether a path that appeared is a folder with files that may be sent."""
    if not has_entries(file.path) or is_noise(file.name, is_folder=True):
        return False
    if is_of_programs(file.path, file.folder.path):
        return False
    return policy(file.folder).refusal(file.path, is_folder=True) is None


def _below(paths: set[Path], files: Iterable[FolderFile]) -> list[FolderFile]:
    """Return the files in folders that are among some paths."""
    return [file for file in files if paths and not paths.isdisjoint(file.path.parents)]
