"""Ray Serve with two replicas of the real vLLM, started from deploy/ray as its users start it, without GPUs."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import psutil
import yaml

from benchmarks.team.vllm_process import READY_S, metrics_at, vllm_environment

CERTIFICATE = Path(__file__).parent.with_name("localhost.pem")
_RAY = Path(__file__).parents[4] / "deploy" / "ray"
_POLL_S = 0.5
_END_S = 120


@dataclass(frozen=True)
class Replica:
    """A replica and its vLLM.

    Attributes:
        process: Ray's process.
        server: vLLM's first process.
        url: vLLM's address, which only this machine reaches.
    """

    process: psutil.Process
    server: psutil.Process
    url: str

    def prompt_tokens(self):
        """How many tokens the prompts that its vLLM has had hold."""
        return metrics_at(self.url)["vllm:prompt_tokens_total"]


class RayCluster:
    """The application of serve.yaml on a free port.

    Args:
        python: The python of an environment with vLLM and `ray[serve]`.
        model: Folder of the model.
        tokens: The users' tokens.
        options: Further arguments of vLLM.

    Attributes:
        url: Its address.
        keys: Folder with a file for each token, named by its number.
        logs: Folder with all that Ray and vLLM write.
    """

    def __init__(self, python, model, tokens, options):
        self.folder = Path(tempfile.mkdtemp(prefix="ray-"))  # a short path, because there are sockets in it
        self.keys, self.logs = self.folder / "keys", self.folder / "logs"
        for folder in (self.keys, self.logs):
            folder.mkdir()
        for number, token in enumerate(tokens):
            (self.keys / f"{number}").write_text(f"{token}\n")
        self._token = tokens[0]
        config = yaml.safe_load((_RAY / "serve.yaml").read_text())
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        self.url = f"https://127.0.0.1:{port}"
        tls = {"ssl_keyfile": str(CERTIFICATE), "ssl_certfile": str(CERTIFICATE)}
        config["http_options"] |= {"host": "127.0.0.1", "port": port} | tls
        [application] = config["applications"]
        one_thread = vllm_environment(python) | {"VLLM_CPU_OMP_THREADS_BIND": "nobind", "OMP_NUM_THREADS": "1"}
        options = [*application["args"]["options"], *options]
        application["args"] |= {"model": model, "keys": str(self.keys), "options": options, "environment": one_thread}
        [deployment] = application["deployments"]
        deployment["ray_actor_options"] = {"num_cpus": 0.5}
        deployment["num_replicas"] = deployment.pop("autoscaling_config")["min_replicas"]
        self._file = self.folder / "serve.yaml"
        self._file.write_text(yaml.safe_dump(config))
        self._serve = Path(python).with_name("serve")
        self._process = None

    def start(self):
        """Start it, and wait until both replicas answer."""
        own = {"RAY_TMPDIR": str(self.logs), "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
        environment = os.environ | own | {"PYTHONPATH": str(_RAY), "RAY_USAGE_STATS_ENABLED": "0"}
        with (self.logs / "serve.log").open("wb") as log:
            self._process = subprocess.Popen(
                [self._serve, "run", self._file], env=environment, stdout=log, stderr=log, start_new_session=True
            )
        self.until_complete()

    def until_complete(self):
        """Wait until two replicas answer, and the router knows at least one."""
        deadline = time.monotonic() + 2 * READY_S
        version = urllib.request.Request(f"{self.url}/version", headers={"Authorization": f"Bearer {self._token}"})
        while len(self.replicas()) < 2 or not _answers(version):
            assert self._process.poll() is None, (self.logs / "serve.log").read_text()[-4000:]
            assert time.monotonic() < deadline
            time.sleep(_POLL_S)

    def stop(self):
        """End it and all its processes."""
        if self._process is not None:
            started = psutil.Process(self._process.pid).children(recursive=True)
            self._process.send_signal(signal.SIGINT)
            psutil.wait_procs(started, _END_S)
            for one in started:
                if one.is_running():
                    one.kill()
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self.folder)

    def replicas(self):
        """Return those whose vLLM answers."""
        found = []
        for one in psutil.process_iter(["name", "cmdline"]):
            command = one.info["cmdline"] or []
            if not any("vllm.entrypoints.openai.api_server" in part for part in command) or "--port" not in command:
                continue
            if not command[0].endswith("sh"):
                url = f"http://127.0.0.1:{command[command.index('--port') + 1]}"
                owner = next((each for each in one.parents() if "ServeReplica" in "".join(each.cmdline())), None)
                if owner is not None and _answers(f"{url}/health"):
                    found.append(Replica(owner, one, url))
        return found


def _answers(url):
    try:
        with urllib.request.urlopen(url, timeout=_END_S, context=ssl._create_unverified_context()) as reply:
            return reply.status == 200
    except OSError:
        return False
