"""Engines held to the instruction sets of another processor."""

import os
import subprocess
import sys

from benchmarks.engine import instruction_sets

ASKS = "from completion.model.int8.kernels import processor; print(*processor.FEATURES)"


def test_the_kernels_of_a_limited_process_use_nothing_beyond_the_limit_and_still_run_int8():
    environment = {**os.environ, **instruction_sets._LIMITS["avx2,fma"]}
    done = subprocess.run([sys.executable, "-c", ASKS], env=environment, capture_output=True, text=True, check=True)
    features = set(done.stdout.split())
    assert {"avx2", "fma", "f16c"} <= features
    assert not [name for name in features if name.startswith("avx512") or "vnni" in name or "amx" in name]


def test_a_process_knows_whether_it_is_limited(monkeypatch):
    monkeypatch.delenv("NUMBA_CPU_FEATURES", raising=False)
    assert not instruction_sets.limited("avx2,fma")
    for name, value in instruction_sets._LIMITS["avx2,fma"].items():
        monkeypatch.setenv(name, value)
    assert instruction_sets.limited("avx2,fma")
