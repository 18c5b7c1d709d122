"""The local model beside the real vLLM, which dies in mid-stream: nobody sees an error, and local text follows."""

from __future__ import annotations

import itertools
import signal
from dataclasses import replace

import pytest

from completion.cancellation import CancelToken
from completion.remote.engine import RemoteEngine
from completion.remote.local_first import LocalFirst
from completion.remote.standby import MAX_RETRY_S, Standby
from completion.request import CompletionRequest, GrammarMode
from tests.completion.remote.real.watched import WatchedServer
from tests.completion.remote.test_local_first import Clock, settled
from tests.lsp_server.real_client import RealClient

SOURCE = "def mean(values):\n    total = 0\n    for value in values:\n        tot"
REQUEST = CompletionRequest(
    SOURCE,
    "\n    return total / len(values)\n",
    "python",
    max_tokens=24,
    remote=True,
    filters=False,
    grammar=GrammarMode.OFF,
)
DEATHS = 50
MOST_ROUNDS = 4 * DEATHS
pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]


@pytest.fixture
def beside(connect, local):
    """Returns the local engine with the server beside it; both share a clock that the test moves on."""
    started = []

    def put(url=""):
        clock, servers = Clock(), []

        def connected(cancel):
            model = connect(url=url, cancel=cancel)
            servers.append(WatchedServer(model.server))
            return RemoteEngine(replace(model, server=servers[-1]))

        standby = Standby(connected, lambda: None, clock)
        engine = LocalFirst(local, standby, clock)
        started.append(standby)
        settled(standby)
        assert standby.trouble == ""
        return engine, standby, clock, servers

    yield put
    for standby in started:
        standby.close()


def shown(engine, request=REQUEST):
    """The first suggestion's text after each event."""
    events = list(engine.complete(request, CancelToken()))
    assert [event.done for event in events] == [False] * (len(events) - 1) + [True]
    return [event.suggestions[0].text for event in events if event.suggestions]


def check(texts, local_text):
    """Text follows, it only grows apart from one replacement, and it is the local model's or goes on from the other."""
    assert texts
    replaced = [one for before, one in itertools.pairwise(texts) if not one.startswith(before)]
    assert len(replaced) <= 1
    assert len(texts[-1]) >= min(len(local_text), 1)


def back(engine, standby, clock):
    """Wait until the server serves again, as the next requests find it."""
    while True:
        clock.ahead_s += MAX_RETRY_S
        shown(engine, replace(REQUEST, document="probe"))
        settled(standby)
        if not standby.trouble:
            return


def test_fifty_deaths_in_mid_stream_show_no_error_and_local_text_follows(beside, relay, local):
    engine, standby, clock, servers = beside(relay.url)
    alone = shown(local)[-1]
    deaths = 0
    for round_ in range(MOST_ROUNDS):
        servers[-1].after, servers[-1].on_token = 1 + round_ % 3, relay.die
        check(shown(engine), alone)
        settled(standby)
        if relay.is_dead and standby.trouble:  # otherwise nobody wanted the rest of the reply
            assert "ended in the middle of its reply" in standby.trouble or "No server answers" in standby.trouble
            assert standby.trouble.endswith("The local model goes on alone.")
            assert shown(engine)[-1] == alone
            deaths += 1
        else:
            servers[-1].on_token = lambda: None
        relay.revive()
        back(engine, standby, clock)
        if deaths == DEATHS:
            break
    print(f"{deaths} deaths within {round_ + 1} replies: no error, local text in all of them")
    assert deaths == DEATHS


def test_a_server_that_stops_in_mid_stream_is_not_waited_for(beside, server, local):
    engine, standby, clock, servers = beside()
    alone = shown(local)[-1]
    clock.runs = True
    for _ in range(3):
        servers[-1].on_token = lambda: server.send(signal.SIGSTOP)
        try:
            check(shown(engine), alone)
        finally:
            server.send(signal.SIGCONT)
        servers[-1].on_token = lambda: None
        settled(standby)
        back(engine, standby, clock)


def test_a_server_that_is_killed_three_times_in_mid_stream(beside, server, local):
    engine, standby, clock, servers = beside()
    alone = shown(local)[-1]
    for _ in range(3):
        servers[-1].on_token = lambda: server.send(signal.SIGKILL)
        check(shown(engine), alone)
        settled(standby)
        assert standby.trouble.endswith("The local model goes on alone.")
        assert shown(engine)[-1] == alone
        server.stop()
        server.start()
        back(engine, standby, clock)


async def test_fifty_deaths_seen_from_an_editor_whose_host_has_both(runtime, relay, address, spec):
    """A real client, server and host. The relay ends after some bytes of a reply; the host connects again by itself."""
    settings = address(url=relay.url)
    client = RealClient()
    await client.start(
        model=spec,
        streaming=True,
        max_tokens=24,
        gate="off",
        grammar="off",
        suggestions=1,
        prepare_ms=0,
        engine_url=relay.url,
        engine_kind="vllm",
        engine_mode="local_first",
        engine_token_file=settings.token_file,
        engine_ca_file=settings.ca_file,
        engine_send=["*"],
    )
    try:
        status = await client.ready(timeout_s=600)
        assert status.kind == "ready", status.message
        number = deaths = 0
        is_alone = lambda: "The local model goes on alone." in client.statuses[-1].message  # noqa: E731

        async def suggested():
            nonlocal number
            number += 1
            uri = f"file:///nowhere/{number}.py"
            client.open(uri, SOURCE)
            return await client.complete(uri, 3, 11, invoked=True)

        assert await suggested()
        while deaths < DEATHS:
            relay.dies_after = 1 + 250 * (deaths % 8)
            while not (relay.is_dead and is_alone()):
                assert await suggested()
            deaths += 1
            relay.revive()
            while is_alone():
                assert await suggested()
        assert {status.kind for status in client.statuses} <= {"starting", "loading", "ready", "busy"}
        print(f"{deaths} deaths within {number} requests of an editor: a suggestion each time, no error")
    finally:
        await client.stop()
