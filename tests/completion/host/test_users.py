"""Users of one host: each has a token, and nothing that one has written serves another."""

import asyncio
import ssl
import threading
from collections.abc import Generator
from contextlib import AsyncExitStack, nullcontext
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from completion.cancellation import CancelToken
from completion.engine import Engine
from completion.errors import ConfigurationError, DocumentRefusedError, EngineUnavailableError
from completion.host.engine_loader import warm_up
from completion.host.engine_protocol import LoadedEngine
from completion.host.process.clients import CLIENT_HEADER, Client
from completion.host.process.fatal_work import HOSTS, CountedEngine, FatalWork
from completion.host.process.sockets import TcpAddress, tcp_address, tls_context
from completion.host.server import HostSettings
from completion.host.wire import decode_event
from completion.remote.address import RemoteAddress
from completion.request import CompletionEvent, CompletionRequest
from lsp_server.engine.client import EngineClient
from lsp_server.engine.launcher import EngineOptions
from tests.completion.host.conftest import running_host, until_ready
from tests.completion.host.paced_engine import PacedEngine
from tests.completion.host.test_requests import acquire, body, read_events, until_waiting
from tests.completion.host.test_tcp import free_address, options_of

CERTIFICATE = Path(__file__).parents[1] / "remote/localhost.pem"
USERS = {"adas-token-of-enough-length": "ada", "bobs-token-of-enough-length": "bob"}
ADA, BOB = USERS
CANARY = "xanthic_canary_of_ada"


def settings(**changes: object) -> HostSettings:
    return HostSettings(tcp=replace(free_address(), token="", users=USERS, **changes))


def client_of(host: HostSettings, token: str, scheme: str = "http", **options: object) -> httpx.AsyncClient:
    """Return a window of a user; all windows have the same name."""
    headers = {"Authorization": f"Bearer {token}", CLIENT_HEADER: "window"}
    return httpx.AsyncClient(base_url=f"{scheme}://localhost:{host.tcp.port}", headers=headers, timeout=20, **options)


async def test_two_users_with_the_same_document_do_not_end_each_others_requests(start_host):
    engine, host = PacedEngine(gated=True), settings()
    own = await start_host(engine, host)
    async with client_of(host, ADA) as ada, client_of(host, BOB) as bob:
        older = asyncio.create_task(read_events(ada, body(document="d", workspace="w")))
        await acquire(engine.began)
        newer = asyncio.create_task(read_events(bob, body(document="d", workspace="w")))
        await until_waiting(own, 1)
        engine.permits.release(6)
        for task in (older, newer):
            assert decode_event((await task)[-1][1]).suggestions[0].text == " 0 1 2"
            await acquire(engine.ended)
        for user in (ada, bob):
            assert (await user.post("/v1/workspace", json={"workspace": "w"})).status_code == 202
            await acquire(engine.ended)
    assert engine.started == ["d\0window\0ada", "d\0window\0bob"]
    assert [update.workspace for update in engine.updates] == ["w\0ada", "w\0bob"]


async def test_a_user_cannot_close_or_name_what_belongs_to_another(start_host):
    engine, host = PacedEngine(), settings()
    await start_host(engine, host)
    async with client_of(host, ADA) as ada, client_of(host, BOB) as bob:
        await read_events(ada, body(document="d", workspace="w"))
        closing = {"documents": ["d", "d\0window\0ada"], "workspaces": ["w", "w\0ada"]}
        assert (await bob.post("/v1/close", json=closing)).status_code == 202
        await acquire(engine.forgot)
        await read_events(bob, body(document="d\0window\0ada"))
    [closed] = engine.forgotten
    assert not {"d\0window\0ada", "w\0ada"} & {*closed.documents, *closed.workspaces}
    assert engine.started[0] == "d\0window\0ada" != engine.started[1]


async def test_an_unknown_token_is_refused_where_users_have_tokens(start_host):
    host = settings()
    await start_host(PacedEngine(), host)
    async with client_of(host, "another-token-of-enough-length") as stranger:
        assert (await stranger.get("/health")).status_code == 401


def of_ada(client: httpx.AsyncClient) -> list[dict[str, object]]:
    """Return requests in which the canary is the document, a file of the workspace, and a prompt without a document."""
    text = f"def {CANARY}(value):\n    return {CANARY} + value\n\n\nresult = "
    return [body(text, document="d", workspace="w", max_tokens=8), body(text, max_tokens=8)]


@pytest.mark.parametrize("second", [ADA, BOB])
async def test_what_one_user_wrote_changes_nothing_for_another(runtime, tiny_model, caplog, second):
    """The same requests once more: the same user gets what is cached, another one what a host gives at first."""

    async def answers(first: tuple[str, ...]) -> list[CompletionEvent]:
        """Return the answers for the second user after the requests of the first ones."""
        engine, host, found = Engine(tiny_model), settings(), []
        warm_up(engine)
        async with (
            running_host(runtime, lambda _: LoadedEngine(engine, "tiny", "cpu"), host) as own,
            AsyncExitStack() as stack,
        ):
            await until_ready(own)
            for token in (*first, second):
                client = await stack.enter_async_context(client_of(host, token))
                file = {"path": "canary.py", "text": f"def {CANARY}():\n    pass\n" * 20, "open": True}
                changed = [file] if token in first else []
                assert (await client.post("/v1/workspace", json={"workspace": "w", "changed": changed})).is_success
                found = [decode_event((await read_events(client, each, "?wait=1"))[-1][1]) for each in of_ada(client)]
            metrics = (await own.get("/metrics")).text
        assert CANARY not in metrics + caplog.text
        return found

    def seen(events: list[CompletionEvent]) -> list[object]:
        return [
            ([one.text for one in each.suggestions], each.statistics.prompt_tokens, each.statistics.kept_tokens)
            for each in events
        ]

    alone, after_ada = await answers(()), await answers((ADA,))
    assert (seen(after_ada) == seen(alone)) is (second != ADA)


@pytest.mark.parametrize(("user", "is_refused"), [("ada", True), ("bob", False)])
def test_a_document_on_which_hosts_ended_is_refused_to_its_user_only(tmp_path, user, is_refused):
    def answer(engine: PacedEngine, client: Client) -> Generator[CompletionEvent]:
        counted = CountedEngine(engine, FatalWork(tmp_path / "engine.fatal"))
        return counted.complete(CompletionRequest("text", document=client.document("d")), CancelToken())

    ended = [PacedEngine(gated=True) for _ in range(HOSTS)]
    for window, engine in enumerate(ended):  # each stands in its first step when the next host reads the record
        threading.Thread(target=next, args=(answer(engine, Client(f"{window}", "ada")),), daemon=True).start()
        assert engine.began.acquire(timeout=60)
    with pytest.raises(DocumentRefusedError) if is_refused else nullcontext():
        assert next(answer(PacedEngine(), Client("new", user))).suggestions
    for engine in ended:
        engine.permits.release()


async def test_tls_protects_tcp_and_leaves_the_own_socket_as_it_is(start_host):
    host = settings(tls=tls_context(CERTIFICATE, None))
    own = await start_host(PacedEngine(), host)
    assert (await own.get("/health")).status_code == 200
    trusted = ssl.create_default_context(cafile=CERTIFICATE)
    async with client_of(host, ADA, "https", verify=trusted) as ada:
        assert decode_event((await read_events(ada, body()))[-1][1]).suggestions[0].text == " 0 1 2"
    async with client_of(host, ADA) as unencrypted:
        with pytest.raises(httpx.TransportError):
            await unencrypted.get("/health")
    async with client_of(host, ADA, "https") as untrusting:
        with pytest.raises(httpx.ConnectError, match="certificate"):
            await untrusting.get("/health")


async def test_the_client_of_an_editor_trusts_a_host_by_its_ca_file_and_says_where_text_goes(start_host, tmp_path):
    host = settings(tls=tls_context(CERTIFICATE, None))
    await start_host(PacedEngine(), host)
    client = EngineClient(options_of(host.tcp, tmp_path, ADA, "https", ca_file=str(CERTIFICATE)))
    status = await client.connect()
    assert status.sentence == f"Ready. Your text goes to https://localhost:{host.tcp.port}."
    events = [event async for event in client.complete(CompletionRequest("one", max_tokens=1))]
    assert events[-1].suggestions[0].text == " 0"
    await client.close()
    untrusting = EngineClient(options_of(host.tcp, tmp_path, ADA, "https"))
    with pytest.raises(EngineUnavailableError, match="certificate"):
        await untrusting.connect()
    await untrusting.close()
    with pytest.raises(ConfigurationError, match="unencrypted"):
        await EngineClient(EngineOptions(remote=RemoteAddress("http://gpu.example", "draftline"))).connect()


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_url_with_the_wrong_scheme_says_which_one_is_right(start_host, tmp_path, scheme):
    host = settings(tls=tls_context(CERTIFICATE, None)) if scheme == "http" else settings()
    await start_host(PacedEngine(), host)
    client = EngineClient(options_of(host.tcp, tmp_path, ADA, scheme))
    with pytest.raises(EngineUnavailableError, match="https if it has a --tls-certificate, else with http"):
        await client.connect()
    await client.close()


def test_a_file_that_is_no_certificate_is_an_error_that_names_it(tmp_path):
    certificate = tmp_path / "cert.pem"
    certificate.write_text("no certificate")
    with pytest.raises(ConfigurationError, match=r"cert\.pem"):
        tls_context(certificate, None)


def address(tmp_path: Path, text: str) -> TcpAddress:
    file = tmp_path / "tokens"
    file.write_text(text)
    file.chmod(0o600)
    return tcp_address("0.0.0.0:8012", file, tmp_path / "own")


def test_a_token_file_has_one_token_or_a_line_for_each_user(tmp_path):
    assert address(tmp_path, f"{ADA}\n").token == ADA
    of_users = address(tmp_path, "".join(f"{user} {token}\n" for token, user in USERS.items()))
    assert (of_users.token, of_users.users) == ("", USERS)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"ada {ADA}\nbob {ADA}\n", "the same token"),
        (f"ada {ADA}\nbob short\n", "5 characters"),
        (f"ada {ADA}\n{BOB}\n", "lines with a user's name and token"),
        ("", "0 characters"),
    ],
)
def test_a_token_file_with_a_fault_is_refused(tmp_path, text, said):
    with pytest.raises(ConfigurationError, match=said):
        address(tmp_path, text)
