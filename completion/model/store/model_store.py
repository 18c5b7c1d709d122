"""Resolves a model's name to a folder of safetensors: from the cache, installed packages, local files or the hub."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from completion.errors import ModelDamagedError, ModelError, ModelNotFoundError
from completion.model.store.apart import run_apart
from completion.model.store.converted_models import (
    GGUF_NAME,
    Source,
    convert_once,
    damaged_files,
    folder_bytes,
    is_complete,
    models_dir,
    read_record,
)
from completion.model.store.disk import require_free
from completion.model.store.packaged_models import (
    DEFAULT_PACKAGE,
    PACKAGED_MODELS,
    PackagedModel,
    any_part_installed,
    check_sum,
    how_to_install,
    installed_parts,
    join_parts,
)
from completion.progress import Progress, silent

_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
_CONVERTED_GROWTH = 3.6  # size in bfloat16 relative to Q4_K_M, and the file itself


class ModelState(StrEnum):
    """Stage of a model between missing and ready to load."""

    MISSING = "missing"
    FOUND = "found"  # its source is there; the first use converts it
    CONVERTED = "converted"
    DAMAGED = "damaged"


@dataclass(frozen=True, slots=True)
class PreparedModel:
    """Model that can be loaded: a folder with safetensors, config.json and tokenizer.json.

    Attributes:
        name: Short name.
        digest: Changes when the model's content does; at least 12 hexadecimal digits.
        folder: Where the files are.
    """

    name: str
    digest: str
    folder: Path


@dataclass(frozen=True, slots=True)
class ModelStatus:
    """One line of `draftline models`.

    Attributes:
        name: Short name.
        title: Name to display; for a model that the user gave, where it came from.
        state: Stage between missing and ready to load.
        where: Folder of the converted model or of its source; "" if there is neither.
        size_bytes: Size of what is there.
        advice: What the user can do; "" if nothing is needed.
    """

    name: str
    title: str
    state: ModelState
    where: str
    size_bytes: int
    advice: str


def prepare(spec: str, progress: Progress = silent) -> PreparedModel:
    """Find a model, and convert it unless a conversion is in the cache.

    Args:
        spec: "default", a packaged model's name, a folder of safetensors, a `.gguf` file, or a hub id "owner/name".
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
    path = Path(spec).expanduser()
    if path.is_dir():
        return _local_folder(path)
    if path.suffix.lower() == ".gguf":
        return _prepare_gguf(path, progress)
    if _HUB_ID.fullmatch(spec):
        return _from_hub(spec, progress)
    raise ModelNotFoundError(
        f"There is no model {spec!r}. Give {_names()}, a folder of safetensors, a .gguf file, or a hub id owner/name."
    )


def prepare_packaged(model: PackagedModel, progress: Progress) -> PreparedModel:
    """Return a packaged model from the cache, or convert it from its installed packages, else from the hub.

    Raises:
        ModelNotFoundError: It is not installed and cannot be downloaded.
        ModelDamagedError: The parts or the downloaded file differ from the model's checksum.
        StorageError: The disk is full or read-only.
    """

    def fill(folder: Path, progress: Progress) -> None:
        if any_part_installed(model):
            require_free(folder, model.size_bytes + source.converted_bytes)
            joined = folder / GGUF_NAME
            join_parts(model, joined, _share(progress, 0.0, 0.1))
            _convert(joined, folder, _share(progress, 0.1, 1.0))
        else:
            _convert(_download_gguf(model, progress), folder, progress)

    source = _packaged_source(model)
    return PreparedModel(model.name, model.sha256, convert_once(source, fill, progress))


def packaged_model(spec: str) -> PackagedModel | None:
    """Return the packaged model of that name, None if there is none; "" and "default" are the default model."""
    if spec in {"", "default"}:
        return DEFAULT_PACKAGE
    return next((model for model in PACKAGED_MODELS if model.name == spec), None)


def statuses() -> list[ModelStatus]:
    """Return the state of every packaged model, then of every other converted model."""
    packaged = [packaged_status(model) for model in PACKAGED_MODELS]
    known = {status.where for status in packaged}
    folders = (path for path in sorted(models_dir().iterdir()) if path.is_dir() and path.suffix != ".partial")
    return packaged + [_converted_status(folder) for folder in folders if str(folder) not in known]


def verify(spec: str) -> list[str]:
    """Return the names of a converted model's files that differ from what was written. Reads all of them.

    Raises:
        ModelNotFoundError: The model is not converted.
    """
    return damaged_files(converted_folder(spec))


def converted_folder(spec: str) -> Path:
    """Return the folder of a converted model, found by the model's name or the folder's.

    Raises:
        ModelNotFoundError: The model is not converted.
    """
    packaged = packaged_model(spec)
    folder = _packaged_source(packaged).folder if packaged else models_dir() / Path(spec).name
    if folder.is_dir():
        return folder
    for status in statuses():
        if status.name == spec and status.state in {ModelState.CONVERTED, ModelState.DAMAGED}:
            return Path(status.where)
    raise ModelNotFoundError(f"{spec!r} is not among the converted models. `draftline models` lists them.")


def packaged_status(model: PackagedModel) -> ModelStatus:
    """Return the state of one packaged model. It looks at file sizes only."""
    folder = _packaged_source(model).folder
    if folder.exists():
        return _converted_status(folder, model)
    try:
        parts = installed_parts(model)
    except ModelError as error:
        if isinstance(error, ModelDamagedError):
            return ModelStatus(model.name, model.title, ModelState.DAMAGED, "", 0, str(error))
        return ModelStatus(model.name, model.title, ModelState.MISSING, "", 0, how_to_install(model))
    where = str(parts[0].parents[2])
    advice = f"converted at first use, or now: draftline models prepare {model.name}"
    return ModelStatus(model.name, model.title, ModelState.FOUND, where, model.size_bytes, advice)


def _converted_status(folder: Path, model: PackagedModel | None = None) -> ModelStatus:
    record = read_record(folder)
    name = model.name if model else str(record["source"]["name"]) if record else folder.name
    title = model.title if model else str(record["source"]["origin"]) if record else ""
    if is_complete(folder):
        return ModelStatus(name, title, ModelState.CONVERTED, str(folder), folder_bytes(folder), "")
    advice = f"converted again at its next use; or delete it: draftline models remove {folder.name}"
    return ModelStatus(name, title, ModelState.DAMAGED, str(folder), folder_bytes(folder), advice)


def _names() -> str:
    return ", ".join(repr(model.name) for model in PACKAGED_MODELS)


def _packaged_source(model: PackagedModel) -> Source:
    return Source(model.name, model.sha256, model.title, round(model.size_bytes * _CONVERTED_GROWTH))


def _share(progress: Progress, begin: float, end: float) -> Progress:
    """Return a callback for one step, whose progress covers `begin` to `end` of the whole."""
    return lambda sentence, fraction: progress(sentence, begin + fraction * (end - begin))


def _convert(path: Path, folder: Path, progress: Progress) -> None:
    run_apart("completion.model.store.gguf_conversion:convert_gguf", path, folder, progress=progress)


def _prepare_gguf(path: Path, progress: Progress) -> PreparedModel:
    if not path.is_file():
        raise ModelNotFoundError(f"There is no file {path}. Check the model's path.")
    digest = _fingerprint([path])
    size = path.stat().st_size
    source = Source(re.sub(r"[^\w.-]", "-", path.stem), digest, str(path.resolve()), round(size * _CONVERTED_GROWTH))
    folder = convert_once(source, lambda folder, report: _convert(path, folder, report), progress)
    return PreparedModel(source.name, digest, folder)


def _local_folder(folder: Path) -> PreparedModel:
    weights = sorted(folder.glob("*.safetensors"))
    missing = [name for name in ("config.json", "tokenizer.json") if not (folder / name).is_file()]
    missing += [] if weights else ["*.safetensors"]
    if missing:
        raise ModelNotFoundError(
            f"The folder {folder} lacks {' and '.join(missing)}; "
            "a model is safetensors, config.json and tokenizer.json."
        )
    files = [*weights, folder / "config.json", folder / "tokenizer.json"]
    return PreparedModel(folder.resolve().name, _fingerprint(files), folder.resolve())


def _fingerprint(files: Iterable[Path]) -> str:
    """Return a digest of paths, sizes and modification times; reading gigabytes at every start would take seconds."""
    facts = [(str(path.resolve()), path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    return hashlib.sha256(repr(facts).encode()).hexdigest()


def _from_hub(spec: str, progress: Progress) -> PreparedModel:
    from huggingface_hub import snapshot_download  # noqa: PLC0415 -- slow to import, rarely needed
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError  # noqa: PLC0415

    progress(f"Looking for {spec} on the Hugging Face hub", 0.0)
    try:
        folder = snapshot_download(spec, allow_patterns=["*.safetensors", "*.json", "*.jinja"])
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        raise ModelNotFoundError(
            f"{spec} cannot be downloaded from the Hugging Face hub ({_first_line(error)}). "
            "Check the name and the network, or name a local folder."
        ) from error
    prepared = _local_folder(Path(folder))
    return PreparedModel(spec.rpartition("/")[2], prepared.digest, prepared.folder)


def _download_gguf(model: PackagedModel, progress: Progress) -> Path:
    """Download the model's GGUF file from the hub, for users who have not installed its packages."""
    from huggingface_hub import hf_hub_download  # noqa: PLC0415 -- slow to import, rarely needed
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError  # noqa: PLC0415

    progress(f"Downloading {model.title} from the Hugging Face hub", 0.0)
    try:
        path = Path(hf_hub_download(model.hub_repository, model.hub_file))
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        raise ModelNotFoundError(
            f"{model.title} is not installed, and the Hugging Face hub cannot be reached ({_first_line(error)}). "
            f"{how_to_install(model)}"
        ) from error
    progress("Checking the file", 0.0)
    check_sum(model, path)
    return path


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n", 1)[0] or type(error).__name__
