"""A replayed llama-server with a tiny model, and the local engine with the same model.

`DRAFTLINE_LLAMA_SERVER=PATH pytest tests/completion/remote` runs the real program at PATH and records its replies anew.
"""

from __future__ import annotations

import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from completion.cancellation import CancelToken
from completion.engine import Engine
from completion.model.loading import load_model
from completion.model.tokenizer import CodeTokenizer
from completion.progress import silent
from completion.remote import connection
from completion.remote.address import RemoteAddress
from completion.remote.engine import RemoteEngine, RemoteModel
from tests.completion.remote.replay_server import RECORDED, ReplayServer
from tests.tiny_gguf import write_gguf
from tests.tiny_models import write_tiny_model

_READY_S = 300


@pytest.fixture(scope="session")
def tiny_gguf(tmp_path_factory):
    """A GGUF file for the server; the same model lies in `<path>.folder`.

    It writes ASCII only: the server ends a stream with an error when bytes are no UTF-8, as a random model's often are.
    """
    path = tmp_path_factory.mktemp("remote") / "tiny.gguf"
    folder = write_tiny_model(path.with_name(f"{path.name}.folder"))
    weights, tokenizer = load_file(folder / "model.safetensors"), CodeTokenizer.from_folder(folder)
    others = [i for i in range(tokenizer.vocabulary_size) if not tokenizer.token_bytes(i).isascii()]
    weights["lm_head.weight"][others] *= 0.01
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return write_gguf(path, folder, "qwen2")


@pytest.fixture(scope="session")
def upstream(tiny_gguf):
    """Address of a real llama-server with the tiny model, "" without one."""
    program = os.environ.get("DRAFTLINE_LLAMA_SERVER")
    if not program:
        yield ""
        return
    RECORDED.unlink(missing_ok=True)
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    command = [program, "--model", tiny_gguf, "--port", str(port), "--ctx-size", "4096", "--parallel", "1"]
    environment = {**os.environ, "LD_LIBRARY_PATH": str(Path(program).parent)}
    with subprocess.Popen([*command, "--api-key", "sesame", "--device", "none"], env=environment) as process:
        url = f"http://127.0.0.1:{port}"
        deadline = time.monotonic() + _READY_S
        while not _is_ready(url):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.2)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(connection, "SILENCE_S", _READY_S)  # a reply is sent on when the whole of it is recorded
            yield url
        process.terminate()


def _is_ready(url):
    try:
        with urllib.request.urlopen(f"{url}/health") as reply:
            return reply.status == 200
    except urllib.error.URLError:
        return False


@pytest.fixture
def server(upstream):
    """The replayed server."""
    replay = ReplayServer(upstream)
    yield replay
    replay.close()


@pytest.fixture
def remote(server, tiny_gguf):
    """The engine over the replayed server."""
    address = RemoteAddress(server.url)
    model = RemoteModel.connect(address, f"{tiny_gguf}.folder", silent, CancelToken())
    return RemoteEngine(model)


@pytest.fixture(scope="session")
def local(tiny_gguf):
    """The local engine with the same weights."""
    return Engine(load_model(f"{tiny_gguf}.folder", backend="fp32"))
