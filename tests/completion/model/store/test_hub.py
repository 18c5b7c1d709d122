"""What the Hugging Face hub cannot give is an error that says so, and what it gave damaged can be had again."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from completion.errors import ModelNotFoundError
from completion.model.store.model_store import prepare

ROOT = Path(__file__).parents[4]
CONTENT = b"weights"
GET = f"""
from completion.errors import DraftlineError
from completion.model.store.hub import download_folder, download_gguf
from completion.model.store.model_store import fetch, prepare
from completion.model.store.packaged_models import PackagedModel
from completion.progress import silent

model = PackagedModel("tiny", "Tiny", "{hashlib.sha256(CONTENT).hexdigest()}", 7, (), "1.0", "", "owner/model", "f")
try:
    print(CALL)
except DraftlineError as error:
    print(type(error).__name__, error)
"""


class Hub(ThreadingHTTPServer):
    """A hub on this computer with one file, which closes connections without an answer while it has none."""

    content = b""
    asked = 0


class Answer(BaseHTTPRequestHandler):
    def do_HEAD(self) -> None:
        self.server.asked += 1
        content = self.server.content
        if content:
            self.send_response(200)
            self.send_header("ETag", '"0123456789"')
            self.send_header("X-Repo-Commit", 40 * "a")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()

    def do_GET(self) -> None:
        self.do_HEAD()
        self.wfile.write(self.server.content)

    def log_message(self, *_arguments: object) -> None:
        pass


@pytest.fixture
def hub():
    with Hub(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def got(hub, tmp_path, call):
    """Return what a process prints that gets something from the hub, which is named before its library is imported."""
    address = f"http://127.0.0.1:{hub.server_port}"
    own = {"HF_HOME": str(tmp_path), "HF_ENDPOINT": address, "HF_HUB_OFFLINE": "0", "NO_PROXY": "*"}
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **own}
    command = [sys.executable, "-c", GET.replace("CALL", call)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()


def test_a_connection_that_breaks_is_an_error_with_what_to_do(hub, tmp_path):
    found = got(hub, tmp_path, "download_folder('owner/model', silent)")
    assert found.startswith("ModelNotFoundError owner/model cannot be downloaded from the Hugging Face hub (")
    assert found.endswith("Check the name and the network, or name a local folder by its whole path.")
    assert "draftline models get tiny" in got(hub, tmp_path, "download_gguf(model, silent)")


@pytest.mark.skipif(sys.platform == "win32", reason="file size limits are POSIX")
def test_a_full_disk_is_a_storage_error_and_not_a_hub_that_cannot_be_reached(hub, tmp_path):
    hub.content = CONTENT
    limited = "(posix := __import__('resource')).setrlimit(posix.RLIMIT_FSIZE, (3, 3)) or download_gguf(model, silent)"
    assert got(hub, tmp_path, limited).startswith("StorageError The hub's cache has no room (")


def test_a_damaged_file_is_downloaded_again_once_the_named_one_is_deleted(hub, tmp_path):
    hub.content = CONTENT[::-1]
    damaged = got(hub, tmp_path, "download_gguf(model, silent)")
    assert damaged.startswith("ModelDamagedError ")
    Path(re.search(r"Error (.+) has SHA-256", damaged)[1]).unlink()
    hub.content = CONTENT
    assert Path(got(hub, tmp_path, "download_gguf(model, silent)")).read_bytes() == CONTENT


@pytest.mark.parametrize("spec", ["owner/model--2", "owner/.model"])
def test_a_path_that_is_no_hub_id_is_an_error_with_the_path(spec):
    with pytest.raises(ModelNotFoundError, match=f"{re.escape(spec)} cannot be downloaded"):
        prepare(spec)


def test_a_model_that_was_downloaded_is_taken_without_asking_the_hub(hub, tmp_path, tiny_qwen2):
    folder = in_cache(tmp_path, tiny_qwen2)
    hub.asked = 0
    assert got(hub, tmp_path, "prepare('owner/model').folder") == str(folder)
    assert hub.asked == 0
    (folder / "tokenizer.json").unlink()
    assert "cannot be downloaded" in got(hub, tmp_path, "prepare('owner/model').folder")
    assert hub.asked > 0


def test_getting_a_model_looks_for_newer_files(hub, tmp_path, tiny_qwen2):
    in_cache(tmp_path, tiny_qwen2)
    hub.asked = 0
    got(hub, tmp_path, "fetch('owner/model', silent)")
    assert hub.asked > 0


def in_cache(tmp_path, model):
    """Put a model's folder where the hub's library keeps what it has downloaded."""
    own = tmp_path / "hub" / "models--owner--model"
    (own / "refs").mkdir(parents=True)
    (own / "refs" / "main").write_text(40 * "a")
    return shutil.copytree(model, own / "snapshots" / (40 * "a")).resolve()
