"""Documents of two megabytes: keystrokes are handled, and no copies of the text are kept."""

import gc
import types as python_types

import psutil
import pytest

from lsp_server.documents.documents import Document
from lsp_server.documents.text_lines import Place
from tests.lsp_server.real_client import steps
from tests.lsp_server.scripted_editor import URI, settle
from tests.lsp_server.telemetry.test_recorded_session import RecordedEditor

CHARACTERS = 1_900_000
FILE = "file:///nowhere/bundle.js"
NOT_FOLLOWED = (type, Document, python_types.ModuleType, python_types.FunctionType, python_types.CoroutineType)


@pytest.mark.parametrize("unit", ["x", "é😀"], ids=["ASCII", "beyond"])
async def test_a_line_of_two_megabytes_can_be_edited_and_the_status_says_why_nothing_is_suggested(
    paced, start_client, unit
):
    client = await start_client(max_file_mb=4)
    await client.ready()
    client.open(FILE, unit * (CHARACTERS // len(unit)), "javascript")
    end = CHARACTERS if unit == "x" else CHARACTERS // 2 * 3
    for key in range(20):
        client.change(FILE, 2 + key, (0, end + key), (0, end + key), "y")
        assert await client.complete(FILE, 0, end + key + 1, invoked=True) == []
    await client.until(lambda: client.statuses[-1].message == "The line is longer than 10,000 characters.")
    client.change(FILE, 30, (0, end + 20), (0, end + 20), "\nz =")
    steps(paced, 3)
    assert len(await client.complete(FILE, 1, 3)) == 1


async def test_suggestions_in_a_big_document_keep_no_copies_of_its_text(paced, start_client):
    client = await start_client()
    await client.ready()
    client.open(FILE, "const value = 1;\n" * (CHARACTERS // 17), "javascript")
    line = CHARACTERS // 17
    server = psutil.Process(client.lsp._server.pid)

    async def suggest(count, version):
        for key in range(count):
            client.change(FILE, version + key, (line, 0), (line, 0), "ab"[key % 2])
            steps(paced, 3)
            assert len(await client.complete(FILE, line, 1, invoked=True)) == 1

    await suggest(10, 2)
    before = server.memory_info().rss
    await suggest(40, 20)
    assert server.memory_info().rss - before < 15 * CHARACTERS


def held_characters(*roots):
    """Return how many characters of text some objects keep alive, without open documents."""
    known, waiting, count = set(), list(roots), 0
    while waiting:
        one = waiting.pop()
        if id(one) in known or isinstance(one, NOT_FOLLOWED):
            continue
        known.add(id(one))
        if isinstance(one, str):
            count += len(one)
        waiting += gc.get_referents(one)
    return count


async def test_a_suggestion_keeps_a_bounded_window_of_its_document_until_the_document_closes():
    editor = RecordedEditor("const value = 1;\n" * 20_000)
    for number in range(20):
        editor.type(f"v{number} = ")
        await editor.suggest("1 + 2", each_token=(-0.1,))
        await settle()
    kept = editor.signals._offers
    assert len(kept) == 20
    assert 20 * 1_000 < held_characters(kept) < 20 * 10_000
    editor.policy.forget(URI)
    editor.signals.forget(editor.document)
    assert held_characters(kept) == 0
    assert editor.document.lines.end > Place(20_000, 0)
