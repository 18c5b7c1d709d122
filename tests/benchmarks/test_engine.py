"""How benchmarks.engine takes turns."""

import itertools

import numpy as np

from benchmarks.engine import __main__ as engine
from benchmarks.engine.__main__ import PAST, ROWS, Memory, measure


class _Path:
    """A forward pass that computes nothing and notes who calls."""

    def __init__(self, name, calls):
        self.name = name
        self._calls = calls

    def prefill(self, tokens):
        self._calls.append(("prefill", self.name))

    def score(self, tokens):
        self._calls.append((f"rows_{len(tokens)}", self.name))


def test_no_path_is_always_the_first_and_no_first_call_counts(monkeypatch):
    monkeypatch.setattr(engine, "SETTLE_S", 0.0)
    monkeypatch.setattr(engine, "READ_BYTES", 1 << 20)
    calls = []
    names = ["a", "b", "c"]
    memory = Memory(1)
    times = measure([_Path(name, calls) for name in names], np.zeros(PAST + max(ROWS), np.int32), 8, memory)
    assert memory.bytes_per_s > 0
    for case, counted in {"prefill": 2, **{f"rows_{rows}": 8 for rows in ROWS}}.items():
        assert all(len(found[case]) == counted for found in times.values())
        called = [name for what, name in calls if what == case]
        calls_each = 1 if case == "prefill" else 2  # a step is timed that follows another
        assert len(called) == calls_each * len(names) * (counted + 1)
        assert called[:: calls_each * len(names)] == list(itertools.islice(itertools.cycle(names), counted + 1))
