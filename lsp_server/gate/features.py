"""The features of the acceptance model: a suggestion's probability, shape and position, and the user's behaviour.

Every feature is known before the suggestion is shown; none depends on the user's decision on it.
"""

from __future__ import annotations

import math
import re
from collections import deque
from dataclasses import dataclass, field
from functools import partial
from typing import Any

_WORD = re.compile(r"[A-Za-z_]\w+")
_LATEST = partial(deque[Any], maxlen=6)
"""The decisions that the features about recent behaviour look back on."""
_MAX_INTERVAL_S = 600.0
"""Maximum of the feature of elapsed time, in seconds."""
_DEFAULT_LOG_PROBABILITY = -0.3
"""Mean log probability of a suggestion whose model reports none: about the median of the study."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A suggestion about to be shown.

    Attributes:
        prefix: The document before the cursor, or the last part of it.
        suffix_length: Number of characters after the cursor.
        mean_log_probability: Mean over its tokens; None if the model reports none.
        at_s: Time of the offer, in seconds of any clock.
        left_out: Number of characters of the document before `prefix`.
    """

    text: str
    prefix: str
    suffix_length: int
    tokens: int
    mean_log_probability: float | None
    at_s: float
    left_out: int = 0

    @property
    def offset(self) -> int:
        """Characters of the document before the cursor."""
        return self.left_out + len(self.prefix)


@dataclass(slots=True)
class Behaviour:
    """The suggestions of this session that a user decided on, and when.

    Attributes:
        shown: The latest offers that were shown, oldest first.
        dwell_s: Seconds from offer to decision of each of the latest offers.
        last_event_s: Time of the latest decision.
    """

    shown: deque[Offer] = field(default_factory=_LATEST)
    dwell_s: deque[float] = field(default_factory=_LATEST)
    last_event_s: float | None = None

    def decided(self, offer: Offer, *, at_s: float) -> None:
        """Remember the decision on a shown suggestion, or that it vanished without one."""
        self.last_event_s = at_s
        self.shown.append(offer)
        self.dwell_s.append(min(max(0.0, at_s - offer.at_s), 60.0))


def grouped_features(offer: Offer, behaviour: Behaviour) -> dict[str, dict[str, float]]:
    """Return the features by kind and name, in a fixed order. Training uses or omits a kind as a whole."""
    line = offer.prefix[offer.prefix.rfind("\n") + 1 :]
    probability, shape, position = _probability(offer), _shape(offer), _position(offer, line)
    return {
        "probability": probability,
        "shape": shape,
        "position": position,
        "repetition": _repetition(offer, behaviour),
        "typing": _typing(offer, behaviour),
        "probability_at_position": _probability_at_position(probability["log_probability"], shape, position),
    }


def typed_between(earlier: str, now: str, count: int) -> str | None:
    """Return the text typed between two requests: the last `count` characters of `now`, None if other text changed too.

    Both are the text before the cursor of a request, or the last part of it. The cursor advanced `count` characters.
    """
    if not 0 <= count <= len(now):
        return None
    kept = len(now) - count
    common = min(kept, len(earlier))
    return now[kept:] if now[kept - common : kept] == earlier[len(earlier) - common :] else None


def features(offer: Offer, behaviour: Behaviour) -> dict[str, float]:
    """Return the features by name, in a fixed order."""
    return {name: value for group in grouped_features(offer, behaviour).values() for name, value in group.items()}


def _probability_at_position(mean: float, shape: dict[str, float], position: dict[str, float]) -> dict[str, float]:
    return {
        "log_probability_by_length": mean * shape["length"],
        "log_probability_in_word": mean * position["behind_word"],
        "log_probability_at_line_start": mean * position["line_start"],
        "log_probability_of_lines": mean * shape["several_lines"],
    }


def _probability(offer: Offer) -> dict[str, float]:
    reported = offer.mean_log_probability
    mean = _DEFAULT_LOG_PROBABILITY if reported is None else max(reported, -2.5)
    return {
        "log_probability": mean,
        "log_probability_sum": math.log1p(-mean * max(1, offer.tokens)),
        "probability": math.exp(mean),
        "unsure": max(0.0, -0.15 - mean),
        "very_unsure": max(0.0, -0.5 - mean),
        "hopeless": max(0.0, -1.0 - mean),
    }


def _shape(offer: Offer) -> dict[str, float]:
    text = offer.text
    length = math.log1p(len(text))
    first = text[:1]
    return {
        "length": length,
        "long": max(0.0, length - 3.5),
        "short": max(0.0, 2.2 - length),
        "tokens": math.log1p(offer.tokens),
        "several_lines": float("\n" in text.strip()),
        "comment": float("#" in text or "//" in text),
        "begins_with_word": float(is_word_character(first)),
        "begins_with_blank": float(first == " "),
        "begins_with_closer": float(first != "" and first in ")]}"),
        "ends_with_opener": float(text.rstrip()[-1:] in (":", "{")),
        "defines": float("def " in text or "class " in text or "function " in text),
        "returns": float("return" in text),
    }


def _position(offer: Offer, line: str) -> dict[str, float]:
    last = offer.prefix[-1:]
    before = offer.prefix.rstrip()[-1:]
    words, known = _WORD.findall(offer.text), set(_WORD.findall(offer.prefix[-4000:]))
    return {
        "prefix": math.log1p(min(len(offer.prefix), 4000)),
        "suffix": math.log1p(min(offer.suffix_length, 2000)),
        "line_start": float(not line.strip()),
        "line_length": math.log1p(len(line.strip())),
        "in_comment": float(line.lstrip().startswith(("#", "//", '"""'))),
        "behind_word": float(is_word_character(last)),
        "behind_blank": float(last == " "),
        "behind_opener": float(last != "" and last in "([{,"),
        "behind_operator": float(before != "" and before in "=+-*/<>%"),
        "known_words": (sum(word in known for word in words) + 0.5) / (len(words) + 1),
    }


def _repetition(offer: Offer, behaviour: Behaviour) -> dict[str, float]:
    text = offer.text.strip()
    lately = [shown.text.strip() for shown in behaviour.shown]
    return {
        "shown_before": float(text in lately),
        "part_of_shown": float(any(one.endswith(text) or text.endswith(one) for one in lately[-3:])),
        "in_document": float(len(text) > 8 and text in offer.prefix),
    }


def _typing(offer: Offer, behaviour: Behaviour) -> dict[str, float]:
    if not behaviour.shown:
        return dict.fromkeys(_TYPING, 0.0) | {"dwell": 1.2, "since_event": math.log1p(5.0)}
    before = behaviour.shown[-1]
    typed = typed_between(before.prefix, offer.prefix, offer.offset - before.offset)
    since = 5.0 if behaviour.last_event_s is None else max(0.0, offer.at_s - behaviour.last_event_s)
    elapsed = max(0.2, offer.at_s - before.at_s)
    return {
        "dwell": math.log1p(behaviour.dwell_s[-1]),
        "since_event": math.log1p(min(since, _MAX_INTERVAL_S)),
        "at_once": float(since < 0.1),
        "same_cursor": float(typed == ""),
        "typed": math.log1p(min(len(typed), 200)) if typed else 0.0,
        "typed_speed": math.log1p(len(typed) / elapsed) if typed else 0.0,
        "typed_line_break": float("\n" in (typed or "")),
        "typed_what_was_shown": float(bool(typed) and before.text.startswith(typed or "")),
        "deleted": float(offer.offset < before.offset),
    }


_TYPING = (
    "dwell", "since_event", "at_once", "same_cursor", "typed", "typed_speed", "typed_line_break",
    "typed_what_was_shown", "deleted",
)  # fmt: skip


def is_word_character(character: str) -> bool:
    """Return whether a character can be part of a word; "" is none."""
    return character.isalnum() or character == "_"
