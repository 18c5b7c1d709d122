"""What was learned survives a restart, and is refused when it is not what it says."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from drafting.calibration import CLASSES, SOURCES, WEIGHT_SETS, CalibrationArrays, learn, probability
from drafting.draft_budget import StepCosts
from drafting.learned_state import LearnedState
from drafting.session import Drafters
from drafting.sources.token_recycling import PAIR_ROWS, PROBES, claim_pair, empty_recycling, find_pair, recycle
from drafting.verifier import accept_path

VOCABULARY = 50


@pytest.fixture
def learned() -> LearnedState:
    state = LearnedState.fresh(VOCABULARY)
    drafters = Drafters(state, StepCosts({0: 10.0, 8: 12.0}, 8))
    context = [1, 2, 3, 4] * 4
    session = drafters.session(context)
    for _ in range(10):
        tree = session.propose(context)
        depths, count = tree.depths, len(context)
        path = accept_path(tree, lambda row, d=depths, n=count: (n + (d[row - 1] if row else 0)) % 4 + 1)
        best = np.tile(np.arange(8, dtype=np.int32), (len(tree) + 1, 1))
        session.observe(tree, best, path, 10.0)
        context += path.tokens
    return state


def test_a_saved_state_is_read_back(learned, tmp_path):
    path = tmp_path / "folder" / "state"
    learned.save(path, "model-a")
    read = LearnedState.load(path, "model-a", VOCABULARY)
    for saved, loaded in zip(
        (*learned.recycling, *learned.calibration), (*read.recycling, *read.calibration), strict=True
    ):
        assert np.array_equal(saved, loaded)
    assert [entry.name for entry in path.parent.iterdir()] == ["state"]


def test_nothing_saved_is_a_fresh_start(tmp_path):
    state = LearnedState.load(tmp_path / "state", "model-a", VOCABULARY)
    assert (state.recycling.single < 0).all()


@pytest.mark.parametrize(
    ("damage", "digest", "reason"),
    [
        (lambda data: data, "model-b", "another model"),
        (lambda data: data[:-100] + bytes([data[-100] ^ 1]) + data[-99:], "model-a", "altered"),
        (lambda data: data[: len(data) // 2], "model-a", "altered"),
        (lambda _data: b"not ours at all", "model-a", "no file of learned"),
        (lambda _data: b"", "model-a", "no file of learned"),
        (lambda data: data.replace(b"drafting-1", b"drafting-0", 1), "model-a", "another version"),
    ],
)
def test_a_file_that_does_not_fit_is_set_aside_with_a_message(learned, tmp_path, caplog, damage, digest, reason):
    path = tmp_path / "state"
    learned.save(path, "model-a")
    path.write_bytes(damage(path.read_bytes()))
    with caplog.at_level(logging.WARNING):
        state = LearnedState.load(path, digest, VOCABULARY)
    assert (state.recycling.single < 0).all()
    assert reason in caplog.text
    assert [entry.name for entry in tmp_path.iterdir()] == ["state.refused"]


def test_a_failed_write_leaves_the_old_file(learned, tmp_path):
    path = tmp_path / "state"
    path.mkdir()  # a folder cannot be replaced by a file
    with pytest.raises(OSError, match="state"):
        learned.save(path, "model-a")
    assert [entry.name for entry in tmp_path.iterdir()] == ["state"]


def untrained() -> CalibrationArrays:
    """Knows nothing but the priors."""
    weights = np.zeros((WEIGHT_SETS, SOURCES + 1), dtype=np.float32)
    weights[:, :SOURCES] = 0.5
    zeros = np.zeros((SOURCES, CLASSES), dtype=np.float32)
    return CalibrationArrays(zeros, zeros.copy(), weights)


def test_a_guess_that_is_always_right_is_believed_and_one_that_never_is_is_not():
    calibration = untrained()
    always, never = (np.array([kind, -1, -1, -1], dtype=np.int32) for kind in (1, 2))
    for _ in range(100):
        learn(calibration, always, 0, 1.0)
        learn(calibration, never, 0, 0.0)
    assert probability(calibration, always, 0) > 0.9
    assert probability(calibration, never, 0) < 0.1


def test_calibration_follows_a_change():
    calibration = untrained()
    kinds = np.array([1, -1, -1, -1], dtype=np.int32)
    for _ in range(3000):
        learn(calibration, kinds, 0, 1.0)
    for _ in range(3000):
        learn(calibration, kinds, 0, 0.0)
    assert probability(calibration, kinds, 0) < 0.2
    assert calibration.seen[0, 1] <= 2000


def test_a_full_pair_table_forgets_the_oldest_pair():
    memory = empty_recycling(VOCABULARY, pair_rows=PROBES)
    tops = np.arange(8, dtype=np.int32)[None]
    for before in range(PROBES + 1):
        recycle(memory, np.array([before], dtype=np.int32), np.array([7], dtype=np.int32), tops + before)
    assert find_pair(memory, 0, 7) == -1
    assert [memory.pair_rows[find_pair(memory, before, 7), 0] for before in range(1, PROBES + 1)] == [1, 2, 3, 4]
    assert memory.single[7, 0] == PROBES
    assert claim_pair(memory, 1, 7) == find_pair(memory, 1, 7)


def test_recycling_stays_within_its_memory():
    assert sum(array.nbytes for array in empty_recycling(151_936)) < 10_000_000
    assert PAIR_ROWS & (PAIR_ROWS - 1) == 0
