"""What drafters learned of their own guesses, in one file a model: numbers about kinds of evidence, never a token."""

from __future__ import annotations

import json
import logging
import os
import tempfile
from importlib import resources
from pathlib import Path

import numpy as np

from drafting.calibration import CLASSES, SOURCES, WEIGHT_SETS, CalibrationArrays

logger = logging.getLogger(__name__)

FORMAT = "draftline-calibration-1"


class _RefusedError(Exception):
    """A file cannot be used; the message says why."""


def load_calibration(path: Path, digest: str) -> CalibrationArrays:
    """Read what was saved for a model; the usual calibration where there is nothing, or nothing that fits.

    A file that cannot be used is deleted with a warning, and learning starts anew.

    Args:
        path: The file.
        digest: Identifies the model's weights.
    """
    try:
        return _decoded(path.read_bytes(), digest)
    except FileNotFoundError:
        return usual_calibration()
    except _RefusedError as refusal:
        logger.warning("%s is deleted, and drafting learns anew: %s.", path, refusal)
        delete_files([path])
        return usual_calibration()


def save_calibration(calibration: CalibrationArrays, path: Path, digest: str) -> None:
    """Write the calibration for a model in one piece.

    Raises:
        OSError: The folder cannot be written to, or the disk is full; the old file is unharmed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    arrays = {name: array.tolist() for name, array in calibration._asdict().items()}
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump({"format": FORMAT, "model": digest, **arrays}, file)
        Path(name).replace(path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise


def delete_token_files(folder: Path) -> None:
    """Delete files of earlier versions, which held the tokens of what was written: `*.npz` and leftovers of them."""
    delete_files(sorted(folder.glob("*.npz*")))


def delete_files(paths: list[Path]) -> None:
    """Delete files; one that cannot be deleted is named in a warning."""
    for path in paths:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            logger.warning("%s cannot be deleted (%s). Delete it yourself.", path, error.strerror)


def _decoded(data: bytes, digest: str) -> CalibrationArrays:
    try:
        table = json.loads(data)
    except ValueError:
        raise _RefusedError("it is not a calibration file") from None
    if not isinstance(table, dict) or table.get("format") != FORMAT:
        raise _RefusedError("it is not a calibration file of this version")
    if table.get("model") != digest:
        raise _RefusedError("it belongs to another model")
    try:
        return _checked(_arrays_of(table))
    except (KeyError, TypeError, ValueError) as error:
        raise _RefusedError(f"its numbers cannot be used ({error})") from None


def _arrays_of(table: dict[str, list[list[float]]]) -> CalibrationArrays:
    return CalibrationArrays(*(np.array(table[name], dtype=np.float32) for name in CalibrationArrays._fields))


def _checked(arrays: CalibrationArrays) -> CalibrationArrays:
    """The same arrays.

    Raises:
        ValueError: A shape is wrong, a number is not finite, or more guesses were right than were seen.
    """
    shapes = ((SOURCES, CLASSES), (SOURCES, CLASSES), (WEIGHT_SETS, SOURCES + 1))
    for name, array, shape in zip(arrays._fields, arrays, shapes, strict=True):
        if array.shape != shape or not np.all(np.isfinite(array)):
            raise ValueError(f"{name} has shape {array.shape}, expected {shape} of finite numbers")
    if np.any(arrays.right < 0) or np.any(arrays.right > arrays.seen):
        raise ValueError("more guesses were right than were seen")
    return arrays


def usual_calibration() -> CalibrationArrays:
    """Chances of guesses as measured with the default model on packages' source files; learning goes on from there."""
    with (resources.files("drafting") / "data" / "calibration.json").open() as file:
        return _arrays_of(json.load(file))
