"""Decides which files may be read: none that may hold secrets, and none that is ignored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from completion.workspace.secret_files import is_secret, is_secret_folder
from lsp_server.documents.rules.repository import Repository, repository_top
from lsp_server.empty_reason import EmptyReason
from lsp_server.workspace_reader import real_path


class FilePolicy:
    """Decides which files below one folder may be read, by their names and the repository's ignore files.

    Where links lead counts as well: what is forbidden there, or by the path itself, is forbidden. A link out of the
    folder's repository is no matter of other repositories' ignore files.

    Args:
        is_opened: Whether the user has opened the folder. How such a folder, a repository and those above them are
            named says nothing about their files, unless the name is one of keys and credentials (`.ssh`).
    """

    def __init__(self, root: Path, *, is_opened: bool = False) -> None:
        roots = tuple(dict.fromkeys((root, real_path(root))))
        self._repositories = [Repository(each) for each in roots]
        self._tops = [top for each in roots if (top := repository_top(each) or (each if is_opened else None))]

    def forget_rules(self) -> None:
        """Drop the cached rules, so that the ignore files are read again when needed."""
        for repository in self._repositories:
            repository.forget_rules()

    def refresh(self, path: Path) -> bool:
        """Drop the cached rules if an ignore file above a path is another one than was read; return whether it is."""
        paths = {path, real_path(path)}
        changed = [repository.refresh(each) for repository in self._repositories for each in paths]
        return any(changed)

    def ask(self, paths: Sequence[Path]) -> None:
        """Ask git about several paths at once, so that `refusal` need not ask about each."""
        for repository in self._repositories:
            repository.ask(paths)

    def stamp(self) -> object:
        """Return what is another value once `refusal` may wait for git, or read ignore files, for a judged path."""
        return [repository.stamp() for repository in self._repositories]

    def listed(self, is_current: Callable[[], bool]) -> list[str] | None:
        """Return the files below the folder that git does not ignore, relative to it; None where git cannot say."""
        return self._repositories[0].listed(is_current)

    def refusal(self, path: Path, *, is_folder: bool = False, trusted: bool = False) -> EmptyReason | None:
        """Return why a file or folder may not be read; None if it may. The name of a `trusted` one is no reason."""
        paths = {path, real_path(path)}
        if not trusted and any(self._names_secret(one, is_folder=is_folder) for one in paths):
            return EmptyReason.SECRET_FILE
        is_ignored = any(each.ignores(one, is_folder=is_folder) for each in self._repositories for one in paths)
        return EmptyReason.IGNORED_FILE if is_ignored else None

    def _names_secret(self, path: Path, *, is_folder: bool) -> bool:
        if is_secret_folder(path.as_posix()):
            return True
        inside = next((path.relative_to(top) for top in self._tops if path.is_relative_to(top)), path)
        return not is_folder and is_secret(inside.as_posix())
