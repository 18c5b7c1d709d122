"""Packs a model's weights into one file, in the layout of the kernels."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from completion.errors import UnsupportedModelError
from completion.model.architecture import Architecture, read_architecture
from completion.model.int8.kernels.processor import weight_layout
from completion.model.int8.kernels.sizes import CHANNELS, GROUP_LIMIT, VALUE_CHANNELS
from completion.model.int8.worker_threads import usable_threads
from completion.model.store.converted_models import packed_name, read_record
from completion.model.store.disk import file_states
from completion.model.store.gguf_source import has_kernels, source_files
from completion.model.store.tensor_shapes import checked_tensors
from completion.progress import Progress
from drafting.arrays import FloatArray

if TYPE_CHECKING:
    from completion.model.int8.sections import MatrixSource

FORMAT = 5
"""Version of the packed layout; a change packs all models again."""
_ALIGNMENT = 4096  # of a section in the file
ROWS = "embeddings"
"""Last section of the file. Few of its rows are ever read, so they are read when they are needed."""
BLOCK_BYTES = 1 << 16
"""Bytes of the file with one checksum.

A sum of 64-bit words, which detects zeros, truncation and changed bytes, is as fast as reading memory; a cryptographic
checksum is not.
"""
SAMPLED_EVERY = 64
"""Of the blocks that loading does not read, one in this many is checked: 4 MB of the default model's 272 MB."""
SumArray = npt.NDArray[np.uint64]
Form = Literal["int8", "q4"]
"""Form of the matrices: int8 with a scale for each group of a channel's columns, or blocks of mostly 4 bits."""


def packed_target(folder: Path, cache_folder: Path, form: Form) -> Path:
    """Return the folder of a model's packed form."""
    return cache_folder / f"{packed_name(folder)}{FORMAT}-{_fingerprint(folder, form)}"


def files_digest(folder: Path) -> str:
    """Return a digest that changes with the model: with its source, or the paths, sizes and times of its files."""
    return _digest(_states(folder))


def _fingerprint(folder: Path, form: Form) -> str:
    """Return a digest that changes with the packed files and with the layout."""
    layout = [] if form == "q4" else [*weight_layout(), GROUP_LIMIT]
    fields = tuple(Architecture.__dataclass_fields__)  # the index holds one
    return _digest((fields, form, *layout, _states(folder)))


def _states(folder: Path) -> list[tuple[str, int, int]]:
    if (record := read_record(folder)) is not None:  # whose files can be written again, or be elsewhere
        return [(str(record["source"]["digest"]), record["conversion"], 0)]
    files = sorted([*folder.glob("*.safetensors"), folder / "config.json"])
    return file_states(file for file in files if file.is_file())


def _digest(facts: object) -> str:
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:16]


def write_packed(folder: Path, target: Path, form: Form, progress: Progress) -> None:
    """Write a model's packed form into an empty folder.

    Raises:
        UnsupportedModelError: The kernels do not support the model's sizes.
        ModelError: The model's files are missing or damaged.
    """
    from completion.model.int8.sections import sections  # noqa: PLC0415  (only packing needs it)

    architecture = read_architecture(folder)
    check_sizes(architecture)
    source = _matrix_source(folder, target, architecture, form, progress)
    index: dict[str, tuple[int, str, tuple[int, ...]]] = {}
    with (target / "weights.bin").open("wb") as file:
        for name, section in sections(architecture, source):
            if (layer := name.partition(".")[0]).isdigit():
                progress("Packing the weights", int(layer) / architecture.layers)
            if name not in index:
                file.seek(-file.tell() % (BLOCK_BYTES if name == ROWS else _ALIGNMENT), os.SEEK_CUR)
                index[name] = (file.tell(), section.dtype.str, (0, *section.shape[1:]))
            start, kind, (rows, *width) = index[name]
            index[name] = (start, kind, (rows + len(section), *width))
            file.write(np.ascontiguousarray(section).data)
        file.truncate(file.tell() + -file.tell() % BLOCK_BYTES)
    sums = sums_of_file(target / "weights.bin").tolist()
    origin = {"folder": str(folder.resolve()), "files": files_digest(folder)}
    header = {**origin, "architecture": asdict(architecture), "sections": index, "sums": sums}
    (target / "index.json").write_text(sealed(json.dumps(header)), encoding="utf-8")


def _matrix_source(
    folder: Path, target: Path, architecture: Architecture, form: Form, progress: Progress
) -> MatrixSource:
    """Return a model's matrices in int8, the blocks of its GGUF file, or else the matrices rounded to blocks.

    How much each column counts is measured with the model in int8, which lies in a folder in `target` meanwhile.
    """
    from completion.model.int8.block_sources import GgufBlocks, RoundedBlocks  # noqa: PLC0415  (they import gguf)
    from completion.model.int8.int8_panels import Int8Panels  # noqa: PLC0415

    if form == "int8":
        return Int8Panels(checked_tensors(folder, architecture), architecture)
    if has_kernels(folder):
        return GgufBlocks(source_files(folder), architecture)
    scratch = target / "int8"
    scratch.mkdir()
    write_packed(folder, scratch, "int8", progress)
    progress("Measuring what rounding costs", 0.0)
    importance = _importance(folder, scratch)
    shutil.rmtree(scratch)
    return RoundedBlocks(checked_tensors(folder, architecture), architecture, importance)


def _importance(folder: Path, packed: Path) -> dict[str, FloatArray]:
    from completion.model.int8.calibration import importance_of  # noqa: PLC0415
    from completion.model.int8.packed_weights import read_packed  # noqa: PLC0415  (which imports this module)
    from completion.model.tokenizer import CodeTokenizer  # noqa: PLC0415

    return importance_of(read_packed(packed, mapped=True), CodeTokenizer.from_folder(folder), usable_threads())


def check_sizes(architecture: Architecture) -> None:
    """Check that the kernels' vectors and panels divide the model's widths.

    Raises:
        UnsupportedModelError: They do not.
    """
    widths = (architecture.hidden_size, architecture.intermediate_size, architecture.heads * architecture.head_dim)
    if any(width % CHANNELS for width in widths) or architecture.head_dim % VALUE_CHANNELS:
        raise UnsupportedModelError(
            f"The int8 path needs widths that are multiples of {CHANNELS} and head widths that are multiples of"
            f" {VALUE_CHANNELS}; this model has {widths} and {architecture.head_dim}. Use the backend bf16."
        )


def sums_of(data: memoryview | bytes) -> SumArray:
    """Return the sum of each block's words, modulo 2⁶⁴; `data` is a whole number of blocks.  # [blocks]."""
    words = np.frombuffer(data, np.uint64).reshape(-1, BLOCK_BYTES // 8)
    return words.sum(axis=1, dtype=np.uint64)


def sums_of_file(path: Path) -> SumArray:
    """Return the sum of each block of a file.  # [blocks]."""
    with path.open("rb") as file:
        found = [sums_of(data) for data in iter(lambda: file.read(256 * BLOCK_BYTES), b"")]
    return np.concatenate(found)


def sampled_sums_agree(path: Path, sums: SumArray, first: int) -> bool:
    """Return whether a sample of a file's blocks from block `first` on, the last block included, has the right sums."""
    sampled = {*range(first, len(sums), SAMPLED_EVERY), len(sums) - 1}
    with path.open("rb") as file:
        for block in sorted(sampled):
            file.seek(block * BLOCK_BYTES)
            data = file.read(BLOCK_BYTES)
            if len(data) != BLOCK_BYTES or sums_of(data)[0] != sums[block]:
                return False
    return True


def sealed(body: str) -> str:
    """Return a text after a line with its digest."""
    return f"{hashlib.blake2b(body.encode()).hexdigest()}\n{body}"


def unsealed(text: str) -> str | None:
    """Return the text of `sealed`; None if it was changed."""
    body = text.partition("\n")[2]
    return body if sealed(body) == text else None
