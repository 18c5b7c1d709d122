"""Tokens in the path, and `--allow-local`: programs of this computer need no token, web pages get nothing."""

import asyncio
import logging
from contextlib import asynccontextmanager
from dataclasses import replace

import httpx
import pytest

from completion.errors import ConfigurationError
from completion.host.process.sockets import tcp_address
from completion.host.server import HostSettings
from tests.completion.host.paced_engine import PacedEngine
from tests.completion.host.test_tcp import TOKEN, free_address

BODY = {"prompt": "one", "stream": False, "options": {"num_predict": 1}}
OWN = ("/v1/complete", "/v1/prepare", "/v1/workspace", "/v1/close")


@asynccontextmanager
async def tcp_client(start_host, *, allow_local, engine=None):
    address = replace(free_address(), allow_local=allow_local)
    await start_host(engine or PacedEngine(), HostSettings(tcp=address))
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{address.port}", timeout=60) as client:
        yield client


@pytest.mark.parametrize("allow_local", [False, True])
async def test_a_token_before_the_path_admits_every_address(start_host, allow_local):
    async with tcp_client(start_host, allow_local=allow_local) as client:
        reply = await client.post(f"/t/{TOKEN}/api/generate", json=BODY)
        assert (reply.status_code, reply.json()["response"]) == (200, " 0")
        assert (await client.get(f"/t/{TOKEN}/metrics")).status_code == 200
        assert (await client.get(f"/t/{TOKEN.replace('-', '%2D')}/health")).status_code == 200
        complete = await client.post(f"/t/{TOKEN}/v1/complete", json={"prefix": "one", "max_tokens": 1})
        assert '"done":true' in complete.text
        for wrong in (f"/t/{TOKEN}x/health", f"/t/{TOKEN[:-1]}/health", "/t//health", f"/t/{TOKEN}", "/t/", "/t"):
            refused = await client.get(wrong)
            assert refused.status_code in (401, 404), wrong
            assert TOKEN not in refused.text
        missing = await client.get(f"/t/{TOKEN}/nowhere")
        assert missing.status_code == 404
        assert TOKEN not in missing.text


async def test_a_wrong_token_in_the_path_is_refused_in_the_form_of_the_interface(start_host):
    async with tcp_client(start_host, allow_local=False) as client:
        for path, form in (
            ("/api/generate", {"error"}),
            ("/v1/completions", {"error"}),
            ("/infill", {"error"}),
            ("/v1/fim/completions", {"object", "message", "type", "param", "code"}),
            ("/v1/complete", {"code", "message"}),
        ):
            for reply in (await client.post(f"/t/wrong{path}", json=BODY), await client.post(path, json=BODY)):
                assert (reply.status_code, set(reply.json())) == (401, form), path
                assert "The token is missing or wrong" in reply.text


async def test_a_path_with_a_final_slash_is_refused_with_a_sentence_and_not_redirected(start_host):
    async with tcp_client(start_host, allow_local=False) as client:
        reply = await client.post(f"/t/{TOKEN}/api/generate/", json=BODY)
        assert reply.status_code == 404
        assert "no endpoint POST /api/generate/. See docs/http-api.md" in reply.json()["error"]


async def test_a_token_in_the_path_is_never_logged(start_host, caplog):
    caplog.set_level(logging.DEBUG)
    async with tcp_client(start_host, allow_local=False) as client:
        for own in ("httpx", "httpcore"):  # the client's own log names the address
            caplog.set_level(logging.WARNING, own)
        await client.post(f"/t/{TOKEN}/api/generate", json=BODY | {"prompt": "crash"})
        await client.get(f"/t/{TOKEN}/nowhere")
        await client.get(f"/t/{TOKEN}x/health")
    assert "A request failed" in caplog.text
    assert TOKEN not in caplog.text


async def test_without_the_option_a_request_without_a_token_is_refused(start_host):
    async with tcp_client(start_host, allow_local=False) as client:
        refused = await client.post("/api/generate", json=BODY)
        assert (refused.status_code, list(refused.json())) == (401, ["error"])


async def test_programs_of_this_computer_need_no_token(start_host):
    async with tcp_client(start_host, allow_local=True) as client:
        for headers in ({}, {"Authorization": "Bearer undefined"}, {"Host": "localhost:11434"}, {"Host": "[::1]"}):
            reply = await client.post("/api/generate", json=BODY, headers=headers)
            assert (reply.status_code, reply.json()["response"]) == (200, " 0"), headers
        assert (await client.get("/v1/models")).status_code == 200


async def test_draftlines_own_interface_always_needs_the_token(start_host):
    async with tcp_client(start_host, allow_local=True) as client:
        for path in OWN:
            assert (await client.post(path, json={"prefix": "one"})).status_code == 401
        for path in ("/metrics", "/v1/lease"):
            assert (await client.get(path)).status_code == 401


FROM_A_PAGE = [
    {"Origin": "https://evil.example"},
    {"Origin": "http://127.0.0.1:8012"},
    {"Origin": "null"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-origin"},
    {"Host": "evil.example:8012"},
    {"Host": "localhost.evil.example"},
    {"Host": "127.0.0.1.evil.example"},
    {"Host": "192.168.1.2:8012"},
    {"Host": "[::1"},
    {"Host": ""},
    {"Content-Type": "text/plain"},
    {"Content-Type": "application/x-www-form-urlencoded"},
    {"Content-Type": "multipart/form-data; boundary=x"},
    {"Content-Type": ""},
]


@pytest.mark.parametrize("headers", FROM_A_PAGE, ids=str)
async def test_what_a_web_page_can_send_never_reaches_the_engine(start_host, headers):
    engine = PacedEngine()
    async with tcp_client(start_host, allow_local=True, engine=engine) as client:
        for path in ("/api/generate", "/infill", "/completion", "/v1/completions", "/v1/fim/completions"):
            refused = await client.post(path, json=BODY, headers=headers)
            assert refused.status_code == 403, (path, refused.text)
            assert not any(name.startswith("access-control") for name in refused.headers)
        assert engine.started == []


async def test_a_pages_preflight_and_websocket_are_refused(start_host):
    async with tcp_client(start_host, allow_local=True) as client:
        preflight = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
        refused = await client.options("/api/generate", headers=preflight)
        assert refused.status_code == 403
        assert not any(name.startswith("access-control") for name in refused.headers)
        upgrade = {
            "Origin": "https://evil.example",
            "Connection": "Upgrade",
            "Upgrade": "websocket",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        }
        assert (await client.get("/v1/completions", headers=upgrade)).status_code == 403


async def test_a_request_without_a_host_is_refused(start_host):
    async with tcp_client(start_host, allow_local=True) as client:
        reader, writer = await asyncio.open_connection("127.0.0.1", client.base_url.port)
        writer.write(b"GET /v1/models HTTP/1.0\r\n\r\n")
        assert b" 403 " in await reader.readline()
        writer.close()


@pytest.mark.parametrize("text", ["0.0.0.0:8012", "[::]:8012", "192.168.1.2:8012", "example.org:8012"])
def test_only_a_loopback_address_can_be_open(tmp_path, text):
    token = tmp_path / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    with pytest.raises(ConfigurationError, match="--allow-local"):
        tcp_address(text, token, tmp_path / "own", allow_local=True)
    assert tcp_address("127.0.0.1:8012", None, tmp_path / "own", allow_local=True).allow_local
    assert not tcp_address("127.0.0.1:8012", None, tmp_path / "own").allow_local
