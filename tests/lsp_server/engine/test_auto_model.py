"""`model = "auto"` in a session: real hosts of two models, and a machine that the test describes."""

import asyncio
import platform
import threading
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

import pytest

from completion.errors import ModelNotFoundError
from completion.host.process.address import host_address
from completion.host.process.sockets import own_socket
from completion.host.server import HostServer, HostSettings
from completion.model.choice import KNOWN, Choice, Measured, measured_folder
from completion.model.store.converted_models import Source, convert_once
from completion.model.store.packaged_models import LARGER_PACKAGE
from completion.progress import silent
from completion.request import CompletionRequest
from lsp_server.engine.auto_model import AUTO, ModelDownload, Now, choice_of, saves_battery
from lsp_server.engine.link import REVIEW_S, EngineLink
from lsp_server.settings.table import DEFAULTS
from lsp_server.status import LoadingProgress, StatusReporter
from tests.completion.host.paced_engine import PacedEngine
from tests.event_loop import settle

SMALL, LARGER = KNOWN[:2]
IDLE = Now(32_000_000_000)
MEASURED = Measured(SMALL.name, "q4", "cpu", 0, tuple(8.0 + 2 * row for row in range(16)), platform.node())
AUTOMATIC = replace(DEFAULTS, model=AUTO)
BOTH = replace(AUTOMATIC, first_text_budget_ms=round(1.5 * MEASURED.first_text_ms(LARGER)))
"""Settings with a budget in which the larger model is quick enough, and those above it are not."""


@asynccontextmanager
async def host_of(known, engine):
    own = own_socket(host_address(known.spec, "auto").endpoint_path)

    def load(progress):
        return replace(engine.load(progress), model_name=known.name, device="cpu")

    server = HostServer(HostSettings(model=known.spec), load, own.token)
    task = asyncio.create_task(server.run([own.listener]))
    yield engine
    engine.gated = False
    engine.permits.release(1000)
    server.stop()
    await task


def install(package=LARGER_PACKAGE):
    def fill(folder, _progress):
        return str((folder / "config.json").write_text("{}"))

    convert_once(Source(package.name, package.sha256), fill, silent)


def measure(measured=MEASURED):
    measured_folder().mkdir(parents=True, exist_ok=True)
    (measured_folder() / f"{measured.model}.json").write_text(measured.to_json())


class Room:
    """A link with its statuses, and a machine that the test changes."""

    def __init__(self):
        self.now = IDLE
        self.statuses, self.choices = [], []
        self.changed = asyncio.Condition()
        self.ready = asyncio.Semaphore(0)
        status = StatusReporter(lambda _method, params: self.statuses.append(params))
        bar = LoadingProgress(None)
        self.link = EngineLink(status, lambda: bar, self.ready.release, self.choices.append, lambda: self.now)

    async def is_ready(self):
        """Wait until an engine is ready, and the look at the machine that follows is over."""
        await asyncio.wait_for(self.ready.acquire(), 60)
        await self.link._reviewing

    @property
    def model(self):
        return self.statuses[-1]["model"]


@pytest.fixture
async def room(runtime):
    async with AsyncExitStack() as stack:
        one = Room()
        one.engines = [
            await stack.enter_async_context(host_of(known, PacedEngine(gated=True))) for known in (SMALL, LARGER)
        ]
        yield one
        await one.link.close()


async def test_without_a_measurement_the_default_model_serves(room):
    install()
    await room.link.use(BOTH)
    await room.is_ready()
    assert room.model == SMALL.name


async def test_the_larger_model_takes_over_once_it_is_there_and_what_runs_ends_where_it_began(room, pass_time):
    measure()
    await room.link.use(BOTH)
    await room.is_ready()
    small, larger = room.engines
    former = room.link.source
    events = former.complete(CompletionRequest("x =", document="a", max_tokens=2))
    small.permits.release(1)
    first = await anext(events)
    install()
    room.link.review()
    await room.is_ready()
    assert room.model == LARGER.name
    small.permits.release(10)
    rest = [event async for event in events]
    assert rest[-1].suggestions[0].text.startswith(first.suggestions[0].text)
    assert rest[-1].done
    larger.permits.release(10)
    assert [event async for event in room.link.source.complete(CompletionRequest("y =", document="b", max_tokens=1))]
    assert [[name[0] for name in engine.started] for engine in (small, larger)] == [["a"], ["b"]]


async def test_battery_takes_the_smaller_model_with_a_sentence_and_mains_the_larger_one_again(room, pass_time):
    measure()
    install()
    await room.link.use(BOTH)
    await room.is_ready()
    assert (room.model, room.link.saves_battery) == (LARGER.name, False)
    room.now = replace(IDLE, on_battery=True)
    await pass_time(REVIEW_S)
    await room.is_ready()
    assert (room.model, room.link.saves_battery) == (SMALL.name, True)
    assert f"On battery, {SMALL.name} serves in the place of {LARGER.name}." in room.statuses[-1]["message"]
    room.now = IDLE
    await pass_time(REVIEW_S)
    await room.is_ready()
    assert (room.model, room.link.saves_battery) == (LARGER.name, False)
    assert "battery" not in room.statuses[-1]["message"]


async def test_auto_does_not_wait_for_a_model_that_was_named_before(room):
    slow, engine = replace(SMALL, spec="slow", name="slow"), PacedEngine()
    engine.may_load.clear()
    async with host_of(slow, engine):
        await room.link.use(replace(DEFAULTS, model=slow.spec))
        await room.link.use(AUTOMATIC)
        await room.is_ready()
        engine.may_load.set()
    assert room.model == SMALL.name


def test_a_model_that_is_named_and_a_server_leave_nothing_to_choose(runtime):
    measure()
    install()
    assert choice_of(BOTH, IDLE).model is LARGER
    assert choice_of(replace(BOTH, model="default"), IDLE) is None
    assert choice_of(replace(BOTH, engine_url="https://gpu.example"), IDLE) is None


def test_on_battery_the_setting_decides_whether_work_is_saved():
    on_battery = replace(IDLE, on_battery=True)
    assert saves_battery(DEFAULTS, on_battery)
    assert not saves_battery(DEFAULTS, IDLE)
    assert not saves_battery(replace(DEFAULTS, on_battery="same"), on_battery)


class Downloads:
    """The downloads of a server."""

    def __init__(self, fetch=lambda: None):
        self.fetched, self.said = [], []
        self.ended = asyncio.Event()

        def fetch_it(model, progress):
            fetch()
            progress("Downloading", 0.5)
            self.fetched.append(model)

        def say(sentence):
            self.said.append(sentence)
            self.ended.set()

        self.download = ModelDownload(lambda: LoadingProgress(None), say, self.ended.set, fetch_it)

    def offer(self, model):
        self.download.note(Choice(SMALL, "", offer=model, forecasts_ms={LARGER.name: 80.0}))


def test_an_offer_says_what_it_gives_and_how_to_get_it():
    choice = Choice(SMALL, "", offer=LARGER, forecasts_ms={LARGER.name: 80.0})
    for fact in (LARGER.name, "80 ms", "1.1 GB", LARGER.gives):
        assert fact in f"{choice.offered} {choice.download}"


async def test_the_offered_model_is_downloaded_once_when_the_user_says_so():
    go_on = threading.Event()
    downloads = Downloads(go_on.wait)
    assert "No better model" in downloads.download.begin()
    downloads.offer(LARGER)
    assert LARGER.name in downloads.download.begin()
    assert "is being downloaded" in downloads.download.begin()
    go_on.set()
    await downloads.ended.wait()
    assert (downloads.fetched, downloads.said) == ([LARGER.spec], [])


async def test_an_offer_that_is_withdrawn_downloads_nothing():
    downloads = Downloads()
    downloads.offer(LARGER)
    downloads.offer(None)
    assert "No better model" in downloads.download.begin()


async def test_a_download_that_fails_is_said():
    def fail():
        raise ModelNotFoundError("The package index cannot be reached.")

    downloads = Downloads(fail)
    downloads.offer(LARGER)
    downloads.download.begin()
    await downloads.ended.wait()
    assert downloads.said == ["The package index cannot be reached."]


async def test_a_download_ends_at_its_next_step_once_it_is_closed():
    go_on = threading.Event()
    downloads = Downloads(go_on.wait)
    downloads.offer(LARGER)
    downloads.download.begin()
    await settle()
    downloads.download.close()
    go_on.set()
    await asyncio.get_running_loop().shutdown_default_executor()
    assert (downloads.fetched, downloads.said) == ([], [])
