"""The client of benchmarks.workspace_index, with the real queue of the engine."""

import pytest

from benchmarks.workspace_index import Typist, latency_ratio
from completion.errors import DraftlineError


def test_a_model_that_cannot_be_loaded_ends_the_benchmark():
    with pytest.raises(DraftlineError, match="/there/is/no/such/model"):
        Typist("/there/is/no/such/model", ())


def test_an_answer_is_timed(tiny_qwen2):
    typist = Typist(str(tiny_qwen2), ["def add(a, b):\n    return a + b\n" * 3])
    assert typist.median_latency_ms() > 0
    typist.stop()


def test_too_few_files_are_named():
    with pytest.raises(SystemExit, match="2 files are too few"):
        latency_ratio("/there/is/no/such/model", {"a.py": "a = 1", "b.py": "b = 2"})
