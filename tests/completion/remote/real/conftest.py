"""The real vLLM over TLS, with a token for each of two users: `make test-remote`.

`DRAFTLINE_REMOTE_MODEL` is `default` or `tiny`; with the tiny model the tests of what the text is worth are left out.
With `DRAFTLINE_RAY`, Ray Serve runs as well: it must be in vLLM's environment.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchmarks.team.vllm_process import READY_S, VllmProcess
from completion.cancellation import CancelToken
from completion.engine import Engine, product_settings
from completion.model.loading import load_model
from completion.model.store.model_store import prepare
from completion.progress import silent
from completion.remote import connection
from completion.remote.address import RemoteAddress
from completion.remote.engine import RemoteModel
from tests.completion.remote.real.relay import Relay

PYTHON = os.environ.get("DRAFTLINE_VLLM_PYTHON", "")
IS_TINY = os.environ.get("DRAFTLINE_REMOTE_MODEL", "default") == "tiny"
CERTIFICATE = Path(__file__).parent.with_name("localhost.pem")
TOKENS = {"ada": "a-token-of-ada", "bob": "a-token-of-bob"}
collect_ignore_glob = [] if PYTHON else ["test_*.py"]
if IS_TINY:
    collect_ignore_glob.append("test_text.py")
if not os.environ.get("DRAFTLINE_RAY"):
    collect_ignore_glob.append("test_ray_serve.py")


@pytest.fixture(scope="session")
def spec(request):
    """The model."""
    return str(request.getfixturevalue("tiny_folder")) if IS_TINY else "default"


@pytest.fixture(scope="session")
def log(tmp_path_factory):
    """What the server writes."""
    return tmp_path_factory.mktemp("vllm-log") / "log"


@pytest.fixture(scope="session")
def server(log, spec):
    """The server."""
    options = ["--ssl-certfile", str(CERTIFICATE), "--ssl-keyfile", str(CERTIFICATE), "--api-key", *TOKENS.values()]
    with log.open("wb") as file:
        process = VllmProcess(PYTHON, prepare(spec).folder, [*options, "--enforce-eager"], file)
        try:
            process.start()
            with pytest.MonkeyPatch.context() as patch:  # the first request may take long
                patch.setattr(connection, "SILENCE_S", READY_S)
                token = log.with_name("token")
                token.write_text(TOKENS["ada"])
                address = RemoteAddress(process.url, "vllm", token_file=str(token), ca_file=str(CERTIFICATE))
                RemoteModel.connect(address, spec, silent, CancelToken())
            yield process
        finally:
            process.stop()


@pytest.fixture(scope="session")
def local(spec):
    """The local engine with the same weights."""
    return Engine(load_model(spec, backend="fp32" if IS_TINY else "auto"), product_settings())


@pytest.fixture
def relay(server):
    """A relay before the server."""
    relay = Relay(server.url)
    yield relay
    relay.close()


@pytest.fixture
def address(server, tmp_path):
    """Returns a user's settings for the server, or for another address."""

    def made(user="ada", url="", **changes):
        token = tmp_path / user
        token.write_text(TOKENS.get(user, user))
        settings = {"token_file": str(token), "ca_file": str(CERTIFICATE)} | changes
        return RemoteAddress(url or server.url, "vllm", **settings)

    return made


@pytest.fixture
def connect(address, spec):
    """Returns a user's model at the server, or at another address."""

    def connected(user="ada", url="", model="", cancel=None, **changes):
        return RemoteModel.connect(address(user, url, **changes), model or spec, silent, cancel or CancelToken())

    return connected
