"""The saved calibration survives a restart, has no tokens, and is refused if it is damaged or another model's."""

from __future__ import annotations

import json
import logging
import mmap
import sys

import numpy as np
import pytest

from completion.memory import resident_bytes
from drafting.calibration import (
    CLASSES,
    SOURCES,
    WEIGHT_SETS,
    CalibrationArrays,
    default_calibration,
    learn,
    load_calibration,
    probability,
    save_calibration,
)
from drafting.draft_budget import StepCosts
from drafting.session import Drafters
from drafting.sources.token_recycling import (
    ALONE,
    PROBES,
    ROWS,
    WIDTH,
    claim_row,
    empty_recycling,
    find_row,
    recycle,
    write_rows,
)
from drafting.verifier import accept_path

VOCABULARY = 50


@pytest.fixture
def drafters() -> Drafters:
    """Drafters that saw the same four tokens many times in a workspace."""
    shared = Drafters(default_calibration(), StepCosts({0: 10.0, 8: 12.0}, 8), VOCABULARY)
    context = [1, 2, 3, 4] * 4
    session = shared.session(context, "workspace")
    for _ in range(10):
        tree = session.propose(context)
        depths, count = tree.depths, len(context)
        path = accept_path(tree, lambda row, d=depths, n=count: (n + (d[row - 1] if row else 0)) % 4 + 1)
        best = np.tile(np.arange(8, dtype=np.int32), (len(tree) + 1, 1))
        session.observe(tree, best, path, 10.0)
        context += path.tokens
    return shared


def is_default(calibration: CalibrationArrays) -> bool:
    return all(map(np.array_equal, calibration, default_calibration()))


def test_a_saved_calibration_is_read_back(drafters, tmp_path):
    path = tmp_path / "folder" / "calibration.json"
    save_calibration(drafters.calibration, path, "model-a")
    read = load_calibration(path, "model-a")
    assert all(map(np.array_equal, read, drafters.calibration))
    assert not is_default(read)
    assert [entry.name for entry in path.parent.iterdir()] == ["calibration.json"]


def test_without_a_file_the_calibration_is_the_default(tmp_path):
    assert is_default(load_calibration(tmp_path / "calibration.json", "model-a"))


def test_the_saved_file_does_not_depend_on_the_written_tokens(tmp_path):
    """The same evidence about other tokens gives the same file, so it cannot reveal text."""
    files = []
    for first in (1, 11, 31):
        shared = Drafters(default_calibration(), StepCosts({0: 10.0, 8: 12.0}, 8), VOCABULARY)
        context = [first, first + 1, first + 2] * 5
        session = shared.session(context, "workspace")
        tree = session.propose(context)
        path = accept_path(tree, lambda _row, token=first: token)
        tops = np.tile(np.arange(first, first + 8, dtype=np.int32), (len(tree) + 1, 1))
        session.observe(tree, tops, path, 10.0)
        save_calibration(shared.calibration, file := tmp_path / str(first), "model-a")
        files.append(file.read_bytes())
    assert len(set(files)) == 1


def test_recycled_candidates_stay_in_their_workspace_and_go_with_it(drafters):
    assert drafters.recycling("workspace").used > 0
    assert drafters.recycling("another").used == 0
    drafters.close_workspace("workspace")
    assert drafters.recycling("workspace").used == 0


def with_number(data: bytes, name: str, value: float) -> bytes:
    table = json.loads(data)
    table[name][0][0] = value
    return json.dumps(table).encode()


@pytest.mark.parametrize(
    ("damage", "digest", "reason"),
    [
        (lambda data: data, "model-b", "another model"),
        (lambda data: data[: len(data) // 2], "model-a", "it is damaged"),
        (lambda _data: b"\x00not ours", "model-a", "it is damaged"),
        (lambda _data: b"", "model-a", "it is damaged"),
        (lambda data: data.replace(b"calibration-1", b"calibration-0", 1), "model-a", "of this version"),
        (lambda data: with_number(data, "right", 1e9), "model-a", "more guesses were right"),
        (lambda data: with_number(data, "weights", float("nan")), "model-a", "finite numbers"),
        (lambda data: with_number(data, "seen", "many"), "model-a", "it is damaged: ValueError"),
    ],
)
def test_a_file_that_cannot_be_used_is_set_aside_with_a_warning(drafters, tmp_path, caplog, damage, digest, reason):
    path = tmp_path / "calibration.json"
    save_calibration(drafters.calibration, path, "model-a")
    path.write_bytes(damage(path.read_bytes()))
    with caplog.at_level(logging.WARNING):
        assert is_default(load_calibration(path, digest))
    assert reason in caplog.text
    assert [entry.name for entry in tmp_path.iterdir()] == ["calibration.json.damaged"]


def test_a_write_that_the_system_refuses_is_an_error_and_leaves_nothing(drafters, tmp_path):
    (tmp_path / "file").write_text("in the place of a folder of the user's")
    with pytest.raises(OSError, match="file"):
        save_calibration(drafters.calibration, tmp_path / "file" / "folder" / "calibration.json", "model-a")
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def untrained() -> CalibrationArrays:
    """Return a calibration without observations."""
    weights = np.zeros((WEIGHT_SETS, SOURCES + 1), dtype=np.float32)
    weights[:, :SOURCES] = 0.5
    zeros = np.zeros((SOURCES, CLASSES), dtype=np.float32)
    return CalibrationArrays(zeros, zeros.copy(), weights)


def test_evidence_that_is_always_right_becomes_likely_and_evidence_that_is_never_right_unlikely():
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


def test_a_full_table_replaces_the_oldest_row():
    memory = empty_recycling(rows=PROBES)
    tops = np.arange(8, dtype=np.int32)[None]
    for before in range(PROBES + 1):
        recycle(memory, np.array([before], dtype=np.int32), np.array([7], dtype=np.int32), tops + before)
    assert [find_row(memory, before, 7) for before in (0, 1)] == [-1, -1]
    assert [memory.candidates[find_row(memory, before, 7), 0] for before in (2, 3, 4, ALONE)] == [2, 3, 4, 4]
    assert claim_row(memory, 2, 7) == find_row(memory, 2, 7)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says what is in memory")
def test_a_workspace_takes_memory_for_the_rows_that_it_has_learned():
    memory, token = empty_recycling(), np.arange(10_000, dtype=np.int32)
    empty = _resident(memory)
    write_rows(memory, np.full_like(token, ALONE), token, np.zeros((len(token), WIDTH), np.int32))
    assert _resident(memory) - empty < 10_000 * 44 + 4 * mmap.PAGESIZE
    assert sum(array.nbytes for array in memory) < 3_200_000
    assert ROWS & (ROWS - 1) == 0


def _resident(memory):
    return resident_bytes([(array.ctypes.data, array.nbytes) for array in memory])
