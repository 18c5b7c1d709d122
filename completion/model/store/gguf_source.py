"""Where the GGUF file of a converted model is, which is not copied, and its weights as other backends read them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import numpy as np

from completion.errors import ModelError, ModelNotFoundError
from completion.model.store import converted_models
from completion.model.store.converted_models import GGUF_NAME, SOURCE_NAME, Record, lock_held, note_file, read_record
from completion.model.store.disk import require_free, size_of, storage_errors
from completion.model.store.packaged_models import PACKAGED_MODELS, PackagedModel, checked_parts, installed_parts
from completion.model.weights import StoredTensor, Tensors
from completion.progress import Progress, silent

if TYPE_CHECKING:
    from completion.model.store.gguf_file import Tensor

SAFETENSORS_NAME = "model.safetensors"
"""Name of the file with all weights in bfloat16, for the backends that run in torch."""


class _Facts(TypedDict):
    """Content of the file `SOURCE_NAME`."""

    files: list[tuple[str, int, int]]
    has_kernels: bool


def note_source(folder: Path, paths: Sequence[Path], *, has_kernels: bool) -> None:
    """Note where the GGUF file of a converted model is, or its parts in their order, with sizes and times.

    Note also whether kernels multiply the blocks of all matrices.
    """
    facts = _Facts(files=[_state(folder, path) for path in paths], has_kernels=has_kernels)
    partial = folder / f"{SOURCE_NAME}.{os.getpid()}"
    partial.write_text(json.dumps(facts, indent=2), encoding="utf-8")
    partial.replace(folder / SOURCE_NAME)


def has_kernels(folder: Path) -> bool:
    """Return whether a folder was converted from a GGUF file whose blocks are multiplied as they are."""
    facts = _facts(folder)
    return facts is not None and facts["has_kernels"]


def known_files(folder: Path) -> tuple[Path, ...]:
    """Return the GGUF file of a converted model, or its parts in their order; none if one is gone or has changed."""
    facts = _facts(folder)
    if facts is None:
        return ()
    files = tuple(folder / name for name, _, _ in facts["files"])
    try:
        states = [_state(folder, path) for path in files]
    except OSError:
        return ()
    return files if states == [tuple(each) for each in facts["files"]] else ()


def source_files(folder: Path) -> tuple[Path, ...]:
    """Return the same; if packages are now elsewhere or were changed, their checksum is computed anew.

    Raises:
        ModelDamagedError: The packages differ from the model's checksum.
        ModelNotFoundError: The file is gone, or was changed.
    """
    if files := known_files(folder):
        return files
    record = read_record(folder)
    packaged = _packaged(record) if record else None
    if packaged is None:
        raise ModelNotFoundError(
            f"The folder {folder} holds no .safetensors file, and the GGUF file that it was converted from is gone or "
            "was changed. Give a folder of safetensors or a .gguf file."
        )
    parts = checked_parts(packaged)
    if not converted_models.shared_packed_dir(folder):
        note_source(folder, parts, has_kernels=has_kernels(folder))
    return tuple(parts)


def surplus_files(folder: Path) -> list[Path]:
    """Return the large files of a converted model that can be made again from what is elsewhere.

    These are safetensors, which only some backends need, and a copy of what installed packages hold.
    """
    record = read_record(folder)
    if record is None or not (known := known_files(folder)):
        return []
    surplus = [folder / SAFETENSORS_NAME]
    if (packaged := _packaged(record)) is not None and known == (folder / GGUF_NAME,):
        with suppress(ModelError):
            surplus += [known[0]] if installed_parts(packaged) else []
    return [path for path in surplus if path.is_file()]


def free_surplus(folder: Path, progress: Progress) -> int:
    """Delete the files that `surplus_files` names, and return their size in bytes.

    Raises:
        ModelDamagedError: Installed packages, which would take the place of a copy, differ from its checksum.
        StorageError: A file cannot be deleted.
    """
    freed = 0
    with storage_errors(folder), lock_held(folder, progress):
        record = read_record(folder)
        for path in surplus_files(folder):
            if path.name == GGUF_NAME and record is not None and (packaged := _packaged(record)) is not None:
                note_source(folder, checked_parts(packaged), has_kernels=has_kernels(folder))
            freed += size_of(path)
            path.unlink()
            note_file(folder, path)
    return freed


class GgufTensors(Tensors):
    """The tensors of a converted model's GGUF file, rounded to bfloat16.

    Raises:
        ModelError: The file is gone, cannot be read, or is damaged.
    """

    def __init__(self, folder: Path) -> None:
        from completion.model.store.gguf_file import GgufFile  # noqa: PLC0415  (imports gguf, which is slow)

        self._tensors: Mapping[str, Tensor] = {each.name: each for each in GgufFile(*source_files(folder)).tensors()}

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """See `Tensors`."""
        return {name: tensor.shape for name, tensor in self._tensors.items()}

    def get(self, name: str) -> StoredTensor | None:
        """See `Tensors`."""
        if (tensor := self._tensors.get(name)) is None:
            return None
        bits = np.concatenate(list(tensor.bfloat16_chunks()))
        return StoredTensor("BF16", bits.reshape(tensor.shape))

    def write(self, path: Path, progress: Progress) -> None:
        """Stream the tensors into a safetensors file; that library's own writer needs them all in memory at once.

        Raises:
            StorageError: The disk has too little free space.
            OSError: The file cannot be written.
        """
        tensors = list(self._tensors.values())
        total, written = sum(tensor.size_bytes for tensor in tensors), 0
        require_free(path.parent, total)
        with path.open("wb") as file:
            file.write(_safetensors_header(tensors))
            for tensor in tensors:
                for chunk in tensor.bfloat16_chunks():
                    written += file.write(chunk.tobytes())
                    progress("Writing the weights in 16 bits", written / total)


def with_safetensors(folder: Path, progress: Progress = silent) -> Path:
    """Write the weights of a model that was converted from a GGUF file as safetensors, unless they are; return it.

    A shared model is never written: our own forward passes read its GGUF file, at each start.

    Raises:
        ModelError: The GGUF file is gone, cannot be read, or is damaged.
        StorageError: The disk is full or read-only.
    """
    if any(folder.glob("*.safetensors")) or read_record(folder) is None or converted_models.shared_packed_dir(folder):
        return folder
    with storage_errors(folder), lock_held(folder, progress):
        if not (target := folder / SAFETENSORS_NAME).exists():  # the process that we waited for may have written it
            partial = target.with_suffix(".partial")
            try:
                GgufTensors(folder).write(partial, progress)
                partial.replace(target)
            finally:
                partial.unlink(missing_ok=True)
            note_file(folder, target)
    return folder


def _packaged(record: Record) -> PackagedModel | None:
    digest = record["source"].get("digest")
    return next((model for model in PACKAGED_MODELS if model.sha256 == digest), None)


def _facts(folder: Path) -> _Facts | None:
    try:
        facts: _Facts = json.loads((folder / SOURCE_NAME).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return facts if isinstance(facts, dict) and facts.keys() == _Facts.__annotations__.keys() else None


def _state(folder: Path, path: Path) -> tuple[str, int, int]:
    """Return a file's path, relative to the folder if it is in it, its size and the time of its last change."""
    state = path.stat()
    return path.name if path.parent == folder else str(path), state.st_size, state.st_mtime_ns


def _safetensors_header(tensors: Sequence[Tensor]) -> bytes:
    """Return the length and the JSON table of the safetensors format."""
    table: dict[str, object] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for tensor in tensors:
        end = offset + tensor.size_bytes
        table[tensor.name] = {"dtype": "BF16", "shape": tensor.shape, "data_offsets": (offset, end)}
        offset = end
    header = json.dumps(table).encode()
    header += b" " * (-len(header) % 8)  # the data starts on a multiple of eight
    return len(header).to_bytes(8, "little") + header
