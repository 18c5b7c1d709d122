"""What is on this computer of each model: its state, its checksums, and its removal."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from completion.errors import ModelDamagedError, ModelError, ModelNotFoundError, StorageError
from completion.model.store import converted_models, fetched_packages
from completion.model.store.converted_models import (
    CONVERSION_VERSION,
    GGUF_NAME,
    is_complete,
    models_dir,
    read_record,
    tree_bytes,
)
from completion.model.store.disk import size_of
from completion.model.store.gguf_source import free_surplus, surplus_files
from completion.model.store.model_store import DOWNLOADED, INSTALLED, packaged_model, packaged_source
from completion.model.store.packaged_models import PACKAGED_MODELS, PackagedModel, how_to_get, installed_parts
from completion.paths import expanded
from completion.progress import Progress


class ModelState(StrEnum):
    """Stage of a model between missing and ready to load."""

    MISSING = "missing"
    FOUND = "found"  # its source is there; the first use converts it
    CONVERTED = "converted"
    OUTDATED = "outdated"  # by another version of draftline; the next use converts it again
    DAMAGED = "damaged"

    @property
    def is_usable(self) -> bool:
        """Whether an engine can be started with the model."""
        return self in {ModelState.FOUND, ModelState.CONVERTED, ModelState.OUTDATED}


@dataclass(frozen=True, slots=True)
class ModelStatus:
    """One line of `draftline models`.

    Attributes:
        title: Name to display; for a model that the user gave, where it came from.
        state: Stage between missing and ready to load.
        where: Folder of the converted model or of its source; "" if there is neither.
        size_bytes: Size of what is there.
        advice: What the user can do; "" if nothing is needed.
        origin: Where the weights come from; "" if there are none or that was not recorded.
    """

    name: str
    title: str
    state: ModelState
    where: str
    size_bytes: int
    advice: str
    origin: str = ""


def statuses() -> list[ModelStatus]:
    """Return the state of every packaged model, then of every other converted model."""
    packaged = [packaged_status(model) for model in PACKAGED_MODELS]
    known = {status.where for status in packaged}
    return packaged + [_converted_status(folder) for folder in _converted_folders() if str(folder) not in known]


def uses(folder: Path) -> Iterator[tuple[str, int, str]]:
    """Yield the name, the size in bytes and the use of each large file of a converted model, and of what it needs."""
    for path in sorted(folder.glob("*")):
        if path.suffix == ".safetensors":
            yield path.name, size_of(path), "weights in 16 bits, for the backends that run in torch"
        elif path.name == GGUF_NAME:
            yield path.name, size_of(path), "the source that weights are packed from"
    small = sum(size_of(path) for path in folder.glob("*") if path.suffix in {".json", ".jinja"})
    yield "*.json", small, "the vocabulary and the model's sizes"
    for packed in sorted(converted_models.packed_forms(folder, converted_models.packed_dir())):
        yield f"packed/{packed.name}", tree_bytes(packed), "weights as the processor multiplies them"


def surplus(folder: Path) -> int:
    """Return the size of what `free` would delete, in bytes."""
    return sum(map(size_of, surplus_files(folder)))


def free(progress: Progress) -> int:
    """Delete what no model needs that can be made again from what is elsewhere; return its size in bytes.

    Raises:
        ModelDamagedError: Installed packages, which would take the place of a copy, differ from its checksum.
        StorageError: A file cannot be deleted.
    """
    return sum(free_surplus(folder, progress) for folder in _converted_folders() if surplus_files(folder))


def converted_folder(spec: str) -> Path:
    """Return the folder of a converted model, by the model's name or file, or the folder's name or path.

    Raises:
        ModelNotFoundError: The model is not converted.
    """
    packaged, folders, file = packaged_model(spec), _converted_folders(), os.path.realpath(expanded(spec))
    if packaged and (folder := packaged_source(packaged).folder).is_dir():  # it may be a shared one
        return folder
    found = [folder for folder in folders if spec in {folder.name, str(folder)}]
    found += [folder for folder in folders if spec == _converted_status(folder).name]
    found += [folder for folder in folders if file == _converted_status(folder).title]
    if not found:
        raise ModelNotFoundError(f"{spec!r} is not among the converted models. `draftline models` lists them.")
    return found[0]


def remove(spec: str, progress: Progress) -> tuple[list[Path], int]:
    """Delete a converted model, its packed weights and its downloaded packages; return the folders and freed bytes.

    Raises:
        ModelNotFoundError: There is nothing of it.
        StorageError: A folder cannot be deleted, or is a shared one.
    """
    packaged = packaged_model(spec)
    if packaged is None or not fetched_packages.fetched(packaged):
        folder = converted_folder(spec)
        if folder.parent != models_dir():
            raise StorageError(f"Others may use {folder}, which DRAFTLINE_MODEL_DIR names. Delete it there yourself.")
        return [folder], converted_models.remove(folder, progress)
    folder, packages = models_dir() / packaged_source(packaged).folder.name, fetched_packages.folder_of(packaged)
    removed = [path for path in (folder, packages) if path.exists()]
    return removed, converted_models.remove(folder, progress) + fetched_packages.discard(packaged, progress)


def packaged_status(model: PackagedModel) -> ModelStatus:
    """Return the state of one packaged model. It looks at file sizes only."""
    folder = packaged_source(model).folder
    if folder.exists():
        return _converted_status(folder, model)
    try:
        parts = installed_parts(model)
    except ModelError as error:
        if packages := fetched_packages.fetched(model):
            return _fetched_status(model, packages)
        if isinstance(error, ModelDamagedError):
            return ModelStatus(model.name, model.title, ModelState.DAMAGED, "", 0, str(error))
        return ModelStatus(model.name, model.title, ModelState.MISSING, "", 0, how_to_get(model))
    where, advice = str(parts[0].parents[2]), _converted_later(model)
    return ModelStatus(model.name, model.title, ModelState.FOUND, where, model.size_bytes, advice, INSTALLED)


def _converted_folders() -> list[Path]:
    """Return the folders of all converted models, damaged ones too."""
    return [
        path for path in sorted(models_dir().iterdir()) if path.is_dir() and path.suffix != converted_models.PARTIAL
    ]


def _fetched_status(model: PackagedModel, packages: list[Path]) -> ModelStatus:
    where, size = str(fetched_packages.folder_of(model)), sum(path.stat().st_size for path in packages)
    if len(packages) == len(model.parts):
        return ModelStatus(model.name, model.title, ModelState.FOUND, where, size, _converted_later(model), DOWNLOADED)
    advice = (
        f"{len(packages)} of {len(model.parts)} packages are downloaded; to go on: draftline models get {model.name}"
    )
    return ModelStatus(model.name, model.title, ModelState.MISSING, where, size, advice)


def _converted_later(model: PackagedModel) -> str:
    return f"converted at first use, or now: draftline models get {model.name}"


def _converted_status(folder: Path, model: PackagedModel | None = None) -> ModelStatus:
    record = read_record(folder)
    name = model.name if model else record["source"]["name"] if record else folder.name
    origin = record["source"]["origin"] if record else ""
    title = model.title if model else origin
    if origin == title:  # a file of the user's own, or a packaged model of before its origin was recorded
        origin = ""
    if is_complete(folder):
        return ModelStatus(name, title, ModelState.CONVERTED, str(folder), tree_bytes(folder), "", origin)
    advice = f"converted again at its next use; or delete it: draftline models remove {folder.name}"
    is_old = record is not None and record["conversion"] != CONVERSION_VERSION
    state = ModelState.OUTDATED if is_old else ModelState.DAMAGED
    return ModelStatus(name, title, state, str(folder), tree_bytes(folder), advice, origin)
