"""Limits on idle, slow and unread connections: a cap on TCP connections, and a time limit on requests and replies."""

import asyncio
import json
import logging
import socket
import ssl
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from completion.host.process.connections import ConnectionLimits
from completion.host.process.sockets import TcpAddress, tcp_socket, tls_context
from completion.host.server import HostSettings
from tests.completion.host.paced_engine import PacedEngine
from tests.completion.host.test_requests import acquire

CERTIFICATE = Path(__file__).parents[1] / "remote/localhost.pem"
TOKEN = "a-token-of-enough-length"
HEADERS = f"Host: d\r\nAuthorization: Bearer {TOKEN}\r\n"


def settings(tls=None, **limits):
    with tcp_socket(TcpAddress("127.0.0.1", 0, TOKEN)) as probe:
        address = TcpAddress("127.0.0.1", probe.getsockname()[1], TOKEN, tls=tls)
    return HostSettings(tcp=address, connections=ConnectionLimits(**limits))


@asynccontextmanager
async def connected(host_settings):
    reader, writer = await asyncio.open_connection(host_settings.tcp.host, host_settings.tcp.port)
    try:
        yield reader, writer
    finally:
        writer.close()


async def wait_too_long(client, pass_time, limited):
    """Let the time for a request pass once the host has what was sent before: it reads in the order of arrival."""
    assert (await client.get("/health")).status_code == 200
    await pass_time(limited.connections.request_s)


async def read_to_end(reader):
    async with asyncio.timeout(60):
        return await reader.read()


def status_and_error(reply):
    head, _, body = reply.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems let a process have fewer files open")
async def test_a_room_of_thirty_people_with_two_windows_each_is_let_in(start_host):
    """Each window has a lease, and four connections of its last requests for a few seconds."""
    room = settings()
    await start_host(PacedEngine(), room)
    streams = [await asyncio.open_connection(room.tcp.host, room.tcp.port) for _ in range(300)]
    reader, writer = streams[-1]
    writer.write(f"GET /health HTTP/1.1\r\n{HEADERS}\r\n".encode())
    assert (await reader.readline()).startswith(b"HTTP/1.1 200")
    for _, writer in streams:
        writer.close()


async def test_idle_tcp_connections_beyond_the_cap_are_refused_and_the_unix_socket_answers(start_host):
    limited = settings(tcp_connections=8)
    unix_client = await start_host(PacedEngine(), limited)
    streams = [await asyncio.open_connection(limited.tcp.host, limited.tcp.port) for _ in range(50)]
    refusals = [await read_to_end(reader) for reader, _ in streams[8:]]
    for refusal in refusals:
        status, error = status_and_error(refusal)
        assert (status, error["code"]) == (503, "connections_full")
        assert "8 TCP connections" in error["message"]
    assert not any(reader.at_eof() for reader, _ in streams[:8])
    assert (await unix_client.get("/health")).status_code == 200
    for _, writer in streams:
        writer.close()
        await writer.wait_closed()


async def test_connections_that_never_shake_hands_count_towards_the_cap_too(start_host):
    limited = settings(tls_context(CERTIFICATE, None), tcp_connections=8)
    unix_client = await start_host(PacedEngine(), limited)
    streams = [await asyncio.open_connection(limited.tcp.host, limited.tcp.port) for _ in range(50)]
    assert [await read_to_end(reader) for reader, _ in streams[8:]] == [b""] * 42
    assert not any(reader.at_eof() for reader, _ in streams[:8])
    assert (await unix_client.get("/health")).status_code == 200
    for _, writer in streams:
        writer.close()
        await writer.wait_closed()


async def health_over_tls(host_settings):
    """Return the reply to a request that arrives together with the end of the handshake."""
    received, sent, reply = ssl.MemoryBIO(), ssl.MemoryBIO(), b""
    client = ssl.create_default_context(cafile=CERTIFICATE).wrap_bio(received, sent, server_hostname="localhost")
    is_sent = False
    async with connected(host_settings) as (reader, writer), asyncio.timeout(60):
        while b"}" not in reply:
            try:
                if not is_sent:
                    client.do_handshake()
                    client.write(f"GET /health HTTP/1.1\r\n{HEADERS}\r\n".encode())
                    is_sent = True
                reply += client.read()
            except ssl.SSLWantReadError:
                writer.write(sent.read())
                received.write(await reader.read(1 << 16))
    return reply


@pytest.mark.parametrize("sent", [b"", b"\x16\x03\x01", b"GET /health HTTP/1.1\r\n\r\n"])
async def test_a_handshake_that_does_not_end_in_time_or_is_none_ends_the_connection(
    start_host, pass_time, sent, caplog
):
    limited = settings(tls_context(CERTIFICATE, None), tcp_connections=1)
    client = await start_host(PacedEngine(), limited)
    async with connected(limited) as (reader, writer):
        writer.write(sent)
        await wait_too_long(client, pass_time, limited)
        assert not (await read_to_end(reader)).startswith(b"HTTP")
    assert (await health_over_tls(limited)).startswith(b"HTTP/1.1 200 ")
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


async def test_a_closed_tcp_connection_no_longer_counts_towards_the_cap(start_host):
    limited = settings(tcp_connections=1)
    await start_host(PacedEngine(), limited)
    for _ in range(3):
        async with connected(limited) as (reader, writer):
            writer.write(f"GET /health HTTP/1.1\r\n{HEADERS}Connection: close\r\n\r\n".encode())
            assert (await read_to_end(reader)).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    "part",
    [
        "",
        "GET /health HTTP/1.1\r\nHost:",
        f"POST /v1/complete HTTP/1.1\r\n{HEADERS}Content-Length: 100\r\n\r\n{{",
        f"POST /v1/complete HTTP/1.1\r\n{HEADERS}Transfer-Encoding: chunked\r\n\r\n1\r\n{{\r\n",
    ],
    ids=["nothing", "half a header", "half a body", "half a chunked body"],
)
async def test_a_request_that_does_not_arrive_in_time_is_refused(start_host, pass_time, part):
    limited = settings()
    client = await start_host(PacedEngine(), limited)
    async with connected(limited) as (reader, writer):
        writer.write(part.encode())
        await wait_too_long(client, pass_time, limited)
        status, error = status_and_error(await read_to_end(reader))
    assert (status, error["code"]) == (408, "request_slow")
    assert (await client.get("/health")).json()["busy"] is False


async def test_sending_single_bytes_does_not_extend_the_time_limit_of_a_request(start_host, pass_time):
    limited = settings()
    client = await start_host(PacedEngine(), limited)
    async with connected(limited) as (reader, writer):
        writer.write(f"POST /v1/complete HTTP/1.1\r\n{HEADERS}Content-Length: 1000000\r\n\r\n".encode())
        assert (await client.get("/health")).status_code == 200  # meanwhile the host has read the head
        for _ in range(10):
            writer.write(b" ")
            await pass_time(limited.connections.request_s / 10)
        reply = asyncio.create_task(read_to_end(reader))
        await asyncio.wait([reply])
    # A byte that the host has not read may reset the connection before the client has read the reply.
    assert isinstance(reply.exception(), ConnectionResetError) or status_and_error(reply.result())[0] == 408


async def test_a_slow_second_request_on_a_connection_is_refused_too(start_host, pass_time):
    limited = settings()
    client = await start_host(PacedEngine(), limited)
    async with connected(limited) as (reader, writer):
        writer.write(f"GET /health HTTP/1.1\r\n{HEADERS}\r\n".encode())
        assert b"200 OK" in await reader.readuntil(b"}")
        writer.write(b"GET /hea")
        await wait_too_long(client, pass_time, limited)
        assert status_and_error(await read_to_end(reader))[0] == 408


async def test_a_long_reply_does_not_count_as_a_slow_request(start_host, pass_time):
    limited = settings()
    engine = PacedEngine(gated=True)
    client = await start_host(engine, limited)
    body = json.dumps({"prefix": "one", "max_tokens": 20})
    async with connected(limited) as (reader, writer):
        head = f"POST /v1/complete HTTP/1.1\r\n{HEADERS}Connection: close\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write((head + body).encode())
        await acquire(engine.paused)
        await wait_too_long(client, pass_time, limited)
        engine.permits.release(20)
        reply = await read_to_end(reader)
    assert b'"done":true' in reply
    assert engine.steps == 20


async def test_a_client_that_does_not_read_its_reply_is_cut_off_and_its_job_ends(start_host):
    limited = settings(unread_s=0.05)
    engine = PacedEngine(gated=True)
    client = await start_host(engine, limited)
    engine.permits.release(2500)  # 17 MB of events, more than the kernel buffers
    body = json.dumps({"prefix": "one", "max_tokens": 4096})
    with socket.create_connection((limited.tcp.host, limited.tcp.port)) as unread:
        unread.sendall(f"POST /v1/complete HTTP/1.1\r\n{HEADERS}Content-Length: {len(body)}\r\n\r\n{body}".encode())
        async with asyncio.timeout(60):
            while 'kind="complete",outcome="cancelled"} 1.0' not in (await client.get("/metrics")).text:
                engine.permits.release()  # the engine notices a cancel at its next step
    assert engine.steps < 4096


async def test_a_client_that_disconnects_within_its_body_causes_no_error_in_the_log(start_host, caplog):
    limited = settings()
    client = await start_host(PacedEngine(), limited)
    async with connected(limited) as (_, writer):
        writer.write(f"POST /v1/complete HTTP/1.1\r\n{HEADERS}Content-Length: 100\r\n\r\n{{".encode())
        await writer.drain()
    await client.get("/health")
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


@pytest.mark.parametrize(
    "head",
    [
        "GET /health HTTP/1.1\r\nHost: d\r\nAuthorization: Bearer \xff\xfe\r\n\r\n",
        f"POST /v1/complete HTTP/1.1\r\n{HEADERS}Content-Length: -1\r\n\r\n",
        f"POST /v1/complete HTTP/1.1\r\n{HEADERS}Content-Length: {'9' * 5000}\r\n\r\n",
        f"POST /v1/complete HTTP/1.1\r\n{HEADERS}Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        f"GET /{'%00' * 100} HTTP/1.1\r\n{HEADERS}Connection: close\r\n\r\n",
    ],
)
async def test_malformed_heads_get_a_4xx_and_not_500(start_host, head):
    limited = settings()
    await start_host(PacedEngine(), limited)
    async with connected(limited) as (reader, writer):
        writer.write(head.encode("latin-1"))
        status = int((await reader.readline()).split()[1])
    assert 400 <= status < 500
