"""The figures of `draftline report`: what it is on, what it counts, its labels, and estimates with their intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from datetime import UTC, datetime

from completion.request import StopReason
from lsp_server.empty_reason import EmptyReason
from lsp_server.settings.experiment import Arm

STAGES = {
    "wait_ms": "debounce",
    "queue_ms": "engine queue",
    "prompt_ms": "prompt",
    "drafting_ms": "drafting",
    "grammar_ms": "grammar",
    "decode_ms": "decoding",
    "first_text_ms": "first text",
    "answer_ms": "complete answer",
}
"""Label of each stage of a request, by its column."""
CONTROLS = {
    EmptyReason.DISABLED: "enabled = false",
    EmptyReason.MANUAL: "trigger = manual",
    EmptyReason.SNOOZED: "snoozed",
    EmptyReason.FILE_OFF: "off for the file",
    EmptyReason.LANGUAGE_OFF: "off for the language",
    EmptyReason.WORKSPACE_OFF: "off for the workspace",
    EmptyReason.IN_COMMENT: "in_comments = false",
    EmptyReason.IN_STRING: "in_strings = false",
    EmptyReason.TYPING: "show_after_ms",
    StopReason.MAX_LINES: "automatic_lines (shortened)",
}
"""Label of each quiet control, by the reason why nothing was shown, or why a suggestion ended."""
QUANTILES = (0.5, 0.75, 0.95)
_Z = 1.959964  # 97.5 % quantile of the normal distribution


@dataclass(frozen=True, slots=True)
class Selection:
    """A part of the store.

    Attributes:
        since: Start of the time span, in seconds since 1970.
        until: End of the time span (exclusive), in seconds since 1970.
        variants: Variants of the settings; None selects all.
        arm: Side of an experiment; None selects all suggestions, also those outside of experiments.
    """

    since: float
    until: float
    variants: tuple[str, ...] | None = None
    arm: Arm | None = None

    @property
    def whole(self) -> bool:
        """Whether the selection is all of its time span. Only then do refusals and written characters belong to it."""
        return self.variants is None and self.arm is None

    def where(self) -> tuple[str, tuple[object, ...]]:
        """Return the SQL condition on `suggestions` and its values."""
        condition: str = "at >= ? AND at < ?"
        values: tuple[object, ...] = (self.since, self.until)
        if self.arm is not None:
            condition, values = f"{condition} AND experiment = ? AND arm = ?", (*values, *astuple(self.arm))
        if self.variants is not None:
            condition += f" AND variant IN ({','.join('?' * len(self.variants))})"
            values += self.variants
        return condition, values


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimate with its 95 % confidence interval.

    Attributes:
        count: Number of observations.
    """

    value: float
    low: float
    high: float
    count: int


@dataclass(frozen=True, slots=True)
class Group:
    """The numbers of shown and accepted suggestions of one language, hour, length, day or drafter."""

    name: str
    shown: int
    accepted: int

    @property
    def acceptance(self) -> Estimate:
        """The accepted share of the shown suggestions."""
        return share(self.accepted, self.shown)


@dataclass(frozen=True, slots=True)
class Remaining:
    """How much of the accepted text remained at a checkpoint.

    Attributes:
        after_s: The checkpoint, in seconds after the acceptance.
        share: Mean similarity to the accepted text.
        characters: Sum of the accepted characters that remained.
    """

    after_s: int
    share: Estimate
    characters: int


@dataclass(frozen=True, slots=True)
class Report:
    """The figures of a report. Characters are code points, times are in milliseconds.

    Attributes:
        offered: Number of suggestions that the editor received.
        shown: Number of suggestions that were on the screen long enough to be read.
        accepted: Number of shown suggestions that were accepted, in whole or in part.
        shown_characters: Characters of the shown suggestions.
        accepted_characters: Characters that were inserted by accepting.
        taken_characters: Characters of the shown suggestions that were accepted.
        written_characters: Characters that were inserted into documents, by typing or by accepting.
        outcomes: Number of suggestions by outcome.
        remaining: How much of the accepted text remained, by checkpoint.
        groups: Acceptance by "language", "hour", "length", "day" and "drafter".
        latency: Quantiles of each stage, in the order of QUANTILES.
        answer: Median time to the complete answer.
        reasons: Number of requests that showed nothing, by reason.
        quiet: What each quiet control kept away, in the order of CONTROLS; those that kept nothing away are left out.
        tokens: Sums of the engine's token counts.
        drafters: Accepted draft tokens by drafter.
    """

    selection: Selection
    offered: int
    shown: int
    accepted: int
    shown_characters: int
    accepted_characters: int
    taken_characters: int
    written_characters: int
    outcomes: Mapping[str, int]
    remaining: tuple[Remaining, ...]
    groups: Mapping[str, tuple[Group, ...]]
    latency: Mapping[str, tuple[float, ...]]
    answer: Estimate
    reasons: Mapping[str, int]
    quiet: Mapping[str, int]
    tokens: Mapping[str, int]
    drafters: Mapping[str, int]

    @property
    def acceptance(self) -> Estimate:
        """The accepted share of the shown suggestions."""
        return share(self.accepted, self.shown)

    @property
    def character_acceptance(self) -> Estimate:
        """The accepted share of the shown characters."""
        return share(self.taken_characters, self.shown_characters)

    @property
    def written_share(self) -> float:
        """The share of the written characters that came from completion."""
        return min(1.0, self.accepted_characters / self.written_characters) if self.written_characters else 0.0


def day_of(seconds: float) -> str:
    """Return the day of a time in the local time zone, as YYYY-MM-DD."""
    return datetime.fromtimestamp(seconds, UTC).astimezone().strftime("%Y-%m-%d")


def share(successes: int, count: int) -> Estimate:
    """Estimate a proportion with Wilson's score interval ("Probable inference, the law of succession", 1927)."""
    if count == 0:
        return Estimate(0.0, 0.0, 1.0, 0)
    p = successes / count
    centre = (p + _Z**2 / (2 * count)) / (1 + _Z**2 / count)
    half = _Z / (1 + _Z**2 / count) * math.sqrt(p * (1 - p) / count + _Z**2 / (4 * count**2))
    return Estimate(p, max(0.0, centre - half), min(1.0, centre + half), count)


def difference(before: Estimate, after: Estimate) -> Estimate:
    """Estimate after − before for two independent estimates, from their values and intervals.

    For proportions this is Newcombe's method 10 ("Interval estimation for the difference", 1998). Zou and Donner
    ("Construction of confidence limits about effect measures", 2008) extend it to other estimates.
    """
    value = after.value - before.value
    low = value - math.hypot(after.value - after.low, before.high - before.value)
    high = value + math.hypot(after.high - after.value, before.value - before.low)
    return Estimate(value, low, high, before.count + after.count)


def median(values: Sequence[float]) -> Estimate:
    """Estimate the median; its interval is between order statistics (binomial, normal approximation)."""
    count = len(values)
    if count == 0:
        return Estimate(0.0, 0.0, 0.0, 0)
    ordered = sorted(values)
    half = _Z * math.sqrt(count) / 2
    low, high = math.floor(count / 2 - half), math.ceil(count / 2 + half)
    return Estimate(quantile(ordered, 0.5), ordered[max(0, low)], ordered[min(count - 1, high)], count)


def mean(values: Sequence[float]) -> Estimate:
    """Estimate the mean with the interval of the normal approximation."""
    count = len(values)
    if count == 0:
        return Estimate(0.0, 0.0, 0.0, 0)
    value = math.fsum(values) / count
    variance = math.fsum((one - value) ** 2 for one in values) / max(1, count - 1)
    half = _Z * math.sqrt(variance / count)
    return Estimate(value, value - half, value + half, count)


def quantile(ordered: Sequence[float], fraction: float) -> float:
    """Return a quantile of values in ascending order, interpolated linearly; 0 for no values."""
    if not ordered:
        return 0.0
    at = fraction * (len(ordered) - 1)
    below = math.floor(at)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (at - below) * (ordered[above] - ordered[below])
