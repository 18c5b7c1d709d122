"""Figures of the benchmarks: quantities of no sample are null, and a percentile means the same everywhere."""

import json

import numpy as np
import pytest

from benchmarks import gpu_replay, typing_ablation
from benchmarks.figures import percentile, ratio, rounded
from benchmarks.instruct.__main__ import summary
from benchmarks.team.agreement import compared, times


@pytest.mark.parametrize("share", [0.0, 0.5, 0.9, 0.95, 1.0])
def test_a_percentile_is_that_of_numpy(share):
    values = [3.0, 1.0, 4.0, 1.5, 9.0, 2.6]
    assert percentile(values, share) == pytest.approx(np.quantile(values, share))


def test_figures_of_nothing_are_none():
    assert (percentile([], 0.95), ratio(1.0, 0.0), ratio(None, 1.0), rounded(None, 2)) == (None,) * 4


def test_benchmarks_without_a_sample_print_null(capsys):
    empty = {row: typing_ablation.Tally() for row in typing_ablation.ROWS}
    typing_ablation.print_table(empty)
    found = [
        typing_ablation.figures(empty),
        gpu_replay.figures({gpu_replay.DRAFTS: gpu_replay.Times(), gpu_replay.PLAIN: gpu_replay.Times()}),
        summary([]),
        compared([], [], []),
        times([]),
    ]
    names = ("pie_first_p95_ratio", "whole_p50_ms", "median_speedup", "exact_local", "cancelled_max_ms")
    assert [figures[name] for figures, name in zip(found, names, strict=True)] == [None] * len(names)
    assert "NaN" not in json.dumps(found)
    assert "–" in capsys.readouterr().out
