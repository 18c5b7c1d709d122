"""Models from the Hugging Face hub, which keeps what it has downloaded in a cache of its own."""

from __future__ import annotations

from pathlib import Path

from completion.errors import ModelNotFoundError
from completion.model.store.packaged_models import PackagedModel, check_sum, how_to_get
from completion.progress import Progress


def download_folder(hub_id: str, progress: Progress) -> Path:
    """Download a model's safetensors and JSON files, unless they are in the hub's cache; return their folder.

    Raises:
        ModelNotFoundError: There is no such model, or the hub cannot be reached.
    """
    from huggingface_hub import snapshot_download  # noqa: PLC0415 -- slow to import, rarely needed
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError  # noqa: PLC0415

    progress(f"Looking for {hub_id} on the Hugging Face hub", 0.0)
    try:
        return Path(snapshot_download(hub_id, allow_patterns=["*.safetensors", "*.json", "*.jinja"]))
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        raise ModelNotFoundError(
            f"{hub_id} cannot be downloaded from the Hugging Face hub ({_first_line(error)}). "
            "Check the name and the network, or name a local folder."
        ) from error


def download_gguf(model: PackagedModel, progress: Progress) -> Path:
    """Download a packaged model's GGUF file, for users who have not installed its packages, and check its SHA-256.

    Raises:
        ModelNotFoundError: The hub cannot be reached.
        ModelDamagedError: The file's checksum differs.
    """
    from huggingface_hub import hf_hub_download  # noqa: PLC0415 -- slow to import, rarely needed
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError  # noqa: PLC0415

    progress(f"Downloading {model.title} from the Hugging Face hub", 0.0)
    try:
        path = Path(hf_hub_download(model.hub_repository, model.hub_file))
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        raise ModelNotFoundError(
            f"{model.title} is not installed, and the Hugging Face hub cannot be reached ({_first_line(error)}). "
            f"{how_to_get(model)}"
        ) from error
    progress("Checking the file", 0.0)
    check_sum(model, path)
    return path


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n", 1)[0] or type(error).__name__
