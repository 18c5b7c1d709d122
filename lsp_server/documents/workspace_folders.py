"""The folders that the editor has open, and where in them a document lies."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from lsprotocol import types
from pygls import uris


@dataclass(frozen=True, slots=True)
class Folder:
    """One root of the workspace; `uri` is the opaque key that the engine knows it by."""

    uri: str
    path: Path
    name: str


def path_of(uri: str) -> Path | None:
    """The file of a URI, without "." and ".." in it; None for another scheme and for what no system can name."""
    if not uri.startswith("file:"):
        return None
    try:
        path = Path(os.path.normpath(uris.to_fs_path(uri) or ""))
        is_possible = path.is_absolute() and b"\0" not in os.fsencode(path)
    except ValueError:  # not a URI, or a lone surrogate in it
        return None
    return path if is_possible else None


class WorkspaceFolders:
    """The roots, in the client's order; a document belongs to the deepest root that holds it."""

    def __init__(self) -> None:
        self._folders: dict[str, Folder] = {}

    def __iter__(self) -> Iterator[Folder]:
        return iter(list(self._folders.values()))

    def add(self, folders: Iterable[types.WorkspaceFolder]) -> None:
        """Take in roots; those that are no folders on disk are left out."""
        for folder in folders:
            path = path_of(folder.uri)
            if path is not None:
                self._folders[folder.uri] = Folder(folder.uri, path, folder.name or path.name)

    def remove(self, folders: Iterable[types.WorkspaceFolder]) -> None:
        """Forget roots."""
        for folder in folders:
            self._folders.pop(folder.uri, None)

    def folder_of(self, path: Path) -> Folder | None:
        """The deepest root that holds a file."""
        holding = [folder for folder in self if path.is_relative_to(folder.path)]
        return max(holding, key=lambda folder: len(folder.path.parts), default=None)


def folders_at_start(params: types.InitializeParams) -> list[types.WorkspaceFolder]:
    """The roots of `initialize`, in whichever of its three ways the client gives them."""
    if params.workspace_folders:
        return list(params.workspace_folders)
    uri = params.root_uri or (uris.from_fs_path(params.root_path) if params.root_path else None)
    return [types.WorkspaceFolder(uri=uri, name="")] if uri else []
