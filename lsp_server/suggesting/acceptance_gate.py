"""Holds back what the user will hardly accept, and learns from what becomes of what is shown."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from lsp_server.gate.acceptance_model import AcceptanceModel, AcceptanceWeights, Strictness
from lsp_server.gate.features import Offer
from lsp_server.suggesting.generation import Generation

REMEMBERED_OFFERS = 200
"""Offers whose fate may still be reported; older ones are forgotten."""


class AcceptanceGate:
    """The gate of one session, fed by what its client reports.

    Args:
        clock: Seconds, monotonic.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._gate = AcceptanceModel(AcceptanceWeights.shipped())
        self._offers: OrderedDict[str, Offer | None] = OrderedDict()  # None: its fate is learned
        self._on_screen: str | None = None

    def holds_back(self, generation: Generation, strictness: Strictness) -> bool:
        """Whether a generation is not to be shown, judged by its text so far; what was let through once stays so.

        Its text may still grow then: what becomes of it is learned of what stood there in the end.
        """
        if generation.last is None or not generation.last.suggestions:
            return False
        let_through = self._offers.get(generation.id)
        if let_through is None and generation.id in self._offers:
            return False
        suggestion = generation.last.suggestions[0]
        known = suggestion.token_log_probabilities
        offer = Offer(
            text=suggestion.text,
            prefix=generation.start.prefix,
            suffix_length=len(generation.start.suffix),
            tokens=len(known),
            mean_log_probability=sum(known) / len(known) if known else None,
            at_s=self._clock() if let_through is None else let_through.at_s,
        )
        if let_through is None and not self._gate.shows(offer, strictness):
            return True
        self._offers[generation.id] = offer
        while len(self._offers) > REMEMBERED_OFFERS:
            self._offers.popitem(last=False)
        return False

    def shown(self, id_: str) -> None:
        """A suggestion stood on the screen; the one before it, with no word of its end, was passed over."""
        if self._on_screen not in (None, id_):
            self._learn(self._on_screen, accepted=False)
        self._on_screen = id_ if self._offers.get(id_) is not None else None

    def accepted(self, id_: str) -> None:
        """A suggestion was accepted."""
        self._learn(id_, accepted=True)

    def rejected(self, id_: str) -> None:
        """A suggestion was put away; what nobody saw teaches nothing."""
        if id_ == self._on_screen:
            self._learn(id_, accepted=False)

    def _learn(self, id_: str | None, *, accepted: bool) -> None:
        offer = self._offers.get(id_) if id_ else None
        if id_ == self._on_screen:
            self._on_screen = None
        if id_ and offer is not None:
            self._offers[id_] = None
            self._gate.learn(offer, accepted=accepted, at_s=self._clock())
