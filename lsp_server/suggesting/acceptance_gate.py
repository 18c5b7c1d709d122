"""The acceptance gate: hides suggestions that the user will hardly accept, and learns from what the user does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lsp_server.gate.acceptance_model import AcceptanceModel, AcceptanceWeights, Strictness
from lsp_server.gate.features import Offer
from lsp_server.suggesting.generation import Generation


@dataclass(slots=True)
class Passed:
    """A suggestion that passed the gate. `offer` is None once the gate learned from it."""

    offer: Offer | None


class AcceptanceGate:
    """The acceptance gate of one session."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._model = AcceptanceModel(AcceptanceWeights.shipped())
        self._on_screen: Passed | None = None

    def hides(self, generation: Generation, strictness: Strictness, withheld: int = 0) -> bool:
        """Return whether a generation is hidden, judged by the text of its first suggestion so far.

        A generation that passed once is never hidden again. Call this for its later text, too: the gate learns from the
        last text that it was given.

        Args:
            generation: The generation, which gets to know that it passed.
            strictness: The setting.
            withheld: Number of characters at the end of the text that are not shown.
        """
        passed = generation.passed
        if generation.last is None or not generation.last.suggestions or (passed and passed.offer is None):
            return False
        suggestion = generation.last.suggestions[0]
        known = suggestion.token_log_probabilities
        offer = Offer(
            text=suggestion.text[: len(suggestion.text) - withheld],
            prefix=generation.start.prefix,
            suffix_length=generation.start.remaining,
            tokens=len(known),
            mean_log_probability=sum(known) / len(known) if known else None,
            at_s=passed.offer.at_s if passed and passed.offer else self._clock(),
            left_out=generation.start.left_out_before,
        )
        if passed is not None:
            passed.offer = offer
        elif self._model.shows(offer, strictness):
            generation.passed = Passed(offer)
        return generation.passed is None

    def forget(self, passed: Passed | None) -> None:
        """Learn nothing from a suggestion whose document was closed."""
        if passed is self._on_screen:
            self._on_screen = None

    def shown(self, passed: Passed | None) -> None:
        """Note that a suggestion was on the screen. One before it whose end was not reported counts as rejected."""
        if passed is not self._on_screen:
            self._learn(self._on_screen, accepted=False)
        self._on_screen = passed

    def accepted(self, passed: Passed | None) -> None:
        """Learn that a suggestion was accepted."""
        self._learn(passed, accepted=True)

    def rejected(self, passed: Passed | None) -> None:
        """Learn that a suggestion was rejected, if it was on the screen."""
        if passed is self._on_screen:
            self._learn(passed, accepted=False)

    def _learn(self, passed: Passed | None, *, accepted: bool) -> None:
        if passed is not None and passed.offer is not None:
            self._model.learn(passed.offer, accepted=accepted, at_s=self._clock())
            passed.offer = None
