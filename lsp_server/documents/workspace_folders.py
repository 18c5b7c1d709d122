"""The folders that the editor has open, and which of them contains a file.

A file outside all of them is *loose*: its own folder stands in for a workspace, of which only open documents are used.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from lsprotocol import types

from completion.request import WorkspaceFile, WorkspaceUpdate
from lsp_server.wire.document_uri import identity_of_uri, path_of


@dataclass(frozen=True, slots=True)
class Folder:
    """One root folder of the workspace, or the folder of a loose file. Its `uri` is the engine's key for it."""

    uri: str
    path: Path
    name: str

    @property
    def is_loose(self) -> bool:
        """Whether it only stands in for the workspace of a loose file, and so has no name for prompts."""
        return not self.name


@dataclass(frozen=True, slots=True)
class FolderFile:
    """A file in a root folder."""

    folder: Folder
    path: Path

    @property
    def name(self) -> str:
        """Its path in the folder, with "/" on every system."""
        return self.path.relative_to(self.folder.path).as_posix()


class WorkspaceFolders:
    """The root folders, in the client's order. A file belongs to the deepest root that contains it."""

    def __init__(self) -> None:
        self._folders: dict[str, Folder] = {}

    def __iter__(self) -> Iterator[Folder]:
        return iter(list(self._folders.values()))

    def add(self, folders: Iterable[types.WorkspaceFolder]) -> None:
        """Add roots, except those whose URI is not a file's."""
        for folder in folders:
            path = path_of(folder.uri)
            if path is not None:
                self._folders[path.as_uri()] = Folder(path.as_uri(), path, folder.name or path.name)

    def remove(self, folders: Iterable[types.WorkspaceFolder]) -> None:
        """Remove roots."""
        for folder in folders:
            self._folders.pop(identity_of_uri(folder.uri), None)

    def folder_of(self, path: Path) -> Folder | None:
        """Return the deepest root that contains a file; None if no root does."""
        holding = [folder for folder in self if path.is_relative_to(folder.path)]
        return max(holding, key=lambda folder: len(folder.path.parts), default=None)

    def file_at(self, path: Path) -> FolderFile | None:
        """Return a file in the deepest root that contains it; None if no root does."""
        folder = self.folder_of(path)
        return FolderFile(folder, path) if folder else None

    def home_of(self, path: Path) -> Folder:
        """Return the deepest root that contains a file; of a loose file its own folder."""
        return self.folder_of(path) or Folder(path.parent.as_uri(), path.parent, "")

    def document_file_of(self, uri: str) -> FolderFile | None:
        """Return the file of an open document in its root, or in its own folder if it is loose; None if it has none."""
        path = path_of(uri)
        return FolderFile(self.home_of(path), path) if path else None


def folders_at_start(params: types.InitializeParams) -> list[types.WorkspaceFolder]:
    """Return the roots of `initialize`: its workspace folders, else its root URI, else its root path."""
    if params.workspace_folders:
        return list(params.workspace_folders)
    uri = params.root_uri or (Path(params.root_path).absolute().as_uri() if params.root_path else None)
    return [types.WorkspaceFolder(uri=uri, name="")] if uri else []


def updates(batch: Mapping[FolderFile, WorkspaceFile | None]) -> Iterator[WorkspaceUpdate]:
    """Yield the update of each folder that has files in a batch."""
    for uri in dict.fromkeys(file.folder.uri for file in batch):
        own = {file.name: sent for file, sent in batch.items() if file.folder.uri == uri}
        changed = tuple(sent for sent in own.values() if sent is not None)
        yield WorkspaceUpdate(uri, changed, tuple(name for name, sent in own.items() if sent is None))
