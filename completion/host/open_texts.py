"""The texts of files that editors have open, as the host got them last: a client sends only what it changed in one."""

from __future__ import annotations

import zlib
from collections import OrderedDict
from dataclasses import dataclass

from completion.host.errors import StaleTextError
from completion.request import WorkspaceFile, WorkspaceUpdate

MAX_TEXTS = 100
"""Maximum number of texts; a client sends the whole text of one that was dropped."""


@dataclass(frozen=True, slots=True)
class WorkspaceEdit:
    """A change of a file that is open in an editor, in the text that the host got last.

    Attributes:
        start: Where the replaced text starts, in code points.
        end: Where it ends.
        check: CRC-32 of the whole new text in UTF-8.
    """

    path: str
    start: int
    end: int
    inserted: str
    check: int


@dataclass(frozen=True, slots=True)
class ShortUpdate(WorkspaceUpdate):
    """An update as a client sends it.

    Attributes:
        edited: Changes of open files, in the place of their whole text.
    """

    edited: tuple[WorkspaceEdit, ...] = ()


class OpenTexts:
    """The last texts of open files, by workspace and path. An edit is checked by the sum of its result."""

    def __init__(self) -> None:
        self._texts: OrderedDict[tuple[str, str], str] = OrderedDict()

    def whole(self, update: ShortUpdate) -> WorkspaceUpdate:
        """Return an update with the whole text of each file.

        Raises:
            StaleTextError: The client edits a text that the host does not have.
        """
        edited = tuple(
            WorkspaceFile(edit.path, self._edited(update.workspace, edit), open=True) for edit in update.edited
        )
        for file in (*update.changed, *edited):
            self._texts.pop((update.workspace, file.path), None)
            if file.open:
                self._texts[update.workspace, file.path] = file.text
        for path in update.removed:
            self._texts.pop((update.workspace, path), None)
        while len(self._texts) > MAX_TEXTS:
            self._texts.popitem(last=False)
        return WorkspaceUpdate(update.workspace, update.changed + edited, update.removed)

    def _edited(self, workspace: str, edit: WorkspaceEdit) -> str:
        old = self._texts.get((workspace, edit.path), "")
        text = old[: edit.start] + edit.inserted + old[edit.end :]
        if text_sum(text) != edit.check:
            raise StaleTextError(f"The host does not have the text of {edit.path} that is edited. Send the whole text.")
        return text


def text_sum(text: str) -> int:
    """Return the sum by which a text is recognised."""
    return zlib.crc32(text.encode("utf-8", "surrogatepass"))
