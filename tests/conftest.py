"""Fixtures of all tests: tiny real models, made once a session, and private folders."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from completion.model.loading import LoadedModel, load_model
from tests.tiny_models import write_tiny_model

# The same cases in every run; `--hypothesis-profile explore` searches for new ones. No case has a limit of time.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("explore", derandomize=False, print_blob=True, deadline=None)
settings.load_profile("repeatable")

os.environ.setdefault("TRITON_INTERPRET", "1")  # read when Triton is imported: kernels run without a GPU


@pytest.fixture(scope="session", autouse=True)
def _private_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep what drafters learn in tests out of the user's state folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DRAFTLINE_STATE_DIR", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="session")
def tiny_model(tiny_qwen2: Path) -> LoadedModel:
    """The tiny Qwen2 model in float32."""
    return load_model(str(tiny_qwen2), backend="fp32")


@pytest.fixture(scope="session")
def tiny_qwen2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a random 2-layer Qwen2 model with a tokenizer that has Qwen's special tokens."""
    return write_tiny_model(tmp_path_factory.mktemp("models") / "tiny-qwen2", "qwen2")


@pytest.fixture(scope="session")
def tiny_llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a random 2-layer Llama model with the same tokenizer and a tied head."""
    return write_tiny_model(tmp_path_factory.mktemp("models") / "tiny-llama", "llama")


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield a private folder for the runtime, state, cache and settings; its path is short enough for a socket."""
    folder = Path(tempfile.mkdtemp(prefix="dl-"))
    for name in ("RUNTIME", "STATE", "CACHE"):
        monkeypatch.setenv(f"DRAFTLINE_{name}_DIR", str(folder / name.lower()))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def core_dumps() -> Iterator[None]:
    """Let processes that a test starts write core dumps, as systems do where it is the default."""
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (limits[1], limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_CORE, limits)


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """Return the folder for screenshots; DRAFTLINE_IMAGES=docs/images updates those of the documentation."""
    folder = Path(os.environ.get("DRAFTLINE_IMAGES", tmp_path / "images"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder
