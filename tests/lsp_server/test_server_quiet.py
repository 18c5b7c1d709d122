"""Quiet controls of the real server process: commands and settings that act on the next key, and their counts."""

import json

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams

from lsp_server.cli.main import main
from tests.lsp_server.real_client import COMMAND

URI = "file:///project/a.py"


@pytest.fixture
async def client(paced, start_client, tmp_path, monkeypatch):
    """Yield a ready client of a server whose clock is ahead by the seconds in `tmp_path / "clock"`."""
    monkeypatch.setenv("DRAFTLINE_TEST_CLOCK", str(tmp_path / "clock"))
    paced.gated = False
    one = await start_client(command=(*COMMAND[:-1], "tests.lsp_server.moved_clock_server"), gate="off")
    await one.ready()
    one.open(URI, "x =")
    return one


async def run(client, command, *arguments):
    return await client.lsp.workspace_execute_command_async(types.ExecuteCommandParams(command, list(arguments)))


async def offers(client, *, invoked=False):
    """Return whether a request in a new document gets a suggestion, so that nothing narrows an earlier one."""
    client.opened = getattr(client, "opened", 0) + 1
    uri = f"file:///project/{client.opened}.py"
    client.open(uri, "x =")
    return bool(await client.complete(uri, 0, 3, invoked=invoked))


async def test_the_snooze_ends_when_its_time_is_over(client, tmp_path):
    assert "snoozed until" in await run(client, "draftline.snooze", 10)
    assert not await offers(client)
    assert await offers(client, invoked=True)
    (tmp_path / "clock").write_text("601")
    assert await offers(client)
    await client.until(lambda: client.statuses[-1].quiet == "")


async def test_the_snooze_without_minutes_lasts_until_resumed(client, tmp_path):
    await run(client, "draftline.snooze")
    (tmp_path / "clock").write_text("1e7")
    assert not await offers(client)
    assert await run(client, "draftline.resume") == ""
    assert await offers(client)


@pytest.mark.parametrize("scope", ["file", "language"])
async def test_what_a_command_switched_off_is_off_in_the_next_server_until_it_is_switched_on(
    client, start_client, scope
):
    assert f"off for this {scope}" in await run(client, "draftline.switch", scope, URI)
    assert await client.complete(URI, 0, 3) == []
    await client.stop()
    after = await start_client()
    await after.ready()
    after.open(URI, "x =")
    assert await after.complete(URI, 0, 3) == []
    await after.until(lambda: after.statuses[-1].quiet == f"Completion is switched off for this {scope}.")
    assert "switched on" in await run(after, "draftline.switch", scope, URI, "on")
    assert await after.complete(URI, 0, 3)


async def test_manual_mode_acts_on_the_next_key_and_sends_the_engine_nothing(client, paced):
    assert await offers(client)
    started = len(paced.started)
    configuration = {"draftline": {"trigger": "manual"}}
    client.lsp.workspace_did_change_configuration(types.DidChangeConfigurationParams(configuration))
    for number in range(200):
        client.change(URI, number + 2, (0, number), (0, number), "y")
        assert await client.complete(URI, 0, number + 1) == []
    assert len(paced.started) == started
    assert await client.complete(URI, 0, 203, invoked=True)


async def test_a_wrong_argument_is_answered_with_what_is_right(client):
    with pytest.raises(JsonRpcInvalidParams) as refused:
        await run(client, "draftline.snooze", "long")
    assert refused.value.message == "draftline.snooze takes a number of minutes above 0, or nothing."
    assert "not opened" in await run(client, "draftline.switch", "file", "file:///project/unknown.py")


async def test_the_report_counts_what_each_control_kept_away(client, capsys):
    await run(client, "draftline.snooze", 1)
    for _ in range(3):
        await offers(client)
    await run(client, "draftline.resume")
    await run(client, "draftline.switch", "language", URI, "off")
    await offers(client)
    await client.stop()
    assert main(["report", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["quiet"] == {"snoozed": 3, "off for the language": 1}
    assert main(["report"]) == 0
    assert "Kept away by your quiet controls" in capsys.readouterr().out


async def test_a_file_that_one_editor_switched_off_is_off_in_another_one_that_spells_it_differently(
    client, start_client
):
    in_vscode, in_neovim = "file:///project/%28auth%29/a%2Bb.py", "file:///project/(auth)/a+b.py"
    client.open(in_vscode, "x =")
    await run(client, "draftline.switch", "file", in_vscode)
    await client.stop()
    after = await start_client()
    await after.ready()
    after.open(in_neovim, "x =")
    assert await after.complete(in_neovim, 0, 3) == []
    await run(after, "draftline.switch", "file", in_neovim)
    assert await after.complete(in_neovim, 0, 3)


async def test_an_unsaved_document_is_off_until_it_is_closed_and_a_later_one_of_its_name_is_on(client):
    unsaved = "untitled:Untitled-1"
    client.open(unsaved, "x =")
    assert "off for this file" in await run(client, "draftline.switch", "file", unsaved)
    assert await client.complete(unsaved, 0, 3) == []
    client.lsp.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(unsaved)))
    client.open(unsaved, "x =")
    assert await client.complete(unsaved, 0, 3)
