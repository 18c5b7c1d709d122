"""Next edits of the real server, asked for by a real client."""

import asyncio

import pytest
from lsprotocol import types

from tests.lsp_server.real_client import steps

URI = "file:///nowhere/a.py"
TEXT = "import zstd\n\nx = zstd.open(1)\ny = zstd.read(x)\n"


async def ask(client, method="draftline/nextEdit", version=None, kind=2):
    document = {"uri": URI} | ({"version": version} if version else {})
    params = {"textDocument": document, "position": {"line": 0, "character": 0}, "context": {"triggerKind": kind}}
    return (await client.lsp.protocol.send_request_async(method, params)).edits


@pytest.fixture
async def renamed(paced, start_client):
    """A client that has renamed an import."""
    paced.gated = False

    async def start(**options):
        client = await start_client(prepare_ms=0, **options)
        await client.ready()
        client.open(URI, TEXT)
        client.change(URI, 2, (0, 7), (0, 11), "zstandard")
        return client

    return start


@pytest.mark.parametrize("method", ["draftline/nextEdit", "textDocument/copilotInlineEdit"])
async def test_an_edit_names_the_version_and_the_text_that_it_replaces(renamed, method):
    client = await renamed()
    first, second = await ask(client, method, version=2)
    assert (first.oldText, first.text) == ("x = zstd.open(1)", "x = zstandard.open(1)")
    assert (first.range.start.line, first.range.start.character, first.range.end.character) == (2, 0, 16)
    assert (first.textDocument.uri, first.textDocument.version) == (URI, 2)
    assert first.command.command == "draftline.nextEditAccepted"
    assert second.text == "y = zstandard.read(x)"


async def test_after_an_accepted_edit_the_others_follow_until_none_is_left(renamed):
    client = await renamed()
    first, _ = await ask(client)
    client.change(URI, 3, (2, 0), (2, 16), first.text)
    await client.lsp.workspace_execute_command_async(types.ExecuteCommandParams(first.command.command, [first.id]))
    (second,) = await ask(client)
    client.change(URI, 4, (3, 0), (3, 16), second.text)
    assert await ask(client) == []


async def test_a_refused_edit_never_comes_back_wherever_its_line_moves(renamed):
    client = await renamed()
    first, second = await ask(client)
    await client.lsp.workspace_execute_command_async(
        types.ExecuteCommandParams("draftline.nextEditRefused", [first.id])
    )
    client.change(URI, 3, (1, 0), (1, 0), "\n\n")
    (left,) = await ask(client)
    assert left.text == second.text


async def test_a_request_for_another_version_gets_nothing(renamed):
    assert await ask(await renamed(), version=1) == []


async def test_what_the_engine_finds_for_a_text_that_has_changed_meanwhile_is_dropped(paced, renamed):
    client = await renamed()
    paced.gated = True
    asked = asyncio.ensure_future(ask(client))
    assert await asyncio.to_thread(paced.began.acquire, timeout=60)
    client.change(URI, 3, (2, 0), (2, 0), "# ")
    await client.lsp.workspace_execute_command_async(types.ExecuteCommandParams("draftline.resume"))  # it has read both
    steps(paced, 1)
    assert await asked == []


@pytest.mark.parametrize(("mode", "kind", "count"), [("off", 1, 0), ("manual", 2, 0), ("manual", 1, 2), ("auto", 2, 2)])
async def test_the_setting_says_when_edits_are_proposed(renamed, mode, kind, count):
    client = await renamed(nextEdit=mode)
    assert len(await ask(client, kind=kind)) == count


def report(client, version, line=2, **changed):
    at = {"line": line, "character": 0}
    told = {"range": {"start": at, "end": at}, "severity": 1, "message": "no attribute 'price' on `Item` \ud800"}
    client.lsp.protocol.notify(
        "draftline/diagnostics", {"uri": URI, "version": version, "diagnostics": [told | changed]}
    )


async def test_a_diagnostic_proposes_the_edit_of_its_line_until_the_text_changes(paced, start_client):
    paced.gated = False
    client = await start_client(prepare_ms=0)
    await client.ready()
    client.open(URI, "class Item: price = 1\ndef f(price): ...\nprint(item.price)\n" + 41 * "use(item.price)\n")
    client.change(URI, 2, (0, 12), (0, 17), "cost")
    assert await ask(client) == [], "a name that is used so often is not the one that was renamed"
    for version, changed in ((1, {}), (2, {"line": 3, "severity": 3}), (2, {"line": 99})):
        report(client, version, **changed)
        assert await ask(client) == [], "outdated, a hint, or outside the text"
    report(client, 2, message=None)
    report(client, 2, range={})
    report(client, 2)
    (edit,) = await ask(client)
    assert edit.text == "print(item.cost)"
    client.change(URI, 3, (5, 0), (5, 0), " ")
    assert await ask(client) == []


async def test_a_request_without_a_document_is_refused_and_the_server_lives_on(renamed):
    client = await renamed()
    with pytest.raises(Exception, match="textDocument"):
        await client.lsp.protocol.send_request_async("draftline/nextEdit", {})
    assert len(await ask(client)) == 2
