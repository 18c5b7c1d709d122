"""Handles the client's events on suggestions: shown, accepted, partly accepted, rejected."""

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

MAX_REMEMBERED_OFFERS = 200
"""Maximum number of completions whose events are still expected; events on older ones are ignored."""


@dataclass(frozen=True, slots=True)
class _Offer:
    """A completion that the client received.

    Attributes:
        texts: Text of each suggestion by its index. Clients may send events with an index that it does not have.
    """

    document: Document
    place: Place
    texts: Mapping[int, str]


class ClientEvents:
    """Matches the client's events with the completions that it received, and passes them on."""

    def __init__(self, policy: RequestPolicy, completer: InlineCompleter, recorder: SuggestionRecorder) -> None:
        self._policy = policy
        self._completer = completer
        self._recorder = recorder
        self._offers: OrderedDict[str, _Offer] = OrderedDict()

    def offered(self, query: Query, answer: Answer) -> None:
        """Remember a completion that the client received; a later answer of it replaces an earlier one."""
        self._offers[answer.id] = _Offer(
            query.document, query.place, {remainder.index: remainder.text for remainder in answer.remainders}
        )
        self._offers.move_to_end(answer.id)
        while len(self._offers) > MAX_REMEMBERED_OFFERS:
            self._offers.popitem(last=False)

    def forget(self, document: Document) -> None:
        """Forget the completions of a document that was closed."""
        for id_ in [id_ for id_, offer in self._offers.items() if offer.document is document]:
            del self._offers[id_]

    def shown(self, item: ItemName) -> None:
        """Handle a suggestion that was on the screen long enough to be read."""
        if item.id in self._offers:
            self._recorder.shown(item.id)
            self._policy.acceptance.shown(item.id)

    def partly_accepted(self, event: PartAccepted) -> None:
        """Handle the acceptance of a suggestion's first word or line; its remainder stays on the screen."""
        offer = self._offers.get(event.item.id)
        if offer is not None:
            text = offer.texts.get(event.item.index, "")
            part = text[: column_from_units(text, event.length, PositionEncoding.UTF16)]
            self._recorder.accepted(offer.document, offer.place, event.item.id, part, whole=False)

    def accepted(self, item: ItemName) -> None:
        """Handle the acceptance of a whole suggestion."""
        offer = self._offers.pop(item.id, None)
        if offer is not None:
            self._recorder.accepted(offer.document, offer.place, item.id, offer.texts.get(item.index, ""), whole=True)
            self._policy.acceptance.accepted(item.id)
            self._completer.accepted(offer.document.uri, item.id)

    def rejected(self, event: Rejected) -> None:
        """Handle a suggestion that left the screen without acceptance, and stop its generation.

        Only a dismissal counts as a rejection for the request policy, which then makes no automatic suggestions for a
        while.
        """
        offer = self._offers.pop(event.id, None)
        if offer is None:
            return
        self._recorder.rejected(event.id, event.reason)
        self._policy.acceptance.rejected(event.id)
        uri = offer.document.uri
        if event.reason is Rejection.DISMISSED:
            self._policy.note_rejection(uri)
            self._completer.clear(uri)
        else:
            self._completer.discard(uri, event.id)
