"""What one repository ignores: by draftline's own ignore files, by git, and where git cannot say, by git's files."""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lsp_server.documents.rules.git import Git, listed
from lsp_server.documents.rules.ignore_rules import IgnoreRules, TooManyGlobsError
from lsp_server.workspace_reader import Identity, identity_of, read_inside

_log = logging.getLogger(__name__)

RULE_FILES = (".draftlineignore", ".gitignore")
"""Names of ignore files. Those of the first name override those of the second, in whatever folders they are."""
_MAX_RULE_FILE_BYTES = 128 * 1024
_MAX_NAME_BYTES = 16 * 1024  # of a file that names a folder
_MAX_GLOBS = 1000
"""Maximum number of rules with wildcards in all ignore files from a repository's top folder down to one folder."""
_EVERYTHING = IgnoreRules(b"*", max_globs=1)


@dataclass(frozen=True, slots=True)
class _RuleFile:
    """One ignore file.

    Attributes:
        rank: Its kind: a file of a lower rank overrides those of a higher one.
        depth: Depth of its folder. In one rank, a deeper file overrides those above.
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


class Repository:
    """The ignore rules of the repository that contains a folder; those of the folder alone if none does."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._top = repository_top(root) or root
        own, self._git = _git_folders(self._top)
        self._exclude = self._git / "info" / "exclude"
        self._says = Git(self._top, own / "index") if identity_of(self._top / ".git") else None
        self._inner: dict[Path, Repository] = {}
        self._folders: dict[tuple[str, ...], _Folder] = {}
        self._dropped = 0  # how often the rules were

    def forget_rules(self) -> None:
        """Drop the cached rules and answers."""
        self._dropped += 1
        self._folders.clear()
        self._inner.clear()
        if self._says is not None:
            self._says.forget()

    def ask(self, paths: Sequence[Path]) -> None:
        """Ask git about several paths at once."""
        own = [path for path in paths if self._parts(path)]
        if self._says is not None and own:
            self._says.ask(own)

    def listed(self, is_current: Callable[[], bool]) -> list[str] | None:
        """Return the files below the folder that git does not ignore; None where git cannot say."""
        return listed(self._root, is_current) if self._says is not None else None

    def refresh(self, path: Path) -> bool:
        """Drop the cached rules if an ignore file above a path is another one than was read; return whether it is."""
        parts = self._parts(path)
        for depth in range(len(parts)):
            folder = self._folders.get(parts[:depth])
            if folder is None:
                return False
            if folder.read != self._identities(parts[:depth]):
                self.forget_rules()
                return True
        return False

    def stamp(self) -> object:
        """Return what is another value once rules were dropped, or git may say something else about a known path."""
        index = identity_of(self._says.index) if self._says is not None else None
        inner = list(self._inner.values())  # a search on another thread may find more meanwhile
        return self._dropped, index, [each.stamp() for each in inner]

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

    def _inner_at(self, top: Path) -> Repository:
        return self._inner.get(top) or self._inner.setdefault(top, Repository(top))

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
        return [folder / name for name in RULE_FILES] + [self._exclude] * (not parts)

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
            is_own = path.name == RULE_FILES[0] and identity_of(path) is not None
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
