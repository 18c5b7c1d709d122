"""What a session does with `model = "auto"`: a real client, a real server process, and real hosts."""

from dataclasses import replace

import pytest
from lsprotocol import types

from completion.model.choice import KNOWN, is_installed
from lsp_server.engine.model_offer import FETCH, OFFERED_FILE, REFUSE
from lsp_server.server import create_server
from tests.completion.host.paced_engine import PacedEngine
from tests.lsp_server.engine.test_auto_model import MEASURED, host_of, measure
from tests.lsp_server.real_client import RealClient

SMALL, LARGER = KNOWN[:2]
URI = "file:///nowhere/a.py"


@pytest.fixture
async def asked(start_client):
    """Return a function that starts a client which refuses what it is asked."""

    async def start(**options):
        client = RealClient()
        client.answer_questions(REFUSE)
        return await start_client(client, model="auto", **{"name": "Visual Studio Code", **options})

    return start


async def test_the_client_is_asked_once_about_a_better_model(asked, runtime):
    measure(replace(MEASURED, costs_ms=(20.0,) * 16))
    async with host_of(SMALL, PacedEngine()):
        client = await asked(first_text_budget_ms=200)
        await client.until(lambda: client.questions)
        (question,) = client.questions
        assert [action.title for action in question.actions] == [FETCH, REFUSE]
        assert LARGER.name in question.message
        assert (await client.ready()).model == SMALL.name
        await client.stop()
        assert LARGER.name in (runtime / "state" / OFFERED_FILE).read_text()
        again = await asked(first_text_budget_ms=200)
        assert (await again.ready()).model == SMALL.name
        again.open(URI, "x =")
        assert await again.complete(URI, 0, 3, invoked=True)
        assert again.questions == []


async def test_a_client_whose_questions_take_the_keyboard_is_told_in_its_status(asked):
    measure(replace(MEASURED, costs_ms=(20.0,) * 16))
    async with host_of(SMALL, PacedEngine()):
        client = await asked(first_text_budget_ms=200, name="Emacs")
        await client.until(lambda: any(LARGER.name in each.message for each in client.statuses))
        assert f"draftline models get {LARGER.spec}" in client.statuses[-1].message
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
async def test_a_budget_chooses_each_real_model(asked, runtime, monkeypatch, budget_ms, known):
    monkeypatch.delenv("DRAFTLINE_CACHE_DIR")
    if not is_installed(LARGER):
        pytest.skip(f"{LARGER.name} is not installed: draftline models get {LARGER.name}")
    client = await asked(first_text_budget_ms=budget_ms, on_battery="same", max_tokens=8)
    await client.until(lambda: any(each.kind == "ready" and each.model == known.name for each in client.statuses), 800)
    client.open(URI, "def fibonacci(n):\n    if n < 2:\n        return n\n    return fibonacci(n - 1) + ")
    (item, *_) = await client.complete(URI, 3, 30)
    assert item.insert_text.startswith("fibonacci(n - 2)")
