"""How benchmarks.engine takes turns."""

import itertools

import numpy as np

from benchmarks.engine.__main__ import PAST, ROWS, measure


class _Path:
    """A forward pass that computes nothing and notes who calls."""

    def __init__(self, name, calls):
        self.name = name
        self._calls = calls

    def prefill(self, tokens):
        self._calls.append(("prefill", self.name))

    def score(self, tokens):
        self._calls.append((f"rows_{len(tokens)}", self.name))


def test_no_path_is_always_the_first_and_no_first_call_counts():
    calls = []
    names = ["a", "b", "c"]
    times = measure([_Path(name, calls) for name in names], np.zeros(PAST + max(ROWS), np.int32), 8)
    for case, counted in {"prefill": 2, **{f"rows_{rows}": 8 for rows in ROWS}}.items():
        assert all(len(found[case]) == counted for found in times.values())
        called = [name for what, name in calls if what == case]
        assert len(called) == len(names) * (counted + 1)
        assert called[:: len(names)] == list(itertools.islice(itertools.cycle(names), counted + 1))
