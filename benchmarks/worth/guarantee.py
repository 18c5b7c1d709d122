"""The promise that a shown first line is right at least a share of the time: thresholds, and how often each held.

Source: "PAC Prediction Sets Under Covariate Shift", section 3, whose bound is that of Clopper and Pearson.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.typing.assistant import Offer
from benchmarks.worth.places import Place
from lsp_server.gate.worth import worthwhile_end
from lsp_server.suggesting.request_policy import begins_with_word

CONFIDENCE = 0.9
"""Probability with which a promise holds for places like those that its threshold was chosen on."""
CANDIDATES = tuple(percent / 100 for percent in range(98, 22, -2))
"""Least probabilities of what is shown, from the strictest on; below the last one nothing is worth showing."""
FEWEST = 25
"""Number of shown texts from which on a candidate is judged: fewer, all right, would promise 0.9 hardly."""

_FIRST_LINE = re.compile(r"\s*[^\n]*\n?")


@dataclass(frozen=True, slots=True)
class Held:
    """How often what a threshold shows is right.

    Attributes:
        places: Number of places.
        shown: At how many of them something is shown.
        right: At how many of these its first line is right.
    """

    places: int
    shown: int
    right: int

    @property
    def lower_bound(self) -> float:
        """The share that is right, with `CONFIDENCE` no less than this."""
        return clopper_pearson(self.right, self.shown)


def clopper_pearson(right: int, shown: int, confidence: float = CONFIDENCE) -> float:
    """Return the lower bound on a probability of which `right` of `shown` trials came true.

    It is the probability with which so many or more come true with 1 − confidence, found by bisection.
    """
    low, high = 0.0, 1.0
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (low, middle) if _at_least(right, shown, middle) > 1 - confidence else (middle, high)
    return low


def _at_least(right: int, shown: int, p: float) -> float:
    """Return the probability that `right` or more of `shown` trials come true."""
    return sum(
        math.exp(
            math.lgamma(shown + 1) - math.lgamma(k + 1) - math.lgamma(shown - k + 1)
            + k * math.log(p) + (shown - k) * math.log1p(-p)
        )
        for k in range(right, shown + 1)
    )  # fmt: skip


def waits(session: Sequence[Place]) -> Iterator[Place]:
    """Yield the places at which a person waits: those that do not follow the suggestion of the one before.

    Neighbouring keys have mostly the same suggestion, so they would count one answer many times.
    """
    asked: Place | None = None
    for place in session:
        if asked is not None and asked.passage == place.passage and asked.suggestion is not None:
            typed, text = asked.rest[: place.index - asked.index], asked.suggestion.text
            if text.startswith(typed) and len(text) > len(typed):
                continue
        asked = place
        yield place


def held(places: Sequence[Place], least: float) -> Held:
    """Return how often what is shown with a least probability is right."""
    outcomes = [outcome for place in places if (outcome := _is_right(place, least)) is not None]
    return Held(len(places), len(outcomes), sum(outcomes))


def threshold(places: Sequence[Place], promised: float) -> float | None:
    """Return the lowest candidate that keeps a promise, as all stricter ones do; None if there is none.

    The order is fixed before anything is seen, so that the confidence is that of a single bound.
    """
    found = None
    for least in CANDIDATES:
        one = held(places, least)
        if one.shown >= FEWEST and one.lower_bound < promised:
            break
        found = least if one.shown >= FEWEST else None
    return found


def _is_right(place: Place, least: float) -> bool | None:
    """Return whether the first line of what is shown at a place is right; None if nothing is shown."""
    suggestion = place.suggestion
    if suggestion is None or begins_with_word(place.after):
        return None
    text = suggestion.text[: worthwhile_end(suggestion, 0, grows=False, least=least)]
    line = _FIRST_LINE.match(text)
    if line is None or not text.strip():
        return None
    replaced = place.after[: suggestion.replace_after] if text == suggestion.text else ""
    first = line[0].rstrip() + "\n" * line[0].endswith("\n")
    return Offer("", text, replaced, 0).fits(text, place.rest) or (not replaced and place.rest.startswith(first))
