"""`python -m benchmarks.debounce`: requests that the adaptive wait avoids, and the delay that it adds.

The typing is simulated with a fixed seed. Pauses are log-normal: short within words, longer between words and lines,
and sometimes as long as a thought. No published recording of typing has timestamps fine enough to replay.
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

from lsp_server.suggesting.typing_rhythm import TypingRhythm

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
    """Result of one policy: requests sent, requests answered before the next key, and their mean wait."""

    requests: int
    answered: int
    wait_s: float


def run(pauses: list[float], latency_s: float, wait: Callable[[float, float], float]) -> Outcome:
    """Simulate the typing. `wait` gets the time of a key and the latency, and returns how long the request waits."""
    now, requests, waits = 0.0, 0, []
    for pause in pauses:
        waited_s = wait(now, latency_s)
        now += pause
        if pause > waited_s:
            requests += 1
            if pause > waited_s + latency_s:
                waits.append(waited_s)
    return Outcome(requests, len(waits), mean(waits) if waits else 0.0)


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
    argparse.ArgumentParser(description=__doc__).parse_args()
    table = Table(title=f"fixed wait of {1000 * CONFIGURED_S:.0f} ms → adaptive, {KEYS} keys")
    for column in ("typist", "latency ms", "requests", "answered in time", "mean wait ms"):
        table.add_column(column, justify="left" if column == "typist" else "right")
    avoided, kept, added = [], [], []
    for typist in TYPISTS:
        for latency_s in LATENCIES_S:
            pauses = typist.pauses(Random(SEED))
            fixed = run(pauses, latency_s, lambda _now, _latency: CONFIGURED_S)
            own = run(pauses, latency_s, adaptive())
            avoided.append(1 - own.requests / fixed.requests)
            kept.append(own.answered / fixed.answered)
            added.append(1000 * (own.wait_s - fixed.wait_s))
            table.add_row(
                typist.name,
                f"{1000 * latency_s:.0f}",
                f"{fixed.requests} → {own.requests}",
                f"{fixed.answered} → {own.answered}",
                f"{1000 * fixed.wait_s:.0f} → {1000 * own.wait_s:.0f}",
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
