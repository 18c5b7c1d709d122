"""Two replicas of the real vLLM under Ray Serve, from deploy/ray: one is killed under load, and no request is lost."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import psutil
import pytest
import yaml

from benchmarks.team.vllm_process import READY_S, vllm_environment
from completion.cancellation import CancelToken
from completion.errors import RemoteServerError
from completion.model.store.model_store import prepare
from completion.progress import silent
from completion.remote.address import RemoteAddress
from completion.remote.engine import RemoteEngine, RemoteModel
from completion.request import CompletionRequest

PYTHON = os.environ.get("DRAFTLINE_VLLM_PYTHON", "")
RAY = Path(__file__).parents[3] / "deploy" / "ray"
REQUESTS, TYPISTS, KILLED_AFTER = 15, 4, 10
pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    (folder / "ada").write_text("a-token-of-ada\n")
    return folder


@pytest.fixture(scope="module")
def application(keys, tmp_path_factory):
    """Address of the application of serve.yaml, without GPUs and TLS."""
    config = yaml.safe_load((RAY / "serve.yaml").read_text())
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    config["http_options"] = {"host": "127.0.0.1", "port": port}
    [application] = config["applications"]
    options = [*application["args"]["options"], "--dtype=bfloat16", "--enforce-eager", "--block-size=32"]
    application["args"] |= {"model": str(prepare("default").folder), "keys": str(keys), "options": options}
    one_thread = vllm_environment(PYTHON) | {"VLLM_CPU_OMP_THREADS_BIND": "nobind", "OMP_NUM_THREADS": "1"}
    application["args"]["environment"] = one_thread
    [deployment] = application["deployments"]
    deployment["ray_actor_options"] = {"num_cpus": 0.5}
    deployment.pop("autoscaling_config")
    deployment["num_replicas"] = 2
    file = tmp_path_factory.mktemp("ray") / "serve.yaml"
    file.write_text(yaml.safe_dump(config))
    environment = os.environ | {"PYTHONPATH": str(RAY), "RAY_USAGE_STATS_ENABLED": "0"}
    command = [str(Path(PYTHON).with_name("serve")), "run", str(file)]
    process = subprocess.Popen(command, env=environment, start_new_session=True)
    try:
        deadline = time.monotonic() + 2 * READY_S
        while len(replicas()) < 2 or not answers(port):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(1)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(120)


def answers(port):
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/version", headers={"Authorization": "Bearer a-token-of-ada"}
    )
    try:
        with urllib.request.urlopen(request) as reply:
            return reply.status == 200
    except urllib.error.URLError:
        return False


def replicas():
    return [one for one in psutil.process_iter(["cmdline"]) if "ServeReplica:draftline" in "".join(one.cmdline())]


def engine(url, keys):
    address = RemoteAddress(url, "vllm", token_file=str(keys / "ada"))
    return RemoteEngine(RemoteModel.connect(address, "default", silent, CancelToken()))


def test_a_replica_that_is_killed_under_load_loses_no_request(application, keys):
    answered, lost, lock = [], [], threading.Lock()
    killed = threading.Event()

    def types(number):
        own = engine(application, keys)
        for key in range(REQUESTS):
            prefix = f"def scale_{number}(values, factor):\n    return [value * fac" + "tor"[: key % 4]
            request = CompletionRequest(prefix, "\n", "python", max_tokens=24, invoked=True, filters=False)
            try:
                *_, last = own.complete(request, CancelToken())
                with lock:
                    answered.append(bool(last.suggestions))
            except RemoteServerError as error:
                with lock:
                    lost.append(str(error))
            if len(answered) > KILLED_AFTER and not killed.is_set():
                killed.set()
                replicas()[0].kill()

    typists = [threading.Thread(target=types, args=(number,)) for number in range(TYPISTS)]
    for one in typists:
        one.start()
    for one in typists:
        one.join()
    print(f"{len(answered)} requests answered, {len(lost)} lost")
    assert killed.is_set()
    assert lost == []
    assert len(answered) == TYPISTS * REQUESTS


def test_a_wrong_token_is_refused_on_every_page(application, tmp_path):
    (tmp_path / "ada").write_text("guessed")
    with pytest.raises(RemoteServerError, match="refuses the token"):
        engine(application, tmp_path)
    for path in ("/version", "/tokenize"):
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(application + path)
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(application + "/metrics")
