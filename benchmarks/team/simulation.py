"""Capacity by simulation: people who type, on an engine whose steps cost what was measured or what a card can do.

Time passes in steps of the engine. A step costs a base, reading the weights, and a little for each row: a new token of
a prompt, or a token of an answer. Our host serves one request a step, in the order of `completion.host.job`; an engine
that batches serves all of them. A typist's next key cancels the request before.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from benchmarks.typing.person import Habits, strokes
from benchmarks.typing.scripts import Passage
from benchmarks.typing.tally import Ending, Wait, quantile
from completion.host.job import WHOLE_S

DEBOUNCE_S = 0.06
"""Pause after a key before a request, in seconds: the default of the language server."""
KEY_ROWS = 12
"""New tokens of a prompt after a key, with the prompt before it cached."""
ANSWER_TOKENS = 16
"""Tokens of a whole answer."""
REQUESTS_A_KEY = 0.5
"""Share of the keys that need a request; the others agree with what is shown."""
SECONDS = 30.0
"""Simulated time."""

_TEXT = "    def value_of(self, name: str) -> int:\n        return self.values[name] + len(name)\n\n" * 40
_BILLIONS_7B, _BYTES_7B = 7.6, 15.2e9  # Qwen2.5-Coder-7B in bfloat16
_BANDWIDTH_SHARE, _ARITHMETIC_SHARE = 0.8, 0.5  # of a card's peak; assumptions
_LAUNCH_MS = 1.0  # work of the engine around a step, as an assumption


@dataclass(frozen=True, slots=True)
class Costs:
    """What a step of an engine costs.

    Attributes:
        base_ms: Time of a step without rows.
        row_ms: Time of each row.
        batches: Whether a step serves all requests; otherwise it serves one.
        overhead_ms: Time of a request outside of the steps: planning, grammar, network.
        step_rows: Rows of a step of an answer: one, or more with drafts.
        step_tokens: Tokens that such a step generates.
    """

    base_ms: float
    row_ms: float
    batches: bool
    overhead_ms: float
    step_rows: int = 1
    step_tokens: float = 1.0

    @property
    def steps(self) -> int:
        """Return the number of steps of a whole answer."""
        return math.ceil(ANSWER_TOKENS / self.step_tokens)


def card(bandwidth_bytes_s: float, flops: float) -> Costs:
    """Return the costs of a model of 7 billion parameters on a card, from its published peaks."""
    base_ms = 1e3 * _BYTES_7B / (bandwidth_bytes_s * _BANDWIDTH_SHARE) + _LAUNCH_MS
    return Costs(base_ms, 1e3 * 2e9 * _BILLIONS_7B / (flops * _ARITHMETIC_SHARE), batches=True, overhead_ms=20)


ENGINES = {
    "draftline, 0.5B int8 on 2 cores": Costs(12, 0.7, batches=False, overhead_ms=8, step_rows=9, step_tokens=3.2),
    "vLLM, 0.5B bf16 on 2 cores": Costs(20, 2.5, batches=True, overhead_ms=5),
    "vLLM, 7B bf16 on L4": card(300e9, 121e12),
    "vLLM, 7B bf16 on L40S": card(864e9, 362e12),
    "vLLM, 7B bf16 on A100": card(2039e9, 312e12),
    "vLLM, 7B bf16 on H100": card(3350e9, 989e12),
}
"""Engines by name. Those of the processor fit what was measured for one typist on two cores: a step with one row takes
12.7 ms, and the first text of a keystroke 33 ms; in vLLM a token takes 22.5 ms and a first token 55 ms. Those of the
cards follow from the memory bandwidth and the dense bfloat16 arithmetic in NVIDIA's data sheets."""


@dataclass(slots=True)
class Answer:
    """One answer of a simulated engine. Times are in seconds of the simulation.

    Attributes:
        asked_s: Time of the request.
        until_s: Time of the next key, which makes it obsolete.
        steps: Number of steps that were computed for it.
        shown_s: Time of its first text.
        whole_s: Time of its end.
    """

    asked_s: float
    until_s: float
    steps: int = 0
    shown_s: float = math.inf
    whole_s: float = math.inf

    def rank(self, now_s: float) -> tuple[bool, float]:
        """Return the position in the order of our host; the lowest comes first."""
        return self.steps > 0 and now_s - self.asked_s < WHOLE_S, self.asked_s

    def wait(self, moment_s: float) -> Wait:
        """Return the time from the request to a moment, or to the key before it."""
        came = moment_s < self.until_s
        return Wait(min(moment_s, self.until_s) - self.asked_s, Ending.CAME if came else Ending.CUT)


def arrivals(seed: str, seconds: float) -> Iterator[Answer]:
    """Yield the answers that one typist needs, none of them begun."""
    random = Random(seed)
    now_s, pauses = random.uniform(0, 3), strokes(Passage(0, 0, _TEXT), Habits(), random)
    for stroke, following in itertools.pairwise(pauses):
        now_s += stroke.pause_s
        if now_s > seconds:
            return
        if following.pause_s > DEBOUNCE_S and random.random() < REQUESTS_A_KEY:
            yield Answer(now_s + DEBOUNCE_S, now_s + following.pause_s)


def room(costs: Costs, typists: int, seed: int = 1, seconds: float = SECONDS) -> list[Answer]:
    """Simulate people who type at the same time; return the answers to all their requests."""
    rooms = (arrivals(f"{seed}:{one}", seconds) for one in range(typists))
    everyone = list(heapq.merge(*rooms, key=lambda one: one.asked_s))
    coming, alive, now_s = list(reversed(everyone)), list[Answer](), 0.0
    while coming or alive:
        now_s = now_s if alive else max(now_s, coming[-1].asked_s)
        while coming and coming[-1].asked_s <= now_s:
            alive.append(coming.pop())
        alive = [one for one in alive if one.until_s > now_s and one.steps < costs.steps]
        if alive:
            served = alive if costs.batches else [min(alive, key=lambda one: one.rank(now_s))]
            now_s += _step(costs, served, now_s)
    return everyone


def waits(costs: Costs, typists: int, seconds: float = SECONDS) -> list[Wait]:
    """Simulate a room; return how long each request waited for its first text, or until the next key."""
    return [one.wait(one.shown_s) for one in room(costs, typists, seconds=seconds)]


def _step(costs: Costs, served: Sequence[Answer], now_s: float) -> float:
    """Serve one step; return its time in seconds."""
    rows = sum(costs.step_rows + (0 if one.steps else KEY_ROWS) for one in served)
    step_s = (costs.base_ms + costs.row_ms * rows) / 1e3
    for one in served:
        end_s = now_s + step_s + costs.overhead_ms / 1e3
        one.shown_s = min(one.shown_s, end_s)
        one.steps += 1
        one.whole_s = end_s if one.steps == costs.steps else math.inf
    return step_s


def capacity(costs: Costs, wanted_p95_ms: float, seconds: float = SECONDS) -> int:
    """Return the largest number of typists of which 95 % of the requests get their first text in time."""

    def serves(typists: int) -> bool:
        p95_s = quantile(waits(costs, typists, seconds=seconds), 0.95)
        return p95_s is not None and 1e3 * p95_s <= wanted_p95_ms

    low, high = 0, 1
    while serves(high):
        low, high = high, 2 * high
    while high - low > max(1, low // 16):
        middle = (low + high) // 2
        low, high = (middle, high) if serves(middle) else (low, middle)
    return low


def simulate(typists: Sequence[int], wanted_p95_ms: float) -> dict[str, Any]:
    """Print the times of each engine with each number of typists; return its capacity by name."""
    found: dict[str, int] = {}
    for name, costs in ENGINES.items():
        for count in typists:
            answers = room(costs, count)
            first = _milliseconds([one.wait(one.shown_s) for one in answers])
            whole = _milliseconds([one.wait(one.whole_s) for one in answers])
            print(f"{name:33} {count:4} typists  first text {first}  whole answer {whole}", flush=True)
        found[name] = capacity(costs, wanted_p95_ms)
    return {"typists_at_p95_300ms": found}


def _milliseconds(found: Sequence[Wait]) -> str:
    """Return the median and the 95th percentile of waits, for the table."""
    shares = (quantile(found, share) for share in (0.5, 0.95))
    return " / ".join("   –" if share is None else f"{1e3 * share:4.0f}" for share in shares) + " ms"
