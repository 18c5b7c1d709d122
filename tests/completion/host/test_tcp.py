"""TCP: every request needs a token, and an address beyond loopback needs a token file of the user."""

import asyncio
import re
import shutil
import socket
import ssl
import subprocess
import sys
import threading
from dataclasses import replace

import httpx
import pytest

from completion.errors import ConfigurationError, EngineUnavailableError, PermissionsError, StorageError
from completion.host.process.address import Endpoint
from completion.host.process.sockets import TcpAddress, tcp_address, tcp_socket, tls_context
from completion.host.server import HostSettings
from completion.remote.address import RemoteAddress
from lsp_server.engine.client import EngineClient
from lsp_server.engine.http import EngineConnection
from lsp_server.engine.launcher import EngineOptions, HostGoneError
from tests.completion.host.conftest import running_host
from tests.completion.host.paced_engine import PacedEngine

TOKEN = "a-token-of-enough-length"


def free_address(token=TOKEN):
    with tcp_socket(TcpAddress("127.0.0.1", 0, token)) as probe:
        return TcpAddress("127.0.0.1", probe.getsockname()[1], token)


def options_of(address, folder, token, scheme="http", **options):
    file = folder / "client-token"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(token)
    url = f"{scheme}://localhost:{address.port}"
    return EngineOptions(remote=RemoteAddress(url, "draftline", token_file=str(file), **options))


async def test_a_tcp_request_needs_the_bearer_token_and_the_socket_does_not(start_host):
    address = free_address()
    unix_client = await start_host(PacedEngine(), HostSettings(tcp=address))
    assert (await unix_client.get("/health")).status_code == 200
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{address.port}") as client:
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {TOKEN}"}):
            for path in ("/health", "/metrics", "/v1/lease", "/v1/complete"):
                refused = await client.get(path, headers=headers)
                assert (refused.status_code, refused.json()["code"]) == (401, "unauthorized")
                assert refused.headers["www-authenticate"] == "Bearer"
        welcome = await client.get("/health", headers={"Authorization": f"Bearer {TOKEN}"})
        assert welcome.json()["state"] == "ready"


async def test_the_client_connects_to_a_host_by_its_url(start_host, tmp_path):
    from completion.request import CompletionRequest

    address = free_address()
    await start_host(PacedEngine(), HostSettings(tcp=address))
    client = EngineClient(options_of(address, tmp_path, TOKEN))
    events = [event async for event in client.complete(CompletionRequest("one", max_tokens=1))]
    assert events[-1].suggestions[0].text == " 0"
    await client.close()


async def test_the_end_of_a_host_on_another_machine_promises_no_new_one(runtime, tmp_path):
    address, gone = free_address(), asyncio.Event()
    client = EngineClient(options_of(address, tmp_path, TOKEN), lambda status: status.state == "gone" and gone.set())
    async with running_host(runtime, PacedEngine().load, HostSettings(tcp=address)):
        await client.connect()
    await gone.wait()
    where = f"http://localhost:{address.port}"
    assert client.status.sentence == f"The engine at {where} ended. The next request connects again."
    await client.close()


def times_of(connected):
    """Return whether a connection is probed, after how long, how often and how many times."""
    options = socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT
    is_probed = connected.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    return is_probed, *(connected.getsockopt(socket.IPPROTO_TCP, option) for option in options)


@pytest.mark.skipif(sys.platform == "darwin", reason="macOS has another name for the first time")
async def test_a_minute_after_a_loss_of_power_both_ends_of_a_lease_know_it():
    """Nothing is sent over a lease for hours, and a machine without power closes no connection."""
    with tcp_socket(TcpAddress("127.0.0.1", 0, TOKEN)) as listener:
        connection = EngineConnection(Endpoint(f"http://127.0.0.1:{listener.getsockname()[1]}", TOKEN))
        lease = asyncio.create_task(anext(connection.states()))
        accepted, _ = await asyncio.to_thread(listener.accept)
        with accepted:
            assert await asyncio.to_thread(accepted.recv, 1)  # so the client has the connection, too
            assert times_of(accepted) == (1, 30, 10, 3)
            (pooled,) = connection._pool.connections
            assert times_of(pooled._connection._network_stream.get_extra_info("socket")) == (1, 30, 10, 3)
        with pytest.raises(HostGoneError):
            await lease
        await connection.close()


async def test_a_wrong_token_is_an_error_that_names_the_header(start_host, tmp_path):
    address = free_address()
    await start_host(PacedEngine(), HostSettings(tcp=address))
    client = EngineClient(options_of(address, tmp_path, "wrong"))
    with pytest.raises(EngineUnavailableError, match="Authorization"):
        await client.connect()
    assert client.status.code == "unauthorized"


async def test_a_url_without_a_host_is_an_error_and_starts_no_host(runtime):
    address = free_address()
    client = EngineClient(replace(options_of(address, runtime, TOKEN), program=("/nonexistent",)))
    with pytest.raises(EngineUnavailableError, match="No engine answers"):
        await client.connect()


@pytest.mark.parametrize("text", ["0.0.0.0:8012", "192.168.1.2:80", "[::]:8012", "example.org:8012"])
def test_an_address_that_other_machines_can_reach_needs_a_token_file(tmp_path, text):
    with pytest.raises(ConfigurationError, match="--token-file"):
        tcp_address(text, None, tmp_path / "own")
    assert not (tmp_path / "own").exists()


@pytest.mark.parametrize("text", ["127.0.0.1", ":8012", "127.0.0.1:http", "127.0.0.1:0", "127.0.0.1:99999"])
def test_a_malformed_address_is_refused(tmp_path, text):
    with pytest.raises(ConfigurationError, match="HOST:PORT"):
        tcp_address(text, None, tmp_path / "own")


def test_on_loopback_a_private_token_is_created_once(tmp_path):
    first = tcp_address("127.0.0.1:8012", None, tmp_path / "own")
    second = tcp_address("[::1]:8013", None, tmp_path / "own")
    assert first.token == second.token
    assert len(first.token) >= 32
    assert (second.host, second.port) == ("::1", 8013)
    assert (tmp_path / "own").stat().st_mode & 0o777 == 0o600


def test_a_token_file_must_be_private_and_readable_and_its_token_long_enough(tmp_path):
    shared = tmp_path / "shared"
    shared.write_text(TOKEN)
    shared.chmod(0o644)
    with pytest.raises(PermissionsError, match="chmod 600"):
        tcp_address("0.0.0.0:8012", shared, tmp_path / "own")
    short = tmp_path / "short"
    short.write_text("abc")
    short.chmod(0o600)
    with pytest.raises(ConfigurationError, match="3 characters"):
        tcp_address("0.0.0.0:8012", short, tmp_path / "own")
    with pytest.raises(StorageError, match=r"cannot be read \(No such file or directory\)"):
        tcp_address("0.0.0.0:8012", tmp_path / "missing", tmp_path / "own")
    short.write_text(TOKEN)
    assert tcp_address("0.0.0.0:8012", short, tmp_path / "own").token == TOKEN


@pytest.mark.parametrize(("text", "reason"), [(None, "No such file or directory"), ("no certificate", "PEM")])
def test_a_certificate_that_cannot_be_used_is_an_error_with_what_to_do(text, reason, tmp_path):
    file = tmp_path / "cert.pem"
    if text is not None:
        file.write_text(text)
    with pytest.raises(
        ConfigurationError, match=rf"{re.escape(str(file))} cannot be used \(.*{reason}.*\)\. Give PEM files"
    ):
        tls_context(file, None)


def test_a_port_in_use_is_an_error_with_what_to_do(tmp_path):
    address = free_address()
    with tcp_socket(address), pytest.raises(EngineUnavailableError, match="--tcp HOST:PORT"):
        tcp_socket(address)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="it makes the certificates")
def test_a_renewed_certificate_counts_without_a_restart_and_half_of_a_pair_does_not(tmp_path):
    def renew(name, *, files=("tls.crt", "tls.key")):
        made = [tmp_path / f"{name}-{file}" for file in ("tls.crt", "tls.key")]
        words = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}", "-keyout", made[1], "-out"]
        subprocess.run(["openssl", *words, made[0]], check=True, capture_output=True)
        for file, source in zip(("tls.crt", "tls.key"), made, strict=True):
            if file in files:
                source.replace(tmp_path / file)

    def shown():
        """Return the certificate of a new connection: the first one after a change still has the old one."""
        client, server = ssl.create_default_context(), socket.socketpair()
        client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
        answering = threading.Thread(target=context.wrap_socket, args=(server[1],), kwargs={"server_side": True})
        answering.start()
        with client.wrap_socket(server[0], server_hostname="host") as connection:
            certificate = connection.getpeercert(binary_form=True)
            answering.join()
            return certificate

    renew("one")
    context = tls_context(tmp_path / "tls.crt", tmp_path / "tls.key")
    first = shown()
    renew("half", files=("tls.crt",))
    assert (shown(), shown()) == (first, first)
    renew("two")
    shown()
    assert shown() == ssl.PEM_cert_to_DER_cert((tmp_path / "tls.crt").read_text())
