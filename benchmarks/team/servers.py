"""The servers of benchmarks.team: our host for all typists, or each typist's own engine over a model server."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Protocol

from benchmarks.engine_processes import private_folders
from benchmarks.team.typist import Desk
from benchmarks.team.vllm_process import VllmProcess
from completion.cancellation import CancelToken
from completion.errors import CancelledError
from completion.host.process.address import Endpoint
from completion.model.store.gguf_source import with_safetensors
from completion.model.store.model_store import prepare
from completion.progress import silent
from completion.prompt.pace import COLD_PROMPT_S, FULL_PROMPT_S
from completion.remote.address import RemoteAddress
from completion.remote.engine import RemoteEngine, RemoteModel
from completion.request import Closing, CompletionEvent, CompletionRequest
from lsp_server.engine.http import EngineConnection

_READY_S = 600.0
_END_S = 30.0


class Server(Protocol):
    """What the typists share."""

    async def start(self) -> None:
        """Start it, and wait until it is ready."""

    def desk(self, name: str) -> Desk:
        """Return a typist's way to it."""

    async def stop(self) -> None:
        """End it."""


class OurHost:
    """`draftline serve` in a process of its own.

    Args:
        options: Arguments of the command.
    """

    def __init__(self, options: list[str]) -> None:
        self._options = options
        self._folders = ExitStack()
        self._process: asyncio.subprocess.Process | None = None
        self._endpoint = Endpoint()

    async def start(self) -> None:
        """See `Server`.

        Raises:
            SystemExit: It ended, or was not ready in time.
        """
        environment = self._folders.enter_context(private_folders())
        command = [sys.executable, "-P", "-m", "lsp_server.cli.main", "serve", "--idle-minutes", "10", *self._options]
        self._process = await asyncio.create_subprocess_exec(
            *command, stdout=asyncio.subprocess.PIPE, env=os.environ | environment
        )
        assert self._process.stdout is not None, "it is a pipe"
        async with asyncio.timeout(_READY_S):
            if not await self._process.stdout.readline():
                raise SystemExit("`draftline serve` ended at once. Its reason stands above.")
            self._endpoint = _endpoint(Path(environment["DRAFTLINE_RUNTIME_DIR"]))
            connection = EngineConnection(self._endpoint)
            async for status in connection.states():
                if status.state == "ready":
                    break
            await connection.close()

    def desk(self, name: str) -> HostDesk:
        """See `Server`."""
        return HostDesk(EngineConnection(self._endpoint, name))

    async def stop(self) -> None:
        """See `Server`."""
        if self._process is not None and self._process.returncode is None:
            self._process.terminate()
            await asyncio.wait_for(self._process.wait(), _END_S)
        self._folders.close()


class HostDesk:
    """A typist's connection to our host."""

    def __init__(self, connection: EngineConnection) -> None:
        self._connection = connection
        self.complete: Callable[[CompletionRequest], AsyncGenerator[CompletionEvent]] = connection.complete
        self.close = connection.close

    async def prepare(self, request: CompletionRequest) -> None:
        """See `Desk`."""
        await self._connection.post("/v1/prepare", request)

    async def forget(self, document: str) -> None:
        """See `Desk`."""
        await self._connection.post("/v1/close", Closing((document,)))


class ModelServerRow:
    """A model server that runs already.

    Args:
        address: Its address.
        model: Whose tokenizer it has.

    Attributes:
        address: Its address.
    """

    def __init__(self, address: RemoteAddress, model: str) -> None:
        self.address = address
        self._spec = model
        self._model: RemoteModel | None = None

    @property
    def model(self) -> RemoteModel:
        """Its model, once it was started."""
        assert self._model is not None, "it was started"
        return self._model

    async def start(self) -> None:
        """See `Server`."""
        self._model = await asyncio.to_thread(RemoteModel.connect, self.address, self._spec, silent, CancelToken())

    def desk(self, name: str) -> RemoteDesk:  # noqa: ARG002 - a model server knows no clients
        """See `Server`."""
        return RemoteDesk(RemoteEngine(self.model, full_prompt_s=FULL_PROMPT_S, cold_prompt_s=COLD_PROMPT_S))

    async def stop(self) -> None:
        """See `Server`: it runs on."""


class VllmRow(ModelServerRow):
    """A vLLM that runs for the benchmark alone, with the weights of our host's model in 16 or 32 bits.

    Args:
        python: The python of an environment with vLLM for processors.
        model: The model.
    """

    def __init__(self, python: str, model: str) -> None:
        self._process = VllmProcess(python, with_safetensors(prepare(model).folder))
        super().__init__(RemoteAddress(self._process.url, "vllm"), model)

    async def start(self) -> None:
        """See `Server`.

        Raises:
            SystemExit: It ended, or was not ready in time.
        """
        await asyncio.to_thread(self._process.start)
        await super().start()

    async def stop(self) -> None:
        """See `Server`."""
        await asyncio.to_thread(self._process.stop)


class RemoteDesk:
    """A typist's own engine, which gets its tokens from the model server."""

    def __init__(self, engine: RemoteEngine) -> None:
        self._engine = engine
        self._thread = ThreadPoolExecutor(max_workers=1)

    async def complete(self, request: CompletionRequest) -> AsyncGenerator[CompletionEvent]:
        """See `Desk`."""
        loop, cancel = asyncio.get_running_loop(), CancelToken()
        events: asyncio.Queue[CompletionEvent | None] = asyncio.Queue()

        def work() -> None:
            try:
                for event in self._engine.complete(request, cancel):
                    loop.call_soon_threadsafe(events.put_nowait, event)
            finally:
                loop.call_soon_threadsafe(events.put_nowait, None)

        running = loop.run_in_executor(self._thread, work)
        try:
            while (event := await events.get()) is not None:
                yield event
            await running
        finally:
            cancel.cancel()
            with suppress(CancelledError, asyncio.CancelledError):
                await asyncio.shield(running)

    async def prepare(self, request: CompletionRequest) -> None:
        """See `Desk`."""
        loop, cancel = asyncio.get_running_loop(), CancelToken()
        try:
            await loop.run_in_executor(self._thread, self._engine.prepare, request, cancel)
        finally:
            cancel.cancel()

    async def forget(self, document: str) -> None:
        """See `Desk`: a model server knows no documents."""

    async def close(self) -> None:
        """See `Desk`."""
        self._thread.shutdown(wait=False)
        self._engine.close()


def _endpoint(runtime_folder: Path) -> Endpoint:
    return Endpoint(socket_path=next(runtime_folder.glob("*.sock")))
