"""What drafters learned, in one file a model: written whole or not at all, refused where it is not what it says."""

from __future__ import annotations

import hashlib
import io
import json
import logging
import os
import tempfile
import zipfile
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import numpy as np

from drafting.calibration import CLASSES, SOURCES, WEIGHT_SETS, CalibrationArrays
from drafting.sources.token_recycling import WIDTH, RecyclingArrays, empty_recycling

logger = logging.getLogger(__name__)

FORMAT = "draftline-drafting-1"


class _RefusedError(Exception):
    """A state file cannot be used; the message says why."""


@dataclass(frozen=True, slots=True)
class LearnedState:
    """What outlives the process: likely successors of tokens, and how far guesses can be trusted."""

    recycling: RecyclingArrays
    calibration: CalibrationArrays

    @classmethod
    def fresh(cls, vocabulary_size: int) -> LearnedState:
        """Nothing about the model yet; the chances of guesses as they usually are in source code."""
        return cls(empty_recycling(vocabulary_size), usual_calibration())

    @classmethod
    def load(cls, path: Path, digest: str, vocabulary_size: int) -> LearnedState:
        """Read what was saved for a model; fresh where there is nothing, or nothing that fits.

        A file that was altered, or belongs to another model, is renamed to `*.refused` with a warning.

        Args:
            path: The file.
            digest: Identifies the model's weights.
            vocabulary_size: Rows of the recycling matrix.
        """
        try:
            return _decode(path.read_bytes(), digest, vocabulary_size)
        except FileNotFoundError:
            return cls.fresh(vocabulary_size)
        except _RefusedError as refusal:
            aside = path.with_name(path.name + ".refused")
            path.replace(aside)
            logger.warning("%s: %s; it is set aside as %s, and drafting learns anew", path, refusal, aside.name)
            return cls.fresh(vocabulary_size)

    def save(self, path: Path, digest: str) -> None:
        """Write the state for a model in one piece.

        Raises:
            OSError: The folder cannot be written to, or the disk is full; the old file is unharmed.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_encode(self, digest))
            Path(name).replace(path)
        except OSError:
            Path(name).unlink(missing_ok=True)
            raise


def _encode(state: LearnedState, digest: str) -> bytes:
    """A line of JSON that says what follows, then the arrays; of the matrix only the rows that hold something."""
    used = np.flatnonzero(state.recycling.single[:, 0] >= 0).astype(np.int32)
    pairs = np.flatnonzero(state.recycling.pair_keys >= 0).astype(np.int32)
    content = io.BytesIO()
    np.savez(
        content,
        used=used,
        single=state.recycling.single[used],
        pairs=pairs,
        pair_keys=state.recycling.pair_keys[pairs],
        pair_rows=state.recycling.pair_rows[pairs],
        ages=state.recycling.ages[pairs],
        clock=state.recycling.clock,
        **state.calibration._asdict(),
    )
    body = content.getvalue()
    header = {"format": FORMAT, "model": digest, "blake2b": hashlib.blake2b(body).hexdigest()}
    return json.dumps(header).encode() + b"\n" + body


def _decode(data: bytes, digest: str, vocabulary_size: int) -> LearnedState:
    head, _, body = data.partition(b"\n")
    try:
        header = json.loads(head)
    except ValueError:
        raise _RefusedError("it is no file of learned drafting state") from None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise _RefusedError("it is no file of learned drafting state, or one of another version")
    if header.get("model") != digest:
        raise _RefusedError("it belongs to another model")
    if header.get("blake2b") != hashlib.blake2b(body).hexdigest():
        raise _RefusedError("it was altered or cut short after it was written")
    try:
        with np.load(io.BytesIO(body), allow_pickle=False) as arrays:
            return LearnedState(_recycling_of(arrays, vocabulary_size), _calibration_of(arrays))
    except (KeyError, IndexError, ValueError, zipfile.BadZipFile) as error:
        raise _RefusedError(f"its arrays do not fit this version ({error})") from None


def _recycling_of(arrays: np.lib.npyio.NpzFile, vocabulary_size: int) -> RecyclingArrays:
    memory = empty_recycling(vocabulary_size)
    if arrays["single"].shape[1:] != (WIDTH,) or arrays["pair_rows"].shape[1:] != (WIDTH,):
        raise ValueError(f"rows of candidates are not {WIDTH} wide")
    memory.single[arrays["used"]] = arrays["single"]
    pairs = arrays["pairs"]
    memory.pair_keys[pairs] = arrays["pair_keys"]
    memory.pair_rows[pairs] = arrays["pair_rows"]
    memory.ages[pairs] = arrays["ages"]
    memory.clock[:] = arrays["clock"]
    return memory


def _calibration_of(arrays: np.lib.npyio.NpzFile) -> CalibrationArrays:
    shapes = {"right": (SOURCES, CLASSES), "seen": (SOURCES, CLASSES), "weights": (WEIGHT_SETS, SOURCES + 1)}
    for name, shape in shapes.items():
        if arrays[name].shape != shape or not np.all(np.isfinite(arrays[name])):
            raise ValueError(f"{name} has shape {arrays[name].shape}, expected {shape}")
    return CalibrationArrays(*(np.array(arrays[name], dtype=np.float32) for name in shapes))


def usual_calibration() -> CalibrationArrays:
    """Chances of guesses as measured with the default model on packages' source files; learning goes on from there."""
    with (resources.files("drafting") / "data" / "calibration.json").open() as file:
        table = json.load(file)
    return CalibrationArrays(*(np.array(table[name], dtype=np.float32) for name in CalibrationArrays._fields))
