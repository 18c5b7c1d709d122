"""Records of benchmarks.typing, and their figures: quantiles of censored waits, shares."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from benchmarks.figures import ratio


@dataclass(slots=True)
class RequestRecord:
    """A request without a suggestion on the screen. Times are in seconds of one clock.

    Attributes:
        asked_s: Time of the key or of the request.
        expected: Text that will be typed next, None if the request is not scored.
        first_text_s: Time of the first text.
        first_line_s: Time of the last character of the first line.
        done_s: Time of the complete answer.
        ended_s: Time of the next key that made the request obsolete, or of the end of the session.
        text: Text that came, from the cursor of the request.
        replaced: Text after the cursor that the suggestion replaces.
        contradicted: Whether other text was typed than came.
        refused: Whether the answer was empty.
        line_grew_s: Time at which the first line last grew.
        follows: Whether it is the first request after the acceptance of a whole suggestion.
        computed_tokens: Prompt tokens that were computed for it; None where that is not known.
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
    follows: bool = False
    computed_tokens: int | None = None

    def came(self, now_s: float, text: str, replaced: str, *, done: bool) -> None:
        """Record the whole text that has come so far."""
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
        """Record the end of the wait."""
        if self.ended_s is None:
            self.ended_s, self.contradicted = now_s, contradicted

    def refuse(self, now_s: float) -> None:
        """Record an empty answer."""
        if self.first_text_s is None:
            self.refused = True
            self.end(now_s)

    @property
    def exact(self) -> bool | None:
        """Return whether the first line completes the line exactly, None if that is unknown."""
        if self.expected is None or self.first_text_s is None:
            return None
        line, found = self.expected.partition("\n")[0], self.text.partition("\n")[0]
        if self.first_line_s is not None:
            return found in (line, line + self.replaced)
        return False if self.contradicted or not line.startswith(found) else None


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """The state of the screen before a key.

    Attributes:
        pause_s: Pause before the key, as drawn for the text.
        offered: Whether there was a suggestion.
        right: Whether its first line completed the line exactly.
        at_s: Time of the key by the clock of the requests.
        shown_s: Time that the suggestion had been on the screen, 0 if there was none.
        asked: Whether a key before it, at this position of the file, could ask for a suggestion.
    """

    pause_s: float
    offered: bool
    right: bool
    at_s: float
    shown_s: float
    asked: bool


@dataclass(slots=True)
class SessionRecord:
    """One script with one assistant.

    Attributes:
        characters: Written characters, typed or accepted.
        keys: Pressed keys, accepting keys included.
        accepts: Number of accepted suggestions or parts.
        saved_characters: Characters written by accepting.
        saved_keys: Keys that accepting saved.
        cpu_s: Processor seconds of all processes of the assistant.
        resident_mb: Memory of these processes at the end.
        seconds: Duration of the session.
        received_characters: Suggested characters, used or not.
        looks: State of the screen before each key.
        requests: Requests without a suggestion on the screen.
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
    """How a wait ended. The order decides between waits of equal length: arrivals count first."""

    CAME = 0
    REFUSED = 1
    CUT = 2


@dataclass(frozen=True, slots=True, order=True)
class Wait:
    """Duration of a wait, until its event or until something else ended it."""

    seconds: float
    ending: Ending


def curve(waits: Sequence[Wait]) -> list[tuple[float, float]]:
    """Return the estimated distribution of the arrivals, as pairs of seconds and a cumulative share.

    It is the cumulative incidence of arrivals with refusals as the competing event, as a share of its last value.
    Source: Aalen, Johansen, "An Empirical Transition Matrix for Non-homogeneous Markov Chains Based on Censored
    Observations", section 3. Without refused or cut waits it is the empirical distribution. It assumes that the event
    that cuts a wait, the next key, does not depend on the length of the wait. This holds because the pauses are drawn
    before the session.
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
    """Return a quantile of the arrivals in seconds, None if there are none."""
    return next((seconds for seconds, come in curve(waits) if come >= share - 1e-12), None)


def waits(requests: Sequence[RequestRecord], moment: Callable[[RequestRecord], float | None]) -> list[Wait]:
    """Return the waits of requests for the event whose time `moment` returns."""
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
    """Sessions of one row."""

    sessions: tuple[SessionRecord, ...]

    @property
    def requests(self) -> list[RequestRecord]:
        """Return all requests."""
        return [request for session in self.sessions for request in session.requests]

    def total(self, value: Callable[[SessionRecord], float]) -> float:
        """Return the sum of a value over the sessions."""
        return sum(value(session) for session in self.sessions)

    def milliseconds(self, moment: Callable[[RequestRecord], float | None], share: float) -> float | None:
        """Return a quantile of the waits for an event, in milliseconds."""
        found = quantile(waits(self.requests, moment), share)
        return None if found is None else 1e3 * found

    def figures(self) -> dict[str, float | None]:
        """Return the figures of the row by name, None where there is no data."""
        looks = [look for session in self.sessions for look in session.looks]
        exact = [request.exact for request in self.requests if request.exact is not None]
        answered = sum(request.first_text_s is not None for request in self.requests)
        saved, cpu_s = self.total(lambda one: one.saved_characters), self.total(lambda one: one.cpu_s)
        characters, keys = self.total(lambda one: one.characters), self.total(lambda one: one.saved_keys)
        accepts, received = self.total(lambda one: one.accepts), self.total(lambda one: one.received_characters)
        return {
            "sessions": len(self.sessions),
            "first_text_p50_ms": self.milliseconds(lambda one: one.first_text_s, 0.5),
            "first_text_p95_ms": self.milliseconds(lambda one: one.first_text_s, 0.95),
            "first_line_p50_ms": self.milliseconds(lambda one: one.first_line_s, 0.5),
            "first_line_p95_ms": self.milliseconds(lambda one: one.first_line_s, 0.95),
            "done_p50_ms": self.milliseconds(lambda one: one.done_s, 0.5),
            "requests": len(self.requests),
            "answered": answered,
            "exact_first_line": ratio(sum(exact), len(exact)),
            "keys": len(looks),
            "keys_with_text": ratio(sum(look.offered for look in looks), len(looks)),
            "keys_with_right_line": ratio(sum(look.right for look in looks), len(looks)),
            "saved_characters": ratio(saved, characters),
            "saved_keys": ratio(keys, keys + self.total(lambda one: one.keys)),
            "accepted_of_answered": ratio(accepts, answered),
            "cpu_s": cpu_s,
            "cpu_s_per_saved_character": ratio(cpu_s, saved),
            "unused_text": ratio(received - saved, received),
            "resident_mb": max((one.resident_mb for one in self.sessions), default=None),
        }  # fmt: skip
