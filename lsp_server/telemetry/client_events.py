"""What the user did with a completion: shown, accepted, partly accepted, rejected."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass

from lsp_server.documents.documents import Document
from lsp_server.documents.position_encoding import PositionEncoding, column_from_units
from lsp_server.documents.text_lines import Place
from lsp_server.messages import ItemName, PartAccepted, Rejected, Rejection
from lsp_server.suggesting.inline_completion import InlineCompleter
from lsp_server.suggesting.query import Answer, Query
from lsp_server.suggesting.request_policy import RequestPolicy
from lsp_server.telemetry.recorder import SuggestionRecorder

REMEMBERED_OFFERS = 200
"""Completions whose fate may still be reported; older ones are forgotten."""


@dataclass(frozen=True, slots=True)
class _Offer:
    """A completion that the client was given, as it was last answered.

    Attributes:
        texts: What each suggestion inserts, by its index; a client may name one that it was not given.
    """

    document: Document
    place: Place
    texts: Mapping[int, str]


class ClientEvents:
    """Connects what clients report with what they were offered."""

    def __init__(self, gate: RequestPolicy, completer: InlineCompleter, recorder: SuggestionRecorder) -> None:
        self._gate = gate
        self._completer = completer
        self._recorder = recorder
        self._offers: OrderedDict[str, _Offer] = OrderedDict()

    def knows(self, id_: str) -> bool:
        """Whether a client was given this completion and has not said what became of it."""
        return id_ in self._offers

    def offered(self, query: Query, answer: Answer) -> None:
        """A client was given a completion, or more of one."""
        self._offers[answer.id] = _Offer(
            query.document, query.place, {left.index: left.text for left in answer.remainders}
        )
        self._offers.move_to_end(answer.id)
        while len(self._offers) > REMEMBERED_OFFERS:
            self._offers.popitem(last=False)

    def forget(self, document: Document) -> None:
        """A document was closed."""
        for id_ in [id_ for id_, offer in self._offers.items() if offer.document is document]:
            del self._offers[id_]

    def shown(self, item: ItemName) -> None:
        """A suggestion stood on the screen long enough to be read."""
        if item.id in self._offers:
            self._recorder.shown(item.id)
            self._gate.acceptance.shown(item.id)

    def partly_accepted(self, event: PartAccepted) -> None:
        """A word or a line of a suggestion was inserted; the rest stays on offer."""
        offer = self._offers.get(event.item.id)
        if offer is not None:
            text = offer.texts.get(event.item.index, "")
            part = text[: column_from_units(text, event.length, PositionEncoding.UTF16)]
            self._recorder.accepted(offer.document, offer.place, event.item.id, part, whole=False)

    def accepted(self, item: ItemName) -> None:
        """A suggestion was inserted whole."""
        offer = self._offers.pop(item.id, None)
        if offer is not None:
            uri = offer.document.uri
            self._recorder.accepted(offer.document, offer.place, item.id, offer.texts.get(item.index, ""), whole=True)
            self._gate.acceptance.accepted(item.id)
            self._gate.note_acceptance(uri)
            self._completer.clear(uri)

    def rejected(self, event: Rejected) -> None:
        """A suggestion was put away: nothing more is written of it; only dismissing it asks for quiet."""
        offer = self._offers.pop(event.id, None)
        if offer is None:
            return
        self._recorder.rejected(event.id, event.reason)
        self._gate.acceptance.rejected(event.id)
        uri = offer.document.uri
        if event.reason is Rejection.DISMISSED:
            self._gate.note_rejection(uri)
            self._completer.clear(uri)
        else:
            self._completer.discard(uri, event.id)
