"""Decides which files may be read: none that may hold secrets, and none that is ignored."""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from completion.workspace.secret_files import is_secret, is_secret_folder
from lsp_server.documents.git import Git, listed
from lsp_server.documents.ignore_rules import IgnoreRules, TooManyGlobsError
from lsp_server.empty_reason import EmptyReason
from lsp_server.workspace_reader import Identity, identity_of, read_inside, real_path

_log = logging.getLogger(__name__)

_RULE_FILES = (".draftlineignore", ".gitignore")
"""Names of ignore files. Those of the first name override those of the second, in whatever folders they are."""
_MAX_RULE_FILE_BYTES = 128 * 1024
_MAX_NAME_BYTES = 16 * 1024  # of a file that names a folder
_MAX_GLOBS = 1000
"""Maximum number of rules with wildcards in all ignore files from a repository's top folder down to one folder."""
_EVERYTHING = IgnoreRules(b"*", max_globs=1)


def is_rule_file(path: Path) -> bool:
    """Return whether a file contains ignore rules, judged by its name."""
    return path.name in _RULE_FILES


@dataclass(frozen=True, slots=True)
class _RuleFile:
    """One ignore file.

    Attributes:
        rank: Its kind: a file of a lower rank overrides those of a higher one.
        depth: Depth of its folder. In one rank, a deeper file overrides those above.
        rules: Its rules.
    """

    rank: int
    depth: int
    rules: IgnoreRules


@dataclass(frozen=True, slots=True)
class _Folder:
    """The ignore rules for the files in one folder.

    Attributes:
        is_ignored: Whether the folder, or a folder above it, is ignored.
        is_forced: What the ignore files of draftline say about the folder; None if they say nothing.
        rules: The ignore files in this folder and above, strongest first.
        read: Identities of the folder's own ignore files before they were read.
    """

    is_ignored: bool
    rules: tuple[_RuleFile, ...]
    read: tuple[Identity | None, ...] = ()
    is_forced: bool | None = None

    def ignores(self, parts: tuple[str, ...], *, is_folder: bool) -> bool:
        """Return whether the folder is ignored, or the strongest rule that matches a path ignores it."""
        if self.is_ignored:
            return True
        return self._verdict(self.rules, parts, is_folder=is_folder) or False

    def forces(self, parts: tuple[str, ...], *, is_folder: bool) -> bool | None:
        """Return what the ignore files of draftline say about a path, whatever git says; None if they say nothing.

        They decide alone about what is in a folder that they include again.
        """
        if self.is_forced:
            return True
        own = [file for file in self.rules if file.rank == 0]
        verdict = self._verdict(own, parts, is_folder=is_folder)
        return self.is_forced if verdict is None else verdict

    @staticmethod
    def _verdict(rules: Iterable[_RuleFile], parts: tuple[str, ...], *, is_folder: bool) -> bool | None:
        for file in rules:
            verdict = file.rules.verdict(os.fsencode("/".join(parts[file.depth :])), is_folder=is_folder)
            if verdict is not None:
                return verdict
        return None


class FilePolicy:
    """Decides which files below one folder may be read, by their names and the repository's ignore files.

    Where links lead counts as well: what is forbidden there, or by the path itself, is forbidden. A link out of the
    folder's repository is no matter of other repositories' ignore files.

    Args:
        root: The folder.
        is_opened: Whether the user has opened the folder. How such a folder, a repository and those above them are
            named says nothing about their files, unless the name is one of keys and credentials (`.ssh`).
    """

    def __init__(self, root: Path, *, is_opened: bool = False) -> None:
        roots = tuple(dict.fromkeys((root, real_path(root))))
        self._repositories = [_Repository(each) for each in roots]
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

    def listed(self) -> list[str] | None:
        """Return the files below the folder that git does not ignore, relative to it; None where git cannot say."""
        return self._repositories[-1].listed()

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


class _Repository:
    """The ignore rules of the repository that contains a folder; those of the folder alone if none does."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._top = repository_top(root) or root
        own, self._git = _git_folders(self._top)
        self._exclude = self._git / "info" / "exclude"
        self._says = Git(self._top, own / "index") if identity_of(self._top / ".git") else None
        self._inner: dict[Path, _Repository] = {}
        self._folders: dict[tuple[str, ...], _Folder] = {}

    def forget_rules(self) -> None:
        self._folders.clear()
        self._inner.clear()
        if self._says is not None:
            self._says.forget()

    def ask(self, paths: Sequence[Path]) -> None:
        own = [path for path in paths if self._parts(path)]
        if self._says is not None and own:
            self._says.ask(own)

    def listed(self) -> list[str] | None:
        names = listed(self._root) if self._says is not None else None
        if names is not None and self._says is not None:
            self._says.allows([self._root / name for name in names])
        return names

    def refresh(self, path: Path) -> bool:
        parts = self._parts(path)
        for depth in range(len(parts)):
            folder = self._folders.get(parts[:depth])
            if folder is None:
                return False
            if folder.read != self._identities(parts[:depth]):
                self.forget_rules()
                return True
        return False

    def ignores(self, path: Path, *, is_folder: bool) -> bool:
        """Return whether a path is ignored: by draftline's own ignore files, else by git, in inner repositories too.

        Where git cannot say, its ignore files are read here. As in git, no rule can include again what is in an ignored
        folder.
        """
        parts = self._parts(path)
        if not parts:
            return False
        folder = self._folder(parts[:-1])
        says = self._says.ignores(path) if self._says is not None else None
        if says is None:
            return folder.ignores(parts, is_folder=is_folder)
        forced = folder.forces(parts, is_folder=is_folder)
        if forced is not None:
            return forced
        inner = self._inner_top(parts)
        return says or (inner is not None and self._inner_at(inner).ignores(path, is_folder=is_folder))

    def _inner_top(self, parts: tuple[str, ...]) -> Path | None:
        """Return the first repository on the way from this one to a path."""
        tops = (self._top.joinpath(*parts[:depth]) for depth in range(1, len(parts)))
        return next((top for top in tops if os.path.lexists(top / ".git")), None)

    def _inner_at(self, top: Path) -> _Repository:
        return self._inner.get(top) or self._inner.setdefault(top, _Repository(top))

    def _parts(self, path: Path) -> tuple[str, ...]:
        return path.relative_to(self._top).parts if path.is_relative_to(self._top) else ()

    def _folder(self, parts: tuple[str, ...]) -> _Folder:
        folder = _Folder(is_ignored=False, rules=())
        for depth in range(len(parts) + 1):
            here = parts[:depth]
            folder = self._folders.get(here) or self._folders.setdefault(here, self._look_into(here, folder))
        return folder

    def _look_into(self, parts: tuple[str, ...], above: _Folder) -> _Folder:
        read = self._identities(parts)  # before the rules: a file that changes in between is another one
        rules = (*self._read_rules(parts, above), *above.rules)
        strongest_first = tuple(sorted(rules, key=lambda file: (file.rank, -file.depth)))
        is_forced = above.forces(parts, is_folder=True) if parts else None
        return _Folder(above.ignores(parts, is_folder=True), strongest_first, read, is_forced)

    def _rule_files(self, parts: tuple[str, ...]) -> list[Path]:
        """Return the paths at which a folder may have ignore files, each at the position of its rank."""
        folder = self._top.joinpath(*parts)
        return [folder / name for name in _RULE_FILES] + [self._exclude] * (not parts)

    def _identities(self, parts: tuple[str, ...]) -> tuple[Identity | None, ...]:
        return tuple(identity_of(path) for path in self._rule_files(parts))

    def _read_rules(self, parts: tuple[str, ...], above: _Folder) -> Iterator[_RuleFile]:
        """Yield a folder's own ignore files."""
        globs = sum(file.rules.globs for file in above.rules)
        for rank, path in enumerate(self._rule_files(parts)):
            rules = self._rules_of(path, _MAX_GLOBS - globs)
            if rules is not None:
                globs += rules.globs
                yield _RuleFile(rank, len(parts), rules)

    def _rules_of(self, path: Path, max_globs: int) -> IgnoreRules | None:
        """Return the rules of one file, None without one.

        A file that is too large ignores everything, and so does draftline's own one that cannot be read: its author
        wants something ignored. git has no rules from a link, either.
        """
        try:
            root = self._git if path == self._exclude else self._top
            return IgnoreRules(read_inside(root, path, _MAX_RULE_FILE_BYTES), max_globs)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            is_own = path.name == _RULE_FILES[0] and identity_of(path) is not None
            if error.errno != errno.EFBIG and not is_own:
                _log.warning("The ignore rules in %s have no effect, it cannot be read: %s.", path, error.strerror)
                return None
            reason = error.strerror
        except TooManyGlobsError as error:
            reason = str(error)
        _log.warning("The rules in %s cannot be used, so its whole folder is ignored: %s.", path, reason)
        return _EVERYTHING


def repository_top(path: Path) -> Path | None:
    """Return the top folder of the repository that contains a folder; None outside a repository."""
    return next((folder for folder in (path, *path.parents) if os.path.lexists(folder / ".git")), None)


def _git_folders(top: Path) -> tuple[Path, Path]:
    """Return the folder of a work tree's index, and the one of what all work trees share, such as info/exclude.

    In a linked work tree and in a submodule, `.git` is a file that names another folder. That of a linked work tree
    names the common one. Source: git's documentation, gitrepository-layout.
    """
    try:
        kind, _, named = read_inside(top, top / ".git", _MAX_NAME_BYTES).partition(b": ")
        own = top / os.fsdecode(named.rstrip(b"\r\n"))
        is_linked = identity_of(own / "commondir") is not None
        common = read_inside(own, own / "commondir", _MAX_NAME_BYTES) if is_linked else b""
    except (OSError, ValueError):  # a folder, as usual; or a name that no system allows
        return top / ".git", top / ".git"
    if kind != b"gitdir":
        return top / ".git", top / ".git"
    return own, own / os.fsdecode(common.rstrip(b"\r\n"))
