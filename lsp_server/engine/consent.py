"""Whether text of a workspace may go to the server of `engine_url`: by the user's settings, else by their answer.

The first use in a workspace asks. Until the user has answered, nothing of it is sent. Only the user's own settings
count, and the answers are kept in the user's state folder: no file of a project can allow anything.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from completion.errors import StorageError
from completion.paths import expanded
from completion.remote.address import RemoteAddress
from lsp_server.settings.config import remote_address
from lsp_server.settings.shared_file import HashedAnswers
from lsp_server.settings.table import Settings
from lsp_server.workspace_reader import real_path

CONSENT_FILE = "consent.json"
"""Name of the file in the state folder that remembers the answers."""
SEND, KEEP = "Send", "Not in this workspace"
"""The answers that the user can choose from."""

Ask = Callable[[str, tuple[str, str]], Awaitable[str | None]]
"""Shows a question with its answers; returns the chosen one, None if the user chose none or the client cannot ask."""


@dataclass(frozen=True, slots=True)
class Consent:
    """The user's decisions about the workspaces of one client.

    Attributes:
        answers: Remembers them for all servers of this user.
        on_answer: Called after an answer, with the sentence of a failure to remember it, or "".
    """

    answers: HashedAnswers
    settings: Callable[[], Settings]
    ask: Ask
    on_answer: Callable[[str], None]
    _asked: set[tuple[RemoteAddress, str]] = field(default_factory=set)
    _asking: set[asyncio.Task[None]] = field(default_factory=set)

    def allows(self, workspace: str, name: str, path: Path | None, *, asks: bool = True) -> bool:
        """Return whether text of a file may be sent. If nobody has decided that yet, ask about its workspace, once.

        Args:
            workspace: URI of the workspace folder; "" for files that belong to none.
            name: Its name, for the question; "" for such files.
            path: The file; None if it is on no disk.
            asks: Whether to ask.
        """
        settings = self.settings()
        if not settings.engine_url:
            return False
        chosen = by_rules(settings.engine_send, path)
        if chosen is not None:
            return chosen
        remote = remote_address(settings)
        answer = self.answers.get(remote.kind, remote.url, workspace)
        if answer is None and asks and (remote, workspace) not in self._asked:
            self._asked.add((remote, workspace))
            task = asyncio.create_task(self._ask_about(remote, workspace, name))
            self._asking.add(task)
            task.add_done_callback(self._asking.discard)
        return answer is True

    def close(self) -> None:
        """Withdraw the questions that are not answered yet."""
        for task in self._asking:
            task.cancel()

    async def _ask_about(self, remote: RemoteAddress, workspace: str, name: str) -> None:
        answer = await self.ask(question(remote, name), (SEND, KEEP))
        if answer not in (SEND, KEEP):
            return
        fault = ""
        try:
            self.answers.set(remote.kind, remote.url, workspace, answer=answer == SEND)
        except StorageError as error:
            fault = f"The answer holds until the server ends. {error}"
        self.on_answer(fault)


def question(remote: RemoteAddress, name: str) -> str:
    """Return the question about a workspace, by its folder's name; "" for the files that belong to none."""
    what = "the code around the cursor, recent edits, and snippets and paths of its other files"
    if remote.kind == "draftline":
        what = "its open files, its other source files and recent edits"
    whose = f"the workspace “{name}”" if name else "files that belong to no open folder"
    return (
        f"draftline: may text of {whose} go to {remote.shown()}? That is {what}. Files of secrets and ignored files "
        "are never sent."
    )


def by_rules(rules: Sequence[str], path: Path | None) -> bool | None:
    """Return what the setting `engine_send` says about a file; None if it says nothing.

    The path counts as the editor names it, and as it is with all links resolved, in the rules as well. What one of both
    forbids is forbidden, and only what both allow is allowed.
    """
    named = _by_rules(rules, path, lambda folder: folder)
    real = _by_rules(rules, real_path(path), real_path) if rules and path is not None else named
    return False if False in (named, real) else named and real


def _by_rules(rules: Sequence[str], path: Path | None, resolved: Callable[[Path], Path]) -> bool | None:
    found: tuple[int, bool] | None = None
    for rule in rules:
        name = rule.removeprefix("!")
        folder = expanded(name)
        if name == "*":
            length = 0
        elif path is not None and folder.is_absolute() and path.is_relative_to(folder := resolved(folder)):
            length = len(folder.parts)
        else:
            continue
        if found is None or length >= found[0]:
            found = length, not rule.startswith("!")
    return found[1] if found else None


def allows_part(rules: Sequence[str], folder: Path) -> bool:
    """Return whether the setting `engine_send` allows a folder inside another one."""
    return any(expanded(rule).is_relative_to(folder) for rule in rules if not rule.startswith("!"))
