"""A CPU installation has no torch: int8, q4, the conversion of GGUF files and the command line work without it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from completion.model.transformer import has_int8_instructions
from tests.tiny_gguf import write_tiny_gguf
from tests.tiny_models import write_tiny_model

# Every Python process, and its children, import this module; packages in BLOCKED are as if they were not installed.
BLOCKED = """
import sys
from importlib.machinery import PathFinder

class Finder(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        blocked = name.partition(".")[0] in {"torch", "transformers", "safetensors", "accelerate"}
        return None if blocked else super().find_spec(name, path, target)

sys.meta_path[:] = [Finder if each is PathFinder else each for each in sys.meta_path]
"""
COMPLETE = """
import sys
from completion.cancellation import CancelToken
from completion.engine import Engine, product_settings
from completion.model.loading import load_model
from completion.request import CompletionRequest

loaded = load_model(sys.argv[1], backend=sys.argv[2], threads=1)
request = CompletionRequest("def add(a, b):\\n    return ", "\\n", "python", max_tokens=8)
list(Engine(loaded, product_settings()).complete(request, CancelToken()))
print(type(loaded.model).__name__, loaded.model.form, "torch" in sys.modules)
"""
pytestmark = pytest.mark.skipif(not has_int8_instructions(), reason="this processor lacks AVX2")


@pytest.fixture
def run(tmp_path):
    """Return a function that runs code in a Python without torch."""
    (tmp_path / "blocking").mkdir()
    (tmp_path / "blocking" / "sitecustomize.py").write_text(BLOCKED)
    paths = [str(tmp_path / "blocking"), str(Path.cwd()), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "DRAFTLINE_CACHE_DIR": str(tmp_path / "cache"),
    }
    return lambda *command: subprocess.run(
        [sys.executable, *command], env=environment, capture_output=True, text=True, timeout=600, check=False
    )


@pytest.mark.timeout(600)
@pytest.mark.parametrize("backend", ["int8", "q4"])
def test_a_gguf_file_is_converted_packed_and_completes(run, tmp_path, backend):
    path = write_tiny_gguf(tmp_path / "tiny.gguf", quantisation="Q8_0", head_dim=32)
    done = run("-c", COMPLETE, str(path), backend)
    assert done.stdout.split() == ["QuantizedTransformer", backend, "False"], done.stderr


@pytest.mark.timeout(600)
def test_what_needs_torch_says_how_to_install_it(run, tmp_path):
    folder = write_tiny_model(tmp_path / "tiny")
    for backend in ("fp32", "transformers"):
        done = run("-c", COMPLETE, str(folder), backend)
        assert f"TorchMissingError: The backend {backend} needs torch and transformers" in done.stderr
        assert "python -m pip install 'draftline[torch]'" in done.stderr
