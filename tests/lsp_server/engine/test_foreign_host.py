"""What listens at the engine's address may be no engine of ours: the client says so, whatever comes."""

import asyncio

import pytest

from completion.errors import ConfigurationError, DraftlineError, EngineUnavailableError
from completion.host.process.address import endpoint_at
from completion.host.process.sockets import own_socket
from completion.remote.address import RemoteAddress
from completion.request import CompletionRequest
from lsp_server.engine.http import EngineConnection, connection_to
from lsp_server.engine.launcher import EngineOptions

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"


@pytest.mark.parametrize(
    "said",
    [
        b"data: nonsense\n\n",
        b"data: {}\n\n",
        b"data: null\n\n",
        b"event: error\ndata: []\n\n",
        b"data: %b\n\n" % (b"[" * 9000),
    ],
)
async def test_an_answer_that_is_not_ours_is_an_error_of_ours(runtime, said):
    async def serve(reader, writer):
        await reader.read(1 << 16)
        writer.write(HEAD + said)
        writer.close()

    server = await asyncio.start_server(serve, sock=own_socket(runtime / "s").listener)
    connection = EngineConnection(endpoint_at(runtime / "s"))
    for stream in (connection.complete(CompletionRequest("x")), connection.states()):
        with pytest.raises(EngineUnavailableError if b"error" not in said else DraftlineError):
            async for _ in stream:
                pass
    await connection.close()
    server.close()


def test_a_host_whose_name_is_not_ascii_is_an_error_that_says_how_to_write_it():
    with pytest.raises(ConfigurationError, match="xn--"):
        connection_to(None, EngineOptions(remote=RemoteAddress("https://münchen.example", "draftline")))
