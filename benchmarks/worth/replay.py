"""The replay of benchmarks.worth: a person types a session in simulated time and accepts what is right.

It is the person of benchmarks.typing, but each suggestion comes after the same time, so the rows differ by their rules
only, and a run gives the same figures each time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from benchmarks.typing.assistant import Offer
from benchmarks.typing.person import Habits, strokes
from benchmarks.typing.scripts import Passage, key_unit
from benchmarks.worth.places import Place
from completion.request import Suggestion
from lsp_server.gate.acceptance_model import AcceptanceModel, AcceptanceWeights, Strictness
from lsp_server.gate.features import Offer as GateOffer
from lsp_server.gate.worth import worthwhile_end
from lsp_server.suggesting.request_policy import begins_with_word

ANSWER_S = 0.1
"""Time from a key to the complete suggestion, in seconds: about what `benchmarks.typing` prints for two cores."""


@dataclass(frozen=True, slots=True)
class Row:
    """Rules of what is shown.

    Attributes:
        wrong_cost: Cost of wrong text in the worth of a suggestion; None to show whole lines.
        gate: Strictness of the gate.
        quiet_s: Time without suggestions after an acceptance, in seconds.
        whole_blocks: Whether a text of several lines is always shown whole.
    """

    wrong_cost: float | None
    gate: Strictness
    quiet_s: float = 0.0
    whole_blocks: bool = False

    def end(self, suggestion: Suggestion, typed: int) -> int:
        """Return up to which of its characters a suggestion is shown."""
        is_block = "\n" in suggestion.text.strip("\n")
        if self.wrong_cost is None or (self.whole_blocks and is_block):
            return len(suggestion.text)
        return worthwhile_end(suggestion, typed, grows=False, wrong_cost=self.wrong_cost)


@dataclass(slots=True)
class _Current:
    """The suggestion that the server has, whether it is shown or not.

    Attributes:
        place: Where it was requested.
        suggestion: The suggestion.
        typed: Number of its characters that were typed or accepted.
        since_s: Time since which it is on the screen; None if it is not.
        passed: Whether it passed the gate.
    """

    place: Place
    suggestion: Suggestion
    typed: int = 0
    since_s: float | None = None
    passed: bool = False


class Replay:
    """A person who types one session."""

    def __init__(self, row: Row, session: Sequence[Place], seed: int) -> None:
        self.counts: Counter[str] = Counter()
        self._row = row
        self._habits = Habits()
        self._gate = AcceptanceModel(AcceptanceWeights.shipped())
        self._random = Random(f"{seed}:{session[0].session}")
        self._passages: dict[int, dict[int, Place]] = {}
        for place in session:
            self._passages.setdefault(place.passage, {})[place.index] = place
        self._now = self._quiet_until = 0.0
        self._current: _Current | None = None

    def run(self) -> Counter[str]:
        """Type the session, and return what was counted."""
        for passage in self._passages.values():
            self._type(passage)
        return self.counts

    def _type(self, places: dict[int, Place]) -> None:
        first, last = places[min(places)], max(places)
        passage = Passage(len(first.before), 0, first.rest)
        plan = strokes(passage, self._habits, self._random)
        index, self._current = 0, None
        self._ask(places.get(0))
        while index <= last:
            self._now += plan[index].pause_s
            rest, offer = passage.typed[index:], self._offer(passage.typed[index:])
            accepted = min(self._accepted(offer, rest), last + 1 - index)
            if offer is not None and accepted:
                index += self._accept(accepted)
            else:
                unit = key_unit(passage, first.before, index)
                index += len(unit)
                self.counts["keys"] += 1
                self._narrow(unit)
            while index <= last and index not in places:  # inside of an indentation that one key writes
                index += 1
            if self._current is None:
                self._ask(places.get(index))
        self.counts["characters"] += min(index, last + 1)

    def _ask(self, place: Place | None) -> None:
        self._current = None
        if place is None or place.suggestion is None or self._now < self._quiet_until:
            return
        if not begins_with_word(place.after):
            self._current = _Current(place, place.suggestion)
            self._now_shown(self._now + ANSWER_S, place.rest)

    def _now_shown(self, from_s: float, rest: str) -> str:
        """Return what is shown of the current suggestion from some time on, and count a new one."""
        current = self._current
        if current is None:
            return ""
        text = current.suggestion.text[current.typed : self._row.end(current.suggestion, current.typed)]
        if not text.strip() or not self._passes(current, text):
            current.since_s = None
            return ""
        if current.since_s is None:
            current.since_s = from_s
            self.counts["offers"] += 1
            self.counts["offered"] += len(text)
            self.counts["offers_right"] += Offer("", text, self._replaced(current, text), 0).fits(text, rest) or (
                rest.startswith(text.rstrip())
            )
        return text

    def _passes(self, current: _Current, text: str) -> bool:
        if not current.passed:
            known = current.suggestion.token_log_probabilities
            place = current.place
            offer = GateOffer(
                text=current.suggestion.text[: current.typed] + text,
                prefix=place.before,
                suffix_length=place.remaining,
                tokens=len(known),
                mean_log_probability=sum(known) / len(known) if known else None,
                at_s=self._now,
                left_out=place.offset - len(place.before),
            )
            current.passed = self._gate.shows(offer, self._row.gate)
        return current.passed

    def _replaced(self, current: _Current, text: str) -> str:
        is_whole = current.typed + len(text) == len(current.suggestion.text)
        return current.place.after[: current.suggestion.replace_after] if is_whole else ""

    def _offer(self, rest: str) -> Offer | None:
        """Return the suggestion on the screen when a key is due, and count what the person sees."""
        self.counts["looks"] += 1
        text, current = self._now_shown(self._now, rest), self._current
        if not text or current is None or current.since_s is None or current.since_s > self._now:
            return None
        offer = Offer("", text, self._replaced(current, text), current.since_s)
        self.counts["keys_with_text"] += 1
        self.counts["keys_with_wrong_word"] += not rest.startswith(offer.first_word)
        self.counts["keys_with_right_line"] += offer.first_line_is(rest)
        return offer

    def _accepted(self, offer: Offer | None, rest: str) -> int:
        if offer is None or self._now - offer.since_s < self._habits.read_s:
            return 0
        for part in (offer.text,) if offer.replaced else (offer.text, offer.first_line, offer.first_word):
            if len(part) >= self._habits.fewest and offer.fits(part, rest):
                return min(len(part), len(rest))
        return 0

    def _accept(self, accepted: int) -> int:
        self.counts["keys"] += 1
        self.counts["accepted"] += accepted
        self.counts["accepts"] += 1
        current = self._current
        if current is not None:
            current.typed += accepted
            if current.typed == self._row.end(current.suggestion, current.typed - accepted):
                current.since_s = None
                if current.typed >= len(current.suggestion.text):
                    self._current, self._quiet_until = None, self._now + self._row.quiet_s
        return accepted

    def _narrow(self, unit: str) -> None:
        current = self._current
        if current is None:
            return
        left = current.suggestion.text[current.typed :]
        if left.startswith(unit) and len(left) > len(unit):
            current.typed += len(unit)
        else:
            self._current = None
