"""A Ray Serve application of vLLM servers: each replica runs one, and hands requests and streams through.

Ray Serve's own router, which serve.yaml names, sends all requests of one `X-Session-Id` to one replica, because that
one has cached their prompts. Needs `ray[serve]` in the environment of vLLM.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import aiohttp
from pydantic import BaseModel, ConfigDict
from ray import serve
from ray.serve import Application
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

READY_S = 1800.0
"""Maximum time to load a model, in seconds."""

_POLL_S = 0.5
_CHECK_S = 10.0
_PATHS = frozenset({"/v1/models", "/v1/completions", "/version", "/tokenize", "/detokenize"})
_LIMIT_BYTES = 1 << 22  # draftline compares all tokens at once: 1.1 MB for 152,000 of them
# The shell ends vLLM when its input closes, which happens when the replica ends, however it ends.
_UNTIL_THE_REPLICA_ENDS = """
exec 3<&0
"$@" & server=$!
{ read -r _ <&3; kill -TERM $server; } &
wait $server
"""


class Arguments(BaseModel):
    """The application's arguments, from serve.yaml.

    Attributes:
        model: Folder or hub name of the model.
        keys: Folder with one file for each user, which holds the user's token; "" if everybody may connect.
        options: Further arguments of vLLM.
        environment: Further environment variables of vLLM.
    """

    model_config = ConfigDict(extra="forbid")

    model: str
    keys: str = ""
    options: list[str] = []
    environment: dict[str, str] = {}


@serve.deployment
class VllmReplica:
    """A vLLM server on a port that this machine alone can reach. When replica or server ends, so does the other.

    Args:
        arguments: The application's.
    """

    async def __init__(self, arguments: Arguments) -> None:
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        self._url = f"http://127.0.0.1:{port}"
        self._keys = _keys(arguments.keys)
        self._session = aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=None), connector=aiohttp.TCPConnector(limit=0)
        )
        command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", arguments.model]
        command += ["--host", "127.0.0.1", "--port", str(port), *arguments.options]
        self._process = await asyncio.create_subprocess_exec(
            *("/bin/sh", "-c", _UNTIL_THE_REPLICA_ENDS, "sh", *command),
            stdin=asyncio.subprocess.PIPE,
            env=os.environ | arguments.environment,
        )
        self._watch = asyncio.create_task(self._end_with_server())
        async with asyncio.timeout(READY_S):
            while not await self._answers():  # noqa: ASYNC110 - another process loads the model
                await asyncio.sleep(_POLL_S)

    async def __call__(self, request: Request) -> Response:
        """Hand a request to vLLM, and its reply back while it comes. A client that leaves ends vLLM's work."""
        if request.url.path not in _PATHS:
            return Response("There is no such page.\n", 404)
        if self._keys and request.headers.get("authorization") not in self._keys:
            return Response('{"error": "Unauthorized"}', 401, media_type="application/json")
        body = await request.body()
        if len(body) > _LIMIT_BYTES:
            return Response('{"error": "The request is too large."}', 413, media_type="application/json")
        headers = {"Content-Type": request.headers.get("content-type", "application/json")}
        reply = await self._session.request(request.method, self._url + request.url.path, data=body, headers=headers)
        return StreamingResponse(_parts(reply), reply.status, media_type=reply.headers.get("Content-Type"))

    async def check_health(self) -> None:
        """Say whether vLLM answers. Ray starts another replica in place of one that does not.

        Raises:
            RuntimeError: It does not.
        """
        if not await self._answers():
            raise RuntimeError("vLLM does not answer.")

    async def _answers(self) -> bool:
        try:
            async with asyncio.timeout(_CHECK_S), self._session.get(f"{self._url}/health") as reply:
                return reply.status == 200
        except (OSError, TimeoutError, aiohttp.ClientError):
            return False

    async def _end_with_server(self) -> None:
        """End this replica as soon as its vLLM ends: then the router sends requests to the others at once."""
        await self._process.wait()
        os._exit(1)


def application(arguments: dict[str, object]) -> Application:
    """Return the application that serve.yaml names, with its `args`.

    Raises:
        ValidationError: An argument is missing, unknown, or of another type.
    """
    return VllmReplica.bind(Arguments.model_validate(arguments))


def _keys(folder: str) -> frozenset[str]:
    """Return the values of the header `Authorization` that are let in."""
    if not folder:
        return frozenset()
    tokens = {file.read_text(encoding="utf-8").strip() for file in Path(folder).rglob("*") if file.is_file()}
    if not tokens or "" in tokens:
        raise ValueError(f"The folder {folder} has no token, or an empty one. Put one file for each user there.")
    return frozenset(f"Bearer {token}" for token in tokens)


async def _parts(reply: aiohttp.ClientResponse) -> AsyncGenerator[bytes]:
    try:
        async for part in reply.content.iter_any():
            yield part
    finally:
        reply.close()


__all__ = ["Arguments", "VllmReplica", "application"]
