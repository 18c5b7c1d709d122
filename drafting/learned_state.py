"""What drafters learned about their guesses, in one file a model: counts of kinds of evidence, never a token."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path

import numpy as np

from drafting.calibration import CLASSES, SOURCES, WEIGHT_SETS, CalibrationArrays
from drafting.state_files import StateFileError, read_state, write_state

FORMAT = "draftline-calibration-1"


def load_calibration(path: Path, digest: str) -> CalibrationArrays:
    """Read the calibration that was saved for a model of this digest; the default one if there is no usable file."""
    found = read_state(path, lambda data: _decoded(data, digest))
    return default_calibration() if found is None else found


def save_calibration(calibration: CalibrationArrays, path: Path, digest: str) -> None:
    """Write the calibration of a model to a file, completely or not at all.

    Raises:
        OSError: The folder cannot be written, or the disk is full; the old file is unchanged.
    """
    arrays = {name: array.tolist() for name, array in calibration._asdict().items()}
    write_state(path, json.dumps({"format": FORMAT, "model": digest, **arrays}).encode())


def _decoded(data: bytes, digest: str) -> CalibrationArrays:
    table = json.loads(data)
    if not isinstance(table, dict) or table.get("format") != FORMAT:
        raise StateFileError("it is no calibration of this version")
    if table.get("model") != digest:
        raise StateFileError("it belongs to another model")
    return _checked(_arrays_of(table))


def _arrays_of(table: dict[str, list[list[float]]]) -> CalibrationArrays:
    return CalibrationArrays(*(np.array(table[name], dtype=np.float32) for name in CalibrationArrays._fields))


def _checked(arrays: CalibrationArrays) -> CalibrationArrays:
    """Check the arrays and return them.

    Raises:
        StateFileError: A shape is wrong, a number is not finite, or more guesses were right than were seen.
    """
    shapes = ((SOURCES, CLASSES), (SOURCES, CLASSES), (WEIGHT_SETS, SOURCES + 1))
    for name, array, shape in zip(arrays._fields, arrays, shapes, strict=True):
        if array.shape != shape or not np.all(np.isfinite(array)):
            raise StateFileError(f"{name} has shape {array.shape}, expected {shape} of finite numbers")
    if np.any(arrays.right < 0) or np.any(arrays.right > arrays.seen):
        raise StateFileError("more guesses were right than were seen")
    return arrays


def default_calibration() -> CalibrationArrays:
    """Return the calibration measured with the default model on packages' source files, where learning starts."""
    with (resources.files("drafting") / "data" / "calibration.json").open() as file:
        return _arrays_of(json.load(file))
