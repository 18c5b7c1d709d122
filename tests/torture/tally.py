"""What an attack counts, and what it finds."""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Finding:
    """A promise that was broken; `replay` starts the same round again."""

    part: str
    seed: int
    what: str

    @property
    def replay(self) -> str:
        """The command that repeats it."""
        return f"python -m tests.torture --part {self.part} --round {self.seed}"


@dataclass(slots=True)
class Round:
    """One round of one part: its seed, its counts, what it found.

    Attributes:
        is_busy: Whether other programs use the processors: only deafness that they cannot cause counts.
        deaf_ms: The longest time that an event loop or an engine's thread did not listen, and where.
        answer_ms: The longest time that a request waited for its answer.
        recovery_s: The longest time from a kill to the next suggestion.
    """

    part: str
    seed: int
    is_busy: bool = False
    counts: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    deaf_ms: float = 0.0
    deaf_where: str = ""
    answer_ms: float = 0.0
    recovery_s: float = 0.0

    def found(self, what: str) -> None:
        """Note a broken promise; the same one counts once in a round."""
        finding = Finding(self.part, self.seed, what)
        if finding not in self.findings:
            self.findings.append(finding)

    def waited(self, since_s: float) -> None:
        """A request that was sent at this moment was answered now."""
        self.answer_ms = max(self.answer_ms, 1000 * (time.monotonic() - since_s))

    def recovered(self, since_s: float) -> None:
        """After what was killed at this moment there is a suggestion now."""
        self.recovery_s = max(self.recovery_s, time.monotonic() - since_s)

    def deaf(self, ms: float, where: str) -> None:
        """Somebody did not listen for so long."""
        if ms > self.deaf_ms:
            self.deaf_ms, self.deaf_where = ms, where


@dataclass(slots=True)
class Tally:
    """The sum of all rounds; several threads add to it."""

    total: Round = field(default_factory=lambda: Round("all", 0))
    rounds: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, done: Round) -> None:
        """Take in a round."""
        with self._lock:
            self.rounds[done.part] += 1
            self.total.counts += done.counts
            self.total.findings += done.findings
            self.total.deaf(done.deaf_ms, f"{done.part} {done.seed}: {done.deaf_where}")
            self.total.answer_ms = max(self.total.answer_ms, done.answer_ms)
            self.total.recovery_s = max(self.total.recovery_s, done.recovery_s)

    def line(self) -> dict[str, object]:
        """The last line that is printed."""
        names = ("edits", "requests", "unanswered", "malformed_messages", "kills")
        return {
            **{name: self.total.counts[name] for name in names},
            "findings": len(self.total.findings),
            "longest_deaf_ms": round(self.total.deaf_ms, 1),
            "longest_answer_ms": round(self.total.answer_ms, 1),
            "longest_recovery_s": round(self.total.recovery_s, 1),
            "rounds": dict(self.rounds),
        }
