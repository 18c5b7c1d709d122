"""`python -m benchmarks.debounce`: what the adaptive wait does to requests, to answers that fit, and to their delay.

The typing is simulated with a fixed seed. Pauses are log-normal: short within words, longer between words and lines,
and sometimes as long as a thought. No published recording of typing has timestamps fine enough to replay. A key
keeps the request if it follows the text on its way, and ends it otherwise; as many follow as the wait counts on.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from statistics import mean

from rich.console import Console
from rich.table import Table

from lsp_server.suggesting.typing_rhythm import FOLLOW_CHANCE, TypingRhythm

KEYS = 4_000
"""Number of keys that each typist presses."""
CONFIGURED_S = 0.06
"""Configured wait, in seconds: the default of the server."""
SEED = 20240501


@dataclass(frozen=True, slots=True)
class Typist:
    """A way of typing, as median pauses in seconds.

    Attributes:
        within_s: Pause between two letters of a word.
        between_s: Pause between two words or lines.
        thought_s: Pause for a thought.
        spread: Standard deviation of the logarithm of a pause.
    """

    name: str
    within_s: float
    between_s: float
    thought_s: float
    spread: float = 0.45

    def pauses(self, random: Random) -> list[float]:
        """Draw the pause after each key."""
        kinds = random.choices((self.within_s, self.between_s, self.thought_s), (0.78, 0.18, 0.04), k=KEYS)
        return [median * math.exp(random.gauss(0, self.spread)) for median in kinds]


TYPISTS = (
    Typist("quick", 0.09, 0.18, 1.5),
    Typist("usual", 0.16, 0.35, 2.5),
    Typist("slow", 0.38, 0.8, 4.0),
)
LATENCIES_S = (0.05, 0.2, 0.6)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of one policy: requests sent, those whose answer fits, and the mean time from a key to such an answer."""

    requests: int
    answered: int
    answer_s: float


def run(pauses: list[float], latency_s: float, wait: Callable[[float, float], float]) -> Outcome:
    """Simulate the typing. `wait` gets the time of a key and the latency, and returns how long the request waits."""
    random, now, requests = Random(SEED), 0.0, 0
    key_s = sent_s = -math.inf  # of the latest request; it ended if `key_s` is infinite
    answers: list[float] = []
    for pause in pauses:
        waited_s = wait(now, latency_s)
        if math.isinf(key_s) or random.random() >= FOLLOW_CHANCE:
            key_s, sent_s = now, now + waited_s
        is_new, now = sent_s >= now, now + pause
        if sent_s >= now:
            key_s = -math.inf  # the next key came within the wait
            continue
        requests += is_new
        if sent_s + latency_s < now:
            answers.append(sent_s + latency_s - key_s)
            key_s = -math.inf
    return Outcome(requests, len(answers), mean(answers) if answers else 0.0)


def adaptive() -> Callable[[float, float], float]:
    """Return the policy of the server."""
    rhythm = TypingRhythm()

    def wait(now: float, latency_s: float) -> float:
        rhythm.key(now)
        rhythm.answered(latency_s)
        return rhythm.wait_s(CONFIGURED_S)

    return wait


def main() -> None:
    """Compare the adaptive wait with the fixed wait for each typist and latency."""
    argparse.ArgumentParser(prog="python -m benchmarks.debounce", description=__doc__).parse_args()
    table = Table(title=f"fixed wait of {1000 * CONFIGURED_S:.0f} ms → adaptive, {KEYS} keys")
    for column in ("typist", "latency ms", "requests", "answered", "time to the answer ms"):
        table.add_column(column, justify="left" if column == "typist" else "right")
    avoided, kept, added = [], [], []
    for typist in TYPISTS:
        for latency_s in LATENCIES_S:
            pauses = typist.pauses(Random(SEED))
            fixed = run(pauses, latency_s, lambda _now, _latency: CONFIGURED_S)
            own = run(pauses, latency_s, adaptive())
            avoided.append(1 - own.requests / fixed.requests)
            kept.append(own.answered / fixed.answered)
            added.append(1000 * (own.answer_s - fixed.answer_s))
            table.add_row(
                typist.name,
                f"{1000 * latency_s:.0f}",
                f"{fixed.requests} → {own.requests}",
                f"{fixed.answered} → {own.answered}",
                f"{1000 * fixed.answer_s:.0f} → {1000 * own.answer_s:.0f}",
            )
    Console(width=110).print(table)
    figures = {
        "requests_avoided": round(mean(avoided), 3),
        "answers_kept": round(mean(kept), 3),
        "added_delay_ms": round(mean(added), 1),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
