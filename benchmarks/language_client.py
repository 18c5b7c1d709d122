"""The language client of the benchmarks: it starts the real server over stdio and waits until the engine is ready."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import psutil
from lsprotocol import types
from pygls.lsp.client import LanguageClient
from pygls.protocol import default_converter

from lsp_server.messages import PARTIAL_COMPLETION, STATUS

REPOSITORY = Path(__file__).resolve().parents[1]
READY_S = 600.0
"""Bound for a start of the engine, in seconds: on a new machine the model is converted and the kernels are compiled."""

_converter = cache(default_converter)  # one for all clients, because each new one takes about 50 ms to set up


def _ignore(_params: Any) -> None:  # noqa: ANN401 - the project's own message has no type
    """Do nothing with a part of an answer."""


class ServerProcess:
    """One process of the real language server, with the pygls client that speaks to it.

    Args:
        options: Settings of the server that differ from its defaults.
        on_partial: Called with each part of an unfinished answer.
        checkout: Folder of the server's code. It runs in the checkout's own `.venv`, if it has one.
    """

    def __init__(
        self, options: Mapping[str, Any], on_partial: Callable[[Any], None] = _ignore, checkout: Path = REPOSITORY
    ) -> None:
        self._checkout = checkout
        self.client = LanguageClient("draftline benchmarks", "1", converter_factory=_converter)
        self._options = options
        self._engine_started = asyncio.Event()
        self._failure = ""
        self._lost = ""
        self._listen(on_partial)

    async def start(self, environment: Mapping[str, str]) -> None:
        """Start the process and wait for its reply to `initialize`.

        Args:
            environment: Variables that differ from those of this process.
        """
        variables = {**os.environ, "PYTHONPATH": str(self._checkout), **environment}
        own = self._checkout / ".venv/bin/python"
        python = str(own) if self._checkout != REPOSITORY and own.exists() else sys.executable
        await self.client.start_io(python, "-P", "-m", "lsp_server", "--stdio", env=variables)
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

    async def wait_for_engine(self) -> None:
        """Send `initialized` and wait until the engine has loaded the model.

        Raises:
            SystemExit: The server reports that the engine failed.
            TimeoutError: The engine is not ready within `READY_S`.
        """
        self.client.initialized(types.InitializedParams())
        await asyncio.wait_for(self._engine_started.wait(), READY_S)
        if self._failure:
            raise SystemExit(f"The engine did not start: {self._failure}")

    @property
    def process(self) -> psutil.Process | None:
        """The server's process, None before `start`."""
        server = self.client._server  # noqa: SLF001 - pygls has no public attribute for it
        return psutil.Process(server.pid) if server is not None else None

    def check(self) -> None:
        """Check that the server and its engine have run since the engine was ready.

        Raises:
            SystemExit: One of them has ended, so what was measured since is of no use. The message says which.
        """
        server = self.client._server  # noqa: SLF001 - see `process`
        if server is not None and server.returncode is not None:
            raise SystemExit(f"The language server ended with status {server.returncode} while it was measured.")
        if self._lost:
            raise SystemExit(f"The engine was lost while it was measured: {self._lost}")

    async def stop(self) -> None:
        """End the process by the protocol's `shutdown` and `exit`, unless it has ended before."""
        server = self.client._server  # noqa: SLF001 - see `process`
        if server is not None and server.returncode is None:
            await self.client.shutdown_async(None)
            self.client.exit(None)
        await self.client.stop()  # type: ignore[no-untyped-call]

    def _listen(self, on_partial: Callable[[Any], None]) -> None:
        """Register functions for the server's notifications: pygls sets attributes, which bound methods refuse."""

        def partial(params: Any) -> None:  # noqa: ANN401 - the project's own message has no type
            on_partial(params)

        def status(params: Any) -> None:  # noqa: ANN401 - see above
            if self._engine_started.is_set():
                self._lost = self._lost or (params.message if params.kind in ("starting", "error") else "")
            elif params.kind in ("ready", "error"):
                self._failure = params.message if params.kind == "error" else ""
                self._engine_started.set()

        self.client.feature(PARTIAL_COMPLETION)(partial)
        self.client.feature(STATUS)(status)
