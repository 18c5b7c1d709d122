"""Which files may be read: never one that may hold secrets, never one that the ignore rules name."""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from completion.workspace.secret_files import is_secret, is_secret_folder
from lsp_server.documents.ignore_rules import IgnoreRules, TooManyGlobsError
from lsp_server.empty_reason import EmptyReason
from lsp_server.workspace_reader import read_inside

_log = logging.getLogger(__name__)

# Of no use to learn from, whether or not the ignore rules name them.
_NOISE_FOLDERS = frozenset({".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv"})
_NOISE = IgnoreRules(b"*.lock\n*.min.*\n*.map\n*.svg\npackage-lock.json", most_globs=10)

_RULE_FILES = (".draftlineignore", ".gitignore")  # the first is stronger
_RULE_FILE_BYTES = 128 * 1024
_MOST_GLOBS = 1000
"""Most rules with wildcards that the ignore files from a repository's top down to one folder may have together."""
_EVERYTHING = IgnoreRules(b"*", most_globs=1)


def may_hold_secrets(path: Path, *, is_folder: bool = False) -> bool:
    """Whether the name of a file, or of a folder above it, says that it may hold secrets; links are followed."""
    names_secret = is_secret_folder if is_folder else is_secret
    return names_secret(path.as_posix()) or names_secret(_real_path(path).as_posix())


def is_noise(path: Path, *, is_folder: bool = False) -> bool:
    """Whether nothing is to be learned from a file or folder, by its name."""
    *folders, name = path.as_posix().lower().split("/")
    folders += [name] * is_folder
    return not _NOISE_FOLDERS.isdisjoint(folders) or bool(_NOISE.verdict(os.fsencode(name), is_folder=is_folder))


def is_rule_file(path: Path) -> bool:
    """Whether a file says which others are ignored."""
    return path.name in _RULE_FILES


@dataclass(frozen=True, slots=True)
class _Folder:
    """What holds for the files in a folder.

    Attributes:
        is_ignored: Whether it lies in an ignored folder or is one.
        rules: Those of the ignore files from here up, strongest first, each with the depth of its folder.
    """

    is_ignored: bool
    rules: tuple[tuple[int, IgnoreRules], ...]

    def ignores(self, parts: tuple[str, ...], *, is_folder: bool) -> bool:
        """Whether the strongest rule that names a path ignores it, or the folder itself is ignored."""
        if self.is_ignored:
            return True
        for depth, rules in self.rules:
            verdict = rules.verdict(os.fsencode("/".join(parts[depth:])), is_folder=is_folder)
            if verdict is not None:
                return verdict
        return False


class FilePolicy:
    """The rules of one folder: secrets, and the ignore files of the repository around it."""

    def __init__(self, root: Path) -> None:
        self._top = repository_top(root) or root
        self._folders: dict[tuple[str, ...], _Folder] = {}

    def forget_rules(self) -> None:
        """Read the ignore files again when they are needed next."""
        self._folders.clear()

    def refusal(self, path: Path, *, is_folder: bool = False) -> EmptyReason | None:
        """Why a file or folder may not be read, None if it may."""
        if may_hold_secrets(path, is_folder=is_folder):
            return EmptyReason.SECRET_FILE
        return EmptyReason.IGNORED_FILE if self._is_ignored(path, is_folder=is_folder) else None

    def _is_ignored(self, path: Path, *, is_folder: bool) -> bool:
        """As git reads its rules: what lies in an ignored folder cannot be taken back in."""
        parts = path.relative_to(self._top).parts if path.is_relative_to(self._top) else ()
        return bool(parts) and self._folder(parts[:-1]).ignores(parts, is_folder=is_folder)

    def _folder(self, parts: tuple[str, ...]) -> _Folder:
        folder = _Folder(is_ignored=False, rules=())
        for depth in range(len(parts) + 1):
            here = parts[:depth]
            folder = self._folders.get(here) or self._folders.setdefault(here, self._look_into(here, folder))
        return folder

    def _look_into(self, parts: tuple[str, ...], above: _Folder) -> _Folder:
        if above.ignores(parts, is_folder=True):
            return _Folder(is_ignored=True, rules=())
        return _Folder(is_ignored=False, rules=(*self._read_rules(parts, above), *above.rules))

    def _read_rules(self, parts: tuple[str, ...], above: _Folder) -> Iterator[tuple[int, IgnoreRules]]:
        """The rules of a folder's own ignore files, strongest first."""
        globs = sum(rules.globs for _, rules in above.rules)
        for name in _RULE_FILES if parts else (*_RULE_FILES, ".git/info/exclude"):
            rules = self._rules_of(self._top.joinpath(*parts, name), _MOST_GLOBS - globs)
            if rules is not None:
                globs += rules.globs
                yield len(parts), rules

    def _rules_of(self, path: Path, most_globs: int) -> IgnoreRules | None:
        """The rules of one file; those that ignore everything if it is too large to be used."""
        try:
            return IgnoreRules(read_inside(self._top, path, _RULE_FILE_BYTES), most_globs)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            if error.errno != errno.EFBIG:
                _log.warning("The rules in %s do not apply: %s.", path, error.strerror)
                return None
            reason = error.strerror
        except TooManyGlobsError as error:
            reason = str(error)
        _log.warning("All files around %s count as ignored: %s. Shorten it.", path, reason)
        return _EVERYTHING


def repository_top(path: Path) -> Path | None:
    """The folder of the repository that a folder lies in, None where there is none."""
    return next((folder for folder in (path, *path.parents) if os.path.lexists(folder / ".git")), None)


def _real_path(path: Path) -> Path:
    """Where a path leads through links, as far as it exists.

    Only what the system itself can follow is resolved: it gives up after 40 links, `os.path.realpath` does not.
    """
    for existing in (path, *path.parents):
        try:
            existing.stat()
        except (OSError, ValueError):
            continue
        return Path(os.path.realpath(existing), path.relative_to(existing))
    return path
