"""What the host has of the files that the editor has open, so that only what changed in one is sent."""

from __future__ import annotations

from completion.edits import changed_span
from completion.host.open_texts import ShortUpdate, WorkspaceEdit, text_sum
from completion.request import WorkspaceFile, WorkspaceUpdate


class SentTexts:
    """The texts of open files as they were sent last, by workspace and path."""

    def __init__(self) -> None:
        self._texts: dict[tuple[str, str], str] = {}

    def forget(self) -> None:
        """Send whole texts from now on: the host is another one, or may not have got the last ones."""
        self._texts.clear()

    def shortened(self, update: WorkspaceUpdate) -> ShortUpdate:
        """Return an update with an edit in the place of each open file that was sent before, and note what is sent."""
        whole: list[WorkspaceFile] = []
        edited: list[WorkspaceEdit] = []
        for path in (*update.removed, *(file.path for file in update.changed if not file.open)):
            self._texts.pop((update.workspace, path), None)
        for file in update.changed:
            known = self._texts.get((update.workspace, file.path))
            if known is None:
                whole.append(file)
            else:
                start, end, new_end = changed_span(known, file.text)
                edited.append(WorkspaceEdit(file.path, start, end, file.text[start:new_end], text_sum(file.text)))
            if file.open:
                self._texts[update.workspace, file.path] = file.text
        return ShortUpdate(update.workspace, tuple(whole), update.removed, tuple(edited))
