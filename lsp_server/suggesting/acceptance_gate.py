"""Holds back what the user will hardly accept, and learns from what becomes of what is shown."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace

from lsp_server.gate.acceptance_model import AcceptanceModel, AcceptanceWeights, Strictness
from lsp_server.gate.features import Offer
from lsp_server.suggesting.generation import Generation

REMEMBERED_OFFERS = 200
"""Offers whose fate may still be reported; older ones are forgotten."""


@dataclass(frozen=True, slots=True)
class _LetThrough:
    """A suggestion that may be shown in the document of a URI; `offer` is None once its fate is learned."""

    uri: str
    offer: Offer | None


class AcceptanceGate:
    """The gate of one session, fed by what its client reports.

    Args:
        clock: Seconds, monotonic.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._gate = AcceptanceModel(AcceptanceWeights.shipped())
        self._let_through: OrderedDict[str, _LetThrough] = OrderedDict()  # by completion id
        self._on_screen: str | None = None

    def holds_back(self, uri: str, generation: Generation, strictness: Strictness) -> bool:
        """Whether a document's generation is hidden, judged by its text so far; what was let through once stays so.

        Its text may still grow then: what becomes of it is learned of what stood there in the end.
        """
        if generation.last is None or not generation.last.suggestions:
            return False
        let_through = self._offer_of(generation.id)
        if let_through is None and generation.id in self._let_through:
            return False
        suggestion = generation.last.suggestions[0]
        known = suggestion.token_log_probabilities
        offer = Offer(
            text=suggestion.text,
            prefix=generation.start.prefix,
            suffix_length=generation.start.remaining,
            tokens=len(known),
            mean_log_probability=sum(known) / len(known) if known else None,
            at_s=self._clock() if let_through is None else let_through.at_s,
            left_out=generation.start.left_out_before,
        )
        if let_through is None and not self._gate.shows(offer, strictness):
            return True
        self._let_through[generation.id] = _LetThrough(uri, offer)
        while len(self._let_through) > REMEMBERED_OFFERS:
            self._let_through.popitem(last=False)
        return False

    def forget(self, uri: str) -> None:
        """A document was closed."""
        for id_ in [id_ for id_, one in self._let_through.items() if one.uri == uri]:
            del self._let_through[id_]

    def shown(self, id_: str) -> None:
        """A suggestion stood on the screen; the one before it, with no word of its end, was passed over."""
        if self._on_screen not in (None, id_):
            self._learn(self._on_screen, accepted=False)
        self._on_screen = id_ if self._offer_of(id_) is not None else None

    def accepted(self, id_: str) -> None:
        """A suggestion was accepted."""
        self._learn(id_, accepted=True)

    def rejected(self, id_: str) -> None:
        """A suggestion was put away; what nobody saw teaches nothing."""
        if id_ == self._on_screen:
            self._learn(id_, accepted=False)

    def _learn(self, id_: str | None, *, accepted: bool) -> None:
        offer = self._offer_of(id_)
        if id_ == self._on_screen:
            self._on_screen = None
        if id_ and offer is not None:
            self._let_through[id_] = replace(self._let_through[id_], offer=None)
            self._gate.learn(offer, accepted=accepted, at_s=self._clock())

    def _offer_of(self, id_: str | None) -> Offer | None:
        known = self._let_through.get(id_) if id_ else None
        return known.offer if known else None
