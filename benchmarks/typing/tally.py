"""What benchmarks.typing records, and what it makes of it: quantiles of waits that were cut short, shares, ratios."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum


@dataclass(slots=True)
class RequestRecord:
    """A request that found no text at the cursor: what it waited for, and what came. Moments in seconds, of one clock.

    Attributes:
        asked_s: When the key was pressed, or the request sent.
        expected: What was to be typed there; None where that is not judged.
        first_text_s: When the first text for it stood there.
        first_line_s: When the last character of its first line stood there.
        done_s: When it was complete.
        ended_s: When the next key made it pointless, or the session ended.
        text: What came, from the place where it was asked for.
        replaced: What stands behind the cursor and is replaced by the text.
        contradicted: Something else was typed than came.
        line_grew_s: When its first line last became longer.
        refused: It was answered with nothing: there was no text to wait for.
    """

    asked_s: float
    expected: str | None
    first_text_s: float | None = None
    first_line_s: float | None = None
    done_s: float | None = None
    ended_s: float | None = None
    text: str = ""
    replaced: str = ""
    contradicted: bool = False
    refused: bool = False
    line_grew_s: float | None = None

    def came(self, now_s: float, text: str, replaced: str, *, done: bool) -> None:
        """Text came, all of it so far."""
        if text and self.first_text_s is None:
            self.first_text_s = now_s
        if text.partition("\n")[0] != self.text.partition("\n")[0]:
            self.line_grew_s = now_s
        if text and self.first_line_s is None and (done or "\n" in text):
            self.first_line_s = self.line_grew_s
        if done and self.done_s is None:
            self.done_s = now_s
        self.text, self.replaced = text, replaced

    def end(self, now_s: float, *, contradicted: bool = False) -> None:
        """Nobody waits for more."""
        if self.ended_s is None:
            self.ended_s, self.contradicted = now_s, contradicted

    def refuse(self, now_s: float) -> None:
        """It was answered, with nothing."""
        if self.first_text_s is None:
            self.refused = True
            self.end(now_s)

    @property
    def exact(self) -> bool | None:
        """Whether the first line is just what the line lacked; None where that cannot be said."""
        if self.expected is None or self.first_text_s is None:
            return None
        line, found = self.expected.partition("\n")[0], self.text.partition("\n")[0]
        if self.first_line_s is not None:
            return found in (line, line + self.replaced)
        return False if self.contradicted or not line.startswith(found) else None


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """What stood at the cursor just before a key.

    Attributes:
        offered: Any text.
        right: Its first line was what the line lacked.
    """

    pause_s: float
    offered: bool
    right: bool


@dataclass(slots=True)
class SessionRecord:
    """One script with one assistant.

    Attributes:
        characters: Written, by keys or by accepting.
        keys: Pressed, those that accept included.
        saved_characters: Written by accepting.
        saved_keys: Keys less than without the assistant.
        cpu_s: Processor seconds of everything that worked for the assistant.
        resident_mb: Its memory at the end.
        seconds: How long it took.
        received_characters: Text that came, used or not.
    """

    id: str
    language: str
    characters: int = 0
    keys: int = 0
    accepts: int = 0
    saved_characters: int = 0
    saved_keys: int = 0
    cpu_s: float = 0.0
    resident_mb: float = 0.0
    seconds: float = 0.0
    received_characters: int = 0
    looks: list[KeyRecord] = field(default_factory=list)
    requests: list[RequestRecord] = field(default_factory=list)


class Ending(IntEnum):
    """How a wait ended; at the same moment what came counts before what was cut short."""

    CAME = 0
    REFUSED = 1
    CUT = 2


@dataclass(frozen=True, slots=True, order=True)
class Wait:
    """How long something took, or how long it had taken until something else ended the wait."""

    seconds: float
    ending: Ending


def curve(waits: Sequence[Wait]) -> list[tuple[float, float]]:
    """Moments in seconds, and the share that had come by then of what would ever have come, had no wait been cut short.

    The cumulative incidence of coming beside refusals, as a share of its last value. Source: Aalen, Johansen, "An
    Empirical Transition Matrix for Non-homogeneous Markov Chains Based on Censored Observations", section 3; with
    nothing refused or cut short it is the plain distribution. It needs that what cuts a wait short (the next key) does
    not depend on how long it would have lasted: the pauses are drawn beforehand.
    """
    left, waiting, come = len(waits), 1.0, 0.0
    found: list[tuple[float, float]] = []
    for wait in sorted(waits):
        if wait.ending is Ending.CAME:
            come += waiting / left
            found.append((wait.seconds, come))
        if wait.ending is not Ending.CUT:
            waiting *= 1 - 1 / left
        left -= 1
    return [(seconds, share / come) for seconds, share in found]


def quantile(waits: Sequence[Wait], share: float) -> float | None:
    """The time within which a share of what came would have come; None if nothing did."""
    return next((seconds for seconds, come in curve(waits) if come >= share - 1e-12), None)


def waits(requests: Sequence[RequestRecord], moment: Callable[[RequestRecord], float | None]) -> list[Wait]:
    """How long requests waited for a moment."""
    found: list[Wait] = []
    for request in requests:
        at = moment(request)
        end = at if at is not None else request.ended_s
        if end is not None:
            ending = Ending.CAME if at is not None else Ending.REFUSED if request.refused else Ending.CUT
            found.append(Wait(max(0.0, end - request.asked_s), ending))
    return found


@dataclass(frozen=True, slots=True)
class RowTally:
    """All sessions of one row."""

    sessions: tuple[SessionRecord, ...]

    @property
    def requests(self) -> list[RequestRecord]:
        """Every request."""
        return [request for session in self.sessions for request in session.requests]

    def total(self, value: Callable[[SessionRecord], float]) -> float:
        """A sum over sessions."""
        return sum(value(session) for session in self.sessions)

    def milliseconds(self, moment: Callable[[RequestRecord], float | None], share: float) -> float | None:
        """A quantile of the waits for a moment."""
        found = quantile(waits(self.requests, moment), share)
        return None if found is None else 1e3 * found

    def figures(self) -> dict[str, float | None]:
        """Everything that is reported of a row, by name; None where too little was seen."""
        looks = [look for session in self.sessions for look in session.looks]
        exact = [request.exact for request in self.requests if request.exact is not None]
        answered = sum(request.first_text_s is not None for request in self.requests)
        saved, cpu_s = self.total(lambda one: one.saved_characters), self.total(lambda one: one.cpu_s)
        characters, keys = self.total(lambda one: one.characters), self.total(lambda one: one.saved_keys)
        accepts, received = self.total(lambda one: one.accepts), self.total(lambda one: one.received_characters)
        return {
            "first_text_p50_ms": self.milliseconds(lambda one: one.first_text_s, 0.5),
            "first_text_p95_ms": self.milliseconds(lambda one: one.first_text_s, 0.95),
            "first_line_p50_ms": self.milliseconds(lambda one: one.first_line_s, 0.5),
            "first_line_p95_ms": self.milliseconds(lambda one: one.first_line_s, 0.95),
            "done_p50_ms": self.milliseconds(lambda one: one.done_s, 0.5),
            "requests": len(self.requests),
            "answered": answered,
            "exact_first_line": _share(sum(exact), len(exact)),
            "keys": len(looks),
            "keys_with_text": _share(sum(look.offered for look in looks), len(looks)),
            "keys_with_right_line": _share(sum(look.right for look in looks), len(looks)),
            "saved_characters": _share(saved, characters),
            "saved_keys": _share(keys, keys + self.total(lambda one: one.keys)),
            "accepted_of_answered": _share(accepts, answered),
            "cpu_s": cpu_s,
            "cpu_s_per_saved_character": _share(cpu_s, saved),
            "unused_text": _share(received - saved, received),
            "resident_mb": max((one.resident_mb for one in self.sessions), default=None),
        }  # fmt: skip


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def ratio(numerator: float | None, denominator: float | None) -> float | None:
    """One figure over another; None where one is missing or the lower one is nothing."""
    return numerator / denominator if numerator is not None and denominator else None
