"""What a session does with `model = "auto"`: a real client, a real server process, and real hosts."""

from dataclasses import replace

import pytest
from lsprotocol import types

from completion.model.choice import KNOWN, is_installed
from lsp_server.server import create_server
from tests.completion.host.paced_engine import PacedEngine
from tests.lsp_server.engine.test_auto_model import MEASURED, host_of, measure
from tests.lsp_server.real_client import RealClient

SMALL, LARGER = KNOWN[:2]
URI = "file:///nowhere/a.py"


@pytest.fixture
async def automatic(start_client):
    """Return a function that starts a client."""

    async def start(**options):
        return await start_client(RealClient(), model="auto", **options)

    return start


async def test_the_status_offers_a_better_model_and_no_question_disturbs(automatic):
    measure(replace(MEASURED, costs_ms=(20.0,) * 16))
    async with host_of(SMALL, PacedEngine()):
        client = await automatic(first_text_budget_ms=200)
        await client.until(lambda: any(LARGER.name in each.message for each in client.statuses))
        assert f"draftline models get {LARGER.spec}" in client.statuses[-1].message
        assert (await client.ready()).model == SMALL.name
        assert client.questions == []


async def test_nothing_is_generated_ahead_while_battery_is_saved(runtime):
    session = create_server().session
    session.documents.open(types.TextDocumentItem(URI, "python", 1, "x ="))
    asking = URI, types.Position(0, 3)
    assert session._query(*asking, invoked=False).settings.ahead
    session.engine.saves_battery = True
    assert not session._query(*asking, invoked=False).settings.ahead


@pytest.mark.real_model
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("budget_ms", "known"), [(1, SMALL), (60_000, LARGER)])
async def test_a_budget_chooses_each_real_model(automatic, runtime, monkeypatch, budget_ms, known):
    monkeypatch.delenv("DRAFTLINE_CACHE_DIR")
    if not is_installed(LARGER):
        pytest.skip(f"{LARGER.name} is not installed: draftline models get {LARGER.name}")
    client = await automatic(first_text_budget_ms=budget_ms, on_battery="same", max_tokens=8)
    await client.until(lambda: any(each.kind == "ready" and each.model == known.name for each in client.statuses), 800)
    client.open(URI, "def fibonacci(n):\n    if n < 2:\n        return n\n    return fibonacci(n - 1) + ")
    (item, *_) = await client.complete(URI, 3, 30)
    assert item.insert_text.startswith("fibonacci(n - 2)")
