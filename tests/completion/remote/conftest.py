"""Replayed model servers with tiny models, and the local engine with the same models.

`DRAFTLINE_LLAMA_SERVER=PATH pytest tests/completion/remote` runs the real program at PATH and records its replies anew.
`DRAFTLINE_VLLM_PYTHON=PATH` does so with vLLM in the environment of the python at PATH, and runs the tests in `real`.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from benchmarks.team.vllm_process import VllmProcess, vllm_environment
from completion.cancellation import CancelToken
from completion.engine import Engine
from completion.model.loading import load_model
from completion.model.tokenizer import CodeTokenizer
from completion.progress import silent
from completion.remote import connection
from completion.remote.address import RemoteAddress
from completion.remote.engine import RemoteEngine, RemoteModel
from tests.completion.remote.replay_server import RECORDED, RECORDED_VLLM, ReplayServer
from tests.tiny_gguf import write_gguf
from tests.tiny_models import HEAD_DIM, HEADS, KV_HEADS, write_tiny_model

_READY_S = 300
_DEPLOY = Path(__file__).parents[2] / "deploy"


@pytest.fixture(scope="session")
def tiny_gguf(tmp_path_factory):
    """A GGUF file for the server; the same model lies in `<path>.folder`.

    It writes ASCII only: the server ends a stream with an error when bytes are no UTF-8, as a random model's often are.
    """
    path = tmp_path_factory.mktemp("remote") / "tiny.gguf"
    return write_gguf(path, write_ascii_model(path.with_name(f"{path.name}.folder")), "qwen2")


def write_ascii_model(folder):
    """Write a tiny model that gives tokens outside ASCII logits near 0, so that it never writes one."""
    write_tiny_model(folder)
    weights, tokenizer = load_file(folder / "model.safetensors"), CodeTokenizer.from_folder(folder)
    others = [i for i in range(tokenizer.vocabulary_size) if not tokenizer.token_bytes(i).isascii()]
    weights["lm_head.weight"][others] *= 0.01
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


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


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory):
    """A tiny model for vLLM: half the heads with the same weights, since its attention needs 32 channels or more.

    It writes ASCII only: under a regular expression the server leaves out tokens that are parts of characters, and its
    log-probabilities are those of the others. A random model gives such tokens a sixth of the probability.
    """
    folder = write_ascii_model(tmp_path_factory.mktemp("vllm") / "tiny")
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config |= {"num_attention_heads": HEADS // 2, "num_key_value_heads": KV_HEADS // 2, "head_dim": 2 * HEAD_DIM}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    tokenizer = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|im_end|>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def vllm_process(tiny_folder):
    """A real vLLM with the tiny model, None without one."""
    python = os.environ.get("DRAFTLINE_VLLM_PYTHON")
    if not python:
        yield None
        return
    RECORDED_VLLM.unlink(missing_ok=True)
    server = VllmProcess(python, tiny_folder, ["--api-key", "sesame", "--dtype", "float32", "--enforce-eager"])
    try:
        server.start()
        _note_metrics(server.url)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(connection, "SILENCE_S", _READY_S)  # a reply is sent on when the whole of it is recorded
            yield server
    finally:
        server.stop()
    _note_options(python)


def _note_metrics(url):
    """Write the names of vLLM's metrics, for the tests of deploy/."""
    with urllib.request.urlopen(f"{url}/metrics") as reply:
        lines = reply.read().decode().splitlines()
    _DEPLOY.joinpath("vllm_metrics.txt").write_text("\n".join(one for one in lines if one.startswith("# TYPE")) + "\n")


def _note_options(python):
    """Write the names of vLLM's options, for the tests of deploy/."""
    command = [python, "-m", "vllm.entrypoints.openai.api_server", "--help=all"]
    shown = subprocess.run(
        command, env=os.environ | vllm_environment(python), capture_output=True, text=True, check=True
    )
    options = sorted(set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]+", shown.stdout)))
    _DEPLOY.joinpath("vllm_options.txt").write_text("\n".join(options) + "\n")


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
