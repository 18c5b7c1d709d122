"""The workspaces that the engine serves: their files, for snippets, and their drafters' indexes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field

from completion.memory import trim_heap
from completion.model.tokenizer import CodeTokenizer
from completion.request import CompletionRequest, ContextFile, WorkspaceUpdate
from completion.syntax.parsing import IN_PROCESS, Parsing
from completion.workspace.context import WorkspaceContext
from drafting.session import Drafters

BUDGET_BYTES = 512 << 20
"""Maximum memory of all workspaces: enough for five with 3 MB of source each. It bounds those that no client closes."""

PIECE_CHARACTERS = 8_000
"""Maximum number of characters that are tokenized at once, which keeps all threads waiting for about 10 ms."""


@dataclass(slots=True)
class Workspaces:
    """All open workspaces, under one memory budget.

    Attributes:
        drafters: Drafters, which hold an index of each workspace; None without a local model.
        budget_bytes: Maximum memory of all workspaces. The least recently used one is closed first, the one in use
            never.
    """

    drafters: Drafters | None
    tokenizer: CodeTokenizer
    budget_bytes: int = BUDGET_BYTES
    parsing: Parsing = IN_PROCESS
    _files: OrderedDict[str, WorkspaceContext] = field(default_factory=OrderedDict)

    def update(self, update: WorkspaceUpdate) -> Iterator[None]:
        """Apply changes to a workspace, and yield between bounded pieces of the work, where any other call may be made.

        A file's snippets and drafts change together, and not at all if it is as before: after a search, a client sends
        all files again. A workspace that is not open is not opened just to remove files.
        """
        key = update.workspace
        if not update.changed and key not in self._files:
            return
        self.use(key).update(WorkspaceUpdate(key, removed=update.removed))
        for path in update.removed:
            if self.drafters is not None:
                self.drafters.workspace(key).remove(path)
        for file in update.changed:
            yield
            if self.use(key).has(file):
                continue
            tokens: list[int] = []
            for piece in _pieces(file.text) if self.drafters is not None else ():
                yield
                tokens += self.tokenizer.encode(piece)
            self.use(key).update(WorkspaceUpdate(key, (file,)))  # another call may have closed it
            if self.drafters is not None:
                self.drafters.workspace(key).update(file.path, tokens, is_open=file.open)
            self._evict()

    def snippets(self, request: CompletionRequest, budget_tokens: int) -> tuple[ContextFile, ...]:
        """Choose snippets of other files of the request's workspace, which becomes the most recently used one."""
        files = self.use(request.workspace)
        return files.choose(request, budget_tokens) if files.files else ()

    def close(self, workspace: str) -> None:
        """Free the memory of a workspace."""
        self._files.pop(workspace, None)
        if self.drafters is not None:
            self.drafters.close_workspace(workspace)
        trim_heap()

    def __len__(self) -> int:
        """Return the number of open workspaces."""
        return len(self._files)

    @property
    def size_bytes(self) -> int:
        """Memory of all workspaces."""
        indexes = sum(self.drafters.size_bytes(key) for key in self._files) if self.drafters is not None else 0
        return self.files_bytes + indexes

    @property
    def files_bytes(self) -> int:
        """Memory of all files, without the drafters' indexes. May be read on any thread."""
        return sum(file.size_bytes for each in list(self._files.values()) for file in list(each.files.values()))

    def use(self, workspace: str) -> WorkspaceContext:
        """Make a workspace the most recently used one; what drafters learn in it counts and goes with it."""
        if workspace not in self._files:
            self._files[workspace] = WorkspaceContext(self.parsing)
            self._evict()
        self._files.move_to_end(workspace)
        return self._files[workspace]

    def _evict(self) -> None:
        while len(self._files) > 1 and self.size_bytes > self.budget_bytes:
            self.close(next(iter(self._files)))


def _pieces(text: str) -> Iterator[str]:
    """Yield a text in pieces that end with a line where they can. Tokens do not cross a cut, which can cost a guess."""
    start = 0
    while start < len(text):
        limit = start + PIECE_CHARACTERS
        end = (text.rfind("\n", start, limit) + 1 if limit < len(text) else 0) or limit
        yield text[start:end]
        start = end
