"""Next edits: finds them, names them for the client, and remembers which the user refused or undid.

What the edits of a document imply for itself goes first, then what those of other open documents imply for it, then
what these or its own edits imply for others.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any
from uuid import uuid4

from lsprotocol import types

from completion.edits import NextEdit, NextEditRequest, NextEdits, lost_words
from lsp_server.documents.documents import Document
from lsp_server.documents.text_lines import Place
from lsp_server.messages import ACCEPTED_NEXT_EDIT_COMMAND, NextEditQuery
from lsp_server.settings.table import NextEditMode
from lsp_server.suggesting.request_policy import RequestPolicy

MAX_REMEMBERED = 1_000
"""Maximum number of edits remembered as refused, as accepted, and as offered: those that a client may still name."""

MAX_OTHERS = 4
"""Maximum number of other open documents that edits are found in, or because of, those that were changed last."""

MAX_OTHER_CHARACTERS = 100_000
"""Maximum length of each of them, and of the document whose edits are found in them."""

MAX_PAIRS = 3
"""Maximum number of pairs of documents, one with edits and one that uses what they took away, of one request."""

PAUSE_S = 0.03
"""Time to wait for a further key, in seconds: what it would outdate at once is not even begun."""

Find = Callable[[NextEditRequest], Awaitable[NextEdits]]
_Name = tuple[str, str]  # URI of the document, and fingerprint of the edit


@dataclass(frozen=True, slots=True)
class OfferedEdit:
    """An edit for one version of a document; it names the exact text that it replaces."""

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
            "command": {"title": "Accept", "command": ACCEPTED_NEXT_EDIT_COMMAND, "arguments": [self.id]},
        }


class NextEditor:
    """The next edits of all documents. `path_of` returns a document's path in the workspace."""

    def __init__(self, find: Find, path_of: Callable[[Document], str]) -> None:
        self._find = find
        self._path_of = path_of
        self._refused: OrderedDict[_Name, bool] = OrderedDict()  # and whether it was applied, then undone
        self._offered: OrderedDict[str, tuple[_Name, NextEdit]] = OrderedDict()
        self._accepted: OrderedDict[_Name, NextEdit] = OrderedDict()

    async def edits(
        self,
        document: Document,
        *,
        invoked: bool = True,
        others: Iterable[Document] = (),
        elsewhere: bool = False,
    ) -> list[OfferedEdit]:
        """Return the edits to propose for the documents as they are now; none if the first one changes meanwhile.

        An automatic request waits `PAUSE_S` for a further key. Only a manual one finds edits that the user has undone.

        Args:
            document: The document in front.
            invoked: Whether the request is manual.
            others: Other open documents of like languages, those that were changed last first.
            elsewhere: Whether the edits may be of these, too: all are of one document.
        """
        version = document.version
        await asyncio.sleep(0.0 if invoked else PAUSE_S)
        if document.version == version:
            for edited, target in chain([(document, document)], _pairs(document, others, elsewhere=elsewhere)):
                offered = await self._offers(edited, target, invoked=invoked)
                if document.version != version:
                    return []
                if offered:
                    return offered
        return []

    async def _offers(self, edited: Document, target: Document, *, invoked: bool) -> list[OfferedEdit]:
        """Return what the edits of one document imply for itself or another one; none if one of both changes."""
        versions = edited.version, target.version
        if not (made := edited.edits.edits(edited.lines)):
            return []
        self._note_undone(target)
        hidden = (name for name in self._refused if name[0] == target.uri and self._hides(name, invoked=invoked))
        found = await self._find(
            NextEditRequest(
                lines=edited.lines.without_ends(),
                edits=made,
                language=target.language,
                path=self._path_of(edited),
                document=edited.uri,
                diagnostics=target.diagnostics,
                refused=tuple(fingerprint for _, fingerprint in hidden),
                invoked=invoked,
                elsewhere=() if target is edited else target.lines.without_ends(),
            )
        )
        if (edited.version, target.version) != versions:
            return []
        offered = []
        for edit in found.edits:
            name = target.uri, edit.fingerprint
            if _has(target, edit.line, edit.old) and not self._hides(
                name, invoked=invoked
            ):  # it may have been refused meanwhile
                offered.append(_offer(target, edit))
                _remember(self._offered, offered[-1].id, (name, edit))
        return offered

    def refuse(self, id_: str) -> None:
        """Never propose the edit again. An unknown id has no effect."""
        if id_ in self._offered:
            name, _ = self._offered.pop(id_)
            _remember(self._refused, name, value=False)

    def accept(self, id_: str) -> None:
        """Note that the client has applied the edit. An unknown id has no effect."""
        if id_ in self._offered:
            name, edit = self._offered.pop(id_)
            self._refused.pop(name, None)
            _remember(self._accepted, name, edit)

    def _note_undone(self, document: Document) -> None:
        """Note which of the accepted edits of a document were undone: their lines have the text from before them."""
        for name, edit in list(self._accepted.items()):
            if name[0] == document.uri and _is_undone(document, edit):
                del self._accepted[name]
                _remember(self._refused, name, value=True)

    def _hides(self, name: _Name, *, invoked: bool) -> bool:
        """Return whether a request does not find an edit."""
        return name in self._refused and not (invoked and self._refused[name])


def is_wanted(query: NextEditQuery, document: Document, mode: NextEditMode, policy: RequestPolicy) -> bool:
    """Return whether a request for next edits is answered: it names the document as it is, and the user wants it."""
    modes = ("auto", "manual") if query.invoked else ("auto",)
    is_silent = policy.quiet.silence(document) is not None and not query.invoked
    is_current = query.version in (None, document.version)
    return is_current and mode in modes and not is_silent and policy.refusal(document, Place(0, 0)) is None


def _pairs(first: Document, others: Iterable[Document], *, elsewhere: bool) -> Iterator[tuple[Document, Document]]:
    """Yield documents with edits, and those that have a word which the edits took away; for the first one first."""
    near = [each for each in (first, *islice(others, MAX_OTHERS)) if len(each.lines) <= MAX_OTHER_CHARACTERS]
    taken = ((each, lost_words(each.edits.edits(each.lines))) for each in near)
    lost = [each for each in taken if each[-1]]
    pairs = (
        (edited, target)
        for target in (near if lost else ())
        if elsewhere or target is first
        for text in [target.lines.text()]
        for edited, words in lost
        if edited is not target and any(word in text for word in words)
    )
    yield from islice(pairs, MAX_PAIRS)


def _is_undone(document: Document, edit: NextEdit) -> bool:
    """Return whether the document has the text from before an edit that was applied, which may keep that text."""
    keeps = len(edit.new) > len(edit.old) and _has(document, edit.line, edit.new)
    return _has(document, edit.line, edit.old) and not keeps


def _has(document: Document, first: int, lines: tuple[str, ...]) -> bool:
    """Return whether a document has some lines from the `first` one on."""
    end = min(first + len(lines), document.lines.end.line + 1)
    return lines == tuple(document.lines.line(number) for number in range(first, end))


def _offer(document: Document, edit: NextEdit) -> OfferedEdit:
    """Return an edit with its range: the lines without the last one's end, or whole lines if nothing is left."""
    lines = document.lines
    end_line = edit.line + len(edit.old)
    start, end = Place(edit.line, 0), Place(end_line - 1, len(edit.old[-1]))
    if not edit.new and end_line <= lines.end.line:
        end = Place(end_line, 0)
    span = types.Range(document.position(start), document.position(end))
    old = lines.between(start, end)  # its lines may end in another way than the document's first
    new = document.line_end.join(edit.new)
    return OfferedEdit(uuid4().hex, document.uri, document.version, span, old, new)


def _remember(known: OrderedDict[Any, Any], key: object, value: object) -> None:
    known[key] = value
    if len(known) > MAX_REMEMBERED:
        known.popitem(last=False)
