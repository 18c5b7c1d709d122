"""A real language server for benchmarks.typing, with an engine host in folders of its own."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil
from lsprotocol import types
from pygls.lsp.client import LanguageClient

from benchmarks.startup import engine_processes
from lsp_server.messages import PARTIAL_COMPLETION, STATUS

REPOSITORY = Path(__file__).resolve().parents[2]
_READY_S = 600.0


class TypingServer:
    """One server process, its client, and the engine that it starts.

    Args:
        options: Settings of the server that differ from its defaults.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = options
        self._folder = Path(tempfile.mkdtemp(prefix="dl-"))  # short: a socket's path has a limit
        self._environment = {
            "DRAFTLINE_RUNTIME_DIR": str(self._folder / "run"),
            "DRAFTLINE_STATE_DIR": str(self._folder / "state"),
            "PYTHONPATH": str(REPOSITORY),
        }
        self._ready = asyncio.Event()
        self.client = LanguageClient("benchmarks.typing", "1")

    async def start(self, on_partial: Callable[[Any], None]) -> None:
        """Start it, and wait until its engine is ready.

        Args:
            on_partial: Called with each part of an unfinished answer.
        """
        self._listen(on_partial)
        environment = {**os.environ, **self._environment}
        await self.client.start_io(sys.executable, "-P", "-m", "lsp_server", "--stdio", env=environment)
        inline = types.InlineCompletionClientCapabilities()
        await self.client.initialize_async(
            types.InitializeParams(
                capabilities=types.ClientCapabilities(
                    text_document=types.TextDocumentClientCapabilities(inline_completion=inline),
                    general=types.GeneralClientCapabilities(position_encodings=[types.PositionEncodingKind.Utf32]),
                ),
                process_id=os.getpid(),
                initialization_options={"streaming": True, **self._options},
            )
        )
        self.client.initialized(types.InitializedParams())
        await asyncio.wait_for(self._ready.wait(), _READY_S)

    @property
    def processes(self) -> Sequence[psutil.Process]:
        """The language server and the engine's host."""
        server = self.client._server  # noqa: SLF001 - pygls does not offer it
        own = [psutil.Process(server.pid)] if server is not None else []
        return [*own, *engine_processes(self._environment)]

    @property
    def socket_path(self) -> Path:
        """Where its engine listens."""
        return next((self._folder / "run").glob("*.sock"))

    async def stop(self) -> None:
        """End both processes."""
        hosts = engine_processes(self._environment)
        await self.client.shutdown_async(None)
        self.client.exit(None)
        await self.client.stop()  # type: ignore[no-untyped-call]
        for host in hosts:
            host.terminate()
        psutil.wait_procs(hosts, timeout=30)
        shutil.rmtree(self._folder)

    def _listen(self, on_partial: Callable[[Any], None]) -> None:
        """Register plain functions: pygls writes on them, and methods cannot be written on."""

        def partial(params: Any) -> None:  # noqa: ANN401 - our own message has no type
            on_partial(params)

        def status(params: Any) -> None:  # noqa: ANN401 - see above
            if params.kind == "error":
                raise SystemExit(f"The engine is not ready: {params.message}")
            if params.kind == "ready":
                self._ready.set()

        self.client.feature(PARTIAL_COMPLETION)(partial)
        self.client.feature(STATUS)(status)
