"""The acceptance gate: hides suggestions that the user will hardly accept, and learns from what the user does."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace

from lsp_server.gate.acceptance_model import AcceptanceModel, AcceptanceWeights, Strictness
from lsp_server.gate.features import Offer
from lsp_server.suggesting.generation import Generation

MAX_OFFERS = 200
"""Maximum number of suggestions that the gate can still learn from. Older ones are forgotten."""


@dataclass(frozen=True, slots=True)
class _Passed:
    """A suggestion that passed the gate, in the document of `uri`. `offer` is None once the gate learned from it."""

    uri: str
    offer: Offer | None


class AcceptanceGate:
    """The acceptance gate of one session.

    Args:
        clock: Returns the time in seconds, monotonic.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._model = AcceptanceModel(AcceptanceWeights.shipped())
        self._passed: OrderedDict[str, _Passed] = OrderedDict()  # by completion id
        self._on_screen = ""

    def hides(self, uri: str, generation: Generation, strictness: Strictness, withheld: int = 0) -> bool:
        """Return whether a document's generation is hidden, judged by the text of its first suggestion so far.

        A generation that passed once is never hidden again. Call this for its later text, too: the gate learns from the
        last text that it was given.

        Args:
            uri: The document.
            generation: Its generation.
            strictness: The setting.
            withheld: Number of characters at the end of the text that are not shown.
        """
        if generation.last is None or not generation.last.suggestions:
            return False
        passed = self._offer_of(generation.id)
        if passed is None and generation.id in self._passed:
            return False
        suggestion = generation.last.suggestions[0]
        known = suggestion.token_log_probabilities
        offer = Offer(
            text=suggestion.text[: len(suggestion.text) - withheld],
            prefix=generation.start.prefix,
            suffix_length=generation.start.remaining,
            tokens=len(known),
            mean_log_probability=sum(known) / len(known) if known else None,
            at_s=self._clock() if passed is None else passed.at_s,
            left_out=generation.start.left_out_before,
        )
        if passed is None and not self._model.shows(offer, strictness):
            return True
        self._passed[generation.id] = _Passed(uri, offer)
        while len(self._passed) > MAX_OFFERS:
            self._passed.popitem(last=False)
        return False

    def forget(self, uri: str) -> None:
        """Forget the suggestions of a closed document."""
        for id_ in [id_ for id_, one in self._passed.items() if one.uri == uri]:
            del self._passed[id_]

    def shown(self, id_: str) -> None:
        """Note that a suggestion was on the screen. One before it whose end was not reported counts as rejected."""
        if id_ != self._on_screen:
            self._learn(self._on_screen, accepted=False)
        self._on_screen = id_

    def accepted(self, id_: str) -> None:
        """Learn that a suggestion was accepted."""
        self._learn(id_, accepted=True)

    def rejected(self, id_: str) -> None:
        """Learn that a suggestion was rejected, if it was on the screen."""
        if id_ == self._on_screen:
            self._learn(id_, accepted=False)

    def _learn(self, id_: str, *, accepted: bool) -> None:
        offer = self._offer_of(id_)
        if offer is not None:
            self._passed[id_] = replace(self._passed[id_], offer=None)
            self._model.learn(offer, accepted=accepted, at_s=self._clock())

    def _offer_of(self, id_: str) -> Offer | None:
        known = self._passed.get(id_)
        return known.offer if known else None
