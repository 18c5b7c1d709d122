"""The real vLLM with the default model's weights, over TLS, with a token for each of two users: `make test-remote`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchmarks.team.vllm_process import VllmProcess
from completion.cancellation import CancelToken
from completion.model.store.model_store import prepare
from completion.progress import silent
from completion.remote.address import RemoteAddress
from completion.remote.engine import RemoteModel

PYTHON = os.environ.get("DRAFTLINE_VLLM_PYTHON", "")
CERTIFICATE = Path(__file__).parent.with_name("localhost.pem")
TOKENS = {"ada": "a-token-of-ada", "bob": "a-token-of-bob"}
collect_ignore_glob = [] if PYTHON else ["test_*.py"]


@pytest.fixture(scope="session")
def log(tmp_path_factory):
    """What the server writes."""
    return tmp_path_factory.mktemp("vllm-log") / "log"


@pytest.fixture(scope="session")
def server(log):
    """The server."""
    options = ["--ssl-certfile", str(CERTIFICATE), "--ssl-keyfile", str(CERTIFICATE), "--api-key", *TOKENS.values()]
    with log.open("wb") as file:
        process = VllmProcess(PYTHON, prepare("default").folder, [*options, "--enforce-eager"], file)
        try:
            process.start()
            yield process
        finally:
            process.stop()


@pytest.fixture
def connect(server, tmp_path):
    """Returns a user's model at the server, or at another address."""

    def connected(user="ada", url="", model="default", **changes):
        token = tmp_path / user
        token.write_text(TOKENS.get(user, user))
        settings = {"token_file": str(token), "ca_file": str(CERTIFICATE)} | changes
        return RemoteModel.connect(RemoteAddress(url or server.url, "vllm", **settings), model, silent, CancelToken())

    return connected
