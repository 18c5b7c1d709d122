"""Which files may be read: never one that may hold secrets, never one that the ignore rules name."""

from __future__ import annotations

import re
from pathlib import Path

from pathspec import GitIgnoreSpec

from completion.workspace.secret_files import is_secret
from lsp_server.empty_reason import EmptyReason

# Of no use to learn from, whether or not the ignore rules name them.
_NOISE = GitIgnoreSpec.from_lines((
    ".git/", ".hg/", ".svn/", "node_modules/", "__pycache__/", ".venv/", "*.lock", "*.min.*", "*.map", "*.svg",
    "package-lock.json",
))  # fmt: skip

_RULE_FILES = (".gitignore", ".draftlineignore")


def may_hold_secrets(path: Path) -> bool:
    """Whether the name of a file, or of a folder above it, says that it may hold secrets."""
    return any(is_secret(one.as_posix()) for one in {path, path.resolve()})


def is_noise(path: Path) -> bool:
    """Whether nothing is to be learned from a file, by its name."""
    return bool(_NOISE.match_file(_key(path)))


def is_rule_file(path: Path) -> bool:
    """Whether a file says which others are ignored."""
    return path.name in _RULE_FILES


class FilePolicy:
    """The rules of one folder: secrets, and the ignore files of the repository around it."""

    def __init__(self, root: Path) -> None:
        self._top = _repository_top(root)
        self._specs: dict[Path, GitIgnoreSpec | None] = {}

    def forget_rules(self) -> None:
        """Read the ignore files again when they are needed next."""
        self._specs.clear()

    def refusal(self, path: Path, *, is_folder: bool = False) -> EmptyReason | None:
        """Why a file or folder may not be read, None if it may."""
        if may_hold_secrets(path / "_" if is_folder else path):
            return EmptyReason.SECRET_FILE
        return EmptyReason.IGNORED_FILE if self._is_ignored(path, is_folder=is_folder) else None

    def _is_ignored(self, path: Path, *, is_folder: bool) -> bool:
        """As git reads its rules: what lies in an ignored folder cannot be taken back in."""
        if not path.is_relative_to(self._top):
            return False
        parts = path.relative_to(self._top).parts
        folders = [self._top.joinpath(*parts[:depth]) for depth in range(1, len(parts) + 1)]
        return any(self._is_named(one, is_folder=is_folder or one != path) for one in folders)

    def _is_named(self, path: Path, *, is_folder: bool) -> bool:
        """Whether the nearest rule file that says anything about a path ignores it."""
        folder = path.parent
        while True:
            verdict = _verdict(self._spec(folder), _key(path.relative_to(folder)) + "/" * is_folder)
            if verdict is not None:
                return verdict
            if folder == self._top:
                return False
            folder = folder.parent

    def _spec(self, folder: Path) -> GitIgnoreSpec | None:
        if folder not in self._specs:
            self._specs[folder] = self._read_rules(folder)
        return self._specs[folder]

    def _read_rules(self, folder: Path) -> GitIgnoreSpec | None:
        names = [folder / name for name in _RULE_FILES]
        if folder == self._top:
            names.insert(0, folder / ".git" / "info" / "exclude")
        lines = [line for name in names for line in _lines_of(name)]
        return GitIgnoreSpec.from_lines(lines) if lines else None


def _verdict(spec: GitIgnoreSpec | None, key: str) -> bool | None:
    """What the last rule that names this very path says; None if none does.

    pathspec's rules also match whatever lies below what they name, up to its group "ps_d". The folders above a path
    were asked before it, so that a rule which only matches by one of them must not count for the path.
    """
    for rule in reversed(list(spec.patterns) if spec else []):
        if rule.regex is not None and any(_names_itself(found, key) for found in rule.regex.finditer(key)):
            return bool(rule.include)
    return None


def _names_itself(found: re.Match[str], key: str) -> bool:
    return "ps_d" not in found.re.groupindex or found.end("ps_d") in (-1, len(key))


def _key(path: Path) -> str:
    return path.as_posix().lstrip("/").lower() if path.is_absolute() else path.as_posix()


def _lines_of(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def _repository_top(root: Path) -> Path:
    """The folder of the repository that `root` lies in, `root` itself where there is none."""
    return next((folder for folder in (root, *root.parents) if (folder / ".git").exists()), root)
