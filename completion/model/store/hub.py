"""Models from the Hugging Face hub, which keeps what it has downloaded in a cache of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from completion.errors import ModelDamagedError, ModelNotFoundError, StorageError
from completion.model.store.disk import FULL, sha256_of
from completion.model.store.packaged_models import PackagedModel, how_to_get
from completion.model.weights import missing_files
from completion.progress import Progress

_FILES = ["*.safetensors", "*.json", "*.jinja"]
"""Patterns of the files that are downloaded."""


def cached_folder(hub_id: str) -> Path | None:
    """Return the folder of a model that was downloaded, None if it was not, or not completely. Asks no server."""
    from huggingface_hub import snapshot_download  # noqa: PLC0415 -- slow to import, rarely needed
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError  # noqa: PLC0415

    try:
        folder = Path(snapshot_download(hub_id, allow_patterns=_FILES, local_files_only=True))
        return None if missing_files(folder) else folder
    except (HFValidationError, LocalEntryNotFoundError, ModelDamagedError):
        return None


def download_folder(hub_id: str, progress: Progress) -> Path:
    """Download a model's newest safetensors and JSON files that the hub's cache lacks; return their folder.

    Raises:
        ModelNotFoundError: There is no such model, or the hub cannot be reached.
    """
    from huggingface_hub import snapshot_download  # noqa: PLC0415 -- slow to import, rarely needed

    progress(f"Looking for {hub_id} on the Hugging Face hub", 0.0)
    failed = f"{hub_id} cannot be downloaded from the Hugging Face hub"
    with _not_found(failed, "Check the name and the network, or name a local folder by its whole path."):
        return Path(snapshot_download(hub_id, allow_patterns=_FILES))


def download_gguf(model: PackagedModel, progress: Progress) -> Path:
    """Download a packaged model's GGUF file, for users who have not installed its packages, and check its SHA-256.

    Raises:
        ModelNotFoundError: The hub cannot be reached.
        ModelDamagedError: The file's checksum differs.
    """
    from huggingface_hub import hf_hub_download  # noqa: PLC0415 -- slow to import, rarely needed

    progress(f"Downloading {model.title} from the Hugging Face hub", 0.0)
    failed = f"{model.title} is not installed, and the Hugging Face hub cannot be reached"
    with _not_found(failed, how_to_get(model)):
        path = Path(hf_hub_download(model.hub_repository, model.hub_file))
    progress("Checking the file", 0.0)
    if (actual := sha256_of(path)) != model.sha256:
        file = path.resolve()  # the hub's cache links to it: without the link alone, it would not download again
        raise ModelDamagedError(
            f"{file} has SHA-256 {actual} instead of {model.sha256}. Delete it and download it again."
        )
    return path


@contextmanager
def _not_found(failed: str, advice: str) -> Iterator[None]:
    """Turn the hub's errors into one with the cause between what failed and what to do.

    Raises:
        ModelNotFoundError: The name is none of a model, there is no such model, or the hub cannot be reached.
        StorageError: The disk is full.
    """
    # HTTPError is of httpx or httpx2, by the hub's version. One of a broken connection has no class of the hub's own.
    from huggingface_hub.errors import HFValidationError, HTTPError  # type: ignore[attr-defined]  # noqa: PLC0415

    try:
        yield
    except (HFValidationError, HTTPError, OSError) as error:
        cause = str(error).strip().split("\n", 1)[0] or type(error).__name__
        if getattr(error, "errno", None) in FULL:
            raise StorageError(f"The hub's cache has no room ({cause}). Free some, or move HF_HOME.") from error
        raise ModelNotFoundError(f"{failed} ({cause}). {advice}") from error
