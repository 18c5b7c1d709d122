"""What the user did with a completion: shown, accepted, partly accepted, rejected."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from lsp_server.inline_completion import Answer, InlineCompleter, Query
from lsp_server.messages import ItemName, PartAccepted, Rejected, Rejection
from lsp_server.show_gate import ShowGate

REMEMBERED_OFFERS = 200
"""Completions whose fate may still be reported; older ones are forgotten."""


@dataclass(slots=True)
class Offer:
    """A completion that the client was given, as it was last answered.

    Attributes:
        shown: Indices of the suggestions that stood on the screen.
        accepted_length: UTF-16 units that were inserted of a suggestion that was accepted in part.
    """

    query: Query
    answer: Answer
    shown: set[int] = field(default_factory=set)
    accepted_length: int = 0


class ClientEvents:
    """Connects what clients report with what they were offered."""

    def __init__(self, gate: ShowGate, completer: InlineCompleter) -> None:
        self._gate = gate
        self._completer = completer
        self._offers: OrderedDict[str, Offer] = OrderedDict()

    def offered(self, query: Query, answer: Answer) -> None:
        """A client was given a completion, or more of one."""
        known = self._offers.setdefault(answer.id, Offer(query, answer))
        known.query, known.answer = query, answer
        self._offers.move_to_end(answer.id)
        while len(self._offers) > REMEMBERED_OFFERS:
            self._offers.popitem(last=False)

    def shown(self, item: ItemName) -> None:
        """A suggestion stood on the screen long enough to be read."""
        offer = self._offers.get(item.id)
        if offer is not None:
            offer.shown.add(item.index)

    def partly_accepted(self, event: PartAccepted) -> None:
        """A word or a line of a suggestion was inserted; the rest stays on offer."""
        offer = self._offers.get(event.item.id)
        if offer is not None:
            offer.accepted_length = event.length

    def accepted(self, item: ItemName) -> None:
        """A suggestion was inserted whole."""
        offer = self._offers.pop(item.id, None)
        if offer is not None:
            uri = offer.query.document.uri
            self._gate.note_acceptance(uri)
            self._completer.clear(uri)

    def rejected(self, event: Rejected) -> None:
        """A suggestion was put away; only dismissing it asks for quiet."""
        offer = self._offers.pop(event.id, None)
        if offer is not None and event.reason is Rejection.DISMISSED:
            uri = offer.query.document.uri
            self._gate.note_rejection(uri)
            self._completer.clear(uri)
