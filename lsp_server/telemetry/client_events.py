"""Handles the client's events on suggestions: shown, accepted, partly accepted, rejected."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from completion.edits import common_length
from lsp_server.documents.documents import Document
from lsp_server.documents.edit_log import last_insertion
from lsp_server.documents.position_encoding import PositionEncoding, column_from_units
from lsp_server.documents.text_lines import Edit, Place, split_lines
from lsp_server.messages import ItemName, Rejection
from lsp_server.suggesting.acceptance_gate import Passed
from lsp_server.suggesting.inline_completion import InlineCompleter
from lsp_server.suggesting.query import Answer, Query
from lsp_server.suggesting.request_policy import RequestPolicy
from lsp_server.telemetry.recorder import SuggestionRecorder

MAX_REMEMBERED_OFFERS = 200
"""Maximum number of completions whose events are still expected; events on older ones are ignored."""


@dataclass(frozen=True, slots=True)
class _Change:
    """The latest change of a text: it has inserted `added` characters, which end at `end`."""

    document: Document
    end: Place
    added: int


@dataclass(slots=True)
class _Offer:
    """A completion that the client received, and how much of it the document contains.

    Attributes:
        version: The document's version at the completion's query.
        place: The position of the query.
        passed: What the gate may learn from it.
        texts: Text of each suggestion by its index. Clients may send events with an index that it does not have.
        line_breaks: Maximum number of line breaks in a text.
        contained: Number of characters of a text that the document contains from `place` on.
        contained_before: The same, before the latest change there.
        inserted: Number of characters that acceptances of the completion have inserted.
    """

    document: Document
    version: int
    place: Place
    passed: Passed | None
    texts: Mapping[int, str]
    line_breaks: int
    contained: int = 0
    contained_before: int = 0
    inserted: int = 0

    def follow(self, change: _Change) -> None:
        """Note a change of the document."""
        if not 0 <= change.end.line - self.place.line <= self.line_breaks or change.end < self.place:
            return
        text = self.document.lines.between(self.place, change.end)
        if any(one.startswith(text) for one in self.texts.values()):
            self.contained, self.contained_before = len(text), max(0, len(text) - change.added)

    def go_on(self, earlier: _Offer) -> None:
        """Take over what is known of an earlier text of the completion."""
        self.inserted = earlier.inserted
        if (self.version, self.place) == (earlier.version, earlier.place):
            self.contained, self.contained_before = earlier.contained, earlier.contained_before

    def accept(self, text: str) -> int:
        """Note the acceptance of a text or its start; return how many characters acceptances have inserted so far.

        What the user typed does not count. The report may come before the edit, or after it.
        """
        is_edited = self.contained >= len(text)
        self.inserted += max(0, len(text) - (self.contained_before if is_edited else self.contained))
        return self.inserted


class ClientEvents:
    """Matches the client's events with the completions that it received, and passes them on."""

    def __init__(self, policy: RequestPolicy, completer: InlineCompleter, recorder: SuggestionRecorder) -> None:
        self._policy = policy
        self._completer = completer
        self._recorder = recorder
        self._offers: OrderedDict[str, _Offer] = OrderedDict()
        self._changed: _Change | None = None
        self._reports_showing = False  # of one that does not, nobody knows what its user refused

    def offered(self, query: Query, answer: Answer) -> None:
        """Remember a completion that the client received; a later answer of it replaces an earlier one."""
        texts = {remainder.index: remainder.text for remainder in answer.remainders}
        line_breaks = max(len(split_lines(text)) for text in texts.values()) - 1
        passed = answer.generation.passed if answer.generation else None
        offer = _Offer(query.document, query.version, query.place, passed, texts, line_breaks)
        if (known := self._offers.get(answer.id)) is not None:
            offer.go_on(known)
        if offer.version != offer.document.version and self._changed and self._changed.document is offer.document:
            offer.follow(self._changed)  # the user types while the text is generated
        self._offers[answer.id] = offer
        self._offers.move_to_end(answer.id)
        while len(self._offers) > MAX_REMEMBERED_OFFERS:
            self._offers.popitem(last=False)

    def text_changed(self, document: Document, edits: Sequence[Edit]) -> None:
        """Note how much of its completions a document contains after the edits of an event."""
        if not edits:
            return
        edit = last_insertion(edits)
        end = document.lines.advance(edit.start, len(edit.inserted))
        added = len(edit.inserted) - common_length(edit.removed, edit.inserted)
        self._changed = _Change(document, end, added)
        for offer in self._offers.values():
            if offer.document is document:
                offer.follow(self._changed)

    def forget(self, document: Document) -> None:
        """Forget the completions of a document that was closed."""
        self._changed = None
        for id_, offer in list(self._offers.items()):
            if offer.document is document:
                self._policy.acceptance.forget(offer.passed)
                del self._offers[id_]

    def shown(self, item: ItemName) -> None:
        """Handle a suggestion that was on the screen long enough to be read."""
        self._reports_showing = True
        if (offer := self._offers.get(item.id)) is not None:
            self._recorder.telemetry.shown(item.id)
            self._policy.acceptance.shown(offer.passed)

    def partly_accepted(self, item: ItemName, length: int) -> None:
        """Handle the acceptance of a suggestion's first UTF-16 units; its remainder stays on the screen."""
        offer = self._offers.get(item.id)
        if offer is not None:
            text = offer.texts.get(item.index, "")
            part = text[: column_from_units(text, length, PositionEncoding.UTF16)]
            self._accepted(offer, item.id, part, whole=False)

    def accepted(self, item: ItemName) -> None:
        """Handle the acceptance of a whole suggestion."""
        offer = self._offers.pop(item.id, None)
        if offer is not None:
            self._accepted(offer, item.id, offer.texts.get(item.index, ""), whole=True)
            self._completer.accepted(offer.document.uri, item.id)

    def rejected(self, id_: str, reason: Rejection) -> None:
        """Handle a suggestion that left the screen without acceptance, and stop its generation.

        Only a dismissal counts as a rejection for the request policy, which then makes no automatic suggestions for a
        while.
        """
        offer = self._offers.pop(id_, None)
        if offer is None:
            return
        self._recorder.telemetry.rejected(id_, reason)
        self._policy.acceptance.rejected(offer.passed)
        uri = offer.document.uri
        if reason is Rejection.DISMISSED:
            self._policy.note_rejection(offer.document)
            self._completer.clear(uri)
        else:
            self._completer.discard(uri, id_)

    def _accepted(self, offer: _Offer, id_: str, text: str, *, whole: bool) -> None:
        inserted = offer.accept(text)
        shown = self._reports_showing
        self._recorder.accepted(offer.document, offer.place, id_, text, inserted=inserted, whole=whole, shown=shown)
        if shown:
            self._policy.acceptance.accepted(offer.passed)
