"""Next edits: finds them for a document, names them for the client, and remembers which ones the user refused."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from lsprotocol import types

from completion.edits import NextEdit, NextEditRequest, NextEdits
from lsp_server.documents.documents import Document
from lsp_server.documents.position_encoding import PositionEncoding
from lsp_server.documents.text_lines import Place
from lsp_server.messages import ACCEPTED_EDIT_COMMAND, EditQuery
from lsp_server.settings.table import NextEditMode
from lsp_server.suggesting.request_policy import RequestPolicy

MAX_REFUSED = 1_000
"""Maximum number of refused edits that are remembered, and of edits that a client may still name."""

PAUSE_S = 0.03
"""Time to wait for a further key, in seconds: what it would outdate at once is not even begun."""

Find = Callable[[NextEditRequest], Awaitable[NextEdits]]


@dataclass(frozen=True, slots=True)
class OfferedEdit:
    """An edit for one version of a document; it names the exact text that it replaces.

    Attributes:
        id: Its name in the client's messages.
        old: Text that it replaces.
        new: Text in its place.
    """

    id: str
    uri: str
    version: int
    range: types.Range
    old: str
    new: str

    def message(self) -> dict[str, Any]:
        """Return the edit as clients of `draftline/nextEdit` and of `textDocument/copilotInlineEdit` read it."""
        start, end = ({"line": at.line, "character": at.character} for at in (self.range.start, self.range.end))
        return {
            "id": self.id,
            "textDocument": {"uri": self.uri, "version": self.version},
            "range": {"start": start, "end": end},
            "text": self.new,
            "oldText": self.old,
            "command": {"title": "Accept", "command": ACCEPTED_EDIT_COMMAND, "arguments": [self.id]},
        }


class NextEditor:
    """The next edits of all documents.

    Args:
        find: Asks the engine.
    """

    def __init__(self, find: Find) -> None:
        self._find = find
        self._refused: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._offered: OrderedDict[str, tuple[str, str]] = OrderedDict()

    async def edits(
        self, document: Document, path: str, encoding: PositionEncoding, pause_s: float = 0.0
    ) -> list[OfferedEdit]:
        """Return the edits to propose for the document as it is now; none if it changes meanwhile.

        The engine is asked after `pause_s` seconds.
        """
        version = document.version
        await asyncio.sleep(pause_s)
        if document.version != version or not (made := document.edits.edits(document.lines)):
            return []
        refused = tuple(name for uri, name in self._refused if uri == document.uri)
        found = await self._find(
            NextEditRequest(
                document.lines.without_ends(),
                made,
                document.language,
                path,
                document.uri,
                document.diagnostics,
                refused,
            )
        )
        if document.version != version:
            return []
        offered = []
        for edit in found.edits:
            key = document.uri, edit.fingerprint
            if _fits(document, edit) and key not in self._refused:  # it may have been refused meanwhile
                offered.append(_offer(document, edit, encoding))
                _remember(self._offered, offered[-1].id, key)
        return offered

    def refuse(self, id_: str) -> None:
        """Never propose the edit again. An unknown id has no effect."""
        key = self._offered.pop(id_, None)
        if key is not None:
            _remember(self._refused, key, None)

    def accept(self, id_: str) -> None:
        """Forget an edit that the client applied."""
        self._offered.pop(id_, None)


def is_wanted(query: EditQuery, document: Document, mode: NextEditMode, policy: RequestPolicy) -> bool:
    """Return whether a request for next edits is answered: it names the document as it is, and the user wants it."""
    modes = (NextEditMode.AUTO, NextEditMode.MANUAL) if query.invoked else (NextEditMode.AUTO,)
    is_silent = policy.quiet.silence() is not None and not query.invoked
    is_current = query.version in (None, document.version)
    return is_current and mode in modes and not is_silent and policy.refusal(document, Place(0, 0)) is None


def _fits(document: Document, edit: NextEdit) -> bool:
    """Return whether the document has the text that the edit names, where it names it."""
    return edit.old == tuple(
        document.lines.line(number)
        for number in range(edit.line, min(edit.line + len(edit.old), document.lines.end.line + 1))
    )


def _offer(document: Document, edit: NextEdit, encoding: PositionEncoding) -> OfferedEdit:
    """Return an edit with its range: the lines without the last one's end, or whole lines if nothing is left."""
    lines = document.lines
    end_line = edit.line + len(edit.old)
    start, end = Place(edit.line, 0), Place(end_line - 1, len(edit.old[-1]))
    if not edit.new and end_line <= lines.end.line:
        end = Place(end_line, 0)
    span = types.Range(document.position(start, encoding), document.position(end, encoding))
    old = lines.between(start, end)  # its lines may end in another way than the document's first
    new = document.line_end.join(edit.new)
    return OfferedEdit(uuid4().hex, document.uri, document.version, span, old, new)


def _remember(known: OrderedDict[Any, Any], key: object, value: object) -> None:
    known[key] = value
    if len(known) > MAX_REFUSED:
        known.popitem(last=False)
