"""Asks git which files of a repository are ignored: its index, its configuration and its own ignore files count.

git runs no program of the repository here: none of a hook, of a filter, or of a monitor of the file system.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lsp_server.workspace_reader import Identity, identity_of

_log = logging.getLogger(__name__)

_OPTIONS = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "--no-optional-locks")
_NAME = re.compile(rb"[^\0]+")
_ANSWER_S = 2.0
"""Maximum time for git to answer about some paths, in seconds."""
_LIST_S = 60.0
"""Maximum time for git to list a folder, in seconds."""
_LOOK_S = 0.2
"""Time from one look whether the answer is still wanted to the next, in seconds."""
_MAX_NESTED = 100
"""Maximum number of repositories inside a listed folder that are listed as well."""


@dataclass(slots=True)
class Git:
    """What git says about one repository, remembered until its index changes."""

    top: Path
    index: Path
    _known: dict[Path, tuple[Identity | None, bool | None]] = field(default_factory=dict)

    def forget(self) -> None:
        """Ask again about every path, also where an answer is on its way."""
        self._known = {}

    def ignores(self, path: Path) -> bool | None:
        """Return whether git ignores a path below the top folder; None if it cannot say."""
        path, index = self._askable(path), identity_of(self.index)
        known = self._known.get(path)
        if known is None or known[0] != index:
            self.ask([path])
            known = self._known.get(path)
        return known[1] if known is not None else None

    def ask(self, paths: Sequence[Path]) -> None:
        """Ask about several paths at once, also about those of which git could not say anything before."""
        known, index = self._known, identity_of(self.index)  # before git reads it and the rules
        paths = list(dict.fromkeys(map(self._askable, paths)))
        askable = [path for path in paths if known.get(path) not in ((index, True), (index, False))]
        if not askable:
            return
        named = {b"./" + os.fsencode(path.relative_to(self.top)): path for path in askable}
        answer = _run(self.top, ("check-ignore", "-z", "--stdin"), _ANSWER_S, b"".join(name + b"\0" for name in named))
        ignored = frozenset((answer or b"").split(b"\0"))
        says = {path: None if answer is None else name in ignored for name, path in named.items()}
        known.update({path: (index, said) for path, said in says.items()})

    def _askable(self, path: Path) -> Path:
        """Return what git knows of a path: the link or the inner repository on the way to it, else the path itself."""
        parts = path.relative_to(self.top).parts
        for depth in range(1, len(parts)):
            above = self.top.joinpath(*parts[:depth])
            if above.is_symlink() or os.path.lexists(above / ".git"):
                return above
        return path


def listed(folder: Path, is_current: Callable[[], bool] = lambda: True) -> list[str] | None:
    """Return the paths below a folder that git does not ignore, relative to it; None if git cannot say.

    Those of repositories inside are among them. Some may be links or gone. It ends early once it is not `is_current`.
    """
    found: list[str] = []
    queue = [""]
    while queue and len(queue) < _MAX_NESTED:
        inner = queue.pop()
        arguments = ("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate")
        answer = _run(folder / inner, arguments, _LIST_S, is_current=is_current)
        if answer is None and not inner:
            return None
        for name in _NAME.finditer(answer or b""):  # to split the answer would keep other threads waiting
            path = f"{inner}{os.fsdecode(name[0])}"
            (queue if path.endswith("/") else found).append(path)
    return found


def _run(
    folder: Path,
    arguments: Sequence[str],
    timeout_s: float,
    stdin: bytes | None = None,
    is_current: Callable[[], bool] = lambda: True,
) -> bytes | None:
    """Return what git prints; None if it is not installed, fails, or takes too long."""
    program = shutil.which("git")
    if program is None or not os.path.isabs(program):  # noqa: PTH117 - Windows finds one in the working directory
        return None
    own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command, pipe, deadline = [program, *_OPTIONS, *arguments], subprocess.PIPE, time.monotonic() + timeout_s
    try:
        with subprocess.Popen(command, cwd=folder, env=own, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL) as git:
            while True:
                try:
                    printed, _ = git.communicate(stdin, _LOOK_S)
                    break
                except subprocess.TimeoutExpired:
                    stdin = None  # it is being sent
                    if time.monotonic() > deadline or not is_current():
                        git.kill()
    except (OSError, ValueError) as error:  # no such folder; a name with a zero byte
        _log.warning("git did not answer (%s); draftline reads the ignore files itself.", type(error).__name__)
        return None
    return printed if git.returncode in (0, 1) else None
