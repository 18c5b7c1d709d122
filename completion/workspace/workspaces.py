"""What the engine knows of each workspace: files for the prompt's context, tokens and recycled guesses for drafts."""

from __future__ import annotations

import ctypes
import os
from collections import OrderedDict

from completion.model.tokenizer import CodeTokenizer
from completion.request import CompletionRequest, ContextFile, WorkspaceUpdate
from completion.syntax.parser_process import IN_PROCESS, Parsing
from completion.workspace.context import WorkspaceContext
from drafting.session import Drafters

BUDGET_BYTES = 512 << 20
"""Memory of all workspaces: five of 3 MB of source each. It bounds those that no client ever closes."""

BYTES_PER_CHARACTER = 16
"""Memory that a file takes for each of its characters, with its snippets' words: measured on 3 MB of Python."""


class Workspaces:
    """The workspaces in use, under one memory budget.

    Args:
        drafters: Hold each workspace's index.
        tokenizer: The model's.
        budget_bytes: Memory of all workspaces; the least recently used goes first, the one in use never.
        parsing: Calls what parses.
    """

    def __init__(
        self,
        drafters: Drafters,
        tokenizer: CodeTokenizer,
        budget_bytes: int = BUDGET_BYTES,
        parsing: Parsing = IN_PROCESS,
    ) -> None:
        self._drafters = drafters
        self._tokenizer = tokenizer
        self._budget_bytes = budget_bytes
        self._parsing = parsing
        self._files: OrderedDict[str, WorkspaceContext] = OrderedDict()

    def update(self, update: WorkspaceUpdate) -> None:
        """Bring what is known of a workspace up to date; one that is not known is not opened to remove files."""
        if not update.changed and update.workspace not in self._files:
            return
        self._open(update.workspace).update(update)
        index = self._drafters.workspace(update.workspace)
        for path in update.removed:
            index.remove(path)
        for file in update.changed:
            index.update(file.path, self._tokenizer.encode(file.text), is_open=file.open)
        self._evict()

    def context(self, request: CompletionRequest, budget_tokens: int) -> tuple[ContextFile, ...]:
        """Pieces of other files of the request's workspace; the workspace becomes the most recently used one."""
        files = self._open(request.workspace)
        return files.choose(request, budget_tokens) if files.files else ()

    def close(self, workspace: str) -> None:
        """Forget a workspace."""
        self._files.pop(workspace, None)
        self._drafters.close_workspace(workspace)
        _trim_heap()

    def __len__(self) -> int:
        """Workspaces that are held."""
        return len(self._files)

    @property
    def size_bytes(self) -> int:
        """Memory that all workspaces take."""
        characters = sum(len(file.text) for files in self._files.values() for file in files.files.values())
        return BYTES_PER_CHARACTER * characters + sum(self._drafters.size_bytes(key) for key in self._files)

    def _open(self, workspace: str) -> WorkspaceContext:
        if workspace not in self._files:
            self._files[workspace] = WorkspaceContext(self._parsing)
            self._evict()
        self._files.move_to_end(workspace)
        return self._files[workspace]

    def _evict(self) -> None:
        while len(self._files) > 1 and self.size_bytes > self._budget_bytes:
            self.close(next(iter(self._files)))


def _trim_heap() -> None:
    """Give freed memory back to the system, which glibc does not do by itself for many small objects."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if os.name == "posix" else None
    if trim is not None:
        trim(0)
